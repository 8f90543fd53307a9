/** A source of random choices that come out the same for the same seed. */
export interface LifecycleRandom {
  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number;
  /** One of the entries, each as often as its weight says. */
  pick<T>(entries: readonly (readonly [weight: number, entry: T])[]): T;
}

/** Mulberry32: 32 bits of state, good enough to mix up calls. */
export function createRandom(seed: number): LifecycleRandom {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    between: (min, max) => min + Math.floor(next() * (max - min + 1)),
    pick(entries) {
      let left = next() * entries.reduce((sum, [weight]) => sum + weight, 0);
      for (const [weight, entry] of entries) {
        left -= weight;
        if (left < 0) return entry;
      }
      throw new RangeError('nothing to pick from');
    },
  };
}
