/** Random numbers from a seed: the same seed, the same run. */
export class SimulatorRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = (seed * 2_654_435_761) >>> 0;
  }

  /** In [0, 1). The generator is mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d_2b_79_f5) >>> 0;
    let bits = this.#state;
    bits = Math.imul(bits ^ (bits >>> 15), bits | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from 0 to below `bound`. */
  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }

  exponential(mean: number): number {
    return -mean * Math.log(1 - this.next());
  }

  /** With that mean and coefficient of variation; 0 for the latter is a constant. */
  lognormal(mean: number, variation: number): number {
    if (variation === 0) return mean;
    const sigma = Math.sqrt(Math.log(1 + variation ** 2));
    const normal = Math.sqrt(-2 * Math.log(1 - this.next())) * Math.cos(2 * Math.PI * this.next());
    return mean * Math.exp(sigma * normal - sigma ** 2 / 2);
  }
}
