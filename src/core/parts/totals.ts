import type { CutReason } from '../words/cut.ts';
import type { LeaseOutcome } from '../words/outcome.ts';
import type { Rejection } from '../words/rejection.ts';
import type { RefusalKind } from '../words/signal.ts';
import type { WaitCause } from './decision-log.ts';
import { emptyHistogram, type Histogram } from './histogram.ts';

/**
 * Promises that a group must never break. They are checked in production, and each violation is counted:
 *
 * - `above_limit`: more slots granted than the limit in force.
 * - `above_mark`: more slots held than the bound on disk covers when an answer leaves.
 * - `granted_twice`: a lease granted twice.
 * - `settled_twice`: a lease ended twice.
 */
export const INVARIANTS = ['above_limit', 'above_mark', 'granted_twice', 'settled_twice'] as const;

export type Invariant = (typeof INVARIANTS)[number];

/**
 * Outcomes of reports. An `unconfirmed` one counts for a minute, unless it is `confirmed` or `refuted`. Reports of a
 * key that was refuted, or has used up its time, are `ignored`.
 */
export type ReportEnd = 'unconfirmed' | 'confirmed' | 'refuted' | 'ignored';

/** Counts of a group since its instance started. No decision depends on them. */
export interface Totals {
  granted: number;
  /** Grants to another attempt of a call that was granted slots here before. */
  grantedAgain: number;
  rejected: Partial<Record<Rejection['reason'], number>>;
  /** Waiters whose caller left, or did not repeat its acquire call. */
  left: number;
  /** Waiters that were returned to be routed again. */
  moved: number;
  /** Ends of leases by outcome, without expired ones. */
  ended: Partial<Record<LeaseOutcome, number>>;
  /** Successes that the upstream answered with an error status, by status. They were not served. */
  answeredErrors: Record<string, number>;
  /** Calls that were cut short, by cause. Calls whose callers left are not included. */
  cut: Partial<Record<CutReason, number>>;
  expired: number;
  /** Leases that were resumed after they had expired, by a holder that still streams. */
  resurrected: number;
  refusals: Partial<Record<RefusalKind, number>>;
  readonly reports: Record<ReportEnd, number>;
  /** Violations of the promises in `INVARIANTS`. */
  readonly violations: Record<Invariant, number>;
  /** Calls in a dry run that would have waited or been rejected. */
  wouldWait: number;
  /** Time that granted calls spent in this group's queue. 0 if a call was granted at once. */
  readonly wait: Histogram;
  /** Ended waits, with a slot or without, by wait reason, and their total time. */
  readonly waitedFor: Partial<Record<WaitCause, number>>;
  readonly waitedForMs: Partial<Record<WaitCause, number>>;
  /** Time between the grant and the end of leases. */
  readonly hold: Histogram;
  /** Tokens and money as limits count them: reported by the upstream, or reserved if it reported none. */
  inputTokens: number;
  outputTokens: number;
  usd: number;
  /**
   * Grants of calls with an affinity: at their member, at another one, and after a wait for it while another one had
   * room.
   */
  affinityKept: number;
  affinityLeft: number;
  affinityWaited: number;
}

export function emptyTotals(): Totals {
  return {
    granted: 0,
    grantedAgain: 0,
    rejected: {},
    left: 0,
    moved: 0,
    ended: {},
    answeredErrors: {},
    cut: {},
    expired: 0,
    resurrected: 0,
    refusals: {},
    reports: { unconfirmed: 0, confirmed: 0, refuted: 0, ignored: 0 },
    violations: { above_limit: 0, above_mark: 0, granted_twice: 0, settled_twice: 0 },
    wouldWait: 0,
    wait: emptyHistogram(),
    waitedFor: {},
    waitedForMs: {},
    hold: emptyHistogram(),
    inputTokens: 0,
    outputTokens: 0,
    usd: 0,
    affinityKept: 0,
    affinityLeft: 0,
    affinityWaited: 0,
  };
}
