import type { GroupConfig } from '../../contract/config/config.ts';
import type { LeaseRequestBody } from '../../contract/leases.ts';
import type { LeaseRef, PoolRef } from '../../contract/rpc/group-rpc.ts';
import type { PastAttempts } from '../attempts/call-attempts.ts';
import { openToken, sealToken } from './signed-token.ts';

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
