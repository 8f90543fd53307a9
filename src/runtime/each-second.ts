/** Limits how often something may be done in a second. */
export class EachSecond {
  readonly #max: number;
  #beganAt = -Infinity;
  #count = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Whether it may be done once more now. If so, it is counted. */
  mayOneMore(now: number): boolean {
    if (now - this.#beganAt >= 1_000) {
      this.#beganAt = now;
      this.#count = 0;
    }
    if (this.#count >= this.#max) return false;
    this.#count += 1;
    return true;
  }
}
