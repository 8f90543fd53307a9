import { steadyClock, type AbortSource } from '../../runtime/async.ts';

/** Interval at which the first waiters in line check for room. */
const POLL_NEAR_MS = 25;
/** Interval at which the others check. Thousands of short timers would cost more than they gain. */
const POLL_DEFERRED_MS = 250;
/**
 * Number of waiters that check at the short interval. With fewer, a long line would move slowly, because each waiter
 * only learns at its next check that it has moved up.
 */
const NEAR = 32;
/** How long a position is kept without a check. After that, its request has died and no longer blocks the line. */
const LOST_AFTER_MS = 2_000;

interface LinePosition {
  readonly bytes: number;
  seenAt: number;
}

/**
 * Bodies that wait to be read, in order of arrival.
 *
 * On Workers, a request must not resolve a promise that another request awaits, and a request that dies runs no
 * `finally`. So each waiter polls on a timer, and waiters that stopped polling are skipped.
 */
export class BodyLine {
  readonly #places = new Set<LinePosition>();

  get isEmpty(): boolean {
    return this.#places.size === 0;
  }

  /**
   * Waits to be among the first in line, and then until `take` returns a result. All of the first waiters may take at
   * the same time, as long as the bytes that the very first one needs stay free (`aheadBytes`).
   */
  async wait<Taken>(
    bytes: number,
    take: (aheadBytes: number) => Taken | null,
    patienceMs: number,
    signal: AbortSource,
  ): Promise<Taken | 'left' | 'crowded'> {
    const place: LinePosition = { bytes, seenAt: steadyClock.now() };
    const until = place.seenAt + patienceMs;
    try {
      while (!signal.aborted) {
        place.seenAt = steadyClock.now();
        this.#places.add(place);
        const near = this.#near();
        const [first = place] = near;
        const isNear = near.includes(place);
        const taken = isNear ? take(first === place ? 0 : first.bytes) : null;
        if (taken !== null) return taken;
        const leftMs = until - place.seenAt;
        if (leftMs <= 0) return 'crowded';
        await pause(Math.min(leftMs, isNear ? POLL_NEAR_MS : POLL_DEFERRED_MS), signal);
      }
      return 'left';
    } finally {
      this.#places.delete(place);
    }
  }

  /** Returns the first waiters, in order, and removes those whose requests have died. */
  #near(): LinePosition[] {
    const near: LinePosition[] = [];
    const now = steadyClock.now();
    for (const place of this.#places) {
      if (near.length === NEAR) break;
      if (now - place.seenAt <= LOST_AFTER_MS) near.push(place);
      else this.#places.delete(place);
    }
    return near;
  }
}

/** Resolves after a time, or when the signal aborts. */
function pause(ms: number, signal: AbortSource): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
  });
}
