import { DAY_MS, dayOf } from '../core/parts/costs.ts';

/** Days and months of UTC by their names: `2026-11-24`, `2026-11`. */

const DATE_LENGTH = '2026-11-24'.length;
const MONTH_LENGTH = '2026-11'.length;

/** Days from one to another, both included, by their numbers since 1970. */
export interface Days {
  readonly from: number;
  readonly to: number;
}

/** Names the day of a number. */
export function dateOf(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, DATE_LENGTH);
}

/** Names the day and the month of an instant, and those before. */
export function periodsAt(
  now: number,
): Record<'day' | 'dayBefore' | 'month' | 'monthBefore', string> {
  const today = dayOf(now);
  const [day, dayBefore] = [dateOf(today), dateOf(today - 1)];
  const firstOfMonth = dayOf(Date.parse(`${day.slice(0, MONTH_LENGTH)}-01`));
  const monthBefore = dateOf(firstOfMonth - 1).slice(0, MONTH_LENGTH);
  return { day, dayBefore, month: day.slice(0, MONTH_LENGTH), monthBefore };
}

/** Finds the days of a day or month. Null: the name is of none. */
export function daysOf(period: string): Days | null {
  if (!/^\d{4}-\d\d(-\d\d)?$/.test(period)) return null;
  const isMonth = period.length === MONTH_LENGTH;
  const firstAt = Date.parse(isMonth ? `${period}-01` : period);
  if (Number.isNaN(firstAt)) return null;
  const from = dayOf(firstAt);
  if (!isMonth) return { from, to: from };
  // The day that comes 31 days after a first of a month is always in the next one.
  const next = dayOf(Date.parse(`${dateOf(from + 31).slice(0, MONTH_LENGTH)}-01`));
  return { from, to: next - 1 };
}
