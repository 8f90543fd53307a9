import type { StoredCosts } from '../contract/rpc/costs-rpc.ts';
import { addSums, NO_COSTS, totalOf, type CostSums } from '../core/parts/costs.ts';

export type CostsBy = 'key' | 'team' | 'model' | 'group';

export interface CostRow extends CostSums {
  /** null for calls without one. */
  readonly name: string | null;
  /** The sum of calls without a line of their own. */
  readonly isRest: boolean;
}

/** Adds up the lines of all pools, the most expensive first. The rows have the same total for each `by`. */
export function costRows(pools: readonly StoredCosts[], by: CostsBy): CostRow[] {
  const rows = new Map<string | null, CostSums>();
  let rest: CostSums | null = null;
  const add = (name: string | null, sums: CostSums): void => {
    rows.set(name, addSums(rows.get(name) ?? NO_COSTS, sums));
  };
  for (const { group, costs } of pools) {
    if (by === 'group') {
      if (costs.days.length > 0) add(group, totalOf(costs));
      continue;
    }
    for (const line of costs.lines) add(line[by], line);
    if (costs.rest !== null) rest = addSums(rest ?? NO_COSTS, costs.rest);
  }
  const all = [...rows].map(([name, sums]) => ({
    ...addSums(sums, NO_COSTS),
    name,
    isRest: false,
  }));
  all.sort((a, b) => b.usd - a.usd || b.calls - a.calls);
  return rest === null ? all : [...all, { ...rest, name: null, isRest: true }];
}

/** Adds up the days of all pools, in order. */
export function costDays(pools: readonly StoredCosts[]): (CostSums & { readonly date: string })[] {
  const days = new Map<string, CostSums>();
  for (const { date, ...sums } of pools.flatMap(({ costs }) => costs.days)) {
    days.set(date, addSums(days.get(date) ?? NO_COSTS, sums));
  }
  return [...days]
    .map(([date, sums]) => ({ ...sums, date }))
    .sort((a, b) => (a.date < b.date ? -1 : 1));
}
