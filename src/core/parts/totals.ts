import type { CutReason } from '../words/cut.ts';
import type { LeaseOutcome } from '../words/outcome.ts';
import type { Rejection } from '../words/rejection.ts';
import type { RefusalKind } from '../words/signal.ts';
import type { WaitCause } from './decision-log.ts';
import { emptyHistogram, type Histogram } from './histogram.ts';

/**
 * Promises that no group may break. They are checked where it runs, and each of them that was broken is counted:
 * more slots handed out than the limit in force, more held than the bound on disk covers when an answer leaves, a
 * lease granted twice, a lease ended twice.
 */
export const INVARIANTS = ['above_limit', 'above_mark', 'granted_twice', 'settled_twice'] as const;

export type Invariant = (typeof INVARIANTS)[number];

/**
 * Outcomes of reports. An `unconfirmed` one counts for a minute, unless it is `confirmed` or `refuted`. Reports of a key that
 * was refuted, or has used up its time, are `ignored`.
 */
export type ReportEnd = 'unconfirmed' | 'confirmed' | 'refuted' | 'ignored';

/** Counts of a group since its instance began. Nothing of it is looked at in a decision. */
export interface Totals {
  granted: number;
  /** Grants to another attempt of a call that was granted slots here before. */
  grantedAgain: number;
  rejected: Partial<Record<Rejection['reason'], number>>;
  /** Waiters whose caller left, or never came back to ask again. */
  left: number;
  /** Waiters that were sent back to be routed again. */
  moved: number;
  /** Ends of leases by their outcome, those aside that expired. */
  ended: Partial<Record<LeaseOutcome, number>>;
  /** Those among the successes that the upstream answered with an error status, by its name: they were not served. */
  answeredErrors: Record<string, number>;
  /** Calls that were cut short, by why. Those whose callers left are none. */
  cut: Partial<Record<CutReason, number>>;
  /** Leases that ended at their TTL because nobody renewed them. */
  expired: number;
  /** Leases that had lapsed and were taken up again by a holder that still streams. */
  resurrected: number;
  /** Refusals of the upstream, by what they were about. */
  refusals: Partial<Record<RefusalKind, number>>;
  /** Reports of lease holders, by outcome. */
  readonly reports: Record<ReportEnd, number>;
  /** Promises that were broken. */
  readonly violations: Record<Invariant, number>;
  /** Calls in a dry run that would have waited, or would have been rejected. */
  wouldWait: number;
  /** Time that granted calls had stood in this group's queue; 0 for who was granted at once. */
  readonly wait: Histogram;
  /** Waits that have ended, with a slot or without, by what the call waited for; and how long together. */
  readonly waitedFor: Partial<Record<WaitCause, number>>;
  readonly waitedForMs: Partial<Record<WaitCause, number>>;
  /** Time between the grant and the end of leases. */
  readonly hold: Histogram;
  /** Tokens and money as limits count them: as the upstream said, or as reserved where it did not. */
  inputTokens: number;
  outputTokens: number;
  usd: number;
  /** Grants of calls that belong to a member: there, and elsewhere; and how many waited for it though another had room. */
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
