import { DAY_MS, dayOf } from '../core/parts/costs.ts';

/** Names of UTC days and months: `2026-11-24`, `2026-11`. */

const DATE_LENGTH = '2026-11-24'.length;
const MONTH_LENGTH = '2026-11'.length;

/** An inclusive range of days, numbered from 1970-01-01. */
export interface Days {
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
