// Names of partitions in a jurisdiction. The platform logs the names of objects outside of the jurisdiction, and the
// directory, the feed, logs and metrics may be elsewhere. Names therefore contain no text of clients.

import type { GroupConfig } from '../contract/config/config.ts';
import { jurisdictionOf, type LocationVariables } from '../env.ts';
import { partitionHash } from '../runtime/digests.ts';
import { isHashed } from './pool.ts';
import type { Placement, Routes } from './placement.ts';

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
