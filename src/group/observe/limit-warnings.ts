import type { Raised } from '../../contract/attention.ts';
import { isSplit, type GroupState } from '../../core/state.ts';
import type { Ledger } from '../../core/member.ts';
import { lastDecision, type Decision } from '../../core/parts/decision-log.ts';
import {
  limitsOf,
  oldestLeavesAt,
  usedAt,
  windowFitsAt,
  type RateLimit,
} from '../../core/parts/rate-limits.ts';
import { boundsOf, PERIODS, spentIn, type Period } from '../../core/parts/spend.ts';
import { IMPLICIT, instant, type InstantMs, type MemberId } from '../../core/words/ids.ts';
import type { BudgetSettings } from '../../core/words/settings.ts';
import type { Rejection } from '../../core/words/outcome.ts';
import { dollars } from '../../core/words/figures.ts';

/** Warnings of limits that are nearly or fully used: budgets, limits per day, and slots. */

/** Percentages of a budget or a daily limit at which warnings are raised, highest first. */
const STEPS = [100, 80, 50] as const;

type LimitStep = (typeof STEPS)[number];

/** Used part of a daily limit from which it counts as used up if the first waiter does not fit into it. */
const NEARLY = 0.8;

/** Maximum rounding error, as a part of a limit. */
const TOLERANCE = 1e-9;

const DAY_MS = 86_400_000;

/** Age after which a step cannot belong to the current period, because no month is longer. */
const PRUNED_MS = 31 * DAY_MS;

/** The highest step of which a warning was raised, when, and for which limit. A changed limit is warned of again. */
interface ReportedStep {
  readonly step: LimitStep;
  readonly at: number;
  readonly of: number;
}

/** Stores the steps, so that they outlive the instance. */
interface StepMemory {
  recall(key: 'steps'): string | null;
  remember(key: 'steps', value: string): void;
}

/** Holder of rates and budgets: the group, or a member of it. */
type LimitHolder = Pick<Ledger, 'controls' | 'settings'> & { readonly id: MemberId };

type Exhausted = Extract<Rejection, { reason: 'budget_exhausted' }>;

/**
 * Detects that 50 %, 80 % or all of a budget or a daily limit is used, each once per period. It checks the changes of
 * an event after the event. It sets no timer, because unused limits do not rise.
 */
export class LimitSteps {
  readonly #memory: StepMemory;
  readonly #raise: (raised: Raised, now: InstantMs) => void;
  /** null until it is read. */
  #known: Record<string, ReportedStep> | null = null;
  /**
   * The month's spend and the budgets at the last check of each holder. Without a change of these, no check is needed.
   */
  readonly #seen = new Map<MemberId, { readonly usd: number; readonly budgets: BudgetSettings }>();
  #lastDecision: Decision | undefined = undefined;

  constructor(memory: StepMemory, raise: (raised: Raised, now: InstantMs) => void) {
    this.#memory = memory;
    this.#raise = raise;
  }

  /** Raises warnings about the changes of an event, after it. */
  note(state: GroupState, now: InstantMs): void {
    const refusal = this.#newRejection(state);
    const { settings, controls, serving } = state;
    if (isSplit(state) && settings.isMetered) {
      this.#look(state, { id: IMPLICIT, settings, controls }, now);
    }
    for (const member of serving) if (member.settings.isMetered) this.#look(state, member, now);
    if (refusal !== null) this.#noteRejection(state, refusal, now);
  }

  #look(state: GroupState, holder: LimitHolder, now: InstantMs): void {
    this.#lookAtBudgets(state, holder, now);
    for (const limit of limitsOf(holder.settings.rates)) {
      if (limit.bucket === null) this.#lookAtDay(state, holder, limit, now);
    }
  }

  #lookAtBudgets(state: GroupState, { id, controls, settings }: LimitHolder, now: InstantMs): void {
    const { budgets } = settings;
    const { month: usd } = controls.spend.total.usd;
    const seen = this.#seen.get(id);
    if (seen !== undefined && seen.usd === usd && seen.budgets === budgets) return;
    this.#seen.set(id, { usd, budgets });
    for (const period of PERIODS) {
      const ofUsd = budgetOf(budgets, period);
      if (ofUsd === null || ofUsd === 0) continue;
      const spentUsd = spentIn(controls.spend.total, period, now);
      const { beganAt, endsAt } = boundsOf(period, now);
      const step = stepAt(spentUsd / ofUsd);
      const key = `${id} ${period}`;
      if (step === null || !this.#isNews(key, { step, of: ofUsd }, beganAt)) continue;
      this.#report(key, { step, at: now, of: ofUsd });
      const used = { member: id, period, spentUsd, ofUsd, endsAt };
      if (step < 100) this.#raise(budgetNear(used, step), now);
      else if (this.#isNews(`${key} refused`, { step, of: ofUsd }, beganAt)) {
        this.#raise(budgetSpent(used, state.settings.isDryRun), now);
      }
    }
  }

  #lookAtDay(
    { queue }: GroupState,
    { id, controls }: LimitHolder,
    { name, amountOf, window: params }: RateLimit,
    now: InstantMs,
  ): void {
    const window = controls.rates.windows[name];
    if (params === null || params.limit === 0 || window === undefined) return;
    const used = usedAt(window, params, now);
    const part = used / params.limit;
    let step = stepAt(part);
    if (step === null) return;
    const [first] = queue.byTicket.values();
    const isHeldUp =
      first !== undefined && windowFitsAt(window, params, amountOf(first.demand), now) > now;
    if (part >= NEARLY && isHeldUp) step = 100;
    const key = `${id} ${name}`;
    if (!this.#isNews(key, { step, of: params.limit }, instant(now - params.lengthMs))) return;
    this.#report(key, { step, at: now, of: params.limit });
    const of = name === 'rpd' ? 'requests' : 'tokens';
    const leavesAt = oldestLeavesAt(window, params, now);
    const reported = { member: id, of, used, limit: params.limit, leavesAt } as const;
    this.#raise(step < 100 ? dayNear(reported, step) : daySpent(reported), now);
  }

  /** Returns a new rejection for a budget, or null if the event caused none. */
  #newRejection({ decisions }: GroupState): Exhausted | null {
    const last = lastDecision(decisions);
    if (last === this.#lastDecision) return null;
    this.#lastDecision = last;
    const rejection = last?.rejection ?? null;
    return rejection?.reason === 'budget_exhausted' ? rejection : null;
  }

  /**
   * Warns that a call did not fit into a budget, unless the budget is known to be spent. A small remainder may never be
   * used.
   */
  #noteRejection(state: GroupState, { window: period, limitUsd }: Exhausted, now: InstantMs): void {
    const { settings, controls, serving } = state;
    const holders: LimitHolder[] = [{ id: IMPLICIT, settings, controls }, ...serving];
    const holder = holders.find((each) => budgetOf(each.settings.budgets, period) === limitUsd);
    if (holder === undefined) return;
    const { beganAt, endsAt } = boundsOf(period, now);
    const reported = { step: 100, at: now, of: limitUsd } as const;
    const key = `${holder.id} ${period}`;
    if (
      !this.#isNews(key, reported, beganAt) ||
      !this.#isNews(`${key} refused`, reported, beganAt)
    ) {
      return;
    }
    this.#report(`${key} refused`, reported);
    const { total, reservedUsd } = holder.controls.spend;
    const used = {
      member: holder.id,
      period,
      spentUsd: spentIn(total, period, now),
      ofUsd: limitUsd,
      endsAt,
    };
    this.#raise(budgetRefused(used, reservedUsd), now);
  }

  /** Whether neither a step nor a higher one was reported in the period that began then. */
  #isNews(
    key: string,
    { step, of }: Pick<ReportedStep, 'step' | 'of'>,
    beganAt: InstantMs,
  ): boolean {
    const reported = this.#reported[key];
    return (
      reported === undefined || reported.of !== of || reported.at < beganAt || reported.step < step
    );
  }

  #report(key: string, reported: ReportedStep): void {
    const kept = Object.entries(this.#reported).filter(
      ([, { at }]) => at > reported.at - PRUNED_MS,
    );
    this.#known = { ...Object.fromEntries(kept), [key]: reported };
    this.#memory.remember('steps', JSON.stringify(this.#known));
  }

  /** Reads the steps reported by earlier instances, once there is one to report. */
  get #reported(): Readonly<Record<string, ReportedStep>> {
    this.#known ??= JSON.parse(this.#memory.recall('steps') ?? '{}') as Record<
      string,
      ReportedStep
    >;
    return this.#known;
  }
}

function stepAt(part: number): LimitStep | null {
  return STEPS.find((step) => part * 100 >= step * (1 - TOLERANCE)) ?? null;
}

function budgetOf(budgets: BudgetSettings, period: Period): number | null {
  const { perHourUsd: hour, perDayUsd: day, perMonthUsd: month } = budgets;
  return { hour, day, month }[period];
}

interface BudgetUsed {
  /** The member with the budget. The implicit member stands for the whole pool. */
  readonly member: MemberId;
  readonly period: Period;
  readonly spentUsd: number;
  readonly ofUsd: number;
  readonly endsAt: InstantMs;
}

/** The state of a daily limit of requests or tokens. */
interface DayUsed {
  readonly member: MemberId;
  readonly of: 'requests' | 'tokens';
  readonly used: number;
  readonly limit: number;
  /** When the oldest usage stops counting. */
  readonly leavesAt: InstantMs;
}

export function budgetNear(used: BudgetUsed, percent: number): Raised {
  const message = `${percent} % of ${nameOf(used)} is spent (${amounts(used)}). It resets at ${timeOf(used.endsAt)}.`;
  return { kind: 'budget_near', ...about(used), message, figures: figuresOf(used, percent) };
}

export function budgetSpent(used: BudgetUsed, isDryRun: boolean): Raised {
  const calls = isDryRun ? 'Calls would be rejected' : 'Calls are rejected';
  const message = `All of ${nameOf(used)} is spent (${amounts(used)}). ${calls} until ${timeOf(used.endsAt)}.`;
  return { kind: 'budget_spent', ...about(used), message, figures: figuresOf(used, 100) };
}

/** Warns that a call did not fit into the rest of a budget. */
export function budgetRefused(used: BudgetUsed, reservedUsd: number): Raised {
  const { spentUsd, ofUsd, endsAt } = used;
  const reserved =
    reservedUsd > 0 ? `, and ${dollars(reservedUsd)} is reserved for calls in flight` : '';
  const message = `A call did not fit into ${nameOf(used)} and was rejected: ${spentOf(used)}${reserved}. Similar calls are rejected until ${timeOf(endsAt)}.`;
  const percent = ofUsd === 0 ? 100 : Math.floor((spentUsd / ofUsd) * 100);
  const figures = { ...figuresOf(used, percent), reserved_usd: reservedUsd };
  return { kind: 'budget_spent', ...about(used), message, figures };
}

export function dayNear(used: DayUsed, percent: number): Raised {
  const message = `${percent} % of ${dayName(used)} is used (${dayAmounts(used)}). The oldest ${used.of} stop counting at ${timeOf(used.leavesAt)}.`;
  return { kind: 'day_limit_near', ...about(used), message, figures: dayFigures(used, percent) };
}

export function daySpent(used: DayUsed): Raised {
  const message = `All of ${dayName(used)} is used (${dayAmounts(used)}). Calls are queued until the oldest ${used.of} stop counting, from ${timeOf(used.leavesAt)} on.`;
  return { kind: 'day_limit_spent', ...about(used), message, figures: dayFigures(used, 100) };
}

function about({ member }: { readonly member: MemberId }): Pick<Raised, 'member'> {
  return member === IMPLICIT ? {} : { member };
}

function ofMember({ member }: { readonly member: MemberId }): string {
  return member === IMPLICIT ? '' : ` of member \`${member}\``;
}

function nameOf(used: BudgetUsed): string {
  return `the budget for this ${used.period}${ofMember(used)}`;
}

function amounts({ spentUsd, ofUsd }: BudgetUsed): string {
  return `${dollars(spentUsd)} of ${dollars(ofUsd)}`;
}

/** Describes the spent part. "None" is clearer than an amount of $0. */
function spentOf(used: BudgetUsed): string {
  const { spentUsd, ofUsd } = used;
  return spentUsd === 0 ? `none of ${dollars(ofUsd)} is spent` : `${amounts(used)} is spent`;
}

function figuresOf({ spentUsd, ofUsd, endsAt }: BudgetUsed, percent: number): Raised['figures'] {
  return { percent, spent_usd: spentUsd, budget_usd: ofUsd, until_ms: endsAt };
}

function dayName(used: DayUsed): string {
  return `the 24-hour limit of ${used.of}${ofMember(used)}`;
}

function dayAmounts({ used, limit }: DayUsed): string {
  return `${Math.round(used).toLocaleString('en')} of ${limit.toLocaleString('en')}`;
}

function dayFigures({ used, limit, leavesAt }: DayUsed, percent: number): Raised['figures'] {
  return { percent, used: Math.round(used), limit, until_ms: leavesAt };
}

function timeOf(at: InstantMs): string {
  return `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

const NEAR_MS = 60_000;

/**
 * Tolerance of the mean, as a part of the limit and in slots. Between two calls of a caller its slot is free for a
 * moment.
 */
const NEAR_TOLERANCE = 0.005;
const SLOTS_MISSED_MAX = 0.5;

/** A period that began near the limit. */
interface Stretch {
  readonly since: InstantMs;
  readonly limit: number;
  /** Slots in use, multiplied by their time in milliseconds. */
  slotMs: number;
  /** Slots in use since `at`. */
  inUse: number;
  at: InstantMs;
}

/**
 * Detects that a part of the limit was in use for a minute on average. It uses the mean because in a small pool each
 * ended call leaves the range until its slot is taken again.
 */
export class NearLimit {
  /** null while the pool is not near its limit. */
  #stretch: Stretch | null = null;

  /**
   * Records the slots in use after an event. Returns their mean when a minute near the limit has passed, otherwise
   * null.
   */
  note(inUse: number, limit: number, warnAt: number | null, now: InstantMs): number | null {
    if (warnAt === null || limit <= 0) {
      this.#stretch = null;
      return null;
    }
    const wanted = warnAt * limit - Math.min(NEAR_TOLERANCE * limit, SLOTS_MISSED_MAX);
    const mean = this.#extend(inUse, limit, wanted, now);
    if (this.#stretch === null && inUse >= wanted) {
      this.#stretch = { since: now, limit, slotMs: 0, inUse, at: now };
    }
    return mean;
  }

  #extend(inUse: number, limit: number, wanted: number, now: InstantMs): number | null {
    const stretch = this.#stretch;
    if (stretch === null) return null;
    stretch.slotMs += stretch.inUse * (now - stretch.at);
    stretch.inUse = inUse;
    stretch.at = now;
    const lengthMs = now - stretch.since;
    const isOver = lengthMs >= NEAR_MS;
    // Even a full remainder of the minute cannot raise the mean to the threshold.
    const isLost = stretch.slotMs + limit * (NEAR_MS - lengthMs) < wanted * NEAR_MS;
    if (isOver || isLost || stretch.limit !== limit) this.#stretch = null;
    if (!isOver || stretch.limit !== limit) return null;
    const mean = stretch.slotMs / lengthMs;
    return mean >= wanted ? mean : null;
  }
}
