import type { InstantMs } from './words/ids.ts';
import { confirm, isRingDue, issue, marginOf, type Bound, type BoundRow } from './parts/bound.ts';
import { setAhead, type Amounts } from './parts/ahead.ts';
import { queueLength } from './parts/queue.ts';
import { leftOf } from './parts/rates.ts';
import { slotsLearned } from './capacity.ts';
import type { Controls } from './controls.ts';
import { listHeirs } from './heirs.ts';
import type { GroupState } from './state.ts';
import { slotsHeld } from './violations.ts';

/** How long tallies are not written again while the group is in use: they are large, and no limit needs them. */
const TALLIES_EVERY_MS = 10_000;

/** All that a group writes at once. */
export interface GroupWrite {
  readonly bound: BoundRow;
  /** The bound goes into the ring. */
  readonly isInRing: boolean;
  /** Null: the controls' row stays as it is. */
  readonly kept: Kept | null;
}

/** The controls, and what they count as used ahead. */
export interface Kept {
  readonly controls: Controls;
  readonly ahead: Amounts;
}

/** Takes everything that is to be written now. It must be written in the same turn. */
export function takeWrite(state: GroupState, now: InstantMs): GroupWrite {
  const { bound, settings, controls, ahead, nextAttachment, revoking, queue } = state;
  const held = slotsHeld(state);
  const above = margin(state, held, now);
  // Where the next grant is written anyhow, or is not soon, whatever is written of an empty group says so.
  const isIdle = held === 0 && (bound.isEmptyNoted || bound.isSparse || above === 0);
  if (isIdle) bound.since = nextAttachment;
  const isKept = mustKeep(state, isIdle, now);
  const mark = isIdle ? 0 : held + above;
  // As long as those of before are on their way back, there are as many as there were.
  const waiters = Math.max(queueLength(queue), now < state.grantsFrom ? bound.waiters : 0);
  const heirs = listHeirs(state, now);
  const row = { mark, held, next: nextAttachment, waiters, revoking, heirs };
  // The row of the controls carries the bound where both are written: one row instead of two.
  const isInRing = !isKept || isRingDue(bound);
  const issued = issue(bound, row, !isInRing, now);
  if (!isKept) return { bound: issued, isInRing, kept: null };
  state.isControlsDirty = false;
  state.talliesDirtyAt = null;
  const room = leftOf(controls.rates, settings.rates, now);
  return {
    bound: issued,
    isInRing,
    kept: { controls, ahead: setAhead(ahead, settings, room, isIdle) },
  };
}

/** Notes that what was taken under `seq`, and all before it, is on disk. */
export function confirmWrite({ bound }: { readonly bound: Bound }, seq: number): void {
  confirm(bound, seq);
}

function mustKeep(state: GroupState, isIdle: boolean, now: InstantMs): boolean {
  const { isControlsDirty, ahead, talliesDirtyAt } = state;
  if (isControlsDirty || ahead.isOverdrawn) return true;
  return talliesDirtyAt !== null && (isIdle || now - talliesDirtyAt >= TALLIES_EVERY_MS);
}

function margin(state: GroupState, held: number, now: InstantMs): number {
  // Not after a reset: it would be added with each of those that follow.
  if (state.unclaimed.slots > 0) return 0;
  const limit = state.settings.isDryRun ? Infinity : slotsLearned(state);
  return marginOf(state.bound, held, limit, now);
}
