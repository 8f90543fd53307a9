import { queueLength } from '../core/parts/queue.ts';
import type { GroupState } from '../core/state.ts';
import { instant, type InstantMs } from '../core/words/ids.ts';
import type { GroupStore } from './store.ts';

/** How long the stored instant is not written again, and so by how much it may be too old. */
const STAMP_EVERY_MS = 60_000;

/** Whether anybody holds or awaits a slot, or may hold one. */
export function isInUse({ leases, queue, unclaimed }: GroupState): boolean {
  return leases.size + queueLength(queue) + unclaimed.slots > 0;
}

/**
 * The instant since when nobody has held or awaited a slot of a pool. It outlives the instance, because an idle
 * object does not: it is unloaded within minutes.
 */
export class Idleness {
  readonly #store: GroupStore;
  /** The last use that is written down, or null: none is. */
  #stampedAt: number | null;
  /** Null while the pool is in use. */
  #since: InstantMs | null;

  constructor(store: GroupStore, now: InstantMs) {
    this.#store = store;
    const stamp = store.recall('used');
    this.#stampedAt = stamp === null ? null : Number(stamp);
    // Listed by a release that wrote no stamp: it counts as used now.
    if (stamp === null && store.recall('listed') === 'true') this.#stamp(now);
    // It may have been used for a while longer than is written.
    const latest = this.#stampedAt === null ? now : this.#stampedAt + STAMP_EVERY_MS;
    this.#since = instant(Math.min(now, latest));
  }

  /** Notes the state after an event. */
  note(state: GroupState, now: InstantMs): void {
    if (isInUse(state)) {
      this.#since = null;
    } else if (this.#since === null) {
      this.#since = now;
      if (this.#stampedAt !== null && now - this.#stampedAt < STAMP_EVERY_MS) return;
      this.#stamp(now);
    }
  }

  forMs(now: InstantMs): number {
    return this.#since === null ? 0 : Math.max(0, now - this.#since);
  }

  #stamp(now: InstantMs): void {
    this.#stampedAt = now;
    this.#store.remember('used', String(now));
  }
}
