/** Everything that an upstream saw, and the most of it in any stretch of a length: exact, and slow. */
export class SlidingLog {
  readonly #lengthMs: number;
  readonly #entries: { readonly at: number; readonly amount: number }[] = [];
  total = 0;

  constructor(lengthMs: number) {
    this.#lengthMs = lengthMs;
  }

  add(at: number, amount: number): void {
    this.#entries.push({ at, amount });
    this.total += amount;
  }

  /** The most in any stretch, both of its ends included. */
  most(): number {
    const entries = this.#entries.toSorted((a, b) => a.at - b.at);
    let [most, sum, first] = [0, 0, 0];
    for (const { at, amount } of entries) {
      sum += amount;
      for (;;) {
        const oldest = entries[first];
        if (oldest === undefined || at - oldest.at <= this.#lengthMs) break;
        sum -= oldest.amount;
        first += 1;
      }
      most = Math.max(most, sum);
    }
    return most;
  }
}
