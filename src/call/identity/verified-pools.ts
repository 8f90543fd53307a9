import { BoundedSet } from '../../core/parts/bounded-map.ts';
import { poolName } from '../../contract/pool-name.ts';
import type { Placement } from '../../routing/placement.ts';

/** Maximum pools that this isolate remembers as verified. For others it asks again. */
const VERIFIED_MAX = 10_000;

const verified = new BoundedSet<string>(VERIFIED_MAX);

type PlacementPool = Pick<Placement, 'group' | 'partition'>;

/** Returns whether the key of a pool is verified, as far as this isolate knows. */
export function isKnownVerified({ group, partition }: PlacementPool): boolean {
  return verified.has(poolName(group, partition));
}

export function noteVerified({ group, partition }: PlacementPool): void {
  verified.add(poolName(group, partition));
}
