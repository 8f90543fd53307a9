import { IMPLICIT, type InstantMs, type MemberId, type TicketId } from './words/ids.ts';
import { BREAKER_DEFAULTS, type MemberSettings } from './words/member.ts';
import type { Holder, Ticket } from './words/ticket.ts';
import { noteRun } from './parts/affinity.ts';
import { nothingAhead } from './parts/ahead.ts';
import { NO_RATES } from './parts/rate-limits.ts';
import { emptyControls } from './controls.ts';
import { emptyMember, type Ledger, type Member } from './member.ts';
import type { GroupState, ActiveLease } from './state.ts';

/** Whether the group names its members. Its own limits are over all of them then. */
export function isSplit({ settings }: Pick<GroupState, 'settings'>): boolean {
  return settings.members.length > 0;
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
  if (id !== IMPLICIT) return inPlaceOf(state, memberAt(state, id, now));
  const successor = state.serving.find(({ settings }) => settings.succeeds === upstream);
  return successor ?? memberAt(state, id, now);
}

/** Finds the member that has the upstream and the key of one that the group names no more; itself, if none has. */
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

/** The key under which refusals of a call by a member are counted. */
export function refusalKey(call: TicketId, member: MemberId): string {
  return member === IMPLICIT ? call : `${call}@${member}`;
}

/** Notes where a call runs, for those that belong together with it. */
export function noteAffinity(state: GroupState, lease: ActiveLease, now: InstantMs): void {
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
