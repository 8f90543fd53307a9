import type { Effect, GroupEvent } from './events.ts';
import { estimateWaitMs, retryAfterMs } from './estimate.ts';
import { after, instant, type InstantMs, type TicketId } from './ids.ts';
import { attach, openLease } from './leases.ts';
import { dequeue, enqueue, firstReady, type Waiter } from './queue.ts';
import type { Rejection } from './rejection.ts';
import { ORPHAN_GRACE_MS, WAITERS_MAX } from './settings.ts';
import { hasRoom, NEVER, type GroupState } from './state.ts';
import type { Ticket } from './ticket.ts';

type Acquire = Extract<GroupEvent, { kind: 'acquire' }>;

/**
 * Takes a ticket's ask in. Idempotent by the lease id: an attempt that has a lease gets the same one
 * under a new attachment, one that waits keeps its place, one that ended stays ended.
 */
export function joinQueue(
  state: GroupState,
  event: Acquire,
  now: InstantMs,
  effects: Effect[],
): void {
  const { ticket, leaseId } = event;
  // What fell due for the ticket at this instant, its slice or its deadline, answers this ask too.
  if (effects.some((effect) => 'ticketId' in effect && effect.ticketId === ticket.id)) return;
  if (state.tombstones.has(leaseId) || state.tombstones.has(ticket.id)) {
    effects.push({ kind: 'gone', ticketId: ticket.id });
    return;
  }
  const lease = state.leases.get(leaseId);
  if (lease?.phase === 'held') {
    attach(state, lease, now, effects);
    effects.push({ kind: 'grant', ticketId: ticket.id, lease });
    return;
  }
  if (lease !== undefined) {
    // An operator has taken it away: nobody may begin with it any more.
    effects.push({ kind: 'gone', ticketId: ticket.id });
    return;
  }
  const known = state.queue.byTicket.get(ticket.id);
  const waiter = known ?? newWaiter(state, event, now);
  waiter.sliceEndsAt = after(now, event.sliceMs);
  if (known === undefined) enqueue(state.queue, waiter);
  noteDue(state, waiter);
  pump(state, now, effects);
  if (known === undefined && state.queue.byTicket.has(ticket.id)) turnAway(state, waiter, effects);
}

/** Grants as long as there is room and somebody is there to take it. */
export function pump(state: GroupState, now: InstantMs, effects: Effect[]): void {
  while (hasRoom(state, now)) {
    const waiter = firstReady(state.queue);
    if (waiter === undefined) return;
    leaveQueue(state, waiter);
    const { ticket } = waiter;
    const lease = openLease(state, waiter.leaseId, ticket.id, ticket.holder, now);
    state.totals.granted += 1;
    effects.push({ kind: 'save', lease }, { kind: 'grant', ticketId: ticket.id, lease });
  }
}

/** Ends slices, drops waiters whose caller has gone, rejects those at their deadline. */
export function expireWaiters(state: GroupState, now: InstantMs, effects: Effect[]): void {
  if (now < state.waitersDueAt) return;
  state.waitersDueAt = NEVER;
  for (const waiter of state.queue.line.slice()) {
    if (now >= waiter.deadlineAt) {
      reject(state, waiter, timeoutOf(state, waiter.ticket, now), effects);
    } else if (waiter.sliceEndsAt === null && now >= waiter.orphanAt) {
      leaveQueue(state, waiter);
    } else {
      if (waiter.sliceEndsAt !== null && now >= waiter.sliceEndsAt) {
        waiter.sliceEndsAt = null;
        // From now on: where the process was held up, the slice may have been over for long.
        waiter.orphanAt = after(now, ORPHAN_GRACE_MS);
        effects.push({
          kind: 'pending',
          ticketId: waiter.ticket.id,
          ...standing(state, waiter.ticket.id),
        });
      }
      noteDue(state, waiter);
    }
  }
}

/** Takes out a waiter whose attempt has ended, and lets go of whoever is parked behind it. */
export function dismiss(state: GroupState, waiter: Waiter, effects: Effect[]): void {
  leaveQueue(state, waiter);
  effects.push({ kind: 'gone', ticketId: waiter.ticket.id });
}

export function leaveQueue(state: GroupState, waiter: Waiter): void {
  dequeue(state.queue, waiter);
}

/** Where a ticket stands, and how long it may take from there. */
export function standing(
  state: GroupState,
  ticketId: TicketId,
): { readonly position: number; readonly estimateMs: number } {
  const position = Math.max(
    0,
    state.queue.line.findIndex((waiter) => waiter.ticket.id === ticketId),
  );
  return { position, estimateMs: estimateWaitMs(state, position) };
}

function newWaiter(state: GroupState, event: Acquire, now: InstantMs): Waiter {
  const { ticket } = event;
  // A claim from the future would be a place behind everybody, one from the far past a place before.
  const earliest = now - state.settings.timeoutMs;
  const enqueuedAt = instant(Math.min(Math.max(ticket.enqueuedAt, earliest), now + 1));
  const deadlineAt = instant(
    Math.min(ticket.deadlineAt ?? Infinity, after(enqueuedAt, state.settings.timeoutMs)),
  );
  return {
    ticket: { ...ticket, enqueuedAt },
    leaseId: event.leaseId,
    sequence: state.nextSequence++,
    deadlineAt,
    sliceEndsAt: null,
    orphanAt: now,
  };
}

/** Refuses a newcomer that cannot be granted now: it would not wait, or the queue has no place. */
function turnAway(state: GroupState, waiter: Waiter, effects: Effect[]): void {
  const { settings } = state;
  const queueLengthMax = Math.min(settings.queueLengthMax, WAITERS_MAX);
  if (!waiter.ticket.wait) {
    const retry = retryAfterMs(state);
    reject(
      state,
      waiter,
      settings.paused
        ? { reason: 'paused', waitedMs: 0, retryAfterMs: retry }
        : { reason: 'busy', slotsMax: settings.slotsMax, retryAfterMs: retry },
      effects,
    );
  } else if (state.queue.line.length > queueLengthMax) {
    reject(
      state,
      waiter,
      { reason: 'queue_full', queueLengthMax, retryAfterMs: retryAfterMs(state) },
      effects,
    );
  }
}

function timeoutOf(state: GroupState, ticket: Ticket, now: InstantMs): Rejection {
  return {
    reason: state.settings.paused ? 'paused' : 'queue_timeout',
    waitedMs: Math.max(0, Math.round(now - ticket.enqueuedAt)),
    retryAfterMs: retryAfterMs(state),
  };
}

function reject(state: GroupState, waiter: Waiter, rejection: Rejection, effects: Effect[]): void {
  leaveQueue(state, waiter);
  const { rejected } = state.totals;
  rejected[rejection.reason] = (rejected[rejection.reason] ?? 0) + 1;
  effects.push({ kind: 'reject', ticketId: waiter.ticket.id, rejection });
}

function noteDue(state: GroupState, waiter: Waiter): void {
  state.waitersDueAt = instant(
    Math.min(state.waitersDueAt, waiter.deadlineAt, waiter.sliceEndsAt ?? waiter.orphanAt),
  );
}
