import { instant, type InstantMs, type MemberId } from './words/ids.ts';
import type { BudgetSettings, RateSettings } from './words/limits.ts';
import type { MemberSettings } from './words/member.ts';
import { nothingAhead, type Ahead, type Amounts } from './parts/ahead.ts';
import { noEnds, type RecentEnds } from './parts/recent-ends.ts';
import { noReports, type Reports } from './parts/reports.ts';
import type { Controls } from './controls.ts';
import {
  countSlots,
  ScopeLimiter,
  type CountedLease as CountedSlots,
  type LeaseInScope,
  type Limiter,
} from './limiter.ts';
import type { ScopeLessons } from './parts/scope-lessons.ts';
import { scopeKey } from './words/scope.ts';

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

interface MemberLeaseCount extends CountedSlots {
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
