import type { GroupConfig } from '../../contract/config/config.ts';
import { TOKEN_LENGTH_MAX, type LeaseRequestBody } from '../../contract/caller-api.ts';
import type { LeaseRef, PoolRef } from '../../contract/rpc/group-rpc.ts';
import { BoundedMap } from '../../core/parts/bounded-map.ts';
import type { PastAttempts } from '../attempts/call-attempts.ts';

/** The token of a lease or a ticket: its fields, and how it is signed. */

/** Increase it with each change of what tokens contain. Tokens of other versions are not valid. */
const VERSION = 3;

export type WantedLease = Pick<LeaseRequestBody, 'group' | 'upstream' | 'model' | 'estimate'>;

/** One pool in which a ticket is queued. */
export interface PoolAt extends PoolRef {
  /** The jurisdiction of its group, which locates the object even after the group is deleted. */
  readonly jurisdiction: GroupConfig['jurisdiction'];
}

/** A lease in one pool. */
export interface PoolHold extends Pick<PoolAt, 'jurisdiction'> {
  readonly lease: LeaseRef;
  /** When it expires, in epoch milliseconds. It is part of the token because no client is trusted to report it. */
  readonly expiresAt: number;
  /** Present if the pool represents a provider. */
  readonly isOfProvider?: true;
  readonly wantsServed?: true;
}

export function poolOfToken(
  { group, partition, assumed }: PoolRef,
  jurisdiction: PoolAt['jurisdiction'],
): PoolAt {
  return { group, partition, assumed, jurisdiction };
}

interface TokenHistory {
  /** The caller, whose key must present the token. */
  readonly caller: string;
  readonly ticketId: string;
  readonly attempt: number;
  readonly enqueuedAt: number;
  readonly past: PastAttempts;
}

export interface TicketToken extends TokenHistory {
  /** Slots of the first request. A pool uses these, whatever later requests ask for. */
  readonly slots: number;
  readonly pools: readonly PoolAt[];
}

export interface LeaseToken extends TokenHistory {
  readonly wanted: WantedLease;
  readonly upstream: string;
  readonly slots: number;
  readonly mayWait: boolean;
  /** When it was granted in all its groups. */
  readonly grantedAt: number;
  readonly member: string | null;
  readonly pools: readonly PoolHold[];
}

export function sealLease(fingerprintKey: string, lease: LeaseToken): Promise<string> {
  const id = lease.pools.at(0)?.lease.leaseId ?? lease.ticketId;
  return sealToken(fingerprintKey, 'lease', id, { version: VERSION, ...lease });
}

export function sealTicket(fingerprintKey: string, ticket: TicketToken): Promise<string> {
  return sealToken(fingerprintKey, 'ticket', ticket.ticketId, { version: VERSION, ...ticket });
}

/** Reads a token of this caller. null if it is not valid or belongs to another caller. */
export async function openLease(
  fingerprintKey: string,
  caller: string,
  token: string,
): Promise<LeaseToken | null> {
  return ownOf<LeaseToken>(await openToken(fingerprintKey, 'lease', token), caller);
}

export async function openTicket(
  fingerprintKey: string,
  caller: string,
  token: string,
): Promise<TicketToken | null> {
  return ownOf<TicketToken>(await openToken(fingerprintKey, 'ticket', token), caller);
}

/** The token is signed, so its content was written here. */
function ownOf<T extends TokenHistory>(opened: unknown, caller: string): T | null {
  const found = opened as (T & { readonly version: number }) | null;
  return found?.version === VERSION && found.caller === caller ? found : null;
}

/** The kind is signed too, so that one token is never accepted as the other. */
type TokenKind = 'lease' | 'ticket';

/** Deployments have one key, tests a few. */
const KEYS_MAX = 10;

const encoder = new TextEncoder();
const keys = new BoundedMap<string, CryptoKey>(KEYS_MAX);

/**
 * Writes a token: a readable id, the state for the next request, and a signature under the deployment's key. The holder
 * can read the token, but cannot change it.
 */
async function sealToken(
  fingerprintKey: string,
  kind: TokenKind,
  id: string,
  payload: object,
): Promise<string> {
  const packed = encoder.encode(JSON.stringify(payload)).toBase64({ alphabet: 'base64url' });
  const signed = `${id}.${packed.replace(/=+$/, '')}`;
  const key = await keyOf(fingerprintKey);
  const mac = await crypto.subtle.sign('HMAC', key, encoder.encode(`${kind} ${signed}`));
  return `${signed}.${base64url(new Uint8Array(mac))}`;
}

/** Reads a token that was written here. null if it was not, or it is of another kind. */
async function openToken(fingerprintKey: string, kind: TokenKind, token: string): Promise<unknown> {
  if (token.length > TOKEN_LENGTH_MAX) return null;
  const macAt = token.lastIndexOf('.');
  const packedAt = token.lastIndexOf('.', macAt - 1);
  if (packedAt < 1) return null;
  const signed = token.slice(0, macAt);
  try {
    const mac = Uint8Array.fromBase64(token.slice(macAt + 1), { alphabet: 'base64url' });
    const key = await keyOf(fingerprintKey);
    const isOurs = await crypto.subtle.verify(
      'HMAC',
      key,
      mac,
      encoder.encode(`${kind} ${signed}`),
    );
    if (!isOurs) return null;
    const packed = Uint8Array.fromBase64(signed.slice(packedAt + 1), { alphabet: 'base64url' });
    return JSON.parse(new TextDecoder().decode(packed)) as unknown;
  } catch {
    return null;
  }
}

/**
 * Derives the id of a ticket from the name that its caller gave it. Equal names give equal ids, and the id cannot be
 * guessed.
 */
export async function ticketIdOf(fingerprintKey: string, text: string): Promise<string> {
  const key = await keyOf(fingerprintKey);
  const mac = await crypto.subtle.sign('HMAC', key, encoder.encode(`id ${text}`));
  return base64url(new Uint8Array(mac).subarray(0, 18));
}

function base64url(bytes: Uint8Array): string {
  return bytes.toBase64({ alphabet: 'base64url', omitPadding: true });
}

/** Derives the key of tokens, so that they reveal nothing about the deployment's key to its other uses. */
async function keyOf(fingerprintKey: string): Promise<CryptoKey> {
  const known = keys.get(fingerprintKey);
  if (known !== undefined) return known;
  const own = await hmacKey(Uint8Array.fromBase64(fingerprintKey));
  const derived = await crypto.subtle.sign('HMAC', own, encoder.encode('headgate lease tokens'));
  const key = await hmacKey(derived);
  keys.set(fingerprintKey, key);
  return key;
}

function hmacKey(bytes: BufferSource): Promise<CryptoKey> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  return crypto.subtle.importKey('raw', bytes, algorithm, false, ['sign', 'verify']);
}
