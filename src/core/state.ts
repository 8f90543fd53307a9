import type { InstantMs, LeaseId, TicketId } from './ids.ts';
import { instant } from './ids.ts';
import type { Rejection } from './rejection.ts';
import { HOLD_GUESS_MS, type GroupSettings } from './settings.ts';
import { emptyQueue, type Queue } from './queue.ts';
import type { Holder } from './ticket.ts';

/**
 * A lease is `held` from its grant, `revoking` once an operator took it away and its holder has yet to
 * let go, and `cooling` after its end for as long as the slot stays down. It counts in all three.
 */
type LeasePhase = 'held' | 'revoking' | 'cooling';

export interface Lease {
  readonly id: LeaseId;
  readonly ticketId: TicketId;
  readonly holder: Holder;
  readonly grantedAt: InstantMs;
  phase: LeasePhase;
  /** When it ends by itself: its expiry, or the end of its cool-down. */
  until: InstantMs;
  /** Which answer holds it. Only the disposal of that one frees it. */
  attachment: number;
  /**
   * The expiry that recovery gave it, until its holder renews. It is in the row, so that a second
   * reset does not extend a dead holder's lease again.
   */
  extendedUntil: InstantMs | null;
}

interface Totals {
  granted: number;
  rejected: Partial<Record<Rejection['reason'], number>>;
  /** Leases that ended at their TTL because nobody renewed them. */
  expired: number;
  /** Leases that had lapsed and were taken up again by a holder that still streams. */
  resurrected: number;
}

/**
 * The whole state of one group. Owned by `step`, which changes it in place: nothing else may.
 *
 * Invariants, checked by `checkInvariants`:
 * - Slots in use are the number of leases. There is no counter that could drift from them.
 * - No waiter that a caller stands behind waits while a slot is free and granting is allowed.
 * - A ticket is in the queue or has a lease, never both; an ended attempt has neither.
 */
export interface GroupState {
  settings: GroupSettings;
  readonly leases: Map<LeaseId, Lease>;
  readonly queue: Queue;
  /** Ended attempts and cancelled tickets, and when each is forgotten. Oldest first. */
  readonly tombstones: Map<string, InstantMs>;
  /** Nothing is granted before this: callers of an older instance are still on their way back. */
  grantsFrom: InstantMs;
  /** No lease ends by itself before this. */
  leasesDueAt: InstantMs;
  /** No waiter's slice, grace or deadline ends before this. */
  waitersDueAt: InstantMs;
  /** Mean time that a slot was held, moving with the last calls. */
  holdMeanMs: number;
  nextSequence: number;
  nextAttachment: number;
  readonly totals: Totals;
}

export const NEVER = instant(Number.POSITIVE_INFINITY);

/**
 * A group without leases and waiters.
 *
 * @param firstAttachment must exceed every attachment that an earlier instance gave out
 */
export function emptyState(settings: GroupSettings, firstAttachment: number): GroupState {
  return {
    settings,
    leases: new Map(),
    queue: emptyQueue(),
    tombstones: new Map(),
    grantsFrom: instant(0),
    leasesDueAt: NEVER,
    waitersDueAt: NEVER,
    holdMeanMs: HOLD_GUESS_MS,
    nextSequence: 0,
    nextAttachment: firstAttachment,
    totals: { granted: 0, rejected: {}, expired: 0, resurrected: 0 },
  };
}

/** Slots that leases take up, those that cool down included. */
export function slotsInUse(state: GroupState): number {
  return state.leases.size;
}

/** Whether a slot could be granted now. */
export function hasRoom(state: GroupState, now: InstantMs): boolean {
  return (
    !state.settings.paused &&
    now >= state.grantsFrom &&
    slotsInUse(state) + 1 <= state.settings.slotsMax
  );
}
