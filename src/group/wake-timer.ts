import type { SteadyClock } from '../runtime/steady-clock.ts';

/** One timer for everything: the runtime allows 10,000, and every waiter has a deadline. */
export class WakeTimer {
  readonly #clock: SteadyClock;
  readonly #wake: () => void;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #at = Infinity;
  #timesSetBack = 0;

  constructor(clock: SteadyClock, wake: () => void) {
    this.#clock = clock;
    this.#wake = wake;
  }

  /**
   * Wakes at `at` at the latest; an earlier instant that was asked for before still holds, which costs
   * less than to set the timer anew. Infinity: nobody needs to be woken.
   */
  arm(at: number): void {
    const now = this.#clock.now();
    const { timesSetBack } = this.#clock;
    if (at === Infinity || timesSetBack !== this.#timesSetBack) this.#disarm();
    this.#timesSetBack = timesSetBack;
    if (at >= this.#at) return;
    this.#disarm();
    this.#at = at;
    this.#timer = setTimeout(() => this.#fire(), Math.max(0, at - now));
  }

  /**
   * Takes over the timer's work, for whoever comes at or after the instant, and turns it off. Returns how
   * late it was; null: it is not due.
   */
  takeOver(): number | null {
    const lateMs = this.#clock.now() - this.#at;
    if (lateMs < 0) return null;
    this.#disarm();
    return lateMs;
  }

  #disarm(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#at = Infinity;
  }

  #fire(): void {
    this.#timer = null;
    this.#clock.reach(this.#at);
    this.#wake();
  }
}
