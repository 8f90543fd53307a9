import { after, instant, type InstantMs } from '../words/ids.ts';
import { TOMBSTONE_TTL_MS, TOMBSTONES_MAX } from '../words/settings.ts';

/**
 * Ids that have ended: attempts, and tickets that were cancelled. Each is remembered for its time at least,
 * and until others have ended for as long again; for less only where there are too many.
 *
 * In two generations, the older of which is forgotten as a whole. To take the oldest ids out one by one
 * would cost more the more of them there are: what leaves a Set or Map at its front is walked over again
 * and again, until the whole is copied.
 */
export class Tombstones {
  #recent = new Set<string>();
  #older = new Set<string>();
  /** The instant from which every id of the older generation has had its time. */
  #recentUntil = instant(0);

  /** An id that ended twice may count twice. */
  get size(): number {
    return this.#recent.size + this.#older.size;
  }

  has(id: string): boolean {
    return this.#recent.has(id) || this.#older.has(id);
  }

  /** Remembers an id from `now` on, one that is known already too. */
  add(id: string, now: InstantMs): void {
    if (now >= this.#recentUntil || this.#recent.size >= TOMBSTONES_MAX / 2) {
      this.#older = this.#recent;
      this.#recent = new Set();
      this.#recentUntil = after(now, TOMBSTONE_TTL_MS);
    }
    this.#recent.add(id);
  }
}
