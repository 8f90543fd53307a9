/** Every reason for which the core refuses a ticket. */
export type Rejection =
  /** The queue is full, or as full as one tenant or agent may make it. */
  | {
      readonly reason: 'queue_full';
      readonly queueLengthMax: number;
      readonly of: 'group' | 'tenant' | 'agent';
      readonly retryAfterMs: number;
    }
  /** The ticket waited until its deadline. */
  | { readonly reason: 'queue_timeout'; readonly waitedMs: number; readonly retryAfterMs: number }
  /** The wait would outlast the deadline. */
  | { readonly reason: 'infeasible'; readonly estimateMs: number; readonly retryAfterMs: number }
  /** The caller did not want to wait, and there is no slot now. */
  | { readonly reason: 'busy'; readonly slotsMax: number; readonly retryAfterMs: number }
  /** The group was still paused at the ticket's deadline. */
  | { readonly reason: 'paused'; readonly waitedMs: number; readonly retryAfterMs: number }
  /** The group takes no new calls. */
  | { readonly reason: 'draining'; readonly retryAfterMs: number }
  /** An operator took the call out of the queue. */
  | { readonly reason: 'cancelled'; readonly retryAfterMs: null }
  /** The call would wait for its own parent, which waits for it. */
  | { readonly reason: 'nested'; readonly retryAfterMs: null }
  /** The call wants more slots than the group ever gives to one. */
  | {
      readonly reason: 'never_fits';
      readonly slotsPerCallMax: number;
      readonly retryAfterMs: null;
    };
