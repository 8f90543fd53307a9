import type { InstantMs } from '../words/ids.ts';
import type { RefusalKind } from '../words/signal.ts';
import { addSpent, emptySpent, periodBegin, type Spent } from './spend.ts';

export interface LastRefusal {
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
