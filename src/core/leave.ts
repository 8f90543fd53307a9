import { isStopped } from './capacity.ts';
import type { Effect } from './events.ts';
import type { InstantMs, TicketId } from './words/ids.ts';
import { dequeue, type Waiter } from './parts/queue.ts';
import { noteDeparture, noteRejection } from './stats.ts';
import type { Rejection } from './words/rejection.ts';
import type { GroupState } from './state.ts';

/** The ways out of the queue, but for the grant. */

/** Rejects somebody who waits. */
export function turnAway(
  state: GroupState,
  waiter: Waiter,
  rejection: Rejection,
  now: InstantMs,
  effects: Effect[],
): void {
  dequeue(state.queue, waiter);
  noteRejection(state, waiter, rejection, now);
  reject(state, waiter.ticket.id, rejection, effects);
}

/** Rejects a ticket that does not stand in the queue. */
export function reject(
  state: GroupState,
  ticketId: TicketId,
  rejection: Rejection,
  effects: Effect[],
): void {
  const { rejected } = state.totals;
  rejected[rejection.reason] = (rejected[rejection.reason] ?? 0) + 1;
  effects.push({ kind: 'reject', ticketId, rejection });
}

/** Lets a waiter go that may not wait here as things are, without counting it as refused. */
export function decline(
  state: GroupState,
  waiter: Waiter,
  now: InstantMs,
  effects: Effect[],
): void {
  dequeue(state.queue, waiter);
  if (!waiter.ticket.isTry) noteDeparture(state, waiter, 'declined', now);
  const isPaused = isStopped(state, now);
  effects.push({ kind: 'declined', ticketId: waiter.ticket.id, isPaused });
}

/** Takes out a waiter whose call may go another way from now on. */
export function sendBack(
  state: GroupState,
  waiter: Waiter,
  now: InstantMs,
  effects: Effect[],
): void {
  dequeue(state.queue, waiter);
  noteDeparture(state, waiter, 'moved', now);
  effects.push({ kind: 'moved', ticketId: waiter.ticket.id });
}

/** Takes out a waiter whose attempt has ended, and lets go of whoever is parked behind it. */
export function dismiss(
  state: GroupState,
  waiter: Waiter,
  now: InstantMs,
  effects: Effect[],
): void {
  letGo(state, waiter, now);
  effects.push({ kind: 'gone', ticketId: waiter.ticket.id });
}

/** Takes out a waiter that nobody waits behind any more. */
export function letGo(state: GroupState, waiter: Waiter, now: InstantMs): void {
  dequeue(state.queue, waiter);
  noteDeparture(state, waiter, 'left', now);
}
