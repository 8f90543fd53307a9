import { IMPLICIT, type InstantMs, type MemberId, type TicketId } from './words/ids.ts';
import { BREAKER_DEFAULTS, type MemberSettings } from './words/member.ts';
import type { Holder, Ticket } from './words/ticket.ts';
import { noteRun } from './parts/affinity.ts';
import { nothingAhead } from './parts/ahead.ts';
import { NO_RATES } from './parts/rate-limits.ts';
import { emptyControls } from './controls.ts';
import { emptyMember, type Ledger, type Member } from './member.ts';
import type { GroupState, ActiveLease } from './state.ts';

/** Whether the group names its members. Its own limits then apply over all of them. */
export function isSplit({ settings }: Pick<GroupState, 'settings'>): boolean {
  return settings.members.length > 0;
}

/** Returns a member, and creates it without use and lessons if it is unknown. */
export function memberAt(state: GroupState, id: MemberId, now: InstantMs): Member {
  const known = state.members.get(id);
  if (known !== undefined) return known;
  const isSole = id === IMPLICIT;
  const made = emptyMember(
    goneSettings(id),
    // A group without members shares its controls with its only member.
    isSole ? state.controls : emptyControls(now),
    isSole ? state.ahead : nothingAhead(),
  );
  state.members.set(id, made);
  return made;
}

/** Settings with which a member receives no grants. */
export function goneSettings(id: MemberId): MemberSettings {
  const budgets = { perHourUsd: null, perDayUsd: null, perMonthUsd: null };
  const limits = { isHard: true, isAdaptive: false, rates: NO_RATES, budgets, isMetered: false };
  const reactions = { breaker: BREAKER_DEFAULTS, probesPauses: false };
  return {
    id,
    slotsMax: 0,
    ...limits,
    ...reactions,
    weight: 1,
    tier: 1,
    isEnabled: false,
    succeeds: null,
    place: null,
  };
}

/**
 * Returns the member at which a lease counts. A lease from before the group had members counts at the member with the
 * same key now. A group without members has only one.
 */
export function memberFor(
  state: GroupState,
  id: MemberId,
  { upstream }: Pick<Holder, 'upstream'>,
  now: InstantMs,
): Member {
  const [first] = state.serving;
  if (!isSplit(state) && first !== undefined) return first;
  if (id !== IMPLICIT) return inPlaceOf(state, memberAt(state, id, now));
  const successor = state.serving.find(({ settings }) => settings.succeeds === upstream);
  return successor ?? memberAt(state, id, now);
}

/**
 * Returns the serving member with the same upstream and key as a member that the group no longer names. The member
 * itself if there is none.
 */
export function inPlaceOf({ serving }: GroupState, member: Member): Member {
  const { place } = member.settings;
  if (place === null || serving.includes(member)) return member;
  return serving.find(({ settings }) => settings.place === place) ?? member;
}

/** Lists the serving members that a ticket does not exclude. They may be full. */
export function notExcluded(state: GroupState, { excluded = [] }: Ticket): readonly Member[] {
  const { serving } = state;
  if (!isSplit(state)) return serving;
  return serving.filter(({ id, settings }) => settings.isEnabled && !excluded.includes(id));
}

export function refusalKey(call: TicketId, member: MemberId): string {
  return member === IMPLICIT ? call : `${call}@${member}`;
}

/** Stores where a call runs, as the affinity of related calls. */
export function noteAffinity(state: GroupState, lease: ActiveLease, now: InstantMs): void {
  if (!isSplit(state)) return;
  const { affinity, settings, serving } = state;
  const tier = memberOf(state, lease).settings.tier;
  const mayStay = serving.every((each) => !each.settings.isEnabled || each.settings.tier >= tier);
  noteRun(affinity, settings.affinity, lease.holder, { member: lease.member, mayStay }, now);
}

export function memberOf(state: GroupState, { member }: { readonly member: MemberId }): Member {
  const found = state.members.get(member);
  if (found === undefined) throw new Error(`No member has the id \`${member}\` of a lease.`);
  return found;
}

/** Lists the limits that apply to calls of a member: its own, and those of the group over all members. */
export function ledgersOf(state: GroupState, member: Member): readonly Ledger[] {
  if (!isSplit(state)) return [member];
  const { controls, ahead, settings } = state;
  const ofAll = { controls, ahead, settings };
  return member.controls === controls ? [ofAll] : [member, ofAll];
}

/** Lists all rate and budget limits of the group, each once. */
export function allLedgers(state: GroupState): readonly Ledger[] {
  const { controls, ahead, settings, members } = state;
  const own = [...members.values()].filter((member) => member.controls !== controls);
  return isSplit(state) ? [...own, { controls, ahead, settings }] : [...members.values()];
}

/** Whether more of a limit was used than was stored ahead. */
export function isOverdrawn(state: GroupState): boolean {
  if (!isSplit(state)) return state.ahead.isOverdrawn;
  return allLedgers(state).some(({ ahead }) => ahead.isOverdrawn);
}
