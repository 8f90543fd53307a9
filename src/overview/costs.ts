import type { StoredCosts } from '../contract/rpc/costs-rpc.ts';
import { directoryOf, type Env } from '../env.ts';
import { kindOfLimits } from '../routing/key-groups.ts';
import { poolKey, type PlacedPool } from '../routing/pool.ts';
import { within } from '../runtime/within.ts';
import { ASKED_MAX, askPools, readPresence, type Directory } from './pools.ts';

/** Time limit for the directory to read the last reported costs of all pools. */
const READ_MS_MAX = 10_000;

/** A pool that is in use and did not respond. */
interface UnreachablePool {
  readonly group: string;
  readonly partition: string | null;
  readonly error: string;
}

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
  readonly unreachable: readonly UnreachablePool[];
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
  const unreachable = queried.flatMap((one) =>
    'error' in one
      ? [{ group: one.pool.group, partition: one.pool.partition, error: one.error }]
      : [],
  );
  return { pools: [...own, ...stored], unreachable };
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
