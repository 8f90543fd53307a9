import { DAY_MS, dayOf } from '../core/parts/costs.ts';

/**
 * Costs over time. Names of UTC days and months, as in `2026-11-24` and `2026-11`. An estimate of what refusals and
 * retries would have cost without the queue: docs/faq.md lists its assumptions, and scripts/without-queue.ts simulates
 * the days from which its factors come.
 */

const DATE_LENGTH = '2026-11-24'.length;
const MONTH_LENGTH = '2026-11'.length;

/** An inclusive range of days, numbered from 1970-01-01. */
interface Days {
  readonly from: number;
  readonly to: number;
}

export function dateOf(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, DATE_LENGTH);
}

/** Returns the names of the day and month of an instant, and of the ones before. */
export function periodsAt(
  now: number,
): Record<'day' | 'dayBefore' | 'month' | 'monthBefore', string> {
  const today = dayOf(now);
  const [day, dayBefore] = [dateOf(today), dateOf(today - 1)];
  const firstOfMonth = dayOf(Date.parse(`${day.slice(0, MONTH_LENGTH)}-01`));
  const monthBefore = dateOf(firstOfMonth - 1).slice(0, MONTH_LENGTH);
  return { day, dayBefore, month: day.slice(0, MONTH_LENGTH), monthBefore };
}

/** Returns the days of a day or month, or null if the name is invalid. */
export function daysOf(period: string): Days | null {
  if (!/^\d{4}-\d\d(-\d\d)?$/.test(period)) return null;
  const isMonth = period.length === MONTH_LENGTH;
  const firstAt = Date.parse(isMonth ? `${period}-01` : period);
  if (Number.isNaN(firstAt)) return null;
  const from = dayOf(firstAt);
  if (!isMonth) return { from, to: from };
  // The day 31 days after the first of a month is always in the next month.
  const next = dayOf(Date.parse(`${dateOf(from + 31).slice(0, MONTH_LENGTH)}-01`));
  return { from, to: next - 1 };
}

interface EstimateRange {
  readonly from: number;
  readonly to: number;
}

/** Extra attempts per queued call if each client makes three attempts. The maximum is for one slot. */
export const ATTEMPTS_MORE: EstimateRange = { from: 0.7, to: 1.7 };

/** Failed calls per queued call. The minimum is for many slots, the maximum for one. */
export const FAILED_CALLS: EstimateRange = { from: 0.1, to: 0.75 };

/** Paid calls lost with a failed one: one, or half of the other nine steps of a run of ten. */
export const STEPS_LOST = { one: 1, run: 4.5 } as const;

/** Estimates for queued and served calls, at the mean cost of a call. */
export function withoutQueue(waited: number, meanUsd: number) {
  const failed = times(FAILED_CALLS, waited);
  return {
    tries_more: rounded(times(ATTEMPTS_MORE, waited)),
    failed_calls: rounded(failed),
    usd_one_step: times(failed, meanUsd * STEPS_LOST.one),
    usd_whole_run: times(failed, meanUsd * STEPS_LOST.run),
  };
}

function times({ from, to }: EstimateRange, factor: number): EstimateRange {
  return { from: from * factor, to: to * factor };
}

function rounded({ from, to }: EstimateRange): EstimateRange {
  return { from: Math.round(from), to: Math.round(to) };
}
