import { after, earlier, instant, type InstantMs } from '../words/ids.ts';
import type { BudgetSettings } from '../words/limits.ts';

/** The lengths of time that budgets are for. */
export const PERIODS = ['hour', 'day', 'month'] as const;

export type Period = (typeof PERIODS)[number];

/** Money spent in the hour, day and month that were current at the last call. */
export interface Spent {
  readonly usd: Record<Period, number>;
  /** The begin of each of the three. */
  readonly beganAt: Record<Period, InstantMs>;
}

/** A key or agent that calls are counted for, beside the group. */
export interface Spender extends Spent {
  readonly id: string;
}

/** A requested correction. */
export interface NewCorrection {
  /** A repeated id is the same correction. */
  readonly id: string;
  /** The member whose budget it is. Null: it is the budget of the group. */
  readonly member: string | null;
  /** The shortest current period that contains the charge; the longer ones are corrected too. */
  readonly period: Period;
  /** Negative: less was spent. */
  readonly usd: number;
  /** The operator, and why. */
  readonly by: string;
  readonly note: string;
}

export interface Correction extends NewCorrection {
  readonly at: InstantMs;
  /** Spend before it. */
  readonly before: Record<Period, number>;
  /** Applied changes: spend never goes below 0. They are 0 once it is undone. */
  readonly applied: Record<Period, number>;
  /** Start of the periods in which they were applied. */
  readonly beganAt: Record<Period, InstantMs>;
  /** Null: it is in force. */
  undoneAt: InstantMs | null;
}

/** Money that a group has spent and is about to spend. Kept in a row, so that a restart gives no new budget. */
export interface SpendState {
  readonly total: Spent;
  /** The estimates of the calls in flight. */
  reservedUsd: number;
  /** Spenders, the last one to spend last. */
  keys: Spender[];
  agents: Spender[];
  /** Corrections by operators, oldest first. Absent: none. */
  corrections?: readonly Correction[];
}

/** A budget that a call does not fit into, and when the next one begins. */
export interface BudgetBlock {
  readonly period: Period;
  readonly endsAt: InstantMs;
}

/** A call that was charged for. */
export interface CallCost {
  /** Money reserved for it at its grant. */
  readonly reservedUsd: number;
  readonly actualUsd: number;
  readonly key: string | null;
  readonly agent: string | null;
}

/** Maximum keys, and maximum agents, that are remembered; the one that has not spent for longest goes first. */
export const SPENDERS_MAX = 200;

/** Maximum error of rounding: less is not money. */
const USD_TOLERANCE = 1e-9;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** A group that has not spent anything. */
export function emptySpend(): SpendState {
  return { total: emptySpent(), reservedUsd: 0, keys: [], agents: [] };
}

/**
 * Finds the budget that a call of about `usd` does not fit into, the one that ends last if there are several;
 * null: it fits. Calls in flight count with their estimates, in each period that they may end in.
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

/** Finds what is left of a budget of `limitUsd`, as `budgetBlock` counts it. */
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
 * Moves what was spent in periods of the future, by a clock that was ahead, to the current ones. Otherwise their budgets
 * would stay exhausted until those periods are over.
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

/** Sets `usd` aside for a call that was granted. */
export function reserve(spend: SpendState, usd: number): void {
  spend.reservedUsd += usd;
}

/** Refunds what was set aside for a call that cost nothing. */
export function refund(spend: SpendState, usd: number): void {
  const left = spend.reservedUsd - usd;
  spend.reservedUsd = left < USD_TOLERANCE ? 0 : left;
}

/** Counts what a call really cost, in the periods in which it ended. */
export function settle(spend: SpendState, call: CallCost, now: InstantMs): void {
  refund(spend, call.reservedUsd);
  addSpent(spend.total, call.actualUsd, now);
  if (call.key !== null) spend.keys = charge(spend.keys, call.key, call.actualUsd, now);
  if (call.agent !== null) spend.agents = charge(spend.agents, call.agent, call.actualUsd, now);
}

/** Counts as spent what is reserved beyond `reservedUsd`: nobody is known who could say what it came to. */
export function chargeRest(spend: SpendState, reservedUsd: number, now: InstantMs): void {
  const rest = spend.reservedUsd - reservedUsd;
  if (rest > USD_TOLERANCE) addSpent(spend.total, rest, now);
  spend.reservedUsd = reservedUsd;
}

/** Whether something was spent in a period that is current. */
export function hasSpent({ total }: SpendState, now: InstantMs): boolean {
  return PERIODS.some((period) => spentIn(total, period, now) > 0);
}

/** Counts what another group has spent and reserved beside what this one has. */
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

/** Reads what was spent in the period that is current at `now`. */
export function spentIn(spent: Spent, period: Period, now: InstantMs): number {
  // A clock that went back is still in the period that it was in.
  return spent.beganAt[period] >= boundsOf(period, now).beganAt ? spent.usd[period] : 0;
}

/** The begin of the period that an instant is in, by UTC. */
export function periodBegin(period: Period, at: InstantMs): InstantMs {
  return boundsOf(period, at).beganAt;
}

/** Nothing spent. */
export function emptySpent(): Spent {
  return {
    usd: { hour: 0, day: 0, month: 0 },
    beganAt: { hour: instant(0), day: instant(0), month: instant(0) },
  };
}

/** Counts money as spent in the periods that are current. */
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

/** Finds the begin of the hour, day or month of UTC that `at` is in, and of the next one. */
export function boundsOf(period: Period, at: InstantMs): { beganAt: InstantMs; endsAt: InstantMs } {
  if (period === 'month') {
    const beganAt = monthBeganAt(at);
    // The day that comes 31 days after a first of a month is always in the next one.
    return { beganAt, endsAt: monthBeganAt(after(beganAt, 31 * DAY_MS)) };
  }
  const lengthMs = period === 'hour' ? HOUR_MS : DAY_MS;
  const beganAt = instant(Math.floor(at / lengthMs) * lengthMs);
  return { beganAt, endsAt: after(beganAt, lengthMs) };
}

/** Finds the begin of the calendar's month, in UTC. */
function monthBeganAt(at: InstantMs): InstantMs {
  // With an argument `Date` reads no clock: it is arithmetic alone.
  /* oxlint-disable no-restricted-globals */
  const date = new Date(at);
  return instant(Date.UTC(date.getUTCFullYear(), date.getUTCMonth()));
  /* oxlint-enable no-restricted-globals */
}
