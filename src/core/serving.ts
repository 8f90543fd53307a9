import { IMPLICIT, type InstantMs } from './words/ids.ts';
import type { RateSettings } from './words/limits.ts';
import type { MemberSettings } from './words/member.ts';
import { RETIRED_MAX, type GroupSettings } from './words/settings.ts';
import type { GuessRates } from './parts/demand.ts';
import { applySettings } from './parts/breaker.ts';
import { noOutage } from './parts/outage.ts';
import { setProbing } from './parts/pause.ts';
import { countAt, type Member } from './member.ts';
import { inPlaceOf, isSplit, memberAt, memberFor, memberOf } from './members.ts';
import { moveReserved } from './reservation.ts';
import { enterScopes, leaveScopes, separateFromWaiting } from './scopes.ts';
import type { GroupState, ActiveLease } from './state.ts';
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
