import { poolName } from '../../contract/pool-name.ts';
import type { Placement } from '../../routing/placement.ts';

/**
 * Calls that bypass their group while their group's object is out of reach, where the operator allows
 * it: the one stated exception to the limit. Counted per isolate, bounded, told to the object later.
 */
const bypasses = new Map<string, { inFlight: number; unreported: number }>();

/** Counts down for a request that dies, which runs no `finally`, when its bypass is collected. */
const lost = new FinalizationRegistry<{ inFlight: number }>((count) => {
  count.inFlight -= 1;
});

/** The leave of a call to go without a slot. */
export interface Bypass {
  readonly kind: 'bypass';
  /** To be called when the call is over. Later calls change nothing. */
  readonly end: () => void;
}

/** Tells whether calls may bypass a group at all. */
export function mayBypass({ config }: Placement): boolean {
  return (config?.on_unavailable ?? 'reject') !== 'reject';
}

/** Lets a call bypass its group; null: the group allows none, or enough of them are under way. */
export function bypass({ group, partition, config }: Placement): Bypass | null {
  const allowed = config?.on_unavailable ?? 'reject';
  if (allowed === 'reject') return null;
  const name = poolName(group, partition);
  const count = bypasses.get(name) ?? { inFlight: 0, unreported: 0 };
  if (count.inFlight >= allowed.pass_with_limit_each) return null;
  bypasses.set(name, count);
  count.inFlight += 1;
  count.unreported += 1;
  let isOver = false;
  const end = (): void => {
    if (!isOver) count.inFlight -= 1;
    isOver = true;
    lost.unregister(end);
  };
  lost.register(end, count, end);
  return { kind: 'bypass', end };
}

/** Takes the number of bypasses that the pool has not been told of. They count as told from now on. */
export function takeUnreportedBypasses(name: string): number {
  const found = bypasses.get(name);
  if (found === undefined) return 0;
  const { unreported } = found;
  found.unreported = 0;
  if (found.inFlight === 0) bypasses.delete(name);
  return unreported;
}

/** Takes them back: the pool could not be told. */
export function giveBackBypasses(name: string, unreported: number): void {
  if (unreported === 0) return;
  const found = bypasses.get(name) ?? { inFlight: 0, unreported: 0 };
  found.unreported += unreported;
  bypasses.set(name, found);
}
