// Names of partitions in a jurisdiction. The platform logs the names of objects outside of it, and the directory, the
// feed, logs and metrics may be elsewhere: what callers wrote must not stand in a name.

import type { GroupConfig } from '../contract/config/config.ts';
import { jurisdictionOf, type LocationVariables } from '../env.ts';
import { partitionHash } from '../runtime/digests.ts';
import { isHashed } from './partition.ts';
import type { Placement, Routes } from './placement.ts';

/** Tells whether the partitions of a group have hashed names. */
export function hashesPartitions(
  { jurisdiction }: Pick<GroupConfig, 'jurisdiction'>,
  env: LocationVariables,
): boolean {
  return jurisdiction !== null || jurisdictionOf(env) !== null;
}

/** Puts a keyed hash in the place of each value of a partition's name, as a provider's key has its fingerprint. */
export async function hashedPartition(fingerprintKey: string, partition: string): Promise<string> {
  const hashed = partition
    .split(',')
    .map(async (value) => (isHashed(value) ? value : partitionHash(fingerprintKey, value)));
  return (await Promise.all(hashed)).join(',');
}

/** Tells whether some placement may need a hashed name: most deployments have none, and their calls wait for nothing. */
export function mayHash(routes: Routes, env: LocationVariables): boolean {
  return routes.splitsInJurisdiction || jurisdictionOf(env) !== null;
}

/** Gives placements the names that their pools have. */
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
