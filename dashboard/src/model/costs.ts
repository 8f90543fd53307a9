import type * as z from 'zod';
import type { costsSchema } from '../../../src/contract/admin/cost-routes.ts';
import { count, usd } from '../format.ts';

export type CostsView = z.output<typeof costsSchema>;
export type CostRowView = CostsView['rows'][number];
export type CostBudget = NonNullable<CostRowView['budget']>;

/** Things that costs are told by. */
export const BY = [
  { by: 'key', name: 'Key' },
  { by: 'team', name: 'Team' },
  { by: 'model', name: 'Model' },
  { by: 'group', name: 'Group' },
] as const;

export type CostGrouping = (typeof BY)[number]['by'];

/** Periods of UTC, as links of the page name them. */
export const PERIODS = [
  { id: 'month', name: 'This month', query: { period: 'month', which: 'this' } },
  { id: 'last-month', name: 'Last month', query: { period: 'month', which: 'last' } },
  { id: 'day', name: 'Today', query: { period: 'day', which: 'this' } },
  { id: 'last-day', name: 'Yesterday', query: { period: 'day', which: 'last' } },
] as const;

export type CostPeriod = (typeof PERIODS)[number];

/** Reads what a link of the page asks for: costs of this month by key, unless it says otherwise. */
export function choiceOf(query: Readonly<Record<string, string>>): {
  period: CostPeriod;
  by: CostGrouping;
} {
  return {
    period: PERIODS.find(({ id }) => id === query['period']) ?? PERIODS[0],
    by: BY.find(({ by }) => by === query['by'])?.by ?? 'key',
  };
}

/** The address of the same as CSV. */
export function csvAddress({ query: { period, which } }: CostPeriod, by: CostGrouping): string {
  return `/admin/api/costs?period=${period}&which=${which}&by=${by}&format=csv`;
}

/** Words for a row without a name of its own. */
export function rowName(
  { name, is_rest: isRest }: Pick<CostRowView, 'name' | 'is_rest'>,
  by: CostGrouping,
): string {
  if (isRest) return 'all others';
  return name ?? `no ${by}`;
}

/** Words for a cost. Where no call's price or use is known it is not $0. */
export function costWords(
  of: Pick<CostRowView, 'usd' | 'calls' | 'unpriced_calls' | 'unreported_calls'>,
): string {
  const unknown = of.unpriced_calls + of.unreported_calls;
  return of.calls > 0 && unknown === of.calls ? 'not known' : usd(of.usd);
}

/** The part of a budget that is spent or set aside, from 0 on; above 1 it is exceeded. Null: nobody knows. */
export function usedPart({ limit_usd: limit, left_usd: left }: CostBudget): number | null {
  if (left === null) return null;
  return limit === 0 ? 1 : (limit - left) / limit;
}

/** Words for what a budget has left. */
export function budgetWords({ limit_usd: limit, left_usd: left }: CostBudget): string {
  return left === null
    ? `${usd(limit)}, what is left is not known`
    : `${usd(left)} of ${usd(limit)} left`;
}

/** Words for a range, which is one number where both ends round to the same. */
export function rangeWords(
  { from, to }: { readonly from: number; readonly to: number },
  written: (value: number) => string = count,
): string {
  const [least, most] = [written(from), written(to)];
  return least === most ? least : `${least} to ${most}`;
}

/** Rounds to two digits: an estimate is no more exact. */
export function roughUsd(value: number): string {
  // Without cents: `$1.2`, and not `$1.20`.
  return `$${value.toLocaleString('en', { maximumSignificantDigits: 2 })}`;
}
