import { IMPLICIT, type InstantMs } from './words/ids.ts';
import type { MemberSettings } from './words/member.ts';
import { emptyControls } from './controls.ts';
import { emptyMember, type Member } from './member.ts';
import { restoreScopes } from './scopes.ts';
import { goneSettings } from './members.ts';
import type { GroupState } from './state.ts';

/**
 * Handles members with a new id but the same upstream and key. The new id takes over the running calls, the use and the
 * lessons. The old id keeps only its place, because holders still name it.
 */
export function renameMembers(
  state: GroupState,
  members: readonly MemberSettings[],
  now: InstantMs,
): void {
  const named = new Set(members.map(({ id }) => id));
  for (const settings of members) {
    const there = state.members.get(settings.id);
    if (there !== undefined && !isUnused(state, there)) continue;
    // The last of several matches, because the others gave up their places to it. After a reset, this member may match
    // itself.
    const before = [...state.members.values()].findLast(
      ({ id, settings: { place } }) =>
        id !== IMPLICIT &&
        (id === settings.id || !named.has(id)) &&
        place !== null &&
        place === settings.place,
    );
    if (before !== undefined && before !== there) takePlace(state, before, settings, now);
  }
}

function takePlace(
  state: GroupState,
  before: Member,
  settings: MemberSettings,
  now: InstantMs,
): void {
  const { id } = settings;
  state.members.delete(id);
  // It keeps the old limits until the group serves with the new settings, which then count the calls in flight.
  const member = { ...before, id, settings: { ...before.settings, id }, scopes: new Map() };
  state.members.set(id, member);
  const gone = { ...goneSettings(before.id), place: before.settings.place };
  state.members.set(before.id, emptyMember(gone, emptyControls(now)));
  for (const lease of state.leases.values()) {
    if (lease.member === before.id) lease.member = id;
  }
  restoreScopes(state, member);
  for (const passed of state.bound.passedBefore) {
    if (passed.member === before.id) passed.member = id;
  }
  state.isControlsDirty = true;
}

/** Whether a member has no use and does not serve. */
function isUnused(state: GroupState, member: Member): boolean {
  const { slotsInUse, slotsNested, unclaimed: orphaned, controls } = member;
  const isIdle = slotsInUse + slotsNested + orphaned + controls.spend.reservedUsd === 0;
  return isIdle && !state.serving.includes(member);
}
