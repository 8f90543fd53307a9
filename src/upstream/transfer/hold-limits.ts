/** How long a call may take, and each side of it. */
export interface HoldLimits {
  /** Longest silence of the upstream's body. Null: only the wait for its headers is watched. */
  readonly idleMs: number | null;
  /** Longest time in which the caller takes nothing of what the upstream has said. Null: any. */
  readonly stalledMs: number | null;
  /** Longest time for the whole call. */
  readonly maxHoldMs: number;
  /** Longest time that what goes on at the upstream after the answer keeps the slots. 0: it keeps none. */
  readonly maxRunMs: number;
}
