import type {
  AcquireAnswer,
  AcquireRequest,
  GroupRpc,
  LeaseRef,
  PoolRef,
  ReplacedInstance,
  ResumeRequest,
} from '../contract/rpc/group-rpc.ts';
import type { CallNotes, LeaseOutcome } from '../core/words/outcome.ts';
import type { Settlement } from '../core/words/ticket.ts';
import { pause, within, steadyClock, type Schedule } from '../runtime/async.ts';

/** Leases as their holders know them. Calls, runs and leases over HTTP renew and release them by id in this way. */

/** A lease with its times, by the clock of its holder. */
export interface HeldLease {
  readonly lease: LeaseRef;
  readonly grantedAt: number;
  /** When it expires unless it is renewed. */
  readonly expiresAt: number;
}

type Granted = Pick<
  Extract<AcquireAnswer, { kind: 'granted' }>,
  'leaseId' | 'member' | 'attachment' | 'nested' | 'heirOf' | 'reserved'
>;

/** The lease that the answer to an acquire call brought. */
export function leaseOf(
  { group, partition, assumed, ticket }: PoolRef & Pick<AcquireRequest, 'ticket'>,
  { leaseId, member, attachment, nested, heirOf, reserved }: Granted,
): LeaseRef {
  const { id: ticketId, holder, lane, slots, isById } = ticket;
  const of = { group, partition, assumed, leaseId, ticketId, holder, lane, slots };
  return {
    ...of,
    ...(member !== undefined && { member }),
    attachment,
    nested: nested ?? null,
    heirOf: heirOf ?? [],
    reserved: reserved ?? null,
    ...(isById === true && { isById }),
  };
}

/** The lease as its holder reports it now, to an instance that may not know it. */
export function claimNow({ lease, grantedAt, expiresAt }: HeldLease): ResumeRequest {
  const now = steadyClock.now();
  const heldMs = Math.max(0, now - grantedAt);
  return { ...lease, heldMs, hasLapsed: now >= expiresAt, sentAt: now };
}

export type Renewal<Held> =
  | { readonly kind: 'ok'; readonly held: Held }
  | { readonly kind: 'revoking' }
  | { readonly kind: 'gone' };

/**
 * Renews a lease by its id.
 *
 * @throws if the pool cannot be reached, or only an instance that was replaced
 */
export async function renewById<Held extends HeldLease>(
  pool: Pick<GroupRpc, 'renew'>,
  held: Held,
  status: number | null,
): Promise<Renewal<Held>> {
  const { lease } = held;
  const answer = await pool.renew(lease.leaseId, status, claimNow(held));
  switch (answer.kind) {
    case 'ok': {
      const { attachment, expiresAt } = answer;
      return { kind: 'ok', held: { ...held, lease: { ...lease, attachment }, expiresAt } };
    }
    case 'revoking':
      return answer;
    case 'gone':
      checkGone(answer, lease);
      return { kind: 'gone' };
  }
}

/** @throws if the instance that reports a lease as gone was replaced by the one that granted or resumed it */
export function checkGone(
  { attachment }: ReplacedInstance,
  { attachment: known }: Pick<LeaseRef, 'attachment'>,
): void {
  if (attachment < (known ?? 0)) throw new Error('a replaced instance reported the lease as gone');
}

interface LeaseEnding {
  readonly outcome: LeaseOutcome;
  /** Status of the upstream. null if unknown. */
  readonly status: number | null;
  readonly settlement?: Settlement | undefined;
  readonly notes?: CallNotes | undefined;
}

/** Releases a lease by its id. An instance that does not know the lease frees its slots by the claim. */
export function releaseById(
  pool: Pick<GroupRpc, 'release'>,
  claim: ResumeRequest,
  { outcome, status, settlement, notes }: LeaseEnding,
): Promise<void> {
  const noted = notes === undefined ? [] : ([notes] as const);
  return pool.release(claim.leaseId, outcome, status, settlement, claim, ...noted);
}

/**
 * Sends the last message about a lease, and again after each pause until it arrives. After the last attempt the TTL
 * ends the lease. The pauses include the attempts, so all together take no longer: ended leases are remembered for 30 s
 * after a reset.
 */
export async function sendLast(
  send: () => Promise<void>,
  lostMs: number,
  pausesMs: readonly number[],
  after?: Schedule,
): Promise<void> {
  let dueAt = steadyClock.now();
  for (const pauseMs of [0, ...pausesMs]) {
    dueAt += pauseMs;
    const earlyMs = dueAt - steadyClock.now();
    if (earlyMs > 0) await pause(earlyMs, after);
    try {
      return await within(lostMs, send(), after);
    } catch {
      // Retried after the next pause.
    }
  }
}
