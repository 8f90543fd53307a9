import type { LeaseId, InstantMs } from './words/ids.ts';
import type { Invariant } from './parts/totals.ts';
import { memberSlotsMaxAt } from './capacity.ts';
import type { Member } from './member.ts';
import { isSplit } from './members.ts';
import type { GroupState } from './state.ts';

/**
 * Checks the promises of `INVARIANTS` in production, with a comparison or two for each grant and each end. A broken
 * promise is counted and reported, and changes nothing else.
 */

export function countViolation({ totals }: GroupState, invariant: Invariant): void {
  totals.violations[invariant] += 1;
}

/** Slots that the bound must cover: those in use, and those of nested leases that may outlive their parents. */
export function slotsHeld({ slotsInUse, slotsNested }: GroupState): number {
  return slotsInUse + slotsNested;
}

/**
 * Checks that a grant exceeds neither its member's limit nor the group's. A call that runs alone may be wider than the
 * learned limit. The sum of slots may itself be wrong, so leases are counted too. Each has at least one slot, except
 * nested ones.
 */
export function checkLimit(state: GroupState, member: Member, slots: number, now: InstantMs): void {
  if (slots === 0 || state.settings.isDryRun) return;
  const { slotsInUse, slotsNested, leases, lending: prefetching, unclaimed, settings } = state;
  const inUse = Math.max(
    slotsInUse,
    leases.size - slotsNested + prefetching.slots + unclaimed.slots,
  );
  // Without members, the member and the group have the same count, with two sources.
  const here = isSplit(state) ? member.slotsInUse : inUse;
  const isAbove = here !== slots && here > memberSlotsMaxAt(member, now);
  const isAboveAll = isSplit(state) && inUse !== slots && inUse > settings.slotsMax;
  if (isAbove || isAboveAll) countViolation(state, 'above_limit');
}

/** Checks that the mark covers all held slots when an answer with a lease leaves behind its write. */
export function checkMark(state: GroupState, mark: number): void {
  if (state.bound.isStored && slotsHeld(state) > mark) countViolation(state, 'above_mark');
}

/** Checks that a new lease neither exists nor has ended. */
export function checkNew(state: GroupState, id: LeaseId): void {
  if (state.leases.has(id) || state.tombstones.has(id)) countViolation(state, 'granted_twice');
}
