import type { Timers } from '../runtime/timers.ts';

/** One timer for everything: the runtime allows 10,000, and every waiter has a deadline. */
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
   * Wakes at `at` at the latest. An earlier requested instant stays in force, which is cheaper than setting
   * the timer again. Infinity: nothing is due.
   */
  arm(at: number): void {
    this.#timers.check();
    if (at === Infinity) this.#disarm();
    if (at >= this.#at) return;
    this.#disarm();
    this.#at = at;
    this.#cancel = this.#timers.after(at - this.#timers.clock.now(), this.#wake);
  }

  /**
   * Takes over the timer's work at or after its instant, and turns it off. Returns how late it was in milliseconds; null:
   * it is not due.
   */
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
