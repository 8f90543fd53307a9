import { poolName } from '../contract/pool-name.ts';
import type { Placement } from '../routing/placement.ts';
import type { Admission } from './admission.ts';

/**
 * Calls that pass without a slot while their group's object is out of reach, where the operator allows
 * it: the one stated exception to the limit. Counted per isolate, bounded, told to the object later.
 */
const passes = new Map<string, { inFlight: number; unreported: number }>();

/** The leave to go without a slot, or null: not allowed, or enough of them are under way. */
export function passWithoutSlot(placement: Placement): Admission | null {
  const allowed = placement.config?.on_unavailable ?? 'reject';
  if (allowed === 'reject') return null;
  const name = poolName(placement.group, placement.partition);
  const pass = passes.get(name) ?? { inFlight: 0, unreported: 0 };
  if (pass.inFlight >= allowed.pass_with_limit_each) return null;
  passes.set(name, pass);
  pass.inFlight += 1;
  pass.unreported += 1;
  let isReleased = false;
  return {
    placement,
    leaseId: null,
    reportStatus: () => {},
    keep: () => {},
    // oxlint-disable-next-line require-await -- the same shape as the release of a lease
    release: async () => {
      if (!isReleased) pass.inFlight -= 1;
      isReleased = true;
    },
  };
}

/** How many calls passed that the pool has not been told of. They count as told from now on. */
export function takeUnreportedPasses(name: string): number {
  const pass = passes.get(name);
  if (pass === undefined) return 0;
  const { unreported } = pass;
  pass.unreported = 0;
  if (pass.inFlight === 0) passes.delete(name);
  return unreported;
}

/** Takes them back: the pool could not be told. */
export function giveBackPasses(name: string, unreported: number): void {
  if (unreported === 0) return;
  const pass = passes.get(name) ?? { inFlight: 0, unreported: 0 };
  pass.unreported += unreported;
  passes.set(name, pass);
}
