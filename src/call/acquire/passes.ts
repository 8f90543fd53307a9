import { poolName } from '../../contract/pool-name.ts';
import type { Placement } from '../../routing/placement.ts';

/**
 * Calls that pass without a slot while their group's object is out of reach, where the operator allows
 * it: the one stated exception to the limit. Counted per isolate, bounded, told to the object later.
 */
const passes = new Map<string, { inFlight: number; unreported: number }>();

/** A request that dies runs no `finally`: its pass comes back when it is collected. */
const lost = new FinalizationRegistry<{ inFlight: number }>((count) => {
  count.inFlight -= 1;
});

/** The leave to go without a slot. The same to its holder as a lease. */
export class Pass {
  readonly leaseId = null;
  readonly wantsServed = false;
  readonly #count: { inFlight: number };
  #isReleased = false;

  constructor(count: { inFlight: number }) {
    this.#count = count;
    lost.register(this, count, this);
  }

  reportStatus(): void {
    // There is nobody to tell.
  }

  report(): void {
    // As above.
  }

  keep(): void {
    // There is nothing to renew.
  }

  confirm(): Promise<void> {
    return Promise.resolve();
  }

  release(): Promise<void> {
    if (!this.#isReleased) this.#count.inFlight -= 1;
    this.#isReleased = true;
    lost.unregister(this);
    return Promise.resolve();
  }
}

/** A pass, or null: the group allows none, or enough of them are under way. */
export function passWithoutSlot({ group, partition, config }: Placement): Pass | null {
  const allowed = config?.on_unavailable ?? 'reject';
  if (allowed === 'reject') return null;
  const name = poolName(group, partition);
  const count = passes.get(name) ?? { inFlight: 0, unreported: 0 };
  if (count.inFlight >= allowed.pass_with_limit_each) return null;
  passes.set(name, count);
  count.inFlight += 1;
  count.unreported += 1;
  return new Pass(count);
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
