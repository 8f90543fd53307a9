import type { Timers } from '../runtime/clock.ts';

/** One timer for everything that is due, because the runtime allows 10,000 timers and every waiter has a deadline. */
export class WakeTimer {
  readonly #timers: Timers;
  readonly #wake: () => void;
  #cancel: (() => void) | null = null;
  #at = Infinity;

  constructor(timers: Timers, wake: () => void) {
    this.#timers = timers;
    this.#wake = wake;
  }

  /**
   * Wakes no later than `at`. An earlier requested time stays in force, which is cheaper than setting the timer again.
   * Infinity means that nothing is due.
   */
  arm(at: number): void {
    this.#timers.check();
    if (at === Infinity) this.#disarm();
    if (at >= this.#at) return;
    this.#disarm();
    this.#at = at;
    this.#cancel = this.#timers.after(at - this.#timers.clock.now(), this.#wake);
  }

  /** Clears the timer at or after its time. Returns its delay in milliseconds, or null if it is not due. */
  takeOver(): number | null {
    const lateMs = this.#timers.clock.now() - this.#at;
    if (lateMs < 0) return null;
    this.#disarm();
    return lateMs;
  }

  #disarm(): void {
    this.#cancel?.();
    this.#cancel = null;
    this.#at = Infinity;
  }
}
