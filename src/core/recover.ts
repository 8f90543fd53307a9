import {
  after,
  earlier,
  IMPLICIT,
  memberId,
  instant,
  later,
  type InstantMs,
  type LeaseId,
  type MemberId,
} from './words/ids.ts';
import {
  COOLDOWN_MAX_MS,
  LEASE_TTL_MS,
  settleMs,
  HOLD_GUESS_MS,
  MOVE_SETTLE_MS,
  type RateSettings,
  type GroupSettings,
} from './words/settings.ts';
import { nothingAhead, type Amounts } from './parts/demand.ts';
import {
  ATTACHMENTS_UNWRITTEN_MAX,
  noteHeld,
  emptyBound,
  noteHandedOut,
  type BoundRow,
} from './parts/bound.ts';
import { NO_RATES } from './parts/rate-limits.ts';
import { takeAhead, addRates, isUntouched } from './parts/rates.ts';
import { reserve, addSpend, hasSpent } from './parts/spend.ts';
import { emptyTotals, type UpstreamCallCounts } from './parts/totals.ts';
import { emptyAccounts } from './parts/accounts.ts';
import { noAffinity, noRepeatRefusals } from './parts/affinity.ts';
import { emptyDecisionLog } from './parts/decision-log.ts';
import { noPrefetching } from './parts/prefetches.ts';
import { nothingPassedOver, emptyQueue, Tombstones } from './parts/queue.ts';
import { nothingSeen } from './parts/evidence.ts';
import { addCosts } from './parts/costs.ts';
import {
  rebaseControls,
  emptyControls,
  emptyMember,
  type Controls,
  type KeptMember,
  type Ledger,
} from './member.ts';
import { addLease, endLostNesting, newLease } from './leases.ts';
import {
  memberFor,
  NEVER,
  goneSettings,
  memberAt,
  type BudgetStop,
  type GroupState,
  type HandedLease,
  type ActiveLease,
  type HandedGroup,
} from './state.ts';
import { applyReactions, renameMembers, serveMembers } from './serving.ts';
import { holdOrphaned, settleOrphaned } from './orphaned.ts';
import { slotsHeld } from './stats.ts';
import type { GroupEvent } from './events.ts';
import { confirmedControls } from './reports.ts';
import { restoreScopes } from './scopes.ts';

/**
 * Builds the state of a group: empty, from its rows after a reset, or with leases of an object that hands them over.
 */

/** The rows that earlier instances of a group stored. */
export interface Stored {
  /**
   * The last row of the bound, with the leases that ended lately. null if nothing was ever granted, or if the pool was
   * unverified and left nothing.
   */
  readonly bound: BoundRow | null;
  /** Leases whose end only the row of the controls records. The next such row overwrites it. */
  readonly untold: readonly LeaseId[];
  readonly controls: Controls;
  /** Amounts that were set aside and may have been used since. They count as used in addition to the controls. */
  readonly ahead: Amounts;
  /** The same for each member. Absent if the group had none. */
  readonly members?: Readonly<Record<string, KeptMember>>;
  /** Calls by upstream. Absent if none were stored. */
  readonly upstreams?: Readonly<Record<string, UpstreamCallCounts>>;
  /** The budget that had no room for the last call. null or absent if none was stored. */
  readonly budgetStop?: BudgetStop | null;
}

/**
 * Recovers the state of a group after a reset.
 *
 * Everything that may have been granted counts as held. Slots are orphaned until their holders return or one TTL ends.
 * Rates and budgets keep what was set aside. If slots were held, calls may have been queued. They return within
 * `settleMs` and take their old places before anything is granted. What tenants had received is forgotten. Times
 * written by a clock that was ahead are corrected to `now`.
 */
export function recover(
  settings: GroupSettings,
  stored: Stored,
  firstAttachment: number,
  isStored: boolean,
  now: InstantMs,
): GroupState {
  const { bound, untold, controls, ahead } = stored;
  const mayHaveStarted = (bound?.mark ?? 0) > 0;
  const waitersUntil = waitersUntilBy(bound, settings);
  // Waiters whose deadline has passed have left.
  const waiters = bound === null || now >= waitersUntil ? 0 : bound.waiters;
  const restore = (kept: KeptMember, rates: RateSettings): Controls => {
    rebaseControls(kept.controls, rates, now);
    takeAhead(kept.controls.rates, rates, kept.ahead, mayHaveStarted, lastUseOf(bound, now));
    reserve(kept.controls.spend, kept.ahead.usd ?? 0);
    return kept.controls;
  };
  restore({ controls, ahead }, settings.rates);
  const members = Object.entries(stored.members ?? {}).map(([id, kept]) => {
    const { place } = kept;
    const isNamed = settings.members.some((member) => member.id === id);
    const { rates = NO_RATES } =
      settings.members.find((member) =>
        isNamed ? member.id === id : place !== undefined && member.place === place,
      ) ?? {};
    return [memberId(id), { ...kept, controls: restore(kept, rates) }] as const;
  });
  const next = Math.max(firstAttachment, (bound?.next ?? 0) + ATTACHMENTS_UNWRITTEN_MAX);
  const state = emptyState(settings, next, controls, isStored, new Map(members));
  for (const [id, there] of Object.entries(stored.upstreams ?? {})) state.upstreams.set(id, there);
  state.budgetStop = stored.budgetStop ?? null;
  applyReactions(state, now);
  if (bound !== null) {
    const { seq, since } = bound;
    const mayOutlive = bound.mayOutlive === true;
    Object.assign(state.bound, { seq, since, waiters, waitersUntil, mayOutlive });
    for (const id of bound.ended) {
      state.tombstones.add(id, now);
      state.bound.unclaimable.add(id);
    }
    for (const id of bound.lapsed) {
      // It was resumed after it expired.
      if (bound.granted.includes(id)) continue;
      state.bound.unclaimable.add(id);
      state.bound.lapsedBefore.add(id);
    }
    for (const id of bound.granted) {
      state.bound.grantedBefore.set(id, bound.grantedAt?.[id] ?? IMPLICIT);
    }
    for (const id of bound.heirs) state.bound.heirsBefore.add(id);
    // Otherwise the next row of the controls would make a later instance forget them.
    state.bound.ended = [...untold];
  }
  holdOrphaned(state, marksOf(bound), now);
  settleOrphaned(state, now);
  if (slotsHeld(state) > 0 || waiters > 0) {
    state.grantsFrom = after(now, settleMs(waiters, slotsHeld(state)));
    state.drainsFrom = now;
    state.dispersedAt = now;
  }
  noteHeld(state.bound, slotsHeld(state), now);
  return state;
}

/** Returns how many slots each member may have granted. */
function marksOf(bound: BoundRow | null): ReadonlyMap<MemberId, number> {
  if (bound === null || bound.mark === 0) return new Map();
  const { members } = bound;
  if (members === undefined) return new Map([[IMPLICIT, bound.mark]]);
  return new Map(Object.entries(members).map(([id, { mark }]) => [memberId(id), mark]));
}

/**
 * Returns the latest deadline of the waiters in a row. It may exceed the group's timeout. If the row has no waiters, it
 * is the deadline of calls that arrived right after it.
 */
function waitersUntilBy(bound: BoundRow | null, { timeoutMs }: GroupSettings): InstantMs {
  return bound === null ? NEVER : (bound.waitersUntil ?? after(bound.at, timeoutMs));
}

/**
 * Returns the last instant at which earlier instances may have used something. An instance with holders writes at least
 * once per TTL.
 */
function lastUseOf(bound: BoundRow | null, now: InstantMs): InstantMs {
  return bound === null ? now : earlier(now, after(bound.at, LEASE_TTL_MS));
}

function addHanded(state: GroupState, leases: readonly HandedLease[], now: InstantMs): void {
  for (const handed of leases) {
    if (state.leases.has(handed.id) || state.tombstones.has(handed.id)) continue;
    const lease = leaseFrom(state, handed, now);
    lease.member = memberFor(state, lease.member, lease.holder, now).id;
    addLease(state, lease, now);
    // Its holder has released it, so a late acquire call or resumption must not revive it.
    if (lease.phase === 'cooling') state.tombstones.add(lease.id, now);
    if (lease.phase === 'revoking') state.revoking.add(lease.id);
  }
  endLostNesting(state, now);
}

/** Creates a lease that was handed over. Its holder may be alive and gets one TTL to return. */
function leaseFrom(state: GroupState, handed: HandedLease, now: InstantMs): ActiveLease {
  const { coolingUntil, ...rest } = handed;
  const grantedAt = earlier(handed.grantedAt, now);
  // The clock that wrote it may have been ahead.
  const cooled = coolingUntil === null ? null : earlier(coolingUntil, after(now, COOLDOWN_MAX_MS));
  return {
    ...newLease(state, { ...rest, heirOf: [], waitsElsewhere: false }, grantedAt),
    phase: rest.phase,
    until: cooled ?? after(now, LEASE_TTL_MS),
    isOfEarlier: true,
    chargedMs: now - grantedAt,
  };
}

/**
 * Creates a group without leases and waiters.
 *
 * @param firstAttachment must exceed every attachment number that an earlier instance issued
 * @param kept use and lessons of members that the group names or has named
 * @param isStored whether a bound on disk covers its grants
 */
export function emptyState(
  settings: GroupSettings,
  firstAttachment: number,
  controls: Controls = emptyControls(instant(0)),
  isStored = false,
  kept: ReadonlyMap<MemberId, Pick<KeptMember, 'controls' | 'place'>> = new Map(),
): GroupState {
  const state: GroupState = {
    settings,
    leases: new Map(),
    slotsInUse: 0,
    slotsByLane: { high: 0, normal: 0, low: 0 },
    unclaimed: { slots: 0, until: instant(0), isOver: true },
    lending: noPrefetching(),
    slotsNested: 0,
    slotsCooling: 0,
    slotsWaitingElsewhere: 0,
    slotsRefused: 0,
    revoking: new Set(),
    seekingParent: new Set(),
    coolingForKey: new Set(),
    nestedIn: new Map(),
    queue: emptyQueue(),
    accounts: emptyAccounts(),
    laneCredit: { high: 0, normal: 0, low: 0 },
    tombstones: new Tombstones(),
    grantsFrom: instant(0),
    drainsFrom: instant(0),
    dispersedAt: instant(0),
    leasesDueAt: NEVER,
    waitersDueAt: NEVER,
    holdMeanMs: HOLD_GUESS_MS,
    holdSamples: 0,
    passedOver: nothingPassedOver(),
    lastEndAt: instant(-Infinity),
    lastGrantAt: instant(-Infinity),
    nextSequence: 0,
    nextAttachment: firstAttachment,
    controls,
    members: new Map(),
    serving: [],
    guessRates: { itpm: null, otpm: null, tpm: null, tpd: null, usd: null },
    turns: 0,
    affinity: noAffinity(),
    repeatRefusals: noRepeatRefusals(),
    seen: nothingSeen(),
    bound: emptyBound(firstAttachment, isStored),
    isControlsDirty: false,
    talliesDirtyAt: null,
    ahead: nothingAhead(),
    roomDueAt: NEVER,
    overtakingDueAt: NEVER,
    heldOutUntil: NEVER,
    totals: emptyTotals(),
    upstreams: new Map(),
    upstreamsDueAt: NEVER,
    budgetStop: null,
    decisions: emptyDecisionLog(),
  };
  for (const [id, { controls: own, place = null }] of kept) {
    state.members.set(id, emptyMember({ ...goneSettings(id), place }, own));
  }
  renameMembers(state, settings.members, instant(0));
  serveMembers(state, instant(0));
  return state;
}

/**
 * The hand-over of an unverified pool to its own object: what the pool hands over, and how the object takes it over.
 */

/** Returns everything that an instance hands over. It must decide nothing from then on. */
export function handedGroupOf(state: GroupState, now: InstantMs): HandedGroup {
  const {
    leases,
    controls,
    members,
    totals,
    upstreams,
    nextAttachment,
    unclaimed: orphaned,
  } = state;
  const split = [...members.values()].filter((member) => member.controls !== controls);
  const ofMembers = split.map(
    (member) => [member.id, confirmedControls(state, member.controls, now)] as const,
  );
  return {
    leases: [...leases.values()].map(handedOf),
    controls: confirmedControls(state, controls, now),
    ...(split.length > 0 && { members: Object.fromEntries(ofMembers) }),
    totals,
    upstreams,
    nextAttachment,
    ...(orphaned.slots > 0 && { unclaimed: orphaned.slots }),
  };
}

function handedOf(lease: ActiveLease): HandedLease {
  const { id, ticketId, holder, lane, named, slots, grantedAt, phase, reserved, nested } = lease;
  const coolingUntil = phase === 'cooling' ? lease.until : null;
  const of = { id, ticketId, holder, lane, member: named };
  const byId = lease.isById ? { isById: true } : {};
  return { ...of, slots, grantedAt, phase, coolingUntil, reserved, nested, ...byId };
}

/** Adds the leases that another instance granted, and its use of the limits. */
export function takeOver(
  state: GroupState,
  { handed, isNew, isRepeat, firstAttachment }: Extract<GroupEvent, { kind: 'take_over' }>,
  now: InstantMs,
): void {
  state.nextAttachment = Math.max(state.nextAttachment, firstAttachment, handed.nextAttachment);
  const heldBefore = heldByMember(state);
  addHanded(state, handed.leases, now);
  if (handed.unclaimed !== undefined && !isRepeat) {
    holdOrphaned(state, new Map([[IMPLICIT, handed.unclaimed]]), now);
    // They are held by id. Nothing else of an unverified pool outlives its process.
    state.bound.mayOutlive = true;
  }
  for (const [id, held] of heldByMember(state)) {
    noteHandedOut(state.bound, id, held - (heldBefore.get(id) ?? 0), now);
  }
  // Holders know their leases by attachment numbers of the other instance, which this one never issued.
  state.bound.since = 0;
  if (isNew) takeLessons(state, handed, now);
  else if (!isRepeat) addUse(state, handed, now);
  // Callers that waited there arrive here at once. No younger call may start before they do.
  state.grantsFrom = later(state.grantsFrom, after(now, MOVE_SETTLE_MS));
  state.dispersedAt = now;
}

/** Whether the group has used any part of its limits that still counts. */
export function hasUse(state: GroupState, now: InstantMs): boolean {
  const ledgers = [
    { controls: state.controls, settings: state.settings },
    ...state.members.values(),
  ];
  return ledgers.some(
    ({ controls: { rates, spend }, settings }) =>
      hasSpent(spend, now) || !isUntouched(rates, settings.rates, now),
  );
}

function heldByMember({ members }: GroupState): ReadonlyMap<MemberId, number> {
  const held = [...members.values()].map(
    ({ id, slotsInUse, slotsNested }) => [id, slotsInUse + slotsNested] as const,
  );
  return new Map(held);
}

/** Adopts everything that the other instance has used and learned. */
function takeLessons(state: GroupState, handed: HandedGroup, now: InstantMs): void {
  for (const [{ controls, settings }, given] of ledgersWith(state, handed, now)) {
    Object.assign(controls, given);
    rebaseControls(controls, settings.rates, now);
  }
  for (const member of state.members.values()) restoreScopes(state, member);
  Object.assign(state.totals, handed.totals);
  for (const [id, there] of handed.upstreams) state.upstreams.set(id, there);
  state.isControlsDirty = true;
}

/**
 * Adds the other instance's use to that of this one, which serves several partitions. The lessons of this instance are
 * kept, because they are worth more.
 */
function addUse(state: GroupState, handed: HandedGroup, now: InstantMs): void {
  for (const [{ controls, settings }, given] of ledgersWith(state, handed, now)) {
    addRates(controls.rates, settings.rates, given.rates, now);
    addSpend(controls.spend, given.spend, now);
  }
  addCosts(state.controls.costs, handed.controls.costs, now);
  state.isControlsDirty = true;
}

/** Pairs the limits of this instance and its members with the other instance's use of each. */
function ledgersWith(
  state: GroupState,
  { controls, members = {} }: HandedGroup,
  now: InstantMs,
): [Pick<Ledger, 'controls' | 'settings'>, Controls][] {
  const { settings } = state;
  const own = { controls: state.controls, settings };
  // The cast is sound: the keys are ids of members.
  const named = Object.entries(members) as [MemberId, Controls][];
  return [
    [own, controls],
    ...named.map(([id, given]): [Pick<Ledger, 'controls' | 'settings'>, Controls] => [
      memberAt(state, id, now),
      given,
    ]),
  ];
}
