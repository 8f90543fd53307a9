import { after, earlier, instant, type InstantMs } from '../words/ids.ts';
import type { BudgetSettings } from '../words/settings.ts';

/** The spend of budgets, by period and spender, and its corrections by an operator. */

export const PERIODS = ['hour', 'day', 'month'] as const;

export type Period = (typeof PERIODS)[number];

/** Money spent in the hour, day and month that were current at the last call. */
export interface Spent {
  readonly usd: Record<Period, number>;
  readonly beganAt: Record<Period, InstantMs>;
}

/** A key or agent whose spend is counted in addition to the group's. */
export interface Spender extends Spent {
  readonly id: string;
}

export interface NewCorrection {
  /** A repeated id means the same correction. */
  readonly id: string;
  /** The member whose budget is corrected. null for the budget of the group. */
  readonly member: string | null;
  /** The shortest current period that contains the charge. The longer ones are corrected too. */
  readonly period: Period;
  /** A negative amount means that less was spent. */
  readonly usd: number;
  /** The operator, and the reason. */
  readonly by: string;
  readonly note: string;
}

export interface Correction extends NewCorrection {
  readonly at: InstantMs;
  /** Spend before it. */
  readonly before: Record<Period, number>;
  /** The applied changes, which never lower the spend below 0. They are 0 once the correction is reverted. */
  readonly applied: Record<Period, number>;
  /** Start of the periods in which it was applied. */
  readonly beganAt: Record<Period, InstantMs>;
  /** null if it is in force. */
  undoneAt: InstantMs | null;
}

/** Money that a group has spent and reserved. It is stored, so that a restart gives no new budget. */
export interface SpendState {
  readonly total: Spent;
  /** The estimates of the calls in flight. */
  reservedUsd: number;
  /** In the order of their last spend, newest last. */
  keys: Spender[];
  agents: Spender[];
  /** Corrections by operators, oldest first. Absent if there are none. */
  corrections?: readonly Correction[];
}

/** A budget that a call does not fit into, and when its next period begins. */
interface BudgetBlock {
  readonly period: Period;
  readonly endsAt: InstantMs;
}

export interface CallCost {
  readonly reservedUsd: number;
  readonly actualUsd: number;
  readonly key: string | null;
  readonly agent: string | null;
}

/** Maximum number of remembered keys, and of agents. The one with the oldest spend is removed first. */
export const SPENDERS_MAX = 200;

/** Maximum rounding error. A smaller amount counts as nothing. */
const USD_TOLERANCE = 1e-9;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export function emptySpend(): SpendState {
  return { total: emptySpent(), reservedUsd: 0, keys: [], agents: [] };
}

/**
 * Returns the budget that a call of about `usd` does not fit into, the one that ends last if there are several. null if
 * it fits. Calls in flight count with their estimates, in each period in which they may end.
 */
export function budgetBlock(
  spend: SpendState,
  settings: BudgetSettings,
  usd: number,
  now: InstantMs,
): BudgetBlock | null {
  if (usd <= 0) return null;
  const limits = {
    hour: settings.perHourUsd,
    day: settings.perDayUsd,
    month: settings.perMonthUsd,
  };
  const blocking = PERIODS.filter(
    (period) =>
      committedIn(spend, period, now) + usd > (limits[period] ?? Infinity) + USD_TOLERANCE,
  );
  const period = blocking.at(-1);
  return period === undefined ? null : { period, endsAt: boundsOf(period, now).endsAt };
}

/** Returns what is left of a budget of `limitUsd`, by the rules of `budgetBlock`. */
export function budgetLeft(
  spend: SpendState,
  period: Period,
  limitUsd: number,
  now: InstantMs,
): number {
  return Math.max(0, limitUsd - committedIn(spend, period, now));
}

function committedIn(spend: SpendState, period: Period, now: InstantMs): number {
  return spentIn(spend.total, period, now) + spend.reservedUsd;
}

/**
 * Moves spend in future periods, noted by a clock that was ahead, to the current ones. Otherwise their budgets would
 * stay exhausted until those periods end.
 */
export function rebase(spend: SpendState, now: InstantMs): void {
  for (const spent of [spend.total, ...spend.keys, ...spend.agents]) rebaseSpent(spent, now);
  spend.corrections?.forEach((correction) => rebaseSpent(correction, now));
}

function rebaseSpent({ beganAt }: Pick<Spent, 'beganAt'>, now: InstantMs): void {
  for (const period of PERIODS) {
    beganAt[period] = earlier(beganAt[period], boundsOf(period, now).beganAt);
  }
}

export function reserve(spend: SpendState, usd: number): void {
  spend.reservedUsd += usd;
}

/** Refunds the reservation of a call that cost nothing. */
export function refund(spend: SpendState, usd: number): void {
  const left = spend.reservedUsd - usd;
  spend.reservedUsd = left < USD_TOLERANCE ? 0 : left;
}

/** Counts the actual cost of a call in the periods in which it ended. */
export function settle(spend: SpendState, call: CallCost, now: InstantMs): void {
  refund(spend, call.reservedUsd);
  addSpent(spend.total, call.actualUsd, now);
  if (call.key !== null) spend.keys = charge(spend.keys, call.key, call.actualUsd, now);
  if (call.agent !== null) spend.agents = charge(spend.agents, call.agent, call.actualUsd, now);
}

/** Counts reservations beyond `reservedUsd` as spent, because no known holder will settle them. */
export function chargeRest(spend: SpendState, reservedUsd: number, now: InstantMs): void {
  const rest = spend.reservedUsd - reservedUsd;
  if (rest > USD_TOLERANCE) addSpent(spend.total, rest, now);
  spend.reservedUsd = reservedUsd;
}

export function hasSpent({ total }: SpendState, now: InstantMs): boolean {
  return PERIODS.some((period) => spentIn(total, period, now) > 0);
}

/** Adds the spend and the reservations of another group. */
export function addSpend(spend: SpendState, other: SpendState, now: InstantMs): void {
  addPeriods(spend.total, other.total, now);
  reserve(spend, other.reservedUsd);
  spend.keys = addSpenders(spend.keys, other.keys, now);
  spend.agents = addSpenders(spend.agents, other.agents, now);
}

function addSpenders(
  own: readonly Spender[],
  others: readonly Spender[],
  now: InstantMs,
): Spender[] {
  let spenders = [...own];
  for (const other of others) {
    spenders = charge(spenders, other.id, 0, now);
    const spender = spenders.at(-1);
    if (spender !== undefined) addPeriods(spender, other, now);
  }
  return spenders;
}

function addPeriods(spent: Spent, other: Spent, now: InstantMs): void {
  for (const period of PERIODS) addIn(spent, period, spentIn(other, period, now), now);
}

export function spentIn(spent: Spent, period: Period, now: InstantMs): number {
  // A clock that was set back does not return to the previous period.
  return spent.beganAt[period] >= boundsOf(period, now).beganAt ? spent.usd[period] : 0;
}

/** Returns the start of the UTC period that contains an instant. */
export function periodBegin(period: Period, at: InstantMs): InstantMs {
  return boundsOf(period, at).beganAt;
}

export function emptySpent(): Spent {
  return {
    usd: { hour: 0, day: 0, month: 0 },
    beganAt: { hour: instant(0), day: instant(0), month: instant(0) },
  };
}

export function addSpent(spent: Spent, usd: number, now: InstantMs): void {
  for (const period of PERIODS) addIn(spent, period, usd, now);
}

function addIn(spent: Spent, period: Period, usd: number, now: InstantMs): void {
  spent.usd[period] = spentIn(spent, period, now) + usd;
  const { beganAt } = boundsOf(period, now);
  spent.beganAt[period] = instant(Math.max(spent.beganAt[period], beganAt));
}

function charge(spenders: readonly Spender[], id: string, usd: number, now: InstantMs): Spender[] {
  const spender = spenders.find((each) => each.id === id) ?? { id, ...emptySpent() };
  addSpent(spender, usd, now);
  const others = spenders.filter((each) => each !== spender);
  return [...others.slice(-(SPENDERS_MAX - 1)), spender];
}

/** Returns the start of the UTC hour, day or month that contains `at`, and of the next one. */
export function boundsOf(period: Period, at: InstantMs): { beganAt: InstantMs; endsAt: InstantMs } {
  if (period === 'month') {
    const beganAt = monthBeganAt(at);
    // 31 days after the first of a month is always in the next month.
    return { beganAt, endsAt: monthBeganAt(after(beganAt, 31 * DAY_MS)) };
  }
  const lengthMs = period === 'hour' ? HOUR_MS : DAY_MS;
  const beganAt = instant(Math.floor(at / lengthMs) * lengthMs);
  return { beganAt, endsAt: after(beganAt, lengthMs) };
}

function monthBeganAt(at: InstantMs): InstantMs {
  // With an argument, `Date` reads no clock and is only arithmetic.
  /* oxlint-disable no-restricted-globals */
  const date = new Date(at);
  return instant(Date.UTC(date.getUTCFullYear(), date.getUTCMonth()));
  /* oxlint-enable no-restricted-globals */
}

/**
 * Corrections of a budget's spend by an operator. Each is relative, so it is correct even while calls are settled. It
 * stores the spend before it, so that an undo can compute the spend without it.
 */

/** Maximum number of kept corrections, the newest ones. Older corrections cannot be undone. */
export const CORRECTIONS_MAX = 20;

/** Lists the kept corrections, newest first. */
export function correctionsOf({ corrections = [] }: SpendState): readonly Correction[] {
  return corrections.toReversed();
}

/** Corrects the spend. The id must be new. */
export function correctSpend(spend: SpendState, wanted: NewCorrection, now: InstantMs): void {
  const { corrections = [], total } = spend;
  addSpent(total, 0, now);
  const nothing = { hour: 0, day: 0, month: 0 };
  const [before, beganAt] = [{ ...total.usd }, { ...total.beganAt }];
  const made: Correction = {
    ...wanted,
    at: now,
    before,
    applied: nothing,
    beganAt,
    undoneAt: null,
  };
  for (const period of PERIODS) total.usd[period] = recount(period, [made], total.usd[period]);
  spend.corrections = [...corrections, made].slice(-CORRECTIONS_MAX);
}

/**
 * Reverts a correction, once, in the periods that are still current. The spend is then as if the correction had never
 * been made. Returns false if no correction has that id.
 */
export function undoCorrection(spend: SpendState, id: string, now: InstantMs): boolean {
  const { corrections = [], total } = spend;
  const index = corrections.findIndex((each) => each.id === id);
  const found = corrections[index];
  if (found === undefined) return false;
  if (found.undoneAt !== null) return true;
  found.undoneAt = now;
  addSpent(total, 0, now);
  for (const period of PERIODS) {
    if (total.beganAt[period] !== found.beganAt[period]) continue;
    total.usd[period] = recount(period, corrections.slice(index), total.usd[period]);
  }
  return true;
}

/**
 * Computes the spend of a period from the amount before the first of these corrections. Calls settled between them
 * count as they came. Each correction in force changes the sum, which never falls below 0.
 *
 * @param spent the current spend
 */
function recount(period: Period, corrections: readonly Correction[], spent: number): number {
  let usd = corrections[0]?.before[period] ?? spent;
  for (const [index, each] of corrections.entries()) {
    const { before, applied } = each;
    const until = corrections[index + 1]?.before[period] ?? spent;
    const settled = until - before[period] - applied[period];
    const corrected = holdsIn(each, period) ? Math.max(0, usd + each.usd) : usd;
    before[period] = usd;
    applied[period] = corrected - usd;
    usd = corrected + settled;
  }
  return usd;
}

function holdsIn({ undoneAt, period: shortest }: Correction, period: Period): boolean {
  return undoneAt === null && PERIODS.indexOf(shortest) <= PERIODS.indexOf(period);
}
