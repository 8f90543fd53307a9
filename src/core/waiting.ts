import { after, instant, type InstantMs, type TicketId } from './words/ids.ts';
import {
  DEFERRED_MS,
  HOLD_SAMPLES_MIN,
  NEAR_PLACES,
  ORPHAN_GRACE_MS,
  REPORTED_FROM_PLACE,
} from './words/settings.ts';
import { queueLength, dequeue, type Waiter } from './parts/queue.ts';
import type { Rejection } from './words/outcome.ts';
import type { WaitReason } from './parts/decision-log.ts';
import { estimateWaitMs, waitersAhead } from './estimate.ts';
import type { Effect, GroupEvent } from './events.ts';
import { areSurelyAhead, expectedWaitMs, turnsAhead } from './order.ts';
import { rejectionAtDeadline } from './rejections.ts';
import { holdsByNames, noteCall } from './scopes.ts';
import { NEVER, type GroupState } from './state.ts';
import { queuePlace } from './outlook.ts';
import { noteDeparture, noteRejection } from './stats.ts';

/** Waiters after they entered the queue: parked or deferred, their position, and how they leave. */

type ParkedAcquireEvent = Extract<GroupEvent, { kind: 'acquire' }>;

export function park(
  state: GroupState,
  waiter: Waiter,
  event: ParkedAcquireEvent,
  now: InstantMs,
): void {
  waiter.sliceEndsAt = after(now, event.sliceMs);
  waiter.isAnew = event.isAnew ?? false;
  waiter.agent.lastSeenAt = now;
  noteDue(state, waiter);
}

/** Ends slices, removes waiters whose caller has left, and rejects waiters at their deadline. */
export function expireWaiters(state: GroupState, now: InstantMs, effects: Effect[]): void {
  if (now < state.waitersDueAt) return;
  state.waitersDueAt = NEVER;
  for (const waiter of state.queue.byTicket.values()) {
    if (now >= waiter.deadlineAt) {
      leave(state, waiter, rejected(rejectionAtDeadline(state, waiter, now)), now, effects);
    } else if (waiter.sliceEndsAt === null && now >= waiter.orphanAt) {
      leave(state, waiter, { kind: 'left' }, now, effects);
    } else {
      const isOver = waiter.sliceEndsAt !== null && now >= waiter.sliceEndsAt;
      // Its grace begins now. If the process was frozen, the slice may have ended long ago.
      if (isOver) unpark(state, waiter, null, now, effects);
      else noteDue(state, waiter);
    }
  }
}

/**
 * Asks the callers of queued calls for the names in their bodies once calls are held by names. The calls keep their
 * places. They get no slot until their callers have read the bodies and repeated the acquire call.
 */
export function askForNames(state: GroupState, now: InstantMs, effects: Effect[]): void {
  if (queueLength(state.queue) === 0 || !holdsByNames(state, now)) return;
  for (const waiter of state.queue.byTicket.values()) {
    const { id: ticketId, holder } = waiter.ticket;
    if (holder.isUnread !== true || waiter.sliceEndsAt === null) continue;
    leaveUnparked(state, waiter, 0, now);
    effects.push({ kind: 'unread', ticketId });
  }
}

/** Stores the names of a queued call that were read after it had joined. */
export function noteNamesRead(
  state: GroupState,
  waiter: Waiter,
  { ticket: { holder } }: ParkedAcquireEvent,
  now: InstantMs,
): void {
  if (waiter.ticket.holder.isUnread !== true || holder.isUnread === true) return;
  // Its place in the scheduling order depends on the session that was known at that time.
  const { session: _, ...named } = holder;
  const { session } = waiter.ticket.holder;
  const kept = session === undefined ? named : { ...named, session };
  waiter.ticket = { ...waiter.ticket, holder: kept };
  noteCall(state, holder, now);
}

/**
 * Defers a waiter: answers its acquire call with the time of the next poll, as if it had been parked until then.
 *
 * @returns whether it was deferred
 */
export function letGo(
  state: GroupState,
  waiter: Waiter,
  { mayAskLater = false, sliceMs }: ParkedAcquireEvent,
  now: InstantMs,
  effects: Effect[],
): boolean {
  if (!mayAskLater || !isWaiting(state, waiter) || !isDeferred(state, waiter, now)) return false;
  // A waiter whose deadline is near stays parked, so that its caller receives the rejection.
  if (waiter.deadlineAt <= after(now, sliceMs + ORPHAN_GRACE_MS)) return false;
  unpark(state, waiter, sliceMs, now, effects);
  return true;
}

/** Whether a waiter may be deferred. A nested call may not, because it may share its parent's slots at any time. */
function isDeferred(state: GroupState, waiter: Waiter, now: InstantMs): boolean {
  if (waiter.ticket.parents.length > 0) return false;
  // Too high an estimate would leave slots free, in a new group and after each reset.
  if (state.holdSamples < HOLD_SAMPLES_MIN) return false;
  const likely = turnsAhead(state, waiter, now);
  const enough = isDeferredAt(state, likely, now);
  // The estimate also counts waiters that its share, its lane or a reservation may let it overtake.
  return likely >= enough && areSurelyAhead(state, waiter, enough, now);
}

/**
 * Finds by bisection the smallest number of waiters ahead with an expected wait above `DEFERRED_MS`. `most` + 1 if
 * there is none.
 */
function isDeferredAt(state: GroupState, most: number, now: InstantMs): number {
  let low = NEAR_PLACES;
  let high = most + 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (estimateWaitMs(state, middle, now) > DEFERRED_MS) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * Answers a new call with many waiters ahead once, so that it knows its position if the pool is reset. Callers that
 * return while the group settles already know it.
 */
export function reportPosition(
  state: GroupState,
  waiter: Waiter,
  { mayAskLater = false }: ParkedAcquireEvent,
  now: InstantMs,
  effects: Effect[],
): void {
  if (!mayAskLater || now < state.grantsFrom || !isWaiting(state, waiter)) return;
  if (waitersAhead(state, waiter) < REPORTED_FROM_PLACE) return;
  unpark(state, waiter, null, now, effects);
}

/** Declines an `isTry` call for a ticket that is queued here by an earlier acquire call. It keeps its place. */
export function declineInPlace(
  state: GroupState,
  waiter: Waiter,
  now: InstantMs,
  effects: Effect[],
): void {
  if (!isWaiting(state, waiter)) return;
  leaveUnparked(state, waiter, 0, now);
  const waitMs = expectedWaitMs(state, waiter, now);
  effects.push({ kind: 'declined', ticketId: waiter.ticket.id, waitMs });
}

function isWaiting({ queue }: GroupState, waiter: Waiter): boolean {
  return queue.byTicket.get(waiter.ticket.id) === waiter;
}

/**
 * Answers the parked acquire call of a waiter, which keeps its place. Its caller polls after `askAgainMs`, or at once.
 */
function unpark(
  state: GroupState,
  waiter: Waiter,
  askAgainMs: number | null,
  now: InstantMs,
  effects: Effect[],
): void {
  const { id: ticketId } = waiter.ticket;
  leaveUnparked(state, waiter, askAgainMs ?? 0, now);
  effects.push({ kind: 'pending', ticketId, ...queuePlace(state, ticketId, now), askAgainMs });
}

function leaveUnparked(state: GroupState, waiter: Waiter, forMs: number, now: InstantMs): void {
  waiter.sliceEndsAt = null;
  waiter.orphanAt = after(now, forMs + ORPHAN_GRACE_MS);
  noteDue(state, waiter);
}

function noteDue(state: GroupState, waiter: Waiter): void {
  state.waitersDueAt = instant(
    Math.min(state.waitersDueAt, waiter.deadlineAt, waiter.sliceEndsAt ?? waiter.orphanAt),
  );
}

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
