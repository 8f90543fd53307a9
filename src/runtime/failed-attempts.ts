const WINDOW_MS = 60_000;

/** Addresses that are remembered; the one heard of the longest ago goes first. */
const ADDRESSES_MAX = 10_000;

/** Wrong tokens and keys by the address that they came from. In memory only: a reset forgives. */
export class FailedAttempts {
  readonly #byAddress = new Map<string, { count: number; sinceMs: number }>();

  /** How many there were within the last minute. */
  recent(address: string, nowMs: number): number {
    const known = this.#byAddress.get(address);
    return known === undefined || nowMs - known.sinceMs >= WINDOW_MS ? 0 : known.count;
  }

  /** Counts one more. How many there were within the last minute. */
  count(address: string, nowMs: number): number {
    const known = this.#byAddress.get(address);
    const isOld = known === undefined || nowMs - known.sinceMs >= WINDOW_MS;
    const next = isOld ? { count: 1, sinceMs: nowMs } : { ...known, count: known.count + 1 };
    this.#byAddress.delete(address);
    const [oldest] = this.#byAddress.keys();
    if (this.#byAddress.size >= ADDRESSES_MAX && oldest !== undefined) {
      this.#byAddress.delete(oldest);
    }
    this.#byAddress.set(address, next);
    return next.count;
  }
}
