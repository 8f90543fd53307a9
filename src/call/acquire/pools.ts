import type { Env } from '../../env.ts';
import { partitionOfCalls, poolOf, UnverifiedPool, type CallPool } from '../../routing/pool.ts';
import { isVerifiedLater, poolName } from '../../contract/pool-name.ts';
import type { Placement } from '../../routing/placement.ts';
import type { RoutingTable } from '../../config/snapshots.ts';
import { BoundedSet, BoundedMap } from '../../core/parts/bounded-map.ts';
import { steadyClock, within } from '../../runtime/async.ts';
import { logEvent } from '../../runtime/log.ts';

/** The object of each pool: its own, or a shared one while the pool is not verified. */

/**
 * Returns a new stub of the pool on every call. A stub stays broken after an error, and Cloudflare's documentation says
 * to create a new one.
 */
export type PoolSource = () => CallPool;

export function poolSource(
  env: Env,
  placement: Placement,
  table: RoutingTable,
  mayBeUnverified = isUnverified(env, placement),
): PoolSource {
  const { group, partition, config } = placement;
  if (!mayBeUnverified) return () => poolOf(env, group, partition, config);
  const pool = new UnverifiedPool(env, { group, partition }, () => {
    noteVerified(placement);
    return ownOrShared(env, table, placement);
  });
  return () => pool;
}

/**
 * The same for a lease that is held by its id. Its pool may have been unverified at the grant. In a group with too many
 * partitions it was moved to a shared pool, and the lease still names its own.
 */
export function poolSourceOfHeld(env: Env, placement: Placement, table: RoutingTable): PoolSource {
  const isFull = table.snapshot.fullGroups.includes(placement.group);
  const mayShare = isFull && env.TRIALS !== undefined && isVerifiedLater(placement);
  return poolSource(env, placement, table, mayShare || isUnverified(env, placement));
}

export function isUnverified(env: Env, placement: Placement): boolean {
  return env.TRIALS !== undefined && isVerifiedLater(placement) && !isKnownVerified(placement);
}

/** Maximum pools that this isolate remembers as verified. For others it asks again. */
const VERIFIED_MAX = 10_000;

const verified = new BoundedSet<string>(VERIFIED_MAX);

type PlacementPool = Pick<Placement, 'group' | 'partition'>;

/** Returns whether the key of a pool is verified, as far as this isolate knows. */
function isKnownVerified({ group, partition }: PlacementPool): boolean {
  return verified.has(poolName(group, partition));
}

export function noteVerified({ group, partition }: PlacementPool): void {
  verified.add(poolName(group, partition));
}

/**
 * How long an answer is used. A pool must be idle for far longer before the directory may change its answer, so no
 * caller sends calls to both.
 */
const REMEMBERED_MS = 60_000;

/** Maximum answers that this isolate remembers. The oldest are dropped first. */
const REMEMBERED_MAX = 5_000;

const ANSWER_MS_MAX = 1_000;

/** The partition for each pool's calls. It holds plain data only, because requests may not share promises. */
const answers = new BoundedMap<string, { readonly partition: string; readonly until: number }>(
  REMEMBERED_MAX,
);

/**
 * The placement of a call, or that of the pool that its partition shares with others because its group has too many. It
 * costs nothing unless the group is full, and then an occasional round trip.
 */
export async function ownOrShared(
  env: Env,
  { snapshot }: RoutingTable,
  placement: Placement,
): Promise<Placement> {
  const { group, partition } = placement;
  if (partition === null || !snapshot.fullGroups.includes(group)) return placement;
  const name = poolName(group, partition);
  const known = answers.get(name);
  if (known !== undefined && steadyClock.now() < known.until) {
    return { ...placement, partition: known.partition };
  }
  try {
    const answered = await within(ANSWER_MS_MAX, partitionOfCalls(env, { group, partition }));
    remember(name, answered);
    return { ...placement, partition: answered };
  } catch (error) {
    logEvent('directory_unreachable', { error: String(error) });
    // An old answer is better than none. Without any, an extra pool is better than a rejection.
    return known === undefined ? placement : { ...placement, partition: known.partition };
  }
}

function remember(name: string, partition: string): void {
  answers.set(name, { partition, until: steadyClock.now() + REMEMBERED_MS });
}
