/** Maximum step back that is waited out: a correction of the clock, or the next machine's is a little behind. */
const WAITED_OUT_MS = 1_000;

/**
 * Milliseconds since the epoch that never go back. Where the wall clock is set back they go on from where
 * they were, and are ahead of it from then on: what was due in a second still is.
 *
 * It is all made of the wall clock, because the runtime has no other: `performance.now()` shows the same.
 */
export class SteadyClock {
  #now = 0;
  #aheadMs = 0;
  #timesSetBack = 0;

  now(): number {
    const wallMs = Date.now();
    if (wallMs + this.#aheadMs < this.#now - WAITED_OUT_MS) {
      this.#aheadMs = this.#now - wallMs;
      this.#timesSetBack += 1;
    }
    this.#now = Math.max(this.#now, wallMs + this.#aheadMs);
    return this.#now;
  }

  /** Goes on to `at`, when a timer fired that was due then, whatever the wall clock says. */
  reach(at: number): void {
    this.#now = Math.max(this.#now, at);
  }

  /** How far it is ahead of the wall clock, steps back that were waited out aside. */
  get aheadMs(): number {
    return this.#aheadMs;
  }

  /**
   * How often the wall clock was set back, as far as it was looked at. A timer from before that had better
   * be set anew: the runtime keeps all but the next one by the wall clock.
   */
  get timesSetBack(): number {
    return this.#timesSetBack;
  }
}

/** The clock of this isolate, for what its calls tell each other and the groups. */
export const steadyClock = new SteadyClock();
