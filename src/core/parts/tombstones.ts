import { after, instant, type InstantMs } from '../words/ids.ts';
import { TOMBSTONE_TTL_MS, TOMBSTONES_MAX } from '../words/settings.ts';

/**
 * Ids of ended attempts and cancelled tickets. Each is remembered for at least the TTL, and until others have ended for
 * the same time again. It is forgotten earlier only if there are too many.
 *
 * Ids are kept in two generations, and the older one is forgotten as a whole. Removing the oldest ids one by one
 * becomes slower with their number, because a Set or Map scans the removed entries at its front again until it is
 * rebuilt.
 */
export class Tombstones {
  #recent = new Set<string>();
  #older = new Set<string>();
  /** The instant at which every id of the older generation has reached its TTL. */
  #recentUntil = instant(0);

  /** An id that ended twice may count twice. */
  get size(): number {
    return this.#recent.size + this.#older.size;
  }

  has(id: string): boolean {
    return this.#recent.has(id) || this.#older.has(id);
  }

  /** Remembers an id from `now` on, even if it is already known. */
  add(id: string, now: InstantMs): void {
    if (now >= this.#recentUntil || this.#recent.size >= TOMBSTONES_MAX / 2) {
      this.#older = this.#recent;
      this.#recent = new Set();
      this.#recentUntil = after(now, TOMBSTONE_TTL_MS);
    }
    this.#recent.add(id);
  }
}
