import type { InstantMs } from '../../core/words/ids.ts';

const NEAR_MS = 60_000;

/**
 * Tolerance of the mean, as a part of the limit and in slots. Between two calls of a caller its slot is free for a
 * moment.
 */
const TOLERANCE = 0.005;
const SLOTS_MISSED_MAX = 0.5;

/** A period that began near the limit. */
interface Stretch {
  readonly since: InstantMs;
  readonly limit: number;
  /** Slots in use, multiplied by their time in milliseconds. */
  slotMs: number;
  /** Slots in use since `at`. */
  inUse: number;
  at: InstantMs;
}

/**
 * Detects that a part of the limit was in use for a minute on average. It uses the mean because in a small pool each
 * ended call leaves the range until its slot is taken again.
 */
export class NearLimit {
  /** null while the pool is not near its limit. */
  #stretch: Stretch | null = null;

  /**
   * Records the slots in use after an event. Returns their mean when a minute near the limit has passed, otherwise
   * null.
   */
  note(inUse: number, limit: number, warnAt: number | null, now: InstantMs): number | null {
    if (warnAt === null || limit <= 0) {
      this.#stretch = null;
      return null;
    }
    const wanted = warnAt * limit - Math.min(TOLERANCE * limit, SLOTS_MISSED_MAX);
    const mean = this.#extend(inUse, limit, wanted, now);
    if (this.#stretch === null && inUse >= wanted) {
      this.#stretch = { since: now, limit, slotMs: 0, inUse, at: now };
    }
    return mean;
  }

  #extend(inUse: number, limit: number, wanted: number, now: InstantMs): number | null {
    const stretch = this.#stretch;
    if (stretch === null) return null;
    stretch.slotMs += stretch.inUse * (now - stretch.at);
    stretch.inUse = inUse;
    stretch.at = now;
    const lengthMs = now - stretch.since;
    const isOver = lengthMs >= NEAR_MS;
    // Even a full remainder of the minute cannot raise the mean to the threshold.
    const isLost = stretch.slotMs + limit * (NEAR_MS - lengthMs) < wanted * NEAR_MS;
    if (isOver || isLost || stretch.limit !== limit) this.#stretch = null;
    if (!isOver || stretch.limit !== limit) return null;
    const mean = stretch.slotMs / lengthMs;
    return mean >= wanted ? mean : null;
  }
}
