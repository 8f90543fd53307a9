import type { Config } from '../../contract/config.ts';
import { directoryOf, type Env } from '../../contract/env.ts';
import { POOL_IDLE_MS, type GroupRpc } from '../../contract/group-rpc.ts';
import type { PoolStatus } from '../../contract/pool-status.ts';
import { definedGroup, KEY_PREFIX } from '../../contract/key-groups.ts';
import { ownPool, poolKey, poolOf, type PlacedPool } from '../../contract/pool.ts';
import { AUTO_PREFIX } from '../../contract/pool-name.ts';
import { within } from '../waiting.ts';
import { ProblemError } from './problem.ts';
import { currentSnapshot } from './snapshot.ts';

/** Pools asked at once. */
const ASKED_AT_ONCE = 32;

/** Pools asked in one request: a request may make a bounded number of calls. */
const ASKED_MAX = 800;

/** A pool that has not answered by then is shown as out of reach. */
const ANSWER_MS_MAX = 5_000;

/** Everything that a picture of the pools needs, at one version. */
export interface Directory {
  readonly version: number;
  readonly config: Config;
  readonly fingerprintKey: string;
  /** The listed pools and the own objects of configured groups, configured groups first. */
  readonly pools: readonly PlacedPool[];
}

/** One pool's answer, or why there is none. */
export type Asked<T> =
  | { readonly pool: PlacedPool; readonly answer: T }
  | { readonly pool: PlacedPool; readonly error: string };

/** Reads the configuration and the list of pools. */
export async function readDirectory(env: Env): Promise<Directory> {
  const [{ version, config, fingerprintKey }, listed] = await Promise.all([
    currentSnapshot(env),
    directoryOf(env).pools(),
  ]);
  const own = config.groups.flatMap((group) => ownPool(group) ?? []);
  const pools = new Map([...own, ...listed].map((pool) => [poolKey(pool), pool]));
  return { version, config, fingerprintKey, pools: [...pools.values()] };
}

/** Asks pools the same thing. One that fails or hangs holds up nothing. Those past the bound are left out. */
export async function askPools<T>(
  env: Env,
  config: Config,
  pools: readonly PlacedPool[],
  ask: (stub: GroupRpc, pool: PlacedPool) => Promise<T>,
): Promise<Asked<T>[]> {
  const locations = new Map(config.groups.map((group) => [group.name, group.location]));
  const asked: Asked<T>[] = [];
  const rest = pools.slice(0, ASKED_MAX).values();
  const worker = async (): Promise<void> => {
    for (const pool of rest) {
      const place = {
        location: locations.get(pool.group) ?? null,
        jurisdiction: pool.jurisdiction ?? null,
      };
      try {
        const stub = poolOf(env, pool.group, pool.partition, place);
        asked.push({ pool, answer: await within(ANSWER_MS_MAX, ask(stub, pool)) });
      } catch (error) {
        asked.push({ pool, error: error instanceof Error ? error.message : 'unknown error' });
      }
    }
  };
  await Promise.all(Array.from({ length: ASKED_AT_ONCE }, worker));
  const order = new Map(pools.map((pool, index) => [poolKey(pool), index]));
  const placeOf = (one: Asked<T>) => order.get(poolKey(one.pool)) ?? 0;
  return asked.sort((a, b) => placeOf(a) - placeOf(b));
}

/** A pool that nobody used for long, and that is no configured group's own. */
export function isLongIdle(one: Asked<PoolStatus>, { groups }: Pick<Config, 'groups'>): boolean {
  if ('error' in one || one.answer.idle_ms < POOL_IDLE_MS) return false;
  return one.pool.partition !== null || !groups.some(({ name }) => name === one.pool.group);
}

/** The pools of a group, or the problem that there is no such group. */
export function requirePools(directory: Directory, name: string): Directory['pools'] {
  const pools = poolsOf(directory, name);
  if (pools.length > 0 || directory.config.groups.some((group) => group.name === name)) {
    return pools;
  }
  throw name.startsWith(AUTO_PREFIX)
    ? new ProblemError(
        404,
        `Nothing is known of "${name}": an automatic group is shown from its first successful call on.`,
      )
    : noGroup(name);
}

/**
 * The pools of a group. Those of keys' limits are not listed before their first 2xx, and there may be
 * thousands, so they are looked for only where one is meant.
 */
export function poolsOf({ pools, config }: Directory, name: string): Directory['pools'] {
  const known = pools.filter((pool) => pool.group === name);
  const group = name.startsWith(KEY_PREFIX) ? definedGroup(config, name) : undefined;
  const own = group === undefined ? null : ownPool(group);
  return known.length === 0 && own !== null ? [own] : known;
}

/** The problem that no configuration holds a group of that name. */
export function noGroup(name: string): ProblemError {
  if (name.startsWith(AUTO_PREFIX)) {
    return new ProblemError(
      404,
      `"${name}" is an automatic group, which no configuration holds. Configure a group that matches the same calls instead.`,
    );
  }
  if (name.startsWith(KEY_PREFIX)) {
    return new ProblemError(
      404,
      `"${name}" is made of the limits of a key. Change those: PATCH /keys/${name.slice(KEY_PREFIX.length)}.`,
    );
  }
  return new ProblemError(404, `There is no group "${name}".`);
}

/** The pools that did not answer, as an answer names them. */
export function unreachable(
  asked: readonly Asked<unknown>[],
): { partition: string | null; error: string }[] {
  return asked.flatMap((one) =>
    'error' in one ? [{ partition: one.pool.partition, error: one.error }] : [],
  );
}
