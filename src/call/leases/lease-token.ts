import type { GroupConfig } from '../../contract/config/config.ts';
import type { LeaseRequestBody } from '../../contract/leases.ts';
import type { AssumedLimit, ResumeRequest } from '../../contract/rpc/group-rpc.ts';
import type { Lane } from '../../core/words/ticket.ts';
import { openToken, sealToken } from './signed-token.ts';

/** Rises when what older Workers wrote cannot be read any more: they run for minutes beside newer ones. */
const VERSION = 1;

/** The place of a lease, as its caller said it. */
export type WantedLease = Pick<LeaseRequestBody, 'group' | 'upstream' | 'model' | 'estimate'>;

/** One pool in which a ticket waits, or a lease holds slots. */
export interface PoolAt {
  readonly group: string;
  readonly partition: string | null;
  readonly assumed: AssumedLimit | null;
  /** That of its group, by which its object is found once the group is deleted. */
  readonly jurisdiction: GroupConfig['jurisdiction'];
}

/** The hold of a lease in one pool. */
export interface PoolHold extends PoolAt {
  readonly leaseId: string;
  readonly tenant: string;
  readonly lane: Lane;
  readonly attachment: number;
  /** When it lapses, in epoch milliseconds: nobody is trusted to say so. */
  readonly expiresAt: number;
  readonly member?: string;
  readonly nested?: NonNullable<ResumeRequest['nested']>;
  readonly reserved?: NonNullable<ResumeRequest['reserved']>;
  /** It stands for something of a provider. */
  readonly isOfProvider?: true;
  readonly wantsServed?: true;
}

/** The past of a call, kept while it goes on. */
interface TokenHistory {
  /** The caller, whose key alone it is good for. */
  readonly caller: string;
  readonly ticketId: string;
  readonly attempt: number;
  readonly enqueuedAt: number;
  /** How often it came back after a refusal, and after an error. */
  readonly reentered: number;
  readonly retried: number;
  /** Members that have refused it, and those of them that did for what passes. */
  readonly refusedBy: readonly string[];
  readonly refusedForNow: readonly string[];
}

export interface TicketToken extends TokenHistory {
  /** Slots that it was first asked with. A pool goes by these, whatever it is asked with later. */
  readonly slots: number;
  readonly pools: readonly PoolAt[];
}

export interface LeaseToken extends TokenHistory {
  readonly wanted: WantedLease;
  readonly upstream: string;
  readonly agent: string | null;
  readonly slots: number;
  readonly mayWait: boolean;
  /** When it was granted in all its groups. */
  readonly grantedAt: number;
  readonly member: string | null;
  readonly pools: readonly PoolHold[];
}

/** Writes what a lease is renewed and released by. */
export function sealLease(fingerprintKey: string, lease: LeaseToken): Promise<string> {
  const id = lease.pools.at(0)?.leaseId ?? lease.ticketId;
  return sealToken(fingerprintKey, 'lease', id, { version: VERSION, ...lease });
}

/** Writes what a place in the queue is asked for by. */
export function sealTicket(fingerprintKey: string, ticket: TicketToken): Promise<string> {
  return sealToken(fingerprintKey, 'ticket', ticket.ticketId, { version: VERSION, ...ticket });
}

/** Reads them again, for the caller that they were written for. Null: it is none of its. */
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

/** It is signed, so whatever is in it was written here. */
function ownOf<T extends TokenHistory>(opened: unknown, caller: string): T | null {
  const found = opened as (T & { readonly version: number }) | null;
  return found?.version === VERSION && found.caller === caller ? found : null;
}
