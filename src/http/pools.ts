import type { Env } from '../contract/env.ts';
import type { GroupRpc } from '../contract/group-rpc.ts';
import { poolOf } from '../contract/pool.ts';
import type { Placement } from '../routing/placement.ts';

/**
 * Gives a new stub of the pool at every call: after an error a stub stays broken, and the documents
 * ask for a new one.
 */
export type PoolSource = () => GroupRpc;

export function poolSource(env: Env, placement: Placement): PoolSource {
  return () => poolOf(env, placement.group, placement.partition, placement.config);
}
