import type { InstantMs, TicketId } from './words/ids.ts';
import type { Rejection } from './words/rejection.ts';
import type { WaitReason } from './parts/decision-log.ts';
import { dequeue, type Waiter } from './parts/queue.ts';
import type { Effect } from './events.ts';
import type { GroupState } from './state.ts';
import { noteDeparture, noteRejection } from './stats.ts';

/** How a waiter leaves the queue without slots. */
type Departure =
  | { readonly kind: 'rejected'; readonly rejection: Rejection }
  /** It was an `isTry` call, and would have to wait. */
  | { readonly kind: 'declined'; readonly waitMs: number | null }
  /** It must be routed again. */
  | { readonly kind: 'moved' }
  /** Its attempt has ended, and its caller may still be parked. */
  | { readonly kind: 'gone' }
  /** No acquire call is parked for it any more, so no answer is sent. */
  | { readonly kind: 'left' };

export function rejected(rejection: Rejection): Departure {
  return { kind: 'rejected', rejection };
}

/** Removes a waiter from the queue, logs the reason, and answers its parked acquire call. */
export function leave(
  state: GroupState,
  waiter: Waiter,
  how: Departure,
  now: InstantMs,
  effects: Effect[],
): void {
  const { id: ticketId } = waiter.ticket;
  dequeue(state.queue, waiter);
  if (how.kind !== 'declined') {
    waiter.tenant.activeAt = now;
    waiter.agent.activeAt = now;
  }
  switch (how.kind) {
    case 'rejected':
      noteRejection(state, waiter, how.rejection, now);
      reject(state, ticketId, how.rejection, effects, waitedFor(waiter, now));
      break;
    case 'declined':
      // A declined `isTry` call leaves no trace.
      effects.push({ kind: 'declined', ticketId, waitMs: how.waitMs });
      break;
    case 'moved':
      noteDeparture(state, waiter, 'moved', now);
      effects.push({ kind: 'moved', ticketId });
      break;
    case 'gone':
      noteDeparture(state, waiter, 'left', now);
      effects.push({ kind: 'gone', ticketId });
      break;
    case 'left':
      noteDeparture(state, waiter, 'left', now);
      break;
  }
}

/** Rejects a ticket that is not in the queue. */
export function reject(
  state: GroupState,
  ticketId: TicketId,
  rejection: Rejection,
  effects: Effect[],
  waited: { readonly waitedFor?: WaitReason } = {},
): void {
  const { rejected: counts } = state.totals;
  counts[rejection.reason] = (counts[rejection.reason] ?? 0) + 1;
  effects.push({ kind: 'reject', ticketId, rejection, ...waited });
}

/**
 * Returns the wait reason of a waiter that leaves the queue. Empty if it arrived at this instant, or if no reason was
 * noted.
 */
export function waitedFor(
  { arrival, arrivedAt }: Pick<Waiter, 'arrival' | 'arrivedAt'>,
  now: InstantMs,
): { readonly waitedFor?: WaitReason } {
  if (arrival === null || now <= arrivedAt) return {};
  const { cause, scope } = arrival;
  return { waitedFor: { cause, ...(scope !== undefined && { scope }) } };
}
