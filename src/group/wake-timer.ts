/** One timer for everything: the runtime allows 10,000, and every waiter has a deadline. */
export class WakeTimer {
  readonly #wake: () => void;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #at = Infinity;

  constructor(wake: () => void) {
    this.#wake = wake;
  }

  /** Wakes at `at` at the latest; an earlier instant that was asked for before still holds. */
  arm(at: number, now: number): void {
    if (at >= this.#at) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#at = at;
    this.#timer = setTimeout(() => this.#fire(), Math.max(0, at - now));
  }

  #fire(): void {
    this.#timer = null;
    this.#at = Infinity;
    this.#wake();
  }
}
