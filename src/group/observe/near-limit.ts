import type { InstantMs } from '../../core/words/ids.ts';

/** How long the limit must be nearly in use. */
const NEAR_MS = 60_000;

/** Part of a limit, and slots, by which a mean may miss: between two calls of one caller its slot is free for a moment. */
const TOLERANCE = 0.005;
const SLOTS_MISSED_MAX = 0.5;

/** A stretch that began near the limit. */
interface Stretch {
  readonly since: InstantMs;
  readonly limit: number;
  /** Slots in use times the milliseconds that they were. */
  slotMs: number;
  /** Slots in use since `at`. */
  inUse: number;
  at: InstantMs;
}

/**
 * Finds that a part of the limit was in use for a minute, in the mean: where there are few slots, each call that ends takes the
 * pool below for as long as nobody takes its place.
 */
export class NearLimit {
  /** Null: not near, or not any more. */
  #stretch: Stretch | null = null;

  /** Notes the slots in use after an event. Returns how many were in the mean, where a minute near the limit is over; null: it is not. */
  note(inUse: number, limit: number, warnAt: number | null, now: InstantMs): number | null {
    if (warnAt === null || limit <= 0) {
      this.#stretch = null;
      return null;
    }
    const wanted = warnAt * limit - Math.min(TOLERANCE * limit, SLOTS_MISSED_MAX);
    const mean = this.#goOn(inUse, limit, wanted, now);
    if (this.#stretch === null && inUse >= wanted) {
      this.#stretch = { since: now, limit, slotMs: 0, inUse, at: now };
    }
    return mean;
  }

  #goOn(inUse: number, limit: number, wanted: number, now: InstantMs): number | null {
    const stretch = this.#stretch;
    if (stretch === null) return null;
    stretch.slotMs += stretch.inUse * (now - stretch.at);
    stretch.inUse = inUse;
    stretch.at = now;
    const lengthMs = now - stretch.since;
    const isOver = lengthMs >= NEAR_MS;
    // However full the rest of it is, the mean stays below.
    const isLost = stretch.slotMs + limit * (NEAR_MS - lengthMs) < wanted * NEAR_MS;
    if (isOver || isLost || stretch.limit !== limit) this.#stretch = null;
    if (!isOver || stretch.limit !== limit) return null;
    const mean = stretch.slotMs / lengthMs;
    return mean >= wanted ? mean : null;
  }
}
