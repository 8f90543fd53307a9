/** One timer for everything: the runtime allows 10,000, and every waiter has a deadline. */
export class WakeTimer {
  readonly #wake: () => void;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #at = Infinity;

  constructor(wake: () => void) {
    this.#wake = wake;
  }

  /**
   * Wakes at `at` at the latest; an earlier instant that was asked for before still holds, which costs
   * less than to set the timer anew. Infinity: nobody needs to be woken.
   */
  arm(at: number, now: number): void {
    if (at === Infinity) this.#disarm();
    if (at >= this.#at) return;
    this.#disarm();
    this.#at = at;
    this.#timer = setTimeout(() => this.#fire(), Math.max(0, at - now));
  }

  #disarm(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#at = Infinity;
  }

  #fire(): void {
    this.#timer = null;
    this.#at = Infinity;
    this.#wake();
  }
}
