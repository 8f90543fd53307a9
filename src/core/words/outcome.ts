import type { Exceeded } from './settings.ts';
import type { Scope } from './signal.ts';

/** How a call ends: rejected before it starts, cut short, or with an outcome of its lease. */

/**
 * The outcome of a lease.
 *
 * - `success`: the upstream answered and the body ended.
 * - `cancelled`: the caller left, or Headgate cut the call short.
 * - `failed`: a definite 429 or 5xx of the upstream, or a broken connection.
 * - `refused`: the upstream refused this call or its account. Other calls are served.
 * - `unused`: the upstream was never called.
 */
export type LeaseOutcome = 'success' | 'cancelled' | 'failed' | 'refused' | 'unused';

/** Whether the status means that the upstream accepted the call: a 2xx, or the 101 of a WebSocket. */
export function isTaken(status: number): boolean {
  return status === 101 || (status >= 200 && status <= 299);
}

/** Statuses that are counted one by one. All other errors are counted by their first digit. */
const COUNTED_STATUSES: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 422]);

/** Returns the name under which an error status is counted, as in `401` and `4xx`. null if the status is no error. */
export function errorStatusName(status: number | null): string | null {
  if (status === null || status < 400) return null;
  return COUNTED_STATUSES.has(status) ? String(status) : `${String(status).charAt(0)}xx`;
}

export const OUTCOMES_REPORTED = [
  'success',
  'failed',
  'cancelled',
] as const satisfies LeaseOutcome[];

export type CutReason =
  /** The caller disconnected. */
  | 'left'
  /** The remaining body of the request may not be sent. */
  | 'body'
  /** An operator revoked the lease. */
  | 'revoked'
  /** The upstream was silent for too long. */
  | 'idle'
  /** The first content of the answer did not arrive within the timeout. */
  | 'slow'
  /** The caller read nothing for too long although data was available. */
  | 'stalled'
  /** The caller sent its body too slowly, or stopped. */
  | 'request_timeout'
  /** The call held its slot for too long. */
  | 'max_hold'
  /** One side of a WebSocket did not read what the other one sent. */
  | 'slow_reader'
  /** Too many messages are queued behind a turn. */
  | 'overfull'
  /** The group of a session is being drained. */
  | 'draining'
  /** The key of a WebSocket is no longer valid. */
  | 'key_invalid'
  /** The key of a WebSocket may no longer use its group or its upstream. */
  | 'key_forbidden'
  /** The session no longer belongs to a group whose slot it holds. */
  | 'group_changed'
  /** The upstream was disabled or removed, or no longer serves WebSockets. */
  | 'upstream_closed'
  /** A message of a session names a model other than the session's. */
  | 'other_model'
  /** The model in a message of a session could not be read, and groups or keys depend on it. */
  | 'message_unreadable'
  /** The upstream accepts no message of this kind at this point of the session. */
  | 'message_refused'
  /** The process is shutting down. */
  | 'restart';

/** Facts about a call that its holder reports at the end. They are logged only. No decision depends on them. */
export interface CallNotes {
  /** The upstream's own id of the call. Absent if it sent none. */
  readonly requestId?: string;
  /** Number of times the call was sent to an upstream, over all groups and members. Absent if unknown. */
  readonly sent?: number;
  /** Why the call was cut short. Absent if it was not, or if its caller left. */
  readonly cut?: CutReason;
}

/**
 * Why a waiter lost its place in a full queue.
 *
 * - `lane`: a call of a higher lane took it.
 * - `share`: a call of a tenant with fewer waiters, relative to its weight, took it.
 * - `returned`: a call that had the place before a reset took it.
 * - `held`: a call of its own tenant that no scope holds took it.
 */
export type Dropped = 'lane' | 'share' | 'returned' | 'held';

/**
 * Why a call cannot start although slots are free.
 *
 * - `settling`: the group starts no calls for a moment after a move or a reset.
 * - `cap`: the caller or agent is at its maximum.
 * - `rates`: a rate limit is used up.
 * - `member`: no member has room for it.
 * - `order`: earlier calls are next.
 * - `breaker`: a probe is in flight.
 * - `elsewhere`: another group that the call needs is full.
 */
export type BusyCause = 'settling' | 'cap' | 'rates' | 'member' | 'order' | 'breaker' | 'elsewhere';

/** The rejection of a ticket by its group, with its reason and the time to wait before a retry. */
export type Rejection =
  /** The queue is full, or one tenant or agent has reached its part of it. */
  | {
      readonly reason: 'queue_full';
      readonly queueLengthMax: number;
      readonly of: 'group' | 'tenant' | 'agent';
      /** Set if the call was queued and another call took its place. Absent if it was rejected on arrival. */
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
      /** No call has ended for a long time, so the estimate is a lower bound. Absent if calls end. */
      readonly isStalled?: true;
      readonly retryAfterMs: number;
      /** The calls that the upstream stops or limits. Absent if all calls wait. */
      readonly scope?: Scope;
    }
  /** The caller does not allow queueing, and no slot is free. */
  | {
      readonly reason: 'busy';
      readonly slotsMax: number;
      /** The cause, if slots are free. Absent if all are in use. */
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
      /** The time at which the upstream backoff ends, in epoch milliseconds. null if an operator paused the group. */
      readonly until: number | null;
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
  /** The upstream failed too often, and no call is sent to it before the call's deadline. */
  | {
      readonly reason: 'breaker_open';
      readonly retryAfterMs: number | null;
      /** The calls that the breaker stops. Absent if it stops all calls. */
      readonly scope?: Scope;
    }
  /**
   * Every member is unavailable: ejected because its key is refused or its account is out of quota, disabled by an
   * operator, or excluded because it refused this call.
   */
  | { readonly reason: 'members_out'; readonly retryAfterMs: number | null }
  /** The call does not fit into the remaining budget. Calls in flight count as spent. */
  | {
      readonly reason: 'budget_exhausted';
      readonly window: 'hour' | 'day' | 'month';
      readonly limitUsd: number;
      /** The remaining budget. Calls in flight count as spent. */
      readonly leftUsd: number;
      /** The estimated cost of the call. */
      readonly wantedUsd: number;
      readonly retryAfterMs: null;
    }
  /** The group accepts no new calls. */
  | { readonly reason: 'draining'; readonly retryAfterMs: number }
  /** An operator removed the call from the queue. */
  | { readonly reason: 'cancelled'; readonly retryAfterMs: null }
  /** The call would wait for its own parent, which waits for it. */
  | { readonly reason: 'nested'; readonly retryAfterMs: null }
  /** The call needs more slots than the group grants to one call, or more tokens than its limits ever allow. */
  | {
      readonly reason: 'never_fits';
      readonly slotsPerCallMax: number;
      /** The limit that the call exceeds. Absent if the call needs too many slots. */
      readonly exceeded?: Exceeded;
      readonly retryAfterMs: null;
    };
