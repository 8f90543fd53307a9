import type { CutReason, LeaseOutcome, Rejection } from '../words/outcome.ts';
import type { RefusalKind } from '../words/signal.ts';
import type { InstantMs } from '../words/ids.ts';
import type { WaitCause } from './decision-log.ts';
import { addSpent, emptySpent, periodBegin, type Spent } from './spend.ts';

/** What a group counts since its start: events, durations, and the calls of each upstream. */

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
type ReportEnd = 'unconfirmed' | 'confirmed' | 'refuted' | 'ignored';

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

/** Counts of durations in buckets. Unlike quantiles, counts can be added up over time and over pools. */
export interface Histogram {
  /** One count for each of `BOUNDS_MS`, and a last one for longer durations. Not cumulative. */
  readonly counts: number[];
  sumMs: number;
}

/**
 * Upper bounds of the buckets, in milliseconds. The first 14 are the bounds of OpenTelemetry's GenAI conventions for
 * the duration of an operation (0.01 s, doubled up to 81.92 s). Three more cover the longest usual waits.
 */
export const BOUNDS_MS: readonly number[] = Array.from(
  { length: 17 },
  (_, index) => 10 * 2 ** index,
);

export function emptyHistogram(): Histogram {
  return { counts: emptyCounts(), sumMs: 0 };
}

export function emptyCounts(): number[] {
  return Array.from({ length: BOUNDS_MS.length + 1 }, () => 0);
}

/** Counts a duration `times` times. A negative duration, from a clock that was set back, counts as 0. */
export function observe(histogram: Histogram, durationMs: number, times = 1): void {
  let bucket = 0;
  while (durationMs > (BOUNDS_MS[bucket] ?? Infinity)) bucket += 1;
  histogram.counts[bucket] = (histogram.counts[bucket] ?? 0) + times;
  histogram.sumMs += Math.max(0, durationMs) * times;
}

/** Subtracts `before`, an earlier copy of the same counts. */
export function countsSince(counts: readonly number[], before: readonly number[]): number[] {
  return counts.map((count, bucket) => count - (before[bucket] ?? 0));
}

export function addCounts(a: readonly number[], b: readonly number[]): number[] {
  return a.map((count, bucket) => count + (b[bucket] ?? 0));
}

/**
 * Estimates the duration, in milliseconds, that the share `share` of all durations does not exceed. It interpolates
 * within a bucket, like `histogram_quantile` of Prometheus. Durations beyond the last bound count as that bound. null
 * if nothing was counted.
 */
export function quantileMs(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const rank = share * total;
  let below = 0;
  for (const [bucket, boundMs] of BOUNDS_MS.entries()) {
    const count = counts[bucket] ?? 0;
    if (count > 0 && below + count >= rank) {
      const fromMs = bucket === 0 ? 0 : (BOUNDS_MS[bucket - 1] ?? 0);
      return Math.round(fromMs + ((boundMs - fromMs) * (rank - below)) / count);
    }
    below += count;
  }
  return BOUNDS_MS.at(-1) ?? 0;
}

interface LastRefusal {
  readonly at: InstantMs;
  /** How long the upstream asks to wait. null if it does not. */
  readonly retryAfterMs: number | null;
  readonly model: string | null;
  /** The upstream's message, shortened and without secrets. Absent if it sent none. */
  readonly words?: string;
  /** Status of its answer. Absent until its call has ended, or if there was no answer. */
  status?: number;
}

/** The calls of a pool to one upstream, or to one member if the group names members. */
export interface UpstreamCallCounts {
  /** When the last call was granted or refused. */
  lastAt: InstantMs;
  /** The start of the UTC day of the counts. */
  day: InstantMs;
  granted: number;
  refused: Partial<Record<RefusalKind, number>>;
  readonly spent: Spent;
  readonly lastRefusals: Partial<Record<RefusalKind, LastRefusal>>;
}

/**
 * The calls of a pool by the upstream or member that they went to. A group that matches only models may be called for
 * any upstream, and its counts describe only those that it has called.
 */
export type UpstreamCalls = Map<string, UpstreamCallCounts>;

/** Maximum number of upstreams that a pool remembers. The one with the oldest call is removed first. */
export const UPSTREAMS_MAX = 32;

export function noteGrantedThere(
  calls: UpstreamCalls,
  upstream: string,
  count: number,
  now: InstantMs,
): void {
  turned(calls, upstream, now).granted += count;
}

/**
 * Reverts the count of a grant whose call never reached the upstream. An upstream without any other call is forgotten.
 */
export function noteUnusedThere(calls: UpstreamCalls, upstream: string, now: InstantMs): void {
  const there = calls.get(upstream);
  if (there === undefined || there.day !== periodBegin('day', now)) return;
  there.granted = Math.max(0, there.granted - 1);
  const isSeen =
    there.granted > 0 ||
    there.spent.beganAt.month > 0 ||
    Object.keys(there.lastRefusals).length > 0;
  if (!isSeen) calls.delete(upstream);
}

/** Counts a refusal by an upstream, and stores it as the last of its kind. */
export function noteRefusedThere(
  calls: UpstreamCalls,
  upstream: string,
  kind: RefusalKind,
  refusal: Omit<LastRefusal, 'at'>,
  now: InstantMs,
): void {
  const there = turned(calls, upstream, now);
  there.refused[kind] = (there.refused[kind] ?? 0) + 1;
  there.lastRefusals[kind] = { at: now, ...refusal };
}

export function noteRefusedStatus(
  calls: UpstreamCalls,
  upstream: string,
  kind: RefusalKind,
  status: number,
): void {
  const last = calls.get(upstream)?.lastRefusals[kind];
  if (last !== undefined) last.status = status;
}

export function noteSpentThere(
  calls: UpstreamCalls,
  upstream: string,
  usd: number,
  now: InstantMs,
): void {
  if (usd > 0) addSpent(turned(calls, upstream, now).spent, usd, now);
}

/** Returns the counts of an upstream for the current day. */
function turned(calls: UpstreamCalls, upstream: string, now: InstantMs): UpstreamCallCounts {
  const day = periodBegin('day', now);
  let there = calls.get(upstream);
  if (there === undefined) {
    if (calls.size >= UPSTREAMS_MAX) forgetOldest(calls);
    there = { lastAt: now, day, granted: 0, refused: {}, spent: emptySpent(), lastRefusals: {} };
    calls.set(upstream, there);
  }
  there.lastAt = now;
  if (there.day !== day) {
    there.day = day;
    there.granted = 0;
    there.refused = {};
  }
  return there;
}

function forgetOldest(calls: UpstreamCalls): void {
  const [oldest] = [...calls].toSorted(([, a], [, b]) => a.lastAt - b.lastAt);
  if (oldest !== undefined) calls.delete(oldest[0]);
}
