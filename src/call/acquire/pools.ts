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
