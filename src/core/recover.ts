import {
  after,
  earlier,
  IMPLICIT,
  memberId,
  type InstantMs,
  type LeaseId,
  type MemberId,
} from './words/ids.ts';
import type { RateSettings } from './words/limits.ts';
import { COOLDOWN_MAX_MS, LEASE_TTL_MS, settleMs, type GroupSettings } from './words/settings.ts';
import type { Amounts } from './parts/ahead.ts';
import { ATTACHMENTS_UNWRITTEN_MAX, noteHeld, type BoundRow } from './parts/bound.ts';
import { NO_RATES } from './parts/rate-limits.ts';
import { takeAhead } from './parts/rates.ts';
import { reserve } from './parts/spend.ts';
import type { UpstreamCallCounts } from './parts/upstream-calls.ts';
import { rebaseControls, type Controls } from './controls.ts';
import { emptyState } from './empty-state.ts';
import { addLease, endLostNesting } from './leases.ts';
import type { KeptMember } from './member.ts';
import { memberFor } from './members.ts';
import { applyReactions } from './serving.ts';
import {
  NEVER,
  type BudgetStop,
  type GroupState,
  type HandedLease,
  type ActiveLease,
} from './state.ts';
import { holdOrphaned, settleUnclaimed } from './orphaned.ts';
import { slotsHeld } from './violations.ts';

/** Rows that a group finds of the instances before it. */
export interface Stored {
  /** The last row of the bound, with what ended lately; null: nothing was ever granted, or all of it died. */
  readonly bound: BoundRow | null;
  /** Leases that ended by the row of the controls alone, which the next of its kind writes over. */
  readonly untold: readonly LeaseId[];
  readonly controls: Controls;
  /** Amounts that count as used besides the controls: they were set aside, and may have been used since. */
  readonly ahead: Amounts;
  /** The same of each member. Absent: the group named none. */
  readonly members?: Readonly<Record<string, KeptMember>>;
  /** The calls by upstream. Absent: an older release did not count them. */
  readonly upstreams?: Readonly<Record<string, UpstreamCallCounts>>;
  /** The budget that had no room for the last call. Absent or null: none, as far as was written. */
  readonly budgetStop?: BudgetStop | null;
  /** Leases of a release that wrote a row for each. */
  readonly leases: readonly HandedLease[];
}

/**
 * Recovers the state of a group after a reset.
 *
 * Whatever may have been handed out counts as held: slots as unclaimed until their holders come back, for one
 * TTL, of rates and budgets what was set aside. If there were slots, there may have been waiters, who come back
 * within `settleMs` and are put in their old order before anything is granted. What tenants had had is
 * forgotten. What a clock that was ahead has written is brought back to now.
 */
export function recover(
  settings: GroupSettings,
  stored: Stored,
  firstAttachment: number,
  isStored: boolean,
  now: InstantMs,
): GroupState {
  const { bound, untold, controls, ahead, leases } = stored;
  const mayHaveStarted = (bound?.mark ?? 0) > 0;
  const waitersUntil = waitersUntilBy(bound, settings);
  // Whose time to wait is over has left long ago.
  const waiters = bound === null || now >= waitersUntil ? 0 : bound.waiters;
  const takeBack = (kept: KeptMember, rates: RateSettings): Controls => {
    rebaseControls(kept.controls, rates, now);
    takeAhead(kept.controls.rates, rates, kept.ahead, mayHaveStarted, lastUseOf(bound, now));
    reserve(kept.controls.spend, kept.ahead.usd ?? 0);
    return kept.controls;
  };
  takeBack({ controls, ahead }, settings.rates);
  const members = Object.entries(stored.members ?? {}).map(([id, kept]) => {
    const { place } = kept;
    const isNamed = settings.members.some((member) => member.id === id);
    const { rates = NO_RATES } =
      settings.members.find((member) =>
        isNamed ? member.id === id : place !== undefined && member.place === place,
      ) ?? {};
    return [memberId(id), { ...kept, controls: takeBack(kept, rates) }] as const;
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
      // It was taken up again since.
      if (bound.granted.includes(id)) continue;
      state.bound.unclaimable.add(id);
      state.bound.lapsedBefore.add(id);
    }
    for (const id of bound.granted) {
      state.bound.grantedBefore.set(id, bound.grantedAt?.[id] ?? IMPLICIT);
    }
    for (const id of bound.heirs) state.bound.heirsBefore.add(id);
    // Or the next row of the controls would make the instance after it forget them.
    state.bound.ended = [...untold];
  }
  holdOrphaned(state, marksOf(bound), now);
  addHanded(state, leases, now);
  settleUnclaimed(state, now);
  if (leases.length > 0) state.bound.since = 0;
  if (slotsHeld(state) > 0 || waiters > 0) {
    state.grantsFrom = after(now, settleMs(waiters, slotsHeld(state)));
    state.drainsFrom = now;
    state.dispersedAt = now;
  }
  noteHeld(state.bound, slotsHeld(state), now);
  return state;
}

/** Reads how many slots each member may have handed out. */
function marksOf(bound: BoundRow | null): ReadonlyMap<MemberId, number> {
  if (bound === null || bound.mark === 0) return new Map();
  const { members } = bound;
  if (members === undefined) return new Map([[IMPLICIT, bound.mark]]);
  return new Map(Object.entries(members).map(([id, { mark }]) => [memberId(id), mark]));
}

/** Finds until when the last of those may wait that a row tells of. Some may wait for longer than the group says. */
function waitersUntilBy(bound: BoundRow | null, { timeoutMs }: GroupSettings): InstantMs {
  return bound === null ? NEVER : (bound.waitersUntil ?? after(bound.at, timeoutMs));
}

/** Finds when the instances before may have used something last: who holds a lease has them write within a TTL. */
function lastUseOf(bound: BoundRow | null, now: InstantMs): InstantMs {
  return bound === null ? now : earlier(now, after(bound.at, LEASE_TTL_MS));
}

/** Counts leases that another instance has granted: they are the same holders'. */
export function addHanded(state: GroupState, leases: readonly HandedLease[], now: InstantMs): void {
  for (const handed of leases) {
    if (state.leases.has(handed.id) || state.tombstones.has(handed.id)) continue;
    const lease = leaseFrom(handed, state.nextAttachment++, now);
    lease.member = memberFor(state, lease.member, lease.holder, now).id;
    addLease(state, lease, now);
    // Its holder has let go: an ask or a resumption that comes late must not take it up again.
    if (lease.phase === 'cooling') state.tombstones.add(lease.id, now);
    if (lease.phase === 'revoking') state.revoking.add(lease.id);
  }
  endLostNesting(state, now);
}

/** Makes a lease that was handed over. Its holder may live, and gets the time to come back in. */
function leaseFrom(handed: HandedLease, attachment: number, now: InstantMs): ActiveLease {
  const { coolingUntil, ...rest } = handed;
  const grantedAt = earlier(handed.grantedAt, now);
  // The clock that wrote it may have been ahead, and set back.
  const cooled = coolingUntil === null ? null : earlier(coolingUntil, after(now, COOLDOWN_MAX_MS));
  return {
    ...rest,
    // A release before members handed over none.
    member: rest.member ?? IMPLICIT,
    named: rest.member ?? IMPLICIT,
    grantedAt,
    until: cooled ?? after(now, LEASE_TTL_MS),
    attachment,
    isById: rest.isById ?? false,
    waitsElsewhere: false,
    heirOf: [],
    callableAt: grantedAt,
    slotsAtGrant: 0,
    slotsCounted: 0,
    gapMs: Infinity,
    scopes: [],
    hasAnswer: false,
    isRefused: false,
    isLagging: false,
    isOfEarlier: true,
    isLost: false,
    chargedMs: now - grantedAt,
    decision: null,
  };
}
