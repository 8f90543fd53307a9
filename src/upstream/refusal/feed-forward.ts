import type { LimitHint } from '../../core/words/signal.ts';
import { DAY_MS, type Refill } from './limit-headers.ts';
import { isInWholeSeconds } from './reset-time.ts';

/** Parameters for how the headers of a successful call hold back the next one. */
export interface FeedForwardOptions {
  /**
   * Requests are nearly exhausted below the smaller of this number and `share`. A larger number would leave capacity
   * unused that the upstream grants.
   * @default 2
   */
  readonly requestsMax: number;
  /**
   * Number of tokens below which a limit is nearly exhausted, at most half of the limit. null uses `share`.
   * @default null
   */
  readonly tokensMax: number | null;
  /**
   * The share of a limit below which it is nearly exhausted.
   * @default 0.05
   */
  readonly share: number;
  /**
   * A shorter reset has passed before the next call arrives.
   * @default 500
   */
  readonly resetMsMin: number;
  /**
   * Longest wait. A window of a minute has ended by then, whatever the header reported.
   * @default 65000
   */
  readonly waitMsMax: number;
  /**
   * Other calls in flight, which the limit may not count yet.
   * @default 0
   */
  readonly underWay: number;
  /**
   * Returns the mean number of tokens that a call uses of a limit. 0 if unknown.
   * @default 0
   */
  readonly tokensOf: (hint: LimitHint) => number;
  /**
   * The time at which the headers were read.
   * @default 0
   */
  readonly now: number;
}

/** Maximum share of a limit that `tokensMax` keeps free. Keeping the whole limit free would hold every call. */
const KEPT_SHARE_MAX = 1 / 2;

export const FEED_FORWARD_DEFAULTS: FeedForwardOptions = {
  requestsMax: 2,
  tokensMax: null,
  share: 1 / 20,
  resetMsMin: 500,
  waitMsMax: 65_000,
  underWay: 0,
  tokensOf: () => 0,
  now: 0,
};

/** Added to the reset of a window that is reported in whole seconds, because upstreams may round down. */
const ROUNDED_MS = 1_000;

/**
 * Computes how long calls should wait, in milliseconds, because the next one would be refused. Returns null if they
 * need not wait. If a limit refills continuously, the wait is the refill of one request for each of these calls, or of
 * tokens up to the threshold. Otherwise it lasts until the reset. Room is kept for calls in flight.
 *
 * Limits of 0 and windows of a day hold no call back: a 0 means that the limit is unknown, and a day exceeds every
 * caller's patience. A Retry-After takes precedence.
 */
export function waitFromHints(
  hints: readonly LimitHint[],
  refillOf: (hint: LimitHint) => Refill,
  options: FeedForwardOptions = FEED_FORWARD_DEFAULTS,
): number | null {
  let longestMs: number | null = null;
  for (const hint of hints) {
    const waitMs = waitFromHint(hint, refillOf(hint), options);
    if (waitMs !== null && (longestMs === null || waitMs > longestMs)) longestMs = waitMs;
  }
  return longestMs;
}

function waitFromHint(hint: LimitHint, refill: Refill, options: FeedForwardOptions): number | null {
  const { limit, remaining, windowMs, resetMs } = hint;
  if (remaining === null || limit === 0) return null;
  if (windowMs !== null && windowMs >= DAY_MS) return null;
  const kept = keptOf(hint, options);
  if (refill === 'window' && resetMs !== null) {
    if (remaining >= kept) return null;
    const roundedMs = isInWholeSeconds(resetMs, options.now) ? ROUNDED_MS : 0;
    return Math.min(options.waitMsMax, Math.ceil(resetMs) + roundedMs);
  }
  if (resetMs !== null && resetMs < options.resetMsMin) return null;
  if (remaining >= kept) return null;
  const continuousMs = refill === 'continuous' ? refillMs(hint, kept, options) : null;
  const waitMs = continuousMs ?? resetMs;
  return waitMs === null ? null : Math.min(options.waitMsMax, Math.ceil(waitMs));
}

/**
 * Computes how long calls should wait after a bucket refused one: until there is room for it and for those in flight,
 * which are refused as well. Returns null if unknown.
 */
export function refillAfterRefusal(hint: LimitHint, options: FeedForwardOptions): number | null {
  const { limit, resetMs } = hint;
  if (limit === null || limit === 0) return null;
  // A refused call needs more tokens than are left.
  const waitMs = refillMs(hint, keptOf(hint, options), options, limit * options.share);
  return waitMs === null ? null : Math.min(resetMs ?? Infinity, Math.ceil(waitMs));
}

/** Returns how much of a limit is kept for the next call and for those in flight. */
function keptOf(hint: LimitHint, options: FeedForwardOptions): number {
  const { underWay, tokensOf } = options;
  const threshold = thresholdOf(hint, options);
  if (hint.limit === null) return threshold;
  if (hint.dimension === 'requests') return threshold === 0 ? 0 : threshold + underWay;
  // A full limit must admit a call of any size.
  const each = Math.min(tokensOf(hint), (hint.limit * KEPT_SHARE_MAX) / (underWay + 1));
  return Math.max(threshold, each) + underWay * each;
}

/** The threshold below which a limit is nearly exhausted. Without a known limit, only 0 counts. */
function thresholdOf(hint: LimitHint, options: FeedForwardOptions): number {
  if (hint.limit === null) return Number.MIN_VALUE;
  const share = hint.limit * options.share;
  if (hint.dimension !== 'requests' && options.tokensMax !== null) {
    return Math.min(options.tokensMax, hint.limit * KEPT_SHARE_MAX);
  }
  return hint.dimension === 'requests' ? Math.min(options.requestsMax, share) : share;
}

/** Computes the time until this much is available, or at least room for one more call. */
function refillMs(
  hint: LimitHint,
  kept: number,
  { underWay }: FeedForwardOptions,
  tokensMin = 0,
): number | null {
  const { limit, remaining, windowMs, resetMs } = hint;
  if (limit === null || remaining === null || limit <= remaining) return null;
  const wanted =
    hint.dimension === 'requests'
      ? Math.max(1, underWay + 1 - remaining)
      : Math.max(tokensMin, kept - remaining);
  // The reset is the time at which everything used has refilled. It shows the pace even if the assumed window is wrong.
  if (resetMs !== null) return (wanted * resetMs) / (limit - remaining);
  return windowMs === null ? null : (wanted * windowMs) / limit;
}
