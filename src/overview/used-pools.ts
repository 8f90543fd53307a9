import { directoryOf, type Env } from '../env.ts';
import type { PresenceReport } from '../contract/rpc/presence-rpc.ts';
import { poolKey, type PlacedPool } from '../routing/pool.ts';
import { within } from '../runtime/within.ts';
import type { Directory } from './pools.ts';

/** Time limit for the directory to return the used pools. */
const ANSWER_MS_MAX = 5_000;

/**
 * Returns the pools that may have had a call since `fromMs`, the last used first, optionally of one `group`. Pools that
 * were idle all that time or were never used are left out, so that none is woken.
 */
export async function usedSince(
  env: Env,
  { pools, listed }: Directory,
  fromMs: number,
  group?: string,
): Promise<PlacedPool[]> {
  const [known, past] = await within(
    ANSWER_MS_MAX,
    Promise.all([directoryOf(env).presence(), directoryOf(env).pastPools(fromMs)]),
  );
  const usedAt = new Map<string, { readonly pool: PlacedPool; readonly at: number }>();
  const note = (pool: PlacedPool, at: number): void => {
    usedAt.set(poolKey(pool), { pool, at });
  };
  // Their last use is not known exactly. Pools that left the list are sorted by the time when they left.
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
