import type { Config, GroupConfig } from '../contract/config/config.ts';
import type { ListedPool } from '../contract/rpc/directory-rpc.ts';
import { jurisdictionOf, keptIn, type Env, type LocationVariables } from '../env.ts';
import type { GroupRpc } from '../contract/rpc/group-rpc.ts';
import { definedGroup, kindOfLimits, type KeysAndTeams } from './key-groups.ts';
import { AUTO_PREFIX, poolName } from '../contract/pool-name.ts';
import { hasMembers } from './members.ts';
import { isHashed, isOwnPartition, splitPartition } from './partition.ts';

/** Where a group's objects live: a `GroupConfig` is one. Automatic groups say nothing of it (null). */
export type PoolLocation = Pick<GroupConfig, 'location' | 'jurisdiction'>;

/**
 * A listed pool with the jurisdiction that it was created in. The same name in another jurisdiction
 * is another object, so a pool whose group was deleted is found again only with it. Absent or null: that of the
 * deployment, if it has one.
 */
export interface PlacedPool extends ListedPool {
  readonly jurisdiction?: GroupConfig['jurisdiction'];
}

/**
 * Finds the object of a group (partition null) or of one partition of it. `place` is the group's
 * configuration, or null for an automatic group. Makes a new stub each time, as a stub does not
 * work again after its object was reset.
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
 * Tells whether a configuration may send calls to a pool. Those of a group that was deleted, moved to
 * another jurisdiction or is split anew, and in a jurisdiction those that a release of before named by the values of
 * callers, only wait for their leases to end.
 */
export function takesCalls(
  pool: PlacedPool,
  config: Pick<Config, 'groups'> & KeysAndTeams,
): boolean {
  if (pool.group.startsWith(AUTO_PREFIX)) return true;
  if (kindOfLimits(pool.group) !== null) return definedGroup(config, pool.group) !== undefined;
  const group = config.groups.find((candidate) => candidate.name === pool.group);
  return (
    group !== undefined &&
    // Without members nobody's own key is told apart from others.
    (hasMembers(group) || !isOwnPartition(pool.partition)) &&
    (group.partition_by.length === 0) === (splitPartition(pool.partition) === null) &&
    group.jurisdiction === (pool.jurisdiction ?? null) &&
    (group.jurisdiction === null || pool.partition === null || isHashed(pool.partition))
  );
}

/** Finds the object that takes the calls of an unpartitioned group. Null: each partition has its own. */
export function ownPool(group: GroupConfig): PlacedPool | null {
  if (group.partition_by.length > 0) return null;
  return { group: group.name, partition: null, jurisdiction: group.jurisdiction };
}

/** Tells two pools apart, that of the same name in another jurisdiction too. */
export function poolKey(pool: PlacedPool): string {
  return JSON.stringify([pool.group, pool.partition, pool.jurisdiction ?? null]);
}
