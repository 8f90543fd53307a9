import { poolName } from '../contract/pool-name.ts';
import type { Placement } from '../routing/placement.ts';

/** Pools that this isolate remembers; the one heard of the longest ago goes first, and is asked for again. */
const PROVED_MAX = 10_000;

const proved = new Set<string>();

type Pool = Pick<Placement, 'group' | 'partition'>;

/** Whether the key of a pool had a success, as far as this isolate knows. */
export function isKnownProved({ group, partition }: Pool): boolean {
  return proved.has(poolName(group, partition));
}

export function noteProved({ group, partition }: Pool): void {
  const name = poolName(group, partition);
  proved.delete(name);
  const [oldest] = proved;
  if (proved.size >= PROVED_MAX && oldest !== undefined) proved.delete(oldest);
  proved.add(name);
}
