import type { LeaseId, InstantMs } from './words/ids.ts';
import type { Invariant } from './parts/totals.ts';
import { memberSlotsMaxAt } from './capacity.ts';
import type { Member } from './member.ts';
import { isSplit } from './members.ts';
import type { GroupState } from './state.ts';

/**
 * The promises of `INVARIANTS`, checked where the group runs: a comparison or two for each grant and each end.
 * One that is broken is counted and told; nothing else changes by it.
 */

/** Counts a promise that was broken. */
export function countViolation({ totals }: GroupState, invariant: Invariant): void {
  totals.violations[invariant] += 1;
}

/** Slots that the bound has to cover: those in use, and those of leases that pass on them and may outlive that. */
export function slotsHeld({ slotsInUse, slotsNested }: GroupState): number {
  return slotsInUse + slotsNested;
}

/**
 * Checks that a grant of `slots` takes neither its member nor the group beyond its limit; alone, a call may be wider than what was
 * learned. The sum that grants go by may be what is wrong, so leases are counted too: each has a slot at least, but
 * for those that pass on another's.
 */
export function checkLimit(state: GroupState, member: Member, slots: number, now: InstantMs): void {
  if (slots === 0 || state.settings.isDryRun) return;
  const { slotsInUse, slotsNested, leases, lending: prefetching, unclaimed, settings } = state;
  const inUse = Math.max(
    slotsInUse,
    leases.size - slotsNested + prefetching.slots + unclaimed.slots,
  );
  // Of one member it is the same as of the group, and counted twice over.
  const here = isSplit(state) ? member.slotsInUse : inUse;
  const isAbove = here !== slots && here > memberSlotsMaxAt(member, now);
  const isAboveAll = isSplit(state) && inUse !== slots && inUse > settings.slotsMax;
  if (isAbove || isAboveAll) countViolation(state, 'above_limit');
}

/** Checks that no more is held than a mark covers, now that an answer with a lease leaves behind it. */
export function checkMark(state: GroupState, mark: number): void {
  if (state.bound.isStored && slotsHeld(state) > mark) countViolation(state, 'above_mark');
}

/** Checks that a lease which is made is not there, and has not ended. */
export function checkNew(state: GroupState, id: LeaseId): void {
  if (state.leases.has(id) || state.tombstones.has(id)) countViolation(state, 'granted_twice');
}
