/** How long a call may take, and each side of it. */
export interface HoldLimits {
  /** Longest silence of the upstream's body. Null: only the wait for its headers is watched. */
  readonly idleMs: number | null;
  /**
   * Longest time in which the caller reads none of the answer, and by which its body may fall behind
   * `uploadMinBytesPerS`. Null: no limit.
   */
  readonly stalledMs: number | null;
  /** Minimum rate at which the caller sends its body. 0: any rate, but no pause of `stalledMs`. */
  readonly uploadMinBytesPerS: number;
  /** Longest time for the whole call. */
  readonly maxHoldMs: number;
  /** Longest time that what goes on at the upstream after the answer keeps the slots. 0: it keeps none. */
  readonly maxRunMs: number;
}
