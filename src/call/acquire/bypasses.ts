import { poolName } from '../../contract/pool-name.ts';
import type { Placement } from '../../routing/placement.ts';

/**
 * Calls that bypass their group while its object cannot be reached, if the operator allows that. This is the only
 * exception to the limit. Bypasses are counted and limited per isolate, and reported to the object later.
 */
const bypasses = new Map<string, { inFlight: number; unreported: number }>();

/** A request that dies runs no `finally`, so its bypass is counted down when it is collected. */
const lost = new FinalizationRegistry<{ inFlight: number }>((count) => {
  count.inFlight -= 1;
});

/** The permission of a call to run without a slot. */
export interface Bypass {
  readonly kind: 'bypass';
  /** Must be called when the call ends. Later calls have no effect. */
  readonly end: () => void;
}

export function mayBypass({ config }: Placement): boolean {
  return (config?.on_unavailable ?? 'reject') !== 'reject';
}

/** Lets a call bypass its group. null if the group does not allow it, or its maximum of bypasses is in flight. */
export function bypass({ group, partition, config }: Placement): Bypass | null {
  const allowed = config?.on_unavailable ?? 'reject';
  if (allowed === 'reject') return null;
  const name = poolName(group, partition);
  const count = bypasses.get(name) ?? { inFlight: 0, unreported: 0 };
  if (count.inFlight >= allowed.pass_with_limit_each) return null;
  bypasses.set(name, count);
  count.inFlight += 1;
  count.unreported += 1;
  let hasEnded = false;
  const end = (): void => {
    if (!hasEnded) count.inFlight -= 1;
    hasEnded = true;
    lost.unregister(end);
  };
  lost.register(end, count, end);
  return { kind: 'bypass', end };
}

/** Returns the number of bypasses that were not reported to the pool, and counts them as reported. */
export function takeUnreportedBypasses(name: string): number {
  const found = bypasses.get(name);
  if (found === undefined) return 0;
  const { unreported } = found;
  found.unreported = 0;
  if (found.inFlight === 0) bypasses.delete(name);
  return unreported;
}

/** Reverts that, because the pool did not receive the report. */
export function giveBackBypasses(name: string, unreported: number): void {
  if (unreported === 0) return;
  const found = bypasses.get(name) ?? { inFlight: 0, unreported: 0 };
  found.unreported += unreported;
  bypasses.set(name, found);
}
