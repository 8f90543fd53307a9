import type { GroupConfig } from '../contract/config/config.ts';
import type { ListedPool } from '../contract/rpc/directory-rpc.ts';
import { jurisdictionOf, keptIn, type Env, type LocationVariables } from '../env.ts';
import type { GroupRpc } from '../contract/rpc/group-rpc.ts';
import { AUTO_PREFIX, poolName } from '../contract/pool-name.ts';
import { definedGroup, kindOfLimits, type GroupsAndLimits } from './key-groups.ts';
import { hasMembers, membersOf } from './members.ts';
import { isOwnPartition, splitPartition } from './partition.ts';

/** Where a pool is: its name, its object, and what decides which calls it gets. */

/** Location of the objects of a group, as in `GroupConfig`. Automatic groups have none (null). */
export type PoolLocation = Pick<GroupConfig, 'location' | 'jurisdiction'>;

/**
 * A listed pool with the jurisdiction in which it was created. The same name in another jurisdiction is another object,
 * so a pool of a deleted group can be found only with its jurisdiction. Absent or null means that of the deployment, if
 * any.
 */
export interface PlacedPool extends ListedPool {
  readonly jurisdiction?: GroupConfig['jurisdiction'];
}

/**
 * Returns a stub of the object of a group (partition null) or of one of its partitions. `place` is the configuration of
 * the group, or null for an automatic group. Each call creates a new stub, because a stub stops working after a reset
 * of its object.
 */
export function poolOf(
  env: Pick<Env, 'GROUPS'> & LocationVariables,
  group: string,
  partition: string | null,
  place: PoolLocation | null,
): GroupRpc {
  const namespace = keptIn(env.GROUPS, place?.jurisdiction ?? jurisdictionOf(env));
  const name = poolName(group, partition);
  const location = place?.location ?? null;
  return location === null
    ? namespace.getByName(name)
    : namespace.getByName(name, { locationHint: location });
}

/**
 * Whether a configuration may send calls to a pool. A pool only waits for its leases to end if its group was deleted,
 * was moved to another jurisdiction or is split differently.
 */
export function takesCalls(pool: PlacedPool, config: GroupsAndLimits): boolean {
  if (pool.group.startsWith(AUTO_PREFIX)) return true;
  if (kindOfLimits(pool.group) !== null) return definedGroup(config, pool.group) !== undefined;
  const group = config.groups.find((candidate) => candidate.name === pool.group);
  return (
    group !== undefined &&
    // Without members, calls with their own keys have no separate partitions.
    (hasMembers(group) || !isOwnPartition(pool.partition)) &&
    (group.partition_by.length === 0) === (splitPartition(pool.partition) === null) &&
    group.jurisdiction === (pool.jurisdiction ?? null)
  );
}

/** Returns the pool of a group without partitions. null if each partition has its own. */
export function ownPool(group: GroupConfig): PlacedPool | null {
  if (group.partition_by.length > 0) return null;
  return { group: group.name, partition: null, jurisdiction: group.jurisdiction };
}

/** Returns a key for a pool that also distinguishes pools of the same name in different jurisdictions. */
export function poolKey(pool: PlacedPool): string {
  return JSON.stringify([pool.group, pool.partition, pool.jurisdiction ?? null]);
}

/**
 * Returns the settings that decide which calls a group takes, into which pool, and where a Worker sends them. Waiters
 * are placed again when they change, because a grant has only the id of a member.
 */
export function callRoute(group: GroupConfig): object {
  const { match, partition_by, jurisdiction } = group;
  const places = membersOf(group).map(({ config: { name, upstream, secret, models } }) => ({
    name,
    upstream,
    secret,
    models,
  }));
  return { match, partition_by, jurisdiction, members: places };
}
