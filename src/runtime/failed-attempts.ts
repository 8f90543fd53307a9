import { BoundedMap } from '../core/parts/bounded-map.ts';

const WINDOW_MS = 60_000;

/** Maximum addresses that are tracked. The one that failed longest ago is dropped first. */
const ADDRESSES_MAX = 10_000;

/** Counts wrong tokens and keys by client address. The counts are in memory only, so a reset clears them. */
export class FailedAttempts {
  readonly #byAddress = new BoundedMap<
    string,
    { readonly count: number; readonly sinceMs: number }
  >(ADDRESSES_MAX);

  /** Returns the failures within the last minute. */
  recent(address: string, nowMs: number): number {
    const known = this.#byAddress.get(address);
    return known === undefined || nowMs - known.sinceMs >= WINDOW_MS ? 0 : known.count;
  }

  /** Counts a failure, and returns the number within the last minute. */
  count(address: string, nowMs: number): number {
    const known = this.#byAddress.get(address);
    const isOld = known === undefined || nowMs - known.sinceMs >= WINDOW_MS;
    const next = isOld ? { count: 1, sinceMs: nowMs } : { ...known, count: known.count + 1 };
    this.#byAddress.set(address, next);
    return next.count;
  }
}
