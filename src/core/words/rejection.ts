import type { Exceeded } from './limits.ts';
import type { Scope } from './scope.ts';

/**
 * Why a waiter lost its place in a full queue: to a call of a higher lane, to one of a tenant that waits less for its
 * weight, to a call that had the place before a reset, or to a call of its own tenant that no scope holds.
 */
export type Dropped = 'lane' | 'share' | 'returned' | 'held';

/**
 * Why a call cannot start although slots are free: the group starts no calls for a moment after a move or a reset, the caller or
 * agent has its maximum, a rate limit is used up, no member has room for it, earlier calls are next, a probe is in
 * flight, or another group that the call needs is full.
 */
export type BusyCause = 'settling' | 'cap' | 'rates' | 'member' | 'order' | 'breaker' | 'elsewhere';

/** A ticket's rejection by its group, with its reason and when to come back. */
export type Rejection =
  /** The queue is full, or as full as one tenant or agent may make it. */
  | {
      readonly reason: 'queue_full';
      readonly queueLengthMax: number;
      readonly of: 'group' | 'tenant' | 'agent';
      /** It was queued, and another call took its place. Absent: it was refused on arrival. */
      readonly dropped?: Dropped | undefined;
      readonly retryAfterMs: number;
    }
  /** The ticket waited until its deadline. */
  | {
      readonly reason: 'queue_timeout';
      readonly waitedMs: number;
      readonly retryAfterMs: number;
      /** The calls that the upstream stops or limits. Absent if all calls waited. */
      readonly scope?: Scope;
    }
  /** The wait would outlast the deadline. */
  | {
      readonly reason: 'infeasible';
      readonly estimateMs: number;
      /** No call has ended for long, so that it will be at least so much. Absent: calls end. */
      readonly isStalled?: true;
      readonly retryAfterMs: number;
      /** The calls that the upstream stops or limits. Absent if all calls wait. */
      readonly scope?: Scope;
    }
  /** The caller did not want to wait, and there is no slot now. */
  | {
      readonly reason: 'busy';
      readonly slotsMax: number;
      /** The cause, if slots are free. Absent if all are in use, and from older releases. */
      readonly cause?: BusyCause;
      readonly retryAfterMs: number;
      /** The calls that these slots are for, if the upstream limits only some. Absent if they are for all calls. */
      readonly scope?: Scope;
    }
  /** The group is paused until the ticket's deadline, by its operator or because its upstream is overloaded. */
  | {
      readonly reason: 'paused';
      readonly waitedMs: number;
      /** null if a retry will not succeed for a long time. */
      readonly retryAfterMs: number | null;
      /**
       * The instant from which the upstream wants calls again, in epoch milliseconds; null: the operator
       * paused it.
       */
      readonly until?: number | null;
      /** The paused calls. Absent if all calls are paused. */
      readonly scope?: Scope;
    }
  /** The upstream refuses calls because of its own limit until after the ticket's deadline. */
  | {
      readonly reason: 'upstream_limited';
      readonly waitedMs: number;
      /** null if a retry will not succeed for a long time. */
      readonly retryAfterMs: number | null;
      /** The instant at which the limit ends, in epoch milliseconds. */
      readonly until: number;
      /** When the next call probes the limit, in epoch milliseconds. null if none will. */
      readonly probeAt: number | null;
      /** The upstream's message, shortened and without secrets. null if it sent none. */
      readonly words: string | null;
      /** The limited calls. Absent if the limit applies to all calls. */
      readonly scope?: Scope;
    }
  /** The upstream failed too often, and is not asked before the call's deadline. */
  | {
      readonly reason: 'breaker_open';
      readonly retryAfterMs: number | null;
      /** The calls that the breaker stops. Absent if it stops all calls. */
      readonly scope?: Scope;
    }
  /** Every member is out, as its key is refused, its account is out of quota, or an operator took it out; or has refused the call. */
  | { readonly reason: 'members_out'; readonly retryAfterMs: number | null }
  /** The call does not fit into what is left of a budget, with what is in flight counted as spent. */
  | {
      readonly reason: 'budget_exhausted';
      readonly window: 'hour' | 'day' | 'month';
      readonly limitUsd: number;
      /** Left of the budget, with what is in flight counted as spent. Absent: told by an older release, as is what was wanted. */
      readonly leftUsd?: number;
      /** Estimate of the call. */
      readonly wantedUsd?: number;
      readonly retryAfterMs: null;
    }
  /** The group takes no new calls. */
  | { readonly reason: 'draining'; readonly retryAfterMs: number }
  /** An operator took the call out of the queue. */
  | { readonly reason: 'cancelled'; readonly retryAfterMs: null }
  /** The call would wait for its own parent, which waits for it. */
  | { readonly reason: 'nested'; readonly retryAfterMs: null }
  /** The call wants more slots than the group ever gives to one, or more tokens than it lets pass at all. */
  | {
      readonly reason: 'never_fits';
      readonly slotsPerCallMax: number;
      /** The limit that the call is larger than by itself. Absent: it is about slots. */
      readonly exceeded?: Exceeded;
      readonly retryAfterMs: null;
    };
