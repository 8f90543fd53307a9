import {
  instant,
  IMPLICIT,
  type InstantMs,
  type LeaseId,
  type MemberId,
  type TicketId,
} from './words/ids.ts';
import type { NestedLease, Holder, Lane, Reserved, Ticket } from './words/ticket.ts';
import { BREAKER_DEFAULTS, type GroupSettings, type MemberSettings } from './words/settings.ts';
import type { Accounts } from './parts/accounts.ts';
import { nothingAhead, type Ahead, type GuessRates } from './parts/demand.ts';
import { noteRun, type Affinity, type RepeatRefusals } from './parts/affinity.ts';
import type { Bound } from './parts/bound.ts';
import type { Decision, DecisionLog } from './parts/decision-log.ts';
import type { FullPool, Queue, Tombstones } from './parts/queue.ts';
import type { PrefetchState } from './parts/prefetches.ts';
import type { Period } from './parts/spend.ts';
import type { Totals, UpstreamCalls } from './parts/totals.ts';
import type { SeenCalls } from './parts/evidence.ts';
import { NO_RATES } from './parts/rate-limits.ts';
import {
  emptyControls,
  emptyMember,
  type Controls,
  type AtGrant,
  type LeaseInScope,
  type Member,
  type Ledger,
} from './member.ts';

/** The state of a group, and how to find its members. */

/**
 * A lease is `held` from its grant, `revoking` after an operator revoked it and until its holder releases it, and
 * `cooling` during the cooldown after its end. It counts in all three phases.
 */
type LeasePhase = 'held' | 'revoking' | 'cooling';

export interface ActiveLease extends AtGrant {
  readonly id: LeaseId;
  readonly ticketId: TicketId;
  holder: Holder;
  readonly lane: Lane;
  member: MemberId;
  /** The member that its holder received with the lease, whose key the call uses. */
  named: MemberId;
  /** 0 while it shares the slots of its parent lease. */
  slots: number;
  /** The parent lease whose slots it shares, and how many of them. null if it has slots of its own. */
  readonly nested: NestedLease | null;
  /** The leases that had its slot before and handed it over without a write, newest first. Empty if there are none. */
  readonly heirOf: readonly LeaseId[];
  readonly grantedAt: InstantMs;
  phase: LeasePhase;
  /** The instant at which it expires, or at which its cooldown ends. */
  until: InstantMs;
  /** The newest answer that carries it. Only the disposal of that answer frees it. */
  attachment: number;
  /** Whether it is held by id: no disposal frees it, and its holder knows when it expires. */
  isById: boolean;
  /** The upstream was not called before this instant. The call may have waited in another group after its grant. */
  callableAt: InstantMs;
  scopes: readonly LeaseInScope[];
  /** Whether the group has received the upstream's answer to the call. */
  hasAnswer: boolean;
  /** Whether its holder still waits in another group. */
  waitsElsewhere: boolean;
  /** Whether the upstream refused its call and its holder has not released it yet. */
  isRefused: boolean;
  /** Whether the upstream refused its call because it still counts a call that has ended. */
  isLagging: boolean;
  /** An earlier instance granted it, so nested calls on its slots may still be unknown here. */
  isOfEarlier: boolean;
  /** Whether it ended without a release. Its holder may still be alive. */
  isLost: boolean;
  /** Hold time, in milliseconds, that its tenant and agent were charged for. */
  chargedMs: number;
  /** The part of rates and budgets that it has reserved. null if there is none, or if it is settled. */
  reserved: Reserved | null;
  /**
   * Its entry in the decision log. null if an earlier instance granted it, or if it was resumed and has no report yet.
   */
  decision: Decision | null;
}

/** A lease that one instance hands over to another. It has no expiry, because its holder gets one TTL from then on. */
export type HandedLease = Pick<
  ActiveLease,
  'id' | 'ticketId' | 'holder' | 'lane' | 'slots' | 'grantedAt' | 'phase' | 'nested' | 'reserved'
> & {
  readonly member: MemberId;
  /** Absent if it is held by its answer. */
  readonly isById?: boolean;
  readonly coolingUntil: InstantMs | null;
};

/** Everything that one instance of a group hands over to the instance that replaces it. */
export interface HandedGroup {
  readonly leases: readonly HandedLease[];
  /** Exceeds every attachment number that it issued. */
  readonly nextAttachment: number;
  /** The used part of the limits, and the lessons about the upstream. */
  readonly controls: Controls;
  /** The controls of each member. Absent if the group names none. */
  readonly members?: Readonly<Record<MemberId, Controls>>;
  readonly totals: Totals;
  readonly upstreams: UpstreamCalls;
  /** Orphaned slots of an earlier process. Absent if there are none. */
  readonly unclaimed?: number;
}

/**
 * The whole state of one group. Only `step` changes it, in place.
 *
 * Invariants, checked by `checkInvariants`:
 *
 * - Slots in use are those of the leases, the prefetched and the orphaned ones. Only `leases.ts` updates the sums. They
 *   are never stored, and always equal the sum over the set.
 * - No parked waiter waits while there is room for the next waiter in scheduling order.
 * - A ticket is in the queue or has a lease, never both. An ended attempt has neither.
 */
export interface GroupState {
  settings: GroupSettings;
  readonly leases: Map<LeaseId, ActiveLease>;
  slotsInUse: number;
  readonly slotsByLane: Record<Lane, number>;
  /** Orphaned slots, the end of their TTL, and whether all leases of earlier instances are accounted for. */
  readonly unclaimed: { slots: number; until: InstantMs; isOver: boolean };
  readonly lending: PrefetchState;
  /** Slots of nested leases that share their parent's slots. `slotsInUse` does not count them. */
  slotsNested: number;
  /** Slots of ended leases that cool down. None of their calls is at the upstream. */
  slotsCooling: number;
  slotsWaitingElsewhere: number;
  /** Slots of leases whose calls the upstream refused. None of these calls is at the upstream any more. */
  slotsRefused: number;
  /** Leases that an operator revoked and whose holders have not released them yet. */
  readonly revoking: Set<LeaseId>;
  /** Nested leases that were reclaimed after a reset, before their parents. */
  readonly seekingParent: Set<ActiveLease>;
  /** Leases that cool down after a failure with a caller's own key, while no other key was in use. */
  readonly coolingForKey: Set<ActiveLease>;
  /** Nested leases by the id of the parent whose slots they share. */
  readonly nestedIn: Map<LeaseId, Set<ActiveLease>>;
  readonly queue: Queue;
  readonly accounts: Accounts;
  /** Credit of the lower lanes, in turns. */
  readonly laneCredit: Record<Lane, number>;
  /** Ended attempts and cancelled tickets. */
  readonly tombstones: Tombstones;
  /** Nothing is granted before this instant, because callers of an earlier instance are still returning. */
  grantsFrom: InstantMs;
  /**
   * While the group drains, a call that arrived before this instant is not new, even if it has no place in the queue.
   */
  drainsFrom: InstantMs;
  /**
   * The instant at which all waiters lost their places, by a reset or a move. Calls that arrived before it may return
   * to them.
   */
  dispersedAt: InstantMs;
  /** No lease expires and no cooldown ends before this instant. */
  leasesDueAt: InstantMs;
  /** No waiter's slice, grace or deadline ends before this instant. */
  waitersDueAt: InstantMs;
  /** Moving mean of the last holds, in milliseconds. */
  holdMeanMs: number;
  holdSamples: number;
  /** Other pools that are full. */
  readonly passedOver: FullPool;
  /** When a call last ended. -Infinity if none has since the state was created. */
  lastEndAt: InstantMs;
  /** When a call was last granted. -Infinity if none was since the state was created. */
  lastGrantAt: InstantMs;
  nextSequence: number;
  nextAttachment: number;
  /** Use of the group's own limits. A group without members shares them with its only member. */
  readonly controls: Controls;
  /** All members that are in use, or have use or lessons. */
  readonly members: Map<MemberId, Member>;
  /** The members at which calls are granted, in the order of the settings. At least one. */
  serving: readonly Member[];
  /** The token limits that a call with an estimated input must fit into. */
  guessRates: GuessRates;
  /** Number of grants so far. It identifies the member that has had no grant for the longest time. */
  turns: number;
  readonly affinity: Affinity;
  readonly repeatRefusals: RepeatRefusals;
  readonly seen: SeenCalls;
  readonly bound: Bound;
  isControlsDirty: boolean;
  /** When the tallies, which do not need a prompt write, first differed from their row. null if they do not. */
  talliesDirtyAt: InstantMs | null;
  /** Amounts that the stored controls already count as used. */
  readonly ahead: Ahead;
  /** When the next waiter will have room, if it lacks only time. */
  roomDueAt: InstantMs;
  /** When a waiter behind the next one may have room without delaying it. */
  overtakingDueAt: InstantMs;
  /**
   * The next instant at which a waiter that is held for a member may be placed elsewhere. It has then waited long
   * enough, its member has room again or its affinity expires, or a member that refused it may serve it again.
   */
  heldOutUntil: InstantMs;
  readonly totals: Totals;
  readonly upstreams: UpstreamCalls;
  /** When `upstreams` is written with the controls, unless the group becomes idle before. */
  upstreamsDueAt: InstantMs;
  /** The budget that had no room for a call, with nothing granted since. null if there is none. */
  budgetStop: BudgetStop | null;
  readonly decisions: DecisionLog;
}

export interface BudgetStop {
  readonly window: Period;
  readonly limitUsd: number;
  readonly at: InstantMs;
}

export const NEVER = instant(Number.POSITIVE_INFINITY);

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
