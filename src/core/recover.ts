import {
  after,
  earlier,
  IMPLICIT,
  memberId,
  instant,
  type InstantMs,
  type LeaseId,
  type MemberId,
} from './words/ids.ts';
import {
  LEASE_TTL_MS,
  settleMs,
  HOLD_GUESS_MS,
  type RateSettings,
  type GroupSettings,
} from './words/settings.ts';
import { nothingAhead, type Amounts } from './parts/demand.ts';
import { ATTACHMENTS_UNWRITTEN_MAX, noteHeld, emptyBound, type BoundRow } from './parts/bound.ts';
import { NO_RATES } from './parts/rate-limits.ts';
import { takeAhead } from './parts/rates.ts';
import { reserve } from './parts/spend.ts';
import { emptyTotals, type UpstreamCallCounts } from './parts/totals.ts';
import { emptyAccounts } from './parts/accounts.ts';
import { noAffinity, noRepeatRefusals } from './parts/affinity.ts';
import { emptyDecisionLog } from './parts/decision-log.ts';
import { noPrefetching } from './parts/prefetches.ts';
import { nothingPassedOver, emptyQueue, Tombstones } from './parts/queue.ts';
import { nothingSeen } from './parts/evidence.ts';
import {
  rebaseControls,
  emptyControls,
  emptyMember,
  type Controls,
  type KeptMember,
} from './member.ts';
import { NEVER, goneSettings, type BudgetStop, type GroupState } from './state.ts';
import { applyReactions, renameMembers, serveMembers } from './serving.ts';
import { holdOrphaned, settleOrphaned } from './orphaned.ts';
import { slotsHeld } from './stats.ts';

/** Builds the state of a group: empty, or from its rows after a reset. */

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
