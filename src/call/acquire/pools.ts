import { verificationsOf, type Env } from '../../env.ts';
import type { GroupRpc } from '../../contract/rpc/group-rpc.ts';
import { poolOf } from '../../routing/pool.ts';
import { isVerifiedLater } from '../../contract/pool-name.ts';
import type { Placement } from '../../routing/placement.ts';
import { UnverifiedPool, type CallPool } from './unverified-pool.ts';
import { isKnownVerified } from '../identity/verified-pools.ts';
import { ownOrShared } from './shared-partition.ts';
import type { RoutingTable } from '../../config/snapshots.ts';

/**
 * Gives a new stub of the pool at every call: after an error a stub stays broken, and the documents
 * ask for a new one.
 */
export type PoolSource = () => CallPool;

export function poolSource(
  env: Env,
  placement: Placement,
  table: RoutingTable,
  mayBeUnverified = isUnverified(env, placement),
): PoolSource {
  const stubOf = ({ group, partition, config }: Placement): GroupRpc =>
    poolOf(env, group, partition, config);
  if (!mayBeUnverified) return () => stubOf(placement);
  const { group, partition } = placement;
  const pool = new UnverifiedPool({
    of: { group, partition },
    trials: () => verificationsOf(env),
    find: () => ownOrShared(env, table, placement),
    stubOf,
  });
  return () => pool;
}

/**
 * Gives the same for a lease that is held by its id. Its pool may have been on trial when it was granted. In a group that has too
 * many partitions it was handed over to a pool that others share, and the lease still names its own.
 */
export function poolSourceOfHeld(env: Env, placement: Placement, table: RoutingTable): PoolSource {
  const isFull = table.snapshot.fullGroups?.includes(placement.group) === true;
  const mayShare = isFull && env.TRIALS !== undefined && isVerifiedLater(placement);
  return poolSource(env, placement, table, mayShare || isUnverified(env, placement));
}

/** Whether a pool may be among those that had no success yet. */
export function isUnverified(env: Env, placement: Placement): boolean {
  return env.TRIALS !== undefined && isVerifiedLater(placement) && !isKnownVerified(placement);
}
