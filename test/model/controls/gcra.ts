import type { BucketParams } from '../../../src/core/parts/rate-limits.ts';

/** The generic cell rate algorithm with a variable cost: all it keeps is one instant. */
export class Gcra {
  readonly #perUnitMs: number;
  readonly #capacityMs: number;
  readonly #capacity: number;
  readonly #wholeMax: number;
  /** The theoretical arrival time: when it is full again. */
  #fullAt: number;
  #now: number;

  constructor({ ratePerMs, capacity, wholeMax }: BucketParams, now: number) {
    this.#fullAt = now;
    this.#now = now;
    this.#perUnitMs = 1 / ratePerMs;
    this.#capacityMs = capacity / ratePerMs;
    this.#capacity = capacity;
    this.#wholeMax = wholeMax;
  }

  fits(amount: number, now: number): boolean {
    const neededMs = Math.min(amount, this.#capacity, this.#wholeMax) * this.#perUnitMs;
    return amount <= 0 || this.#aheadMs(now) + neededMs <= this.#capacityMs + 1e-6;
  }

  take(amount: number, now: number): void {
    const aheadMs = this.#aheadMs(now);
    this.#now = Math.max(this.#now, now);
    this.#fullAt = this.#now + aheadMs + amount * this.#perUnitMs;
  }

  level(now: number): number {
    return this.#capacity - this.#aheadMs(now) / this.#perUnitMs;
  }

  #aheadMs(now: number): number {
    return Math.max(0, this.#fullAt - Math.max(this.#now, now));
  }
}
