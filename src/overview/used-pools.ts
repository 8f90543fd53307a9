import { directoryOf, type Env } from '../env.ts';
import type { PresenceReport } from '../contract/rpc/presence-rpc.ts';
import { poolKey, type PlacedPool } from '../routing/pool.ts';
import { within } from '../runtime/within.ts';
import type { Directory } from './pools.ts';

/** How long the directory may take to tell which pools were used. */
const ANSWER_MS_MAX = 5_000;

/**
 * Finds the pools that may know of a call since `fromMs`, those that were used last first: none that rested all the while is
 * woken for it, nor one that was never used. `group`: of that one alone.
 */
export async function usedSince(
  env: Env,
  { pools, listed }: Directory,
  fromMs: number,
  group?: string,
): Promise<PlacedPool[]> {
  const [known, past] = await within(
    ANSWER_MS_MAX,
    Promise.all([
      directoryOf(env).presence(),
      // One of a release before knows of none.
      directoryOf(env)
        .pastPools(fromMs)
        .catch(() => []),
    ]),
  );
  const usedAt = new Map<string, { readonly pool: PlacedPool; readonly at: number }>();
  const note = (pool: PlacedPool, at: number): void => {
    usedAt.set(poolKey(pool), { pool, at });
  };
  // When they were used last, nobody knows exactly; those of before are sorted by when they left.
  for (const [index, pool] of past.entries()) note(pool, fromMs - index);
  for (const pool of pools) if (listed.has(poolKey(pool))) note(pool, Infinity);
  for (const { said, ...pool } of known) note(pool, said === null ? Infinity : lastUseOf(said));
  const isPast = new Set(past.map(poolKey));
  return [...usedAt.entries()]
    .filter(([key, { pool, at }]) => {
      return (at >= fromMs || isPast.has(key)) && (group === undefined || pool.group === group);
    })
    .map(([, used]) => used)
    .toSorted((a, b) => (a.at === b.at ? 0 : b.at - a.at))
    .map(({ pool }) => pool);
}

function lastUseOf(said: string): number {
  const { at, metrics } = JSON.parse(said) as PresenceReport;
  return at - metrics.status.idle_ms;
}
