import type { Config } from '../contract/config/config.ts';
import { directoryOf, type Env } from '../env.ts';
import { POOL_IDLE_MS, type GroupRpc } from '../contract/rpc/group-rpc.ts';
import type { TemporaryField, StoredPool, PresenceReport } from '../contract/rpc/directory-rpc.ts';
import { NOTHING_LATELY_AFTER_MS, type PoolStatus } from '../contract/status.ts';
import type { RefusalCount } from '../contract/reasons.ts';
import type { WatchSpan, PoolMetrics, StoredCosts } from '../contract/rpc/feed-rpc.ts';
import { instant } from '../core/words/ids.ts';
import { logEvent } from '../runtime/log.ts';
import { steadyClock, mapConcurrently, within } from '../runtime/async.ts';
import { kindOfLimits, limitGroups } from '../routing/implied-groups.ts';
import { ownPool, poolKey, poolOf, type PlacedPool } from '../routing/pool.ts';
import { addSums, NO_COSTS, totalOf, type CostSums } from '../core/parts/costs.ts';
import { resting, untouched } from './unused-group.ts';

/** Reads the state and the costs of pools. */

const ASKED_AT_ONCE = 32;

/** Maximum pools queried by one request, because a request may make a bounded number of calls. */
export const ASKED_MAX = 800;

/** Time limit after which a pool counts as unreachable. */
const ANSWER_MS_MAX = 5_000;

/** The configuration and the list of pools, at one version. */
export interface Directory {
  readonly version: number;
  /** Changes with everything except the pools. */
  readonly tag: string;
  readonly config: Config;
  readonly fingerprintKey: string;
  readonly temporary: readonly TemporaryField[];
  /** The listed pools and the own pools of configured groups, configured groups first. */
  readonly pools: readonly PlacedPool[];
  readonly listed: ReadonlySet<string>;
  /** Calls that Headgate itself rejected in the last 10 minutes. */
  readonly refusals: readonly RefusalCount[];
}

/** The answer of one pool, or why there is none. */
export type PoolReply<T> =
  | { readonly pool: PlacedPool; readonly answer: T }
  | { readonly pool: PlacedPool; readonly error: string };

/** Reads the list of pools, and the configuration unless it is still the `known` one. */
export async function readDirectory(env: Env, known: Directory | null = null): Promise<Directory> {
  const [snapshot, listed, refusals] = await Promise.all([
    directoryOf(env).snapshot(known?.tag ?? null),
    directoryOf(env).pools(),
    directoryOf(env).refusals(steadyClock.now() - NOTHING_LATELY_AFTER_MS),
  ]);
  const current = snapshot ?? known;
  if (current === null) throw new Error('The directory returned no configuration.');
  const { version, tag, config, fingerprintKey, temporary = [] } = current;
  const own = config.groups.flatMap((group) => ownPool(group) ?? []);
  const pools = new Map([...own, ...listed].map((pool) => [poolKey(pool), pool]));
  const keys = new Set(listed.map(poolKey));
  const directory = { version, tag, config, fingerprintKey, temporary };
  return { ...directory, pools: [...pools.values()], listed: keys, refusals };
}

/**
 * Queries the pools that are in use. The answer of an idle pool or an unused group comes from the directory, so that
 * none is woken.
 */
export async function askAwake<T>(
  env: Env,
  directory: Directory,
  pools: readonly PlacedPool[],
  ask: (stub: GroupRpc) => Promise<T>,
  made: (metrics: PoolMetrics) => T,
): Promise<PoolReply<T>[]> {
  const known = await readUnasked(env, directory, pools);
  const awake = pools.filter((pool) => !known.has(pool));
  const queried = await askPools(env, directory.config, awake, ask);
  const replies = new Map(queried.map((one) => [one.pool, one]));
  return pools.flatMap((pool) => {
    const metrics = known.get(pool);
    return metrics === undefined ? (replies.get(pool) ?? []) : [{ pool, answer: made(metrics) }];
  });
}

/** Returns the figures of idle pools and unused groups from the data in the directory. */
export async function readUnasked(
  env: Env,
  { config, listed }: Directory,
  pools: readonly PlacedPool[],
): Promise<ReadonlyMap<PlacedPool, PoolMetrics>> {
  const known = await readPresence(env);
  if (known === null) return new Map();
  const now = instant(steadyClock.now());
  const isOfCallers = pools.some(({ group }) => kindOfLimits(group) !== null);
  const all = isOfCallers ? [...config.groups, ...limitGroups(config)] : config.groups;
  const groups = new Map(all.map((group) => [group.name, group]));
  const made = pools.flatMap((pool): [PlacedPool, PoolMetrics][] => {
    const key = poolKey(pool);
    const of = known.get(key);
    if (of !== undefined) {
      if (of.said === null) return [];
      return [[pool, resting(pool, JSON.parse(of.said) as PresenceReport, config, now)]];
    }
    const group = groups.get(pool.group);
    return group === undefined || listed.has(key) ? [] : [[pool, untouched(group, now)]];
  });
  return new Map(made);
}

/**
 * Returns the keys of the pools that must be queried, and makes pools that come into use notify the hub of the
 * dashboards. null means all pools, because the directory is unreachable.
 */
export async function readAwake(env: Env, span: WatchSpan): Promise<ReadonlySet<string> | null> {
  try {
    const awake = await within(ANSWER_MS_MAX, directoryOf(env).awake(span));
    return new Set(awake.map(poolKey));
  } catch (error) {
    logEvent('directory_unreachable', { error: String(error) });
    return null;
  }
}

/** Reads the stored reports of pools, by their keys. null if the directory is unreachable. */
async function readPresence(env: Env): Promise<ReadonlyMap<string, StoredPool> | null> {
  try {
    const known = await within(ANSWER_MS_MAX, directoryOf(env).presence());
    return new Map(known.map((pool) => [poolKey(pool), pool]));
  } catch (error) {
    logEvent('directory_unreachable', { error: String(error) });
    return null;
  }
}

/** Queries pools concurrently. One that fails or hangs does not delay the others. Pools past the bound are left out. */
export async function askPools<T>(
  env: Env,
  config: Config,
  pools: readonly PlacedPool[],
  ask: (stub: GroupRpc, pool: PlacedPool) => Promise<T>,
): Promise<PoolReply<T>[]> {
  const locations = new Map(config.groups.map((group) => [group.name, group.location]));
  return mapConcurrently(pools.slice(0, ASKED_MAX), ASKED_AT_ONCE, async (pool) => {
    const place = {
      location: locations.get(pool.group) ?? null,
      jurisdiction: pool.jurisdiction ?? null,
    };
    try {
      const stub = poolOf(env, pool.group, pool.partition, place);
      return { pool, answer: await within(ANSWER_MS_MAX, ask(stub, pool)) };
    } catch (error) {
      return { pool, error: error instanceof Error ? error.message : 'unknown error' };
    }
  });
}

/** Maximum pools removed by one request, which has already made most of its calls by then. */
const FORGOTTEN_AT_ONCE = 100;

/** Removes pools from the list that are idle for long. Each is listed again at its next 2xx response. */
export async function forgetIdle(
  env: Env,
  { config }: Directory,
  replies: readonly PoolReply<PoolStatus>[],
): Promise<void> {
  const long = replies.filter((one) => isLongIdle(one, config));
  const isResting = (one: PoolReply<PoolStatus>) =>
    'answer' in one && one.answer.as_of !== undefined;
  if (long.some(isResting)) await directoryOf(env).forgetResting();
  const idle = long.filter((one) => !isResting(one)).map((one) => one.pool);
  await askPools(env, config, idle.slice(0, FORGOTTEN_AT_ONCE), (pool, { jurisdiction = null }) =>
    pool.forget(jurisdiction),
  );
}

/** Whether a pool is idle for long and is not the own pool of a configured group. */
export function isLongIdle(
  one: PoolReply<PoolStatus>,
  { groups }: Pick<Config, 'groups'>,
): boolean {
  if ('error' in one || one.answer.idle_ms < POOL_IDLE_MS) return false;
  return one.pool.partition !== null || !groups.some(({ name }) => name === one.pool.group);
}

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

interface CostRow extends CostSums {
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
