import type { AcquireRequest, GiveBackRequest } from '../contract/rpc/group-rpc.ts';
import { after, ticketOf, type InstantMs } from '../core/words/ids.ts';
import type { Claim } from '../core/orphaned.ts';
import type { Ticket } from '../core/words/ticket.ts';

/**
 * Maximum transit time of an acquire call. A Worker whose clock seems to be behind by less counts as synchronous: a
 * busy object takes seconds to read a message, and that time must not extend the caller's wait.
 */
const TRANSIT_MS_MAX = 4_000;

/**
 * Maximum by which a Worker's clock may be ahead without its times being converted. Clocks ignore smaller steps back,
 * and the caller still receives its answer before its Worker gives up, 2 s after the deadline.
 */
const AHEAD_MS_MAX = 1_000;

/**
 * Returns the ticket of an acquire call that arrived at `now`. If the Worker's clock differs, its times are converted.
 *
 * @param aheadMs how far the clock of `now` is ahead of the wall clock
 */
export function ticketFrom(request: AcquireRequest, now: InstantMs, aheadMs = 0): Ticket {
  const { ticket } = request;
  const skewMs = skewOf(request, now, aheadMs);
  if (skewMs === 0) return ticket;
  const { enqueuedAt, agentStartedAt, deadlineAt } = ticket;
  return {
    ...ticket,
    enqueuedAt: after(enqueuedAt, -skewMs),
    agentStartedAt: agentStartedAt === null ? null : after(agentStartedAt, -skewMs),
    deadlineAt: deadlineAt === null ? null : after(deadlineAt, -skewMs),
  };
}

/**
 * Returns how far a Worker's clock is ahead of the object's. Both follow the wall clock and are ahead of it by the
 * steps back that each has noticed. Any further difference of `sentAt` is transit time, unless it exceeds the maximum.
 */
function skewOf(
  { sentAt, clockAheadMs = 0 }: AcquireRequest,
  now: InstantMs,
  aheadMs: number,
): number {
  if (sentAt === undefined) return 0;
  const skewMs = clockAheadMs - aheadMs;
  const restMs = sentAt - now - skewMs;
  return restMs < -TRANSIT_MS_MAX || restMs > AHEAD_MS_MAX ? sentAt - now : skewMs;
}

/**
 * Converts when a lease was granted or expires to the clock of its holder, which sent `sentAt`. The result is never
 * later than `at`, because the transit time counts as elapsed.
 */
export function instantBy(sentAt: number | undefined, arrivedAt: InstantMs, at: number): number {
  return sentAt === undefined ? at : sentAt + at - arrivedAt;
}

/** Builds the claims of returned prefetched slots, which have no holder any more. */
export function claimsFrom({ slots, hasLapsed }: GiveBackRequest): Claim[] {
  const holder = { caller: '', tenant: '', agent: null, upstream: '', model: null };
  const none = {
    holder,
    lane: 'normal',
    slots: 1,
    nested: null,
    heirOf: [],
    reserved: null,
  } as const;
  return slots.map(({ slot, attachment }) => ({
    ...none,
    leaseId: slot,
    ticketId: ticketOf(slot),
    attachment,
    hasLapsed,
    heldMs: 0,
  }));
}
