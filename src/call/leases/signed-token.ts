import { TICKET_LENGTH_MAX } from '../../contract/leases.ts';
import { BoundedMap } from '../../core/parts/bounded-map.ts';

/** The kind is signed too, so that one token is never accepted as the other. */
export type TokenKind = 'lease' | 'ticket';

/** Maximum lengths. A lease token has the names that the caller chose once per pool. */
const LENGTH_MAX: Readonly<Record<TokenKind, number>> = {
  lease: 16_384,
  ticket: TICKET_LENGTH_MAX,
};

/** Deployments have one key, tests a few. */
const KEYS_MAX = 10;

const encoder = new TextEncoder();
const keys = new BoundedMap<string, CryptoKey>(KEYS_MAX);

/**
 * Writes a token: a readable id, the state for the next request, and a signature under the deployment's key. The holder
 * can read the token, but cannot change it.
 */
export async function sealToken(
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
export async function openToken(
  fingerprintKey: string,
  kind: TokenKind,
  token: string,
): Promise<unknown> {
  if (token.length > LENGTH_MAX[kind]) return null;
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
