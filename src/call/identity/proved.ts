import { BoundedSet } from '../../core/parts/bounded-map.ts';
import { poolName } from '../../contract/pool-name.ts';
import type { Placement } from '../../routing/placement.ts';

/** Maximum of pools that this isolate remembers; of others it asks again. */
const PROVED_MAX = 10_000;

const proved = new BoundedSet<string>(PROVED_MAX);

type PlacementPool = Pick<Placement, 'group' | 'partition'>;

/** Tells whether the key of a pool had a success, as far as this isolate knows. */
export function isKnownProved({ group, partition }: PlacementPool): boolean {
  return proved.has(poolName(group, partition));
}

export function noteProved({ group, partition }: PlacementPool): void {
  proved.add(poolName(group, partition));
}
