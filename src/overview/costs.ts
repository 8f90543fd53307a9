import type { StoredCosts } from '../contract/rpc/feed-rpc.ts';
import { directoryOf, type Env } from '../env.ts';
import { kindOfLimits } from '../routing/implied-groups.ts';
import { poolKey, type PlacedPool } from '../routing/pool.ts';
import { within } from '../runtime/async.ts';
import { addSums, NO_COSTS, totalOf, type CostSums } from '../core/parts/costs.ts';
import { ASKED_MAX, askPools, readPresence, type Directory, type PoolReply } from './pools.ts';

/** Time limit for the directory to read the last reported costs of all pools. */
const READ_MS_MAX = 10_000;

/**
 * Reads the costs of all pools in a day or month. Pools in use are queried. For idle pools, pools past the bound and
 * pools that do not respond, the directory returns their last report, so that no idle pool is woken.
 */
export async function readCosts(
  env: Env,
  directory: Directory,
  period: string,
): Promise<{
  readonly pools: readonly StoredCosts[];
  /** Replies of the pools in use. */
  readonly queried: readonly PoolReply<unknown>[];
}> {
  const awake = await poolsInUse(env, directory);
  const queried = await askPools(env, directory.config, awake.slice(0, ASKED_MAX), (pool) =>
    pool.costs(period),
  );
  const answers = queried.filter((one) => 'answer' in one);
  const stored = await within(
    READ_MS_MAX,
    directoryOf(env).costs(
      period,
      answers.map(({ pool }) => poolKey(pool)),
    ),
  );
  const own = answers.map(({ pool: { group }, answer: costs }) => ({ group, costs }));
  return { pools: [...own, ...stored], queried };
}

/** Returns the pools that may have counted calls since their last report. Groups of keys and teams count no costs. */
async function poolsInUse(env: Env, directory: Directory): Promise<PlacedPool[]> {
  const known = await readPresence(env);
  const isAsked = (pool: PlacedPool): boolean => {
    const of = known?.get(poolKey(pool));
    if (of !== undefined) return of.said === null;
    // The directory did not respond, or has no report of a listed pool.
    return known === null || directory.listed.has(poolKey(pool));
  };
  const awake = [...(known?.values() ?? [])].filter(({ said }) => said === null);
  const all = new Map(
    [...directory.pools.filter(isAsked), ...awake].map((one) => [poolKey(one), one]),
  );
  return [...all.values()].filter(({ group }) => kindOfLimits(group) === null);
}

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
