/** Maximum step back that the clock waits out: a correction, or a move to a machine whose clock is slightly behind. */
const WAITED_OUT_MS = 1_000;

/**
 * Milliseconds since the epoch that never go back. If the wall clock is set back, this clock continues from its last
 * value and stays ahead of the wall clock, so delays keep their length.
 *
 * It is derived from the wall clock, because the runtime has no other: `performance.now()` shows the same.
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

  /** Advances to `at` when a timer fires that was due then, regardless of the wall clock. */
  reach(at: number): void {
    this.#now = Math.max(this.#now, at);
  }

  /** How far it is ahead of the wall clock, without the steps back that were waited out. */
  get aheadMs(): number {
    return this.#aheadMs;
  }

  /**
   * How often `now` saw the wall clock set back. Timers from before should be set again, because the runtime measures
   * all but the next one by the wall clock.
   */
  get timesSetBack(): number {
    return this.#timesSetBack;
  }
}

/** The clock of this isolate, for all times that its calls exchange with each other and with pools. */
export const steadyClock = new SteadyClock();
