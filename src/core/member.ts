import { instant, type InstantMs, type MemberId } from './words/ids.ts';
import type {
  BudgetSettings,
  RateSettings,
  MemberSettings,
  BreakerSettings,
} from './words/settings.ts';
import {
  nothingAhead,
  emptyTokenFactors,
  type Ahead,
  type Amounts,
  type TokenFactors,
} from './parts/demand.ts';
import { noEnds, noLag, rebase as rebaseLag, type RecentEnds, type Lag } from './parts/lag.ts';
import {
  noReports,
  noScopes,
  type Reports,
  type ScopeLessons,
  type Lessons,
  type Scopes,
} from './parts/lessons.ts';
import { scopeKey, type Scope } from './words/signal.ts';
import {
  emptyCeiling,
  rebase as rebaseCeiling,
  type CeilingSettings,
  type Ceiling,
} from './parts/ceiling.ts';
import { closedBreaker, rebase as rebaseBreaker, type Breaker } from './parts/breaker.ts';
import { emptyCosts, type Costs } from './parts/costs.ts';
import {
  noOutage,
  rebaseOutage,
  emptyPause,
  rebase as rebasePause,
  type Outage,
  type Pause,
} from './parts/pause.ts';
import { emptyRates, rebase as rebaseRates, type RateUse } from './parts/rates.ts';
import { emptySpend, rebase as rebaseSpend, type SpendState } from './parts/spend.ts';

/**
 * A member, what it has in common with a scope (the limiter), and the use and lessons that are stored (the controls).
 */

/**
 * A place where calls of a group run. A group that names no members has one with its own limits, so the same code
 * serves both cases. Slots are counted at the member and in the group. Lessons belong to the member.
 */
export interface Member extends Limiter {
  readonly id: MemberId;
  settings: MemberSettings;
  readonly controls: Controls;
  /** Amounts that its stored controls already count as used. */
  readonly ahead: Ahead;
  readonly recentEnds: RecentEnds;
  readonly scopes: Map<string, ScopeLimiter>;
  reports: Reports;
  slotsNested: number;
  /** Orphaned slots of this member. */
  unclaimed: number;
  /** The number of its last grant, counted over all members. 0 if there was none. */
  turn: number;
  /** The latest grant time among the calls that it has served. */
  servedGrantAt: InstantMs;
  /** Waiters that wait for this member while another one has room. */
  heldOut: number;
  readonly totals: MemberTotals;
}

/** Counts since the instance started. */
export interface MemberTotals {
  granted: number;
  refused: number;
  inputTokens: number;
  outputTokens: number;
  usd: number;
}

interface RateAndBudgetLimits {
  readonly rates: RateSettings;
  readonly budgets: BudgetSettings;
}

/** The rate and budget limits of a member, or of the group over all members, and what is used of them. */
export interface Ledger {
  readonly controls: Controls;
  readonly ahead: Ahead;
  readonly settings: RateAndBudgetLimits;
}

/** What is stored of a member, except the bound. */
export interface KeptMember {
  readonly controls: Controls;
  readonly ahead: Amounts;
  /** Its place, which identifies it under another id. Absent if unknown. */
  readonly place?: string;
}

export function emptyMember(
  settings: MemberSettings,
  controls: Controls,
  ahead: Ahead = nothingAhead(),
  recentEnds: RecentEnds = noEnds(),
): Member {
  const member: Member = {
    id: settings.id,
    settings,
    controls,
    ahead,
    recentEnds,
    scopes: new Map(),
    reports: noReports(),
    slotsInUse: 0,
    slotsNested: 0,
    slotsCooling: 0,
    slotsWaitingElsewhere: 0,
    slotsRefused: 0,
    unclaimed: 0,
    turn: 0,
    servedGrantAt: instant(0),
    heldOut: 0,
    totals: { granted: 0, refused: 0, inputTokens: 0, outputTokens: 0, usd: 0 },
  };
  for (const lessons of controls.scopes.narrower) {
    member.scopes.set(scopeKey(lessons.scope), scopeLimiterOf(member, lessons));
  }
  return member;
}

export function scopeLimiterOf(member: Member, lessons: ScopeLessons): ScopeLimiter {
  return new ScopeLimiter(lessons, () => member.settings);
}

interface MemberLeaseCount extends CountedLease {
  readonly nested: { readonly slots: number } | null;
}

export function countAt(member: Member, lease: MemberLeaseCount, sign: 1 | -1): void {
  countSlots(member, lease, sign);
  if (lease.slots === 0) member.slotsNested += sign * (lease.nested?.slots ?? 0);
}

/** Adds a lease to the sums of its member and its scopes there, or subtracts it. */
export function countInAll(
  member: Member,
  lease: MemberLeaseCount & { readonly scopes: readonly Pick<LeaseInScope, 'limiter'>[] },
  sign: 1 | -1,
): void {
  countAt(member, lease, sign);
  for (const { limiter } of lease.scopes) countSlots(limiter, lease, sign);
}

interface SlotSums {
  slotsInUse: number;
  slotsCooling: number;
  slotsWaitingElsewhere: number;
  slotsRefused: number;
}

interface LimiterSettings extends CeilingSettings {
  readonly breaker: BreakerSettings;
  readonly probesPauses: boolean;
}

/**
 * Lessons about an upstream that hold for a set of calls, and the slots that these calls use. The set is all calls of a
 * member, or those of one scope at it.
 */
export interface Limiter extends SlotSums {
  readonly id: MemberId | null;
  readonly controls: Lessons;
  readonly settings: LimiterSettings;
  readonly recentEnds: RecentEnds;
  /** Slots that an earlier instance may have granted and that no call has reclaimed. */
  readonly unclaimed: number;
}

/** The number of calls that a limiter had at the upstream when a lease was granted. */
export interface AtGrant {
  /** Slots at the upstream, including its own. 0 if no longer known. */
  slotsAtGrant: number;
  /** The same, including slots that had ended and may still have counted at the upstream. */
  slotsCounted: number;
  /** Time since the end of the calls that leave it no room if the upstream still counts them. */
  gapMs: number;
}

export class ScopeLimiter implements Limiter {
  readonly id: MemberId | null = null;
  readonly scope: Scope;
  readonly controls: ScopeLessons;
  readonly recentEnds: RecentEnds = noEnds();
  readonly unclaimed = 0;
  slotsInUse = 0;
  slotsCooling = 0;
  slotsWaitingElsewhere = 0;
  slotsRefused = 0;
  readonly #ofMember: () => LimiterSettings;

  constructor(controls: ScopeLessons, ofMember: () => LimiterSettings) {
    this.#ofMember = ofMember;
    this.controls = controls;
    this.scope = controls.scope;
  }

  /** A scope has no configured limit. It never has more slots than its member. */
  get settings(): LimiterSettings {
    const { slotsMax, isAdaptive, breaker, probesPauses } = this.#ofMember();
    return { slotsMax, isAdaptive, isHard: true, breaker, probesPauses };
  }
}

export interface LeaseInScope extends AtGrant {
  readonly limiter: ScopeLimiter;
}

interface CountedLease {
  readonly slots: number;
  readonly phase: 'held' | 'revoking' | 'cooling';
  readonly waitsElsewhere: boolean;
  readonly isRefused: boolean;
}

export function countSlots(sums: SlotSums, lease: CountedLease, sign: 1 | -1): void {
  const slots = sign * lease.slots;
  sums.slotsInUse += slots;
  if (lease.phase === 'cooling') sums.slotsCooling += slots;
  if (lease.waitsElsewhere) sums.slotsWaitingElsewhere += slots;
  if (lease.isRefused) sums.slotsRefused += slots;
}

/**
 * The part of its limits, except slots, that a member has used, and its lessons about its upstream. For a group with
 * members, also the use over all of them. One row stores them, so a reset grants nothing twice and forgets no lesson.
 */
export interface Controls {
  readonly rates: RateUse;
  readonly spend: SpendState;
  /** Costs of all calls of the group, at all members. A member's own costs stay empty. */
  readonly costs: Costs;
  readonly ceiling: Ceiling;
  readonly pause: Pause;
  readonly breaker: Breaker;
  readonly factors: TokenFactors;
  readonly lag: Lag;
  readonly outage: Outage;
  readonly scopes: Scopes;
}

export function emptyControls(now: InstantMs): Controls {
  return {
    rates: emptyRates(),
    spend: emptySpend(),
    costs: emptyCosts(),
    ceiling: emptyCeiling(now),
    pause: emptyPause(),
    breaker: closedBreaker(),
    factors: emptyTokenFactors(),
    lag: noLag(),
    outage: noOutage(),
    scopes: noScopes(),
  };
}

/** Corrects times that were noted by a clock that was ahead of `now`. */
export function rebaseControls(controls: Controls, rates: RateSettings, now: InstantMs): void {
  rebaseRates(controls.rates, rates, now);
  rebaseSpend(controls.spend, now);
  for (const { ceiling, pause, breaker, lag } of [controls, ...controls.scopes.narrower]) {
    rebaseCeiling(ceiling, now);
    rebasePause(pause, now);
    rebaseBreaker(breaker, now);
    rebaseLag(lag, now);
  }
  rebaseOutage(controls.outage, now);
}
