import type { AnswerAt } from '../../../src/admin/client.ts';
import { count, usd } from '../format.ts';

export type CostsView = AnswerAt<'GET /costs'>;
export type CostRowView = CostsView['rows'][number];
export type CostBudget = NonNullable<CostRowView['budget']>;

/** Dimensions by which costs are grouped. */
export const BY = [
  { by: 'key', name: 'Key' },
  { by: 'team', name: 'Team' },
  { by: 'model', name: 'Model' },
  { by: 'group', name: 'Group' },
] as const;

export type CostGrouping = (typeof BY)[number]['by'];

/** Periods in UTC. Links of the page use the ids. */
export const PERIODS = [
  { id: 'month', name: 'This month', query: { period: 'month', which: 'this' } },
  { id: 'last-month', name: 'Last month', query: { period: 'month', which: 'last' } },
  { id: 'day', name: 'Today', query: { period: 'day', which: 'this' } },
  { id: 'last-day', name: 'Yesterday', query: { period: 'day', which: 'last' } },
] as const;

export type CostPeriod = (typeof PERIODS)[number];

/** Reads the choice from a link. The default is the costs of this month by key. */
export function choiceOf(query: Readonly<Record<string, string>>): {
  period: CostPeriod;
  by: CostGrouping;
} {
  return {
    period: PERIODS.find(({ id }) => id === query['period']) ?? PERIODS[0],
    by: BY.find(({ by }) => by === query['by'])?.by ?? 'key',
  };
}

export function csvAddress({ query: { period, which } }: CostPeriod, by: CostGrouping): string {
  return `/admin/api/costs?period=${period}&which=${which}&by=${by}&format=csv`;
}

/** Name of a row, also for calls without a key, team, model or group. */
export function rowName(
  { name, is_rest: isRest }: Pick<CostRowView, 'name' | 'is_rest'>,
  by: CostGrouping,
): string {
  if (isRest) return 'all others';
  return name ?? `no ${by}`;
}

/** Formats a cost. If no call has a known price and usage, the cost is unknown rather than $0. */
export function costWords(
  of: Pick<CostRowView, 'usd' | 'calls' | 'unpriced_calls' | 'unreported_calls'>,
): string {
  const unknown = of.unpriced_calls + of.unreported_calls;
  return of.calls > 0 && unknown === of.calls ? 'unknown' : usd(of.usd);
}

/** Part of a budget that is spent or reserved, from 0. Above 1 it is exceeded. null if unknown. */
export function usedPart({ limit_usd: limit, left_usd: left }: CostBudget): number | null {
  if (left === null) return null;
  return limit === 0 ? 1 : (limit - left) / limit;
}

export function budgetWords({ limit_usd: limit, left_usd: left }: CostBudget): string {
  return left === null ? `${usd(limit)}, remainder unknown` : `${usd(left)} of ${usd(limit)} left`;
}

/** Formats a range. It is one number if both ends round to the same. */
export function rangeWords(
  { from, to }: { readonly from: number; readonly to: number },
  written: (value: number) => string = count,
): string {
  const [least, most] = [written(from), written(to)];
  return least === most ? least : `${least} to ${most}`;
}

/** Rounds to two significant digits, the precision of an estimate. */
export function roughUsd(value: number): string {
  // Without cents: `$1.2`, and not `$1.20`.
  return `$${value.toLocaleString('en', { maximumSignificantDigits: 2 })}`;
}
