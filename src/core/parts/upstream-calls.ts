import type { InstantMs } from '../words/ids.ts';
import type { RefusalKind } from '../words/signal.ts';
import { addSpent, emptySpent, periodBegin, type Spent } from './spend.ts';

/** The last refusal of a kind. */
export interface LastRefusal {
  readonly at: InstantMs;
  /** How long to wait, as the upstream says. Null: it does not. */
  readonly retryAfterMs: number | null;
  readonly model: string | null;
  /** The upstream's message, shortened and without secrets. Absent: it sent none, or a release before noted it. */
  readonly words?: string;
  /** Status of its answer. Absent: its call has not ended, or no answer came. */
  status?: number;
}

/** The calls of a pool that went to one upstream; where the group names members, to one of them. */
export interface UpstreamCallCounts {
  /** When the last one was granted, or refused by it. */
  lastAt: InstantMs;
  /** The begin of the day of UTC that the counts are of. */
  day: InstantMs;
  granted: number;
  /** Refusals by the upstream. */
  refused: Partial<Record<RefusalKind, number>>;
  readonly spent: Spent;
  readonly lastRefusals: Partial<Record<RefusalKind, LastRefusal>>;
}

/**
 * The calls of a pool by the upstream, or the member, that they went to: a group that matches by models alone may be
 * called for any upstream, and what it counts says nothing of those that it never called.
 */
export type UpstreamCalls = Map<string, UpstreamCallCounts>;

/** Maximum of upstreams that a pool remembers; the one that was not called for longest goes first. */
export const UPSTREAMS_MAX = 32;

/** Counts calls that were granted slots for an upstream. */
export function noteGrantedThere(
  calls: UpstreamCalls,
  upstream: string,
  count: number,
  now: InstantMs,
): void {
  turned(calls, upstream, now).granted += count;
}

/** Takes back a grant whose call never reached the upstream. One that was never called otherwise is forgotten. */
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

/** Counts a refusal by an upstream, and remembers it as the last of its kind. */
export function noteRefusedThere(
  calls: UpstreamCalls,
  upstream: string,
  kind: RefusalKind,
  said: Omit<LastRefusal, 'at'>,
  now: InstantMs,
): void {
  const there = turned(calls, upstream, now);
  there.refused[kind] = (there.refused[kind] ?? 0) + 1;
  there.lastRefusals[kind] = { at: now, ...said };
}

/** Notes the status of the answer that was the last refusal of a kind. */
export function noteRefusedStatus(
  calls: UpstreamCalls,
  upstream: string,
  kind: RefusalKind,
  status: number,
): void {
  const last = calls.get(upstream)?.lastRefusals[kind];
  if (last !== undefined) last.status = status;
}

/** Counts what a call cost there. */
export function noteSpentThere(
  calls: UpstreamCalls,
  upstream: string,
  usd: number,
  now: InstantMs,
): void {
  if (usd > 0) addSpent(turned(calls, upstream, now).spent, usd, now);
}

/** Finds the calls of an upstream, with the counts of this day. */
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
