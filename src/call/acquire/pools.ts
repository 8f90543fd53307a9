import { trialsOf, type Env } from '../../env.ts';
import type { GroupRpc } from '../../contract/rpc/group-rpc.ts';
import { poolOf } from '../../routing/pool.ts';
import { isProvedLater } from '../../contract/pool-name.ts';
import type { Placement } from '../../routing/placement.ts';
import { PoolOnTrial, type CallPool } from './pool-on-trial.ts';
import { isKnownProved } from '../identity/proved.ts';
import { ownOrShared } from './shared-partition.ts';
import type { RoutingTable } from '../../config/snapshots.ts';

/**
 * Gives a new stub of the pool at every call: after an error a stub stays broken, and the documents
 * ask for a new one.
 */
export type PoolSource = () => CallPool;

export function poolSource(env: Env, placement: Placement, table: RoutingTable): PoolSource {
  const stubOf = ({ group, partition, config }: Placement): GroupRpc =>
    poolOf(env, group, partition, config);
  if (!isOnTrial(env, placement)) return () => stubOf(placement);
  const { group, partition } = placement;
  const pool = new PoolOnTrial({
    of: { group, partition },
    trials: () => trialsOf(env),
    find: () => ownOrShared(env, table, placement),
    stubOf,
  });
  return () => pool;
}

/** Whether a pool may be among those that had no success yet. */
export function isOnTrial(env: Env, placement: Placement): boolean {
  return env.TRIALS !== undefined && isProvedLater(placement) && !isKnownProved(placement);
}
