/** How long a call may take, and each side of it. */
export interface HoldLimits {
  /** Longest silence of the upstream's body. Null: only the wait for its headers is watched. */
  readonly idleMs: number | null;
  /**
   * Longest time in which the caller takes nothing of what the upstream has said, and by which it may fall behind
   * `uploadMinBytesPerS` with its body. Null: any.
   */
  readonly stalledMs: number | null;
  /** Least rate at which the caller sends its body. 0: any, as long as it goes on. */
  readonly uploadMinBytesPerS: number;
  /** Longest time for the whole call. */
  readonly maxHoldMs: number;
  /** Longest time that what goes on at the upstream after the answer keeps the slots. 0: it keeps none. */
  readonly maxRunMs: number;
}
