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
import { holdOrphaned, settleOrphaned } from './orphaned.ts';
import { slotsHeld } from './violations.ts';

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

export function addHanded(state: GroupState, leases: readonly HandedLease[], now: InstantMs): void {
  for (const handed of leases) {
    if (state.leases.has(handed.id) || state.tombstones.has(handed.id)) continue;
    const lease = leaseFrom(handed, state.nextAttachment++, now);
    lease.member = memberFor(state, lease.member, lease.holder, now).id;
    addLease(state, lease, now);
    // Its holder has released it, so a late acquire call or resumption must not revive it.
    if (lease.phase === 'cooling') state.tombstones.add(lease.id, now);
    if (lease.phase === 'revoking') state.revoking.add(lease.id);
  }
  endLostNesting(state, now);
}

/** Creates a lease that was handed over. Its holder may be alive and gets one TTL to return. */
function leaseFrom(handed: HandedLease, attachment: number, now: InstantMs): ActiveLease {
  const { coolingUntil, ...rest } = handed;
  const grantedAt = earlier(handed.grantedAt, now);
  // The clock that wrote it may have been ahead.
  const cooled = coolingUntil === null ? null : earlier(coolingUntil, after(now, COOLDOWN_MAX_MS));
  return {
    ...rest,
    named: rest.member,
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
