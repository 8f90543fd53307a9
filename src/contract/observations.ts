import type { Histogram } from '../core/parts/histogram.ts';
import type { Outcome } from '../core/words/outcome.ts';
import type { Rejection } from '../core/words/rejection.ts';
import type { RefusalKind } from '../core/words/signal.ts';
import type { Lane } from '../core/words/ticket.ts';
import type { Decision, WaitCause } from '../core/parts/decision-log.ts';
import type { HistoryPoint } from './history.ts';
import type { PoolMarker } from './history-markers.ts';
import type { PoolStatus } from './pool-status.ts';

/** What a pool tells of its past: counters, points in time, decisions and warnings. */

/** Everything that is counted in a pool since its instance began. */
export interface PoolMetrics {
  readonly status: PoolStatus;
  readonly waits: Readonly<Histogram>;
  readonly holds: Readonly<Histogram>;
  readonly granted_again_total: number;
  readonly left_total: number;
  readonly moved_total: number;
  /** By outcome. Those that expired are counted in the status. */
  readonly ended_total: Readonly<Partial<Record<Outcome, number>>>;
  readonly input_tokens_total: number;
  readonly output_tokens_total: number;
  readonly cost_usd_total: number;
  readonly warnings_total: Readonly<Partial<Record<WarningKind, number>>>;
}

export interface PoolHistory {
  /** The object's clock, in epoch milliseconds: up to when the last point tells. */
  readonly now: number;
  readonly points: readonly HistoryPoint[];
  /** Absent: from a release that marks nothing. */
  readonly markers?: readonly PoolMarker[];
}

/** Which decisions are asked for; what is absent bounds nothing. */
export interface DecisionFilter {
  /** Lease ids, as in the header `headgate-lease`, or tickets. */
  readonly ids?: readonly string[];
  /** Decided at this instant or later, and before that one; epoch milliseconds. */
  readonly fromMs?: number;
  readonly toMs?: number;
  readonly decided?: Decision['decided'];
  readonly limit?: number;
}

/** One decision of a pool, and what became of the call. */
export interface DecisionInfo {
  readonly lease: string;
  readonly ticket: string;
  /** 1 for the first attempt of the call in this group. */
  readonly attempt: number;
  readonly lane: Lane;
  readonly tenant: string;
  readonly agent: string | null;
  readonly upstream: string;
  readonly model: string | null;
  readonly slots: number;
  readonly arrived_at: string;
  readonly decided_at: string;
  readonly waited_ms: number;
  /** Waiters ahead of it when it came. */
  readonly position_at_arrival: number;
  /** Why it was not granted at once; null: it was. */
  readonly waited_for: WaitCause | null;
  readonly outcome: Decision['decided'];
  /** The reason of a rejection, with its figures. */
  readonly rejection: Rejection | null;
  /** What the upstream said to it; null: nothing that this group was told. */
  readonly upstream_status: number | null;
  readonly upstream_said: 'served' | RefusalKind | null;
  readonly upstream_retry_after_ms: number | null;
  /** How its lease ended; null: it has none, or still holds it. */
  readonly ended: Decision['ended'];
  readonly held_ms: number | null;
}

/**
 * - `near_limit`: the part `warn_at` of the limit was in use for a minute.
 * - `queue_growing`: the queue was longer at the end of each of the last minutes.
 * - `wait_long`: calls wait longer than `warn_wait_ms`.
 * - `breaker_open`: the upstream failed too often and is left alone.
 * - `quota_exhausted`: the upstream says that the account has nothing left.
 * - `lease_expired`: a lease was taken back at its TTL, because its holder was gone.
 */
export const WARNING_KINDS = [
  'near_limit',
  'queue_growing',
  'wait_long',
  'breaker_open',
  'quota_exhausted',
  'lease_expired',
] as const;

export type WarningKind = (typeof WARNING_KINDS)[number];

/** Something in a pool that an operator had better look at. Never holds a key or a word of a prompt. */
export interface Warning {
  readonly id: string;
  readonly at: string;
  readonly kind: WarningKind;
  readonly group: string;
  readonly partition: string | null;
  readonly message: string;
  /** What it is about, in numbers. */
  readonly figures: Readonly<Record<string, number>>;
}
