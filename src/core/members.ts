import { IMPLICIT, type InstantMs, type MemberId, type TicketId } from './words/ids.ts';
import type { MemberSettings } from './words/member.ts';
import { RETIRED_MAX, type GroupSettings } from './words/settings.ts';
import type { Holder } from './words/ticket.ts';
import { noteRun } from './parts/affinity.ts';
import { nothingAhead } from './parts/ahead.ts';
import type { GuessRates } from './parts/demand.ts';
import { NO_RATES } from './parts/rate-limits.ts';
import { emptyControls } from './controls.ts';
import { countAt, emptyMember, type Ledger, type Member } from './member.ts';
import type { GroupState, Lease } from './state.ts';

/** Whether the group names its members. Its own limits are over all of them then. */
export function isSplit({ settings }: Pick<GroupState, 'settings'>): boolean {
  return settings.members.length > 0;
}

/** The settings of the members of a group: as it names them, or of its only one. */
function settingsOfMembers(settings: GroupSettings): readonly MemberSettings[] {
  if (settings.members.length > 0) return settings.members;
  const { slotsMax, isHard, isAdaptive, rates, budgets, isMetered } = settings;
  const limits = { slotsMax, isHard, isAdaptive, rates, budgets, isMetered };
  return [{ id: IMPLICIT, ...limits, weight: 1, tier: 1, isEnabled: true, succeeds: null }];
}

/**
 * Has the group grant at the members that its settings name. Those that they do not name any more keep what is in
 * flight there, and what was used and learned, in case they come back.
 */
export function serveMembers(state: GroupState, now: InstantMs): void {
  state.serving = settingsOfMembers(state.settings).map((settings) => {
    const member = memberAt(state, settings.id, now);
    member.settings = settings;
    return member;
  });
  state.guessRates = guessRatesOf(state);
  placeLeases(state, now);
  for (const member of state.members.values()) {
    if (!state.serving.includes(member)) retire(state, member);
  }
  const retired = [...state.members.values()].filter((each) => !state.serving.includes(each));
  for (const member of retired.slice(0, Math.max(0, retired.length - RETIRED_MAX))) {
    if (isEmpty(member)) state.members.delete(member.id);
  }
}

/** Finds a member, or makes it with nothing used and nothing learned. */
export function memberAt(state: GroupState, id: MemberId, now: InstantMs): Member {
  const known = state.members.get(id);
  if (known !== undefined) return known;
  const isSole = id === IMPLICIT;
  const made = emptyMember(
    goneSettings(id),
    // Those of a group that names no members are those of its only one.
    isSole ? state.controls : emptyControls(now),
    isSole ? state.ahead : nothingAhead(),
  );
  state.members.set(id, made);
  return made;
}

/** The settings of a member at which nothing is granted. */
export function goneSettings(id: MemberId): MemberSettings {
  const budgets = { perHourUsd: null, perDayUsd: null, perMonthUsd: null };
  const limits = { isHard: true, isAdaptive: false, rates: NO_RATES, budgets, isMetered: false };
  return { id, slotsMax: 0, ...limits, weight: 1, tier: 1, isEnabled: false, succeeds: null };
}

/** Has nothing granted at a member any more. */
function retire(state: GroupState, member: Member): void {
  member.settings = { ...member.settings, slotsMax: 0, isEnabled: false };
  const [sole] = state.serving;
  if (isSplit(state) || sole === undefined) return;
  // Whoever claims it counts at the only member.
  sole.unclaimed += member.unclaimed;
  sole.slotsInUse += member.unclaimed;
  member.slotsInUse -= member.unclaimed;
  member.unclaimed = 0;
  for (const passed of state.bound.passedBefore) passed.member = sole.id;
}

/** Counts each lease where the key is now by which its call runs. */
function placeLeases(state: GroupState, now: InstantMs): void {
  for (const lease of state.leases.values()) placeLease(state, lease, now);
}

/** Counts a lease where the key is by which its call runs. Returns whether it counted elsewhere before. */
export function placeLease(state: GroupState, lease: Lease, now: InstantMs): boolean {
  const from = memberOf(state, lease);
  const to = memberFor(state, lease.named, lease.holder, now);
  if (from === to) return false;
  countAt(from, lease, -1);
  lease.member = to.id;
  countAt(to, lease, 1);
  return true;
}

/**
 * Finds the member that a lease counts at, as its holder names it. What ran while the group named none counts where
 * the same key is now, and in a group that names none there is but one.
 */
export function memberFor(
  state: GroupState,
  id: MemberId,
  { upstream }: Pick<Holder, 'upstream'>,
  now: InstantMs,
): Member {
  const [first] = state.serving;
  if (!isSplit(state) && first !== undefined) return first;
  if (id !== IMPLICIT) return memberAt(state, id, now);
  const successor = state.serving.find(({ settings }) => settings.succeeds === upstream);
  return successor ?? memberAt(state, id, now);
}

/** The key under which refusals of a call by a member are counted. */
export function refusalKey(call: TicketId, member: MemberId): string {
  return member === IMPLICIT ? call : `${call}@${member}`;
}

/** Notes where a call runs, for those that belong together with it. */
export function noteAffinity(state: GroupState, lease: Lease, now: InstantMs): void {
  if (!isSplit(state)) return;
  const { affinity, settings, serving } = state;
  const tier = memberOf(state, lease).settings.tier;
  const mayStay = serving.every((each) => !each.settings.isEnabled || each.settings.tier >= tier);
  noteRun(affinity, settings.affinity, lease.holder, { member: lease.member, mayStay }, now);
}

/** Reads the member of a lease. */
export function memberOf(state: GroupState, { member }: { readonly member: MemberId }): Member {
  const found = state.members.get(member);
  if (found === undefined) throw new Error(`a lease is of no member: ${member}`);
  return found;
}

/** Lists all that hold calls of a member to rates and budgets. */
export function ledgersOf(state: GroupState, member: Member): readonly Ledger[] {
  if (!isSplit(state)) return [member];
  const { controls, ahead, settings } = state;
  const ofAll = { controls, ahead, settings };
  return member.controls === controls ? [ofAll] : [member, ofAll];
}

/** Lists all the ledgers of the group, each once. */
export function allLedgers(state: GroupState): readonly Ledger[] {
  const { controls, ahead, settings, members } = state;
  const own = [...members.values()].filter((member) => member.controls !== controls);
  return isSplit(state) ? [...own, { controls, ahead, settings }] : [...members.values()];
}

/** Whether more was used of something than is written. */
export function isOverdrawn(state: GroupState): boolean {
  if (!isSplit(state)) return state.ahead.isOverdrawn;
  return allLedgers(state).some(({ ahead }) => ahead.isOverdrawn);
}

function isEmpty({ slotsInUse, slotsNested, unclaimed }: Member): boolean {
  return slotsInUse + slotsNested + unclaimed === 0;
}

/** The least of all limits of tokens: what is only guessed of a call must fit into any of them. */
function guessRatesOf({ settings, serving }: GroupState): GuessRates {
  const all = [settings.rates, ...serving.map((member) => member.settings.rates)];
  const least = (name: keyof GuessRates) => {
    const set = all.flatMap((rates) => rates[name] ?? []);
    return set.length === 0 ? null : Math.min(...set);
  };
  return { itpm: least('itpm'), otpm: least('otpm'), tpm: least('tpm'), tpd: least('tpd') };
}
