import { IMPLICIT, type InstantMs } from './words/ids.ts';
import {
  RETIRED_MAX,
  type RateSettings,
  type MemberSettings,
  type GroupSettings,
} from './words/settings.ts';
import type { GuessRates } from './parts/demand.ts';
import { applySettings } from './parts/breaker.ts';
import { noOutage, setProbing } from './parts/pause.ts';
import { countAt, emptyControls, emptyMember, type Member } from './member.ts';
import {
  inPlaceOf,
  isSplit,
  memberAt,
  memberFor,
  memberOf,
  goneSettings,
  type GroupState,
  type ActiveLease,
} from './state.ts';
import { moveReserved } from './reservation.ts';
import { enterScopes, leaveScopes, separateFromWaiting, restoreScopes } from './scopes.ts';
import { noteEnded } from './upstream-signals.ts';

/** Changes of a group's members: where calls are granted from then on, and where running calls count. */

/** Returns the settings of all members, or of the only one if the group names none. */
function settingsOfMembers(settings: GroupSettings): readonly MemberSettings[] {
  if (settings.members.length > 0) return settings.members;
  const { slotsMax, isHard, isAdaptive, rates, budgets, isMetered } = settings;
  const { breaker, probesPauses } = settings;
  const limits = { slotsMax, isHard, isAdaptive, rates, budgets, isMetered };
  const reactions = { breaker, probesPauses };
  return [
    {
      id: IMPLICIT,
      ...limits,
      ...reactions,
      weight: 1,
      tier: 1,
      isEnabled: true,
      succeeds: null,
      place: null,
    },
  ];
}

/**
 * Starts to serve with the members in the settings. Other members keep their calls in flight, their use and their
 * lessons, in case they return.
 */
export function serveMembers(state: GroupState, now: InstantMs): void {
  state.serving = settingsOfMembers(state.settings).map((settings) => {
    const member = memberAt(state, settings.id, now);
    // Refusals at another upstream or with another key do not apply to the new one.
    if (isElsewhere(member.settings, settings)) {
      Object.assign(member.controls.outage, noOutage(now));
    }
    member.settings = settings;
    return member;
  });
  state.guessRates = guessRatesOf(state);
  placeLeases(state, now);
  // A returning member may have lessons about some calls only. Others may have queued meanwhile.
  separateFromWaiting(state, now);
  for (const member of state.members.values()) {
    if (!state.serving.includes(member)) retire(state, member);
  }
  const retired = [...state.members.values()].filter((each) => !state.serving.includes(each));
  for (const member of retired.slice(0, Math.max(0, retired.length - RETIRED_MAX))) {
    if (isEmpty(member)) state.members.delete(member.id);
  }
}

/** Applies changed settings of breakers and probes to open breakers and pauses. */
export function applyReactions({ serving }: GroupState, now: InstantMs): void {
  for (const { controls, settings } of serving) {
    for (const { breaker, pause } of [controls, ...controls.scopes.narrower]) {
      applySettings(breaker, settings.breaker);
      setProbing(pause, settings.probesPauses, now);
    }
  }
}

/** Whether a member now has another upstream or another key. */
function isElsewhere(before: MemberSettings, { place }: MemberSettings): boolean {
  return before.place !== null && place !== null && before.place !== place;
}

/** Stops grants at a member. */
function retire(state: GroupState, member: Member): void {
  member.settings = { ...member.settings, slotsMax: 0, isEnabled: false };
  const [sole] = state.serving;
  const to = isSplit(state) ? inPlaceOf(state, member) : sole;
  if (to === undefined || to === member) return;
  // Its orphaned slots are reclaimed at the new member.
  to.unclaimed += member.unclaimed;
  to.slotsInUse += member.unclaimed;
  member.slotsInUse -= member.unclaimed;
  member.unclaimed = 0;
  for (const passed of state.bound.passedBefore) {
    if (!isSplit(state) || passed.member === member.id) passed.member = to.id;
  }
}

/** Moves each lease to the member that now has the key of its call. */
function placeLeases(state: GroupState, now: InstantMs): void {
  for (const lease of state.leases.values()) placeLease(state, lease, now);
}

/** Moves a lease to the member that now has the key of its call. Returns whether it moved. */
export function placeLease(state: GroupState, lease: ActiveLease, now: InstantMs): boolean {
  const from = memberOf(state, lease);
  const to = memberFor(state, lease.named, lease.holder, now);
  if (from === to) return false;
  // Its old member will not see its end, so a probe there would never complete.
  noteEnded(state, lease, false, now);
  leaveScopes(lease);
  countAt(from, lease, -1);
  lease.member = to.id;
  countAt(to, lease, 1);
  enterScopes(to, lease);
  moveReserved(state, lease, from, to, now);
  return true;
}

function isEmpty({ slotsInUse, slotsNested, unclaimed: orphaned }: Member): boolean {
  return slotsInUse + slotsNested + orphaned === 0;
}

/** The lowest token limits and budgets. Estimates are reduced to them. */
function guessRatesOf({ settings, serving }: GroupState): GuessRates {
  const all = [settings, ...serving.map((member) => member.settings)];
  const least = (name: keyof RateSettings) => leastOf(all.map(({ rates }) => rates[name]));
  const budgets = all.flatMap(({ budgets: { perHourUsd, perDayUsd, perMonthUsd } }) => [
    perHourUsd,
    perDayUsd,
    perMonthUsd,
  ]);
  // A budget of 0 stops all calls.
  const usd = leastOf(budgets.map((budget) => (budget === 0 ? null : budget)));
  return { itpm: least('itpm'), otpm: least('otpm'), tpm: least('tpm'), tpd: least('tpd'), usd };
}

function leastOf(limits: readonly (number | null)[]): number | null {
  const set = limits.filter((limit) => limit !== null);
  return set.length === 0 ? null : Math.min(...set);
}

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
