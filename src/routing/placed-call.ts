import { LANES, type Lane } from '../core/words/ticket.ts';
import { QUEUE_TIMEOUT_MS } from '../contract/config/group.ts';
import type { GroupConfig } from '../contract/config/config.ts';
import { jurisdictionOf, type LocationVariables } from '../env.ts';
import { partitionHash } from '../runtime/secrets.ts';
import type { Placement, Routes } from './placement.ts';
import { laneTimeoutMs } from './group-limits.ts';
import { isHashed } from './pool.ts';

/**
 * A call in the groups that it matches: its lane in each, how long it may wait there, and the names of its partitions.
 * In a jurisdiction, these names contain no text of clients, because the platform logs the names of objects outside of
 * it, and the directory, the feed, logs and metrics may be elsewhere.
 */

/** The lanes of a call before its groups apply theirs. */
export interface RequestedLanes {
  /** The requested lane, or null. */
  readonly lane: Lane | null;
  /** The default and the highest allowed lane of the client's gateway key. null without a gateway key. */
  readonly keyLanes: { readonly byDefault: Lane | null; readonly best: Lane | null };
}

/**
 * Returns the lane of a call in one of its groups: the requested lane, or else the group's rule for the model, the
 * default of the client's key, or that of the group. It is never better than key and group allow.
 */
export function laneOf({ lane, keyLanes }: RequestedLanes, { config, ruledLane }: Placement): Lane {
  const { byDefault, best } = keyLanes;
  const requested = lane ?? ruledLane ?? byDefault ?? config?.queue.lane_default ?? 'normal';
  // Only the group can allow a lane to a client without a gateway key, because any client can send the header.
  const isClaim = lane !== null && best === null;
  const ofGroup = config?.queue.lane_max ?? (isClaim ? 'normal' : 'high');
  return worst(requested, best ?? 'high', ofGroup);
}

function worst(...lanes: readonly Lane[]): Lane {
  return LANES.findLast((lane) => lanes.includes(lane)) ?? 'low';
}

interface WaitingCall extends RequestedLanes {
  readonly keyTimeoutMs: number | null;
}

/**
 * Maximum wait of a call in one of its groups: that of its key, or else of its lane in the group, or else of the group.
 */
export function timeoutMsOf(call: WaitingCall, placement: Placement): number {
  const { config } = placement;
  return ownTimeoutMsOf(call, placement) ?? config?.queue.timeout_ms ?? QUEUE_TIMEOUT_MS;
}

/** Maximum wait from the key or else the lane. null if neither sets one. */
export function ownTimeoutMsOf(call: WaitingCall, placement: Placement): number | null {
  if (call.keyTimeoutMs !== null) return call.keyTimeoutMs;
  const { config } = placement;
  return config === null ? null : laneTimeoutMs(config, laneOf(call, placement));
}

export function hashesPartitions(
  { jurisdiction }: Pick<GroupConfig, 'jurisdiction'>,
  env: LocationVariables,
): boolean {
  return jurisdiction !== null || jurisdictionOf(env) !== null;
}

/** Replaces each value in the name of a partition by a keyed hash. Fingerprints of provider keys are hashes already. */
export async function hashedPartition(fingerprintKey: string, partition: string): Promise<string> {
  const hashed = partition
    .split(',')
    .map(async (value) => (isHashed(value) ? value : partitionHash(fingerprintKey, value)));
  return (await Promise.all(hashed)).join(',');
}

/** Whether some placement may need a hashed name. Most deployments have none, so their calls skip this step. */
export function mayHash(routes: Routes, env: LocationVariables): boolean {
  return routes.splitsInJurisdiction || jurisdictionOf(env) !== null;
}

/** Replaces the partitions of placements by the names of their pools. */
export function hashedPlacements(
  placements: readonly Placement[],
  env: LocationVariables,
  fingerprintKey: string,
): Promise<readonly Placement[]> {
  const named = placements.map(async (placement) => {
    const { config, partition } = placement;
    if (config === null || partition === null || !hashesPartitions(config, env)) return placement;
    return { ...placement, partition: await hashedPartition(fingerprintKey, partition) };
  });
  return Promise.all(named);
}
