export interface HoldLimits {
  /** Longest silence of the upstream's body. null limits only the wait for its headers. */
  readonly idleMs: number | null;
  /**
   * Longest time for which the caller may read nothing of the response, and by which its body may fall behind
   * `uploadMinBytesPerS`. null means no limit.
   */
  readonly stalledMs: number | null;
  /** Minimum rate at which the caller sends its body. 0 allows any rate, but no pause of `stalledMs`. */
  readonly uploadMinBytesPerS: number;
  readonly maxHoldMs: number;
  /**
   * Longest time for which work that continues at the upstream after the response holds the slots. 0 releases them with
   * the response.
   */
  readonly maxRunMs: number;
}
