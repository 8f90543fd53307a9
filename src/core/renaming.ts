import { IMPLICIT, type InstantMs } from './words/ids.ts';
import type { MemberSettings } from './words/member.ts';
import { emptyControls } from './controls.ts';
import { emptyMember, type Member } from './member.ts';
import { restoreScopes } from './scopes.ts';
import { goneSettings } from './members.ts';
import type { GroupState } from './state.ts';

/**
 * Members that are there under another id than before: the same upstream with the same key. The new one takes over what
 * runs there, what was used and what was learned. Of the old one stays where its place is, because holders know its id.
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
    // The last one of several, because the others gave up their places to it. After a reset, it may be this one.
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
  // Its limits are those of before until the group serves by the new ones, which then count what is in flight.
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

/** Whether nothing counts at a member, and it does not serve. */
function isUnused(state: GroupState, member: Member): boolean {
  const { slotsInUse, slotsNested, unclaimed: orphaned, controls } = member;
  const isIdle = slotsInUse + slotsNested + orphaned + controls.spend.reservedUsd === 0;
  return isIdle && !state.serving.includes(member);
}
