import type { StoredCosts } from '../contract/rpc/costs-rpc.ts';
import { directoryOf, type Env } from '../env.ts';
import { kindOfLimits } from '../routing/key-groups.ts';
import { poolKey, type PlacedPool } from '../routing/pool.ts';
import { within } from '../runtime/within.ts';
import { ASKED_MAX, askPools, readPresence, type Directory } from './pools.ts';

/** How long the directory may take to read what all pools have said of their costs. */
const READ_MS_MAX = 10_000;

/** A pool that is in use and did not answer. */
interface Silent {
  readonly group: string;
  readonly partition: string | null;
  readonly error: string;
}

/**
 * Reads the costs of all pools in a day or month. Those in use are asked; of all others, of those past the bound and of those
 * that do not answer, what they said last is taken from the directory: none is woken for it.
 */
export async function readCosts(
  env: Env,
  directory: Directory,
  period: string,
): Promise<{ readonly pools: readonly StoredCosts[]; readonly unreachable: readonly Silent[] }> {
  const awake = await poolsInUse(env, directory);
  const asked = await askPools(env, directory.config, awake.slice(0, ASKED_MAX), (pool) =>
    pool.costs(period),
  );
  const answers = asked.filter((one) => 'answer' in one);
  const said = await within(
    READ_MS_MAX,
    directoryOf(env).costs(
      period,
      answers.map(({ pool }) => poolKey(pool)),
    ),
  );
  const own = answers.map(({ pool: { group }, answer: costs }) => ({ group, costs }));
  const unreachable = asked.flatMap((one) =>
    'error' in one
      ? [{ group: one.pool.group, partition: one.pool.partition, error: one.error }]
      : [],
  );
  return { pools: [...own, ...said], unreachable };
}

/** Lists the pools that may have counted calls since they said so last: limits of keys and teams count none. */
async function poolsInUse(env: Env, directory: Directory): Promise<PlacedPool[]> {
  const known = await readPresence(env);
  const isAsked = (pool: PlacedPool): boolean => {
    const of = known?.get(poolKey(pool));
    if (of !== undefined) return of.said === null;
    // Listed by a release before, or the directory does not say.
    return known === null || directory.listed.has(poolKey(pool));
  };
  const awake = [...(known?.values() ?? [])].filter(({ said }) => said === null);
  const all = new Map(
    [...directory.pools.filter(isAsked), ...awake].map((one) => [poolKey(one), one]),
  );
  return [...all.values()].filter(({ group }) => kindOfLimits(group) === null);
}
