import { BoundedMap } from '../core/parts/bounded-map.ts';

const WINDOW_MS = 60_000;

/** Maximum addresses that are remembered; the one heard of longest ago goes first. */
const ADDRESSES_MAX = 10_000;

/** Wrong tokens and keys by the address that they came from. In memory only: a reset forgives. */
export class FailedAttempts {
  readonly #byAddress = new BoundedMap<
    string,
    { readonly count: number; readonly sinceMs: number }
  >(ADDRESSES_MAX);

  /** Counts those within the last minute. */
  recent(address: string, nowMs: number): number {
    const known = this.#byAddress.get(address);
    return known === undefined || nowMs - known.sinceMs >= WINDOW_MS ? 0 : known.count;
  }

  /** Counts one more, and returns how many there were within the last minute. */
  count(address: string, nowMs: number): number {
    const known = this.#byAddress.get(address);
    const isOld = known === undefined || nowMs - known.sinceMs >= WINDOW_MS;
    const next = isOld ? { count: 1, sinceMs: nowMs } : { ...known, count: known.count + 1 };
    this.#byAddress.set(address, next);
    return next.count;
  }
}
