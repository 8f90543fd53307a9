/** Every reason for which the core refuses a ticket. */
export type Rejection =
  /** The queue is full. */
  | {
      readonly reason: 'queue_full';
      readonly queueLengthMax: number;
      readonly retryAfterMs: number;
    }
  /** The ticket waited until its deadline. */
  | { readonly reason: 'queue_timeout'; readonly waitedMs: number; readonly retryAfterMs: number }
  /** The caller did not want to wait, and there is no slot now. */
  | { readonly reason: 'busy'; readonly slotsMax: number; readonly retryAfterMs: number }
  /** The group was still paused at the ticket's deadline. */
  | { readonly reason: 'paused'; readonly waitedMs: number; readonly retryAfterMs: number };
