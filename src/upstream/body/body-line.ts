import { steadyClock } from '../../runtime/steady-clock.ts';
import type { AbortSource } from '../../runtime/plain-abort.ts';

/** How often the foremost in line look for room. */
const POLL_NEAR_MS = 25;
/** How often the others do: thousands of quick timers would cost more than they gain. */
const POLL_DEFERRED_MS = 250;
/** The foremost: with fewer a long line would not get on, since each learns only by its next look that it is one. */
const NEAR = 32;
/** How long a place is kept without a look: then its request has died, and no longer holds up the line. */
const LOST_AFTER_MS = 2_000;

/** A waiter's place in the line, in order of insertion. */
interface LinePosition {
  readonly bytes: number;
  seenAt: number;
}

/**
 * Bodies that wait to be read, in order of arrival.
 *
 * On Workers a request may not resolve a promise that another one awaits, and a request that dies
 * runs no `finally`. So waiters look for themselves on a timer, and those that stopped looking are passed over.
 */
export class BodyLine {
  readonly #places = new Set<LinePosition>();

  get isEmpty(): boolean {
    return this.#places.size === 0;
  }

  /**
   * Waits for its turn, and then until `take` gives something. The turn of the foremost is theirs together, as long as
   * there is room for so many bytes besides, which is what the first one of them wants.
   */
  async wait<Taken>(
    bytes: number,
    take: (besides: number) => Taken | null,
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

  /** Finds the foremost, in order. Those before them whose requests have died lose their places. */
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

/** Waits so long, or until the signal. */
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
