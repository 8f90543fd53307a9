import { BoundedMap } from '../../core/parts/bounded-map.ts';
import type { LimitHint, UpstreamSignal } from '../../core/words/signal.ts';
import {
  refillAfterRefusal,
  type FeedForwardOptions,
} from '../../upstream/refusal/feed-forward.ts';
import { MINUTE_MS, type Refill } from '../../upstream/refusal/limit-headers.ts';
import { isInWholeSeconds } from '../../upstream/refusal/reset-time.ts';
import {
  areSameLimits,
  limitsReported,
  type ReportedLimits,
} from '../../core/parts/rate-limits.ts';
import { steadyClock } from '../../runtime/async.ts';

const REMEMBERED_MAX = 1_000;

/** Tolerance between equal resets: most headers count whole seconds. */
const TOLERANCE_MS = 1_100;

/** Minimum tolerance, because the latency of answers varies. */
const TOLERANCE_MIN_MS = 50;

/** Tolerance between exact resets, as a share of the time until the reset. */
const TOLERANCE_SHARE = 1 / 10;

function toleranceMs(resetMs: number, now: number): number {
  if (isInWholeSeconds(resetMs, now)) return TOLERANCE_MS;
  return Math.min(TOLERANCE_MS, Math.max(TOLERANCE_MIN_MS, resetMs * TOLERANCE_SHARE));
}

/** Readings of a limit since it was last full. */
interface LimitReadings {
  /** The first reading. */
  readonly remaining: number;
  readonly resetAt: number;
  /** The last reading. It shows whether the limit is full again. */
  lowest: number;
  /** Number of readings since the first. */
  readings: number;
  /** Mean amount of the limit that a call takes. null if unknown. */
  callTakes: number | null;
  /** null until known. */
  refill: Refill | null;
  /** Number of consecutive readings that showed a fixed window. */
  proofs: number;
  /** End of the wait after the last refusal. null once a call was served. */
  refusedUntil: number | null;
  /** Whether a call was refused while the headers reported an empty limit. */
  isEnforced: boolean;
}

/** Consecutive readings that must show a fixed window before the headers of an unknown upstream are used. */
const PROOFS_MIN = 3;

/** Tolerated difference between answers that overtake each other, in addition to calls in flight. */
const OVERTAKING_MAX = 2;

const seen = new BoundedMap<string, LimitReadings>(REMEMBERED_MAX);

/**
 * Learns from successive headers how a limit refills. In a fixed window, the reset time stays the same while the
 * remaining amount falls. In a bucket, each call moves the reset, which is the time when the bucket is full.
 *
 * @param place names the upstream and the model
 * @param underWay other calls that were sent and have no answer yet
 * @returns null until known
 */
export function refillSeen(
  hint: LimitHint,
  place: string,
  now: number,
  underWay = 0,
): Refill | null {
  const { limit, remaining, resetMs } = hint;
  if (limit === null || remaining === null || resetMs === null) return null;
  const key = keyOf(hint, place);
  const known = seen.get(key);
  const resetAt = now + resetMs;
  const tolerance = toleranceMs(resetMs, now);
  if (known !== undefined && isContrary(known, hint, now, underWay)) known.proofs = 0;
  // Answers overtake each other, so a reading with more left may be older.
  const isWhole =
    known !== undefined && remaining > known.lowest && resetAt > known.resetAt + tolerance;
  if (known === undefined || isWhole || remaining > known.remaining) {
    return begin(key, remaining, resetAt).refill;
  }
  known.refusedUntil = null;
  known.lowest = Math.min(known.lowest, remaining);
  known.readings += 1;
  known.callTakes = (known.remaining - known.lowest) / known.readings;
  const used = limit - remaining;
  if (used <= 0) return known.refill;
  // The distance by which a bucket would have moved its reset since then.
  const movesMs = ((known.remaining - remaining) * resetMs) / used;
  if (movesMs < 2 * tolerance) return known.refill;
  const hasMoved = Math.abs(resetAt - known.resetAt) > movesMs / 2;
  known.refill = hasMoved ? 'continuous' : 'window';
  known.proofs = hasMoved ? 0 : known.proofs + 1;
  return known.refill;
}

/** Notes the first reading since the limit was last full. */
function begin(key: string, remaining: number, resetAt: number): LimitReadings {
  const { refill = null, callTakes = null, proofs = 0, isEnforced = false } = seen.get(key) ?? {};
  const noted: LimitReadings = {
    remaining,
    resetAt,
    lowest: remaining,
    readings: 0,
    callTakes,
    refill,
    proofs,
    refusedUntil: null,
    isEnforced,
  };
  seen.set(key, noted);
  return noted;
}

/**
 * Computes how long calls should wait after a call was refused because of a limit. A bucket needs the time
 * until it has room for all calls that would be refused. If that was too short, calls wait until the reset.
 *
 * @param usual how the upstream's limits refill, unless its headers have shown it
 * @param isSet whether an operator has set that
 */
export function waitAfterRefusal(
  hint: LimitHint,
  place: string,
  { usual, isSet }: { readonly usual: Refill; readonly isSet: boolean },
  options: FeedForwardOptions,
): number | null {
  const { now } = options;
  const key = keyOf(hint, place);
  const known = seen.get(key);
  if (known !== undefined && hint.remaining === 0) known.isEnforced = true;
  const refill = isSet ? usual : (known?.refill ?? usual);
  const waitMs = refill === 'window' ? null : refillAfterRefusal(hint, options);
  if (waitMs === null) return hint.resetMs;
  const { refusedUntil = null } = known ?? {};
  if (refusedUntil !== null && now >= refusedUntil) return hint.resetMs ?? wholeWindowMs(hint);
  const noted = known ?? begin(key, hint.remaining ?? 0, now + (hint.resetMs ?? 0));
  noted.refusedUntil ??= now + waitMs;
  return waitMs;
}

/** Returns the length of a limit's window if calls may wait for it. A used-up window ends within that time. */
function wholeWindowMs({ windowMs }: LimitHint): number | null {
  return windowMs !== null && windowMs <= MINUTE_MS ? windowMs : null;
}

/** Whether more is left than a fixed window that has not ended could have. */
function isContrary(known: LimitReadings, hint: LimitHint, now: number, underWay: number): boolean {
  if (now >= known.resetAt - toleranceMs(hint.resetMs ?? 0, now)) return false;
  const each = hint.dimension === 'requests' ? 1 : (known.callTakes ?? 0);
  return (hint.remaining ?? 0) > known.lowest + (underWay + OVERTAKING_MAX) * each;
}

/**
 * Whether the headers have shown consistently how a limit refills: a fixed window by
 * several readings, a bucket also by a refusal.
 */
export function isProven(hint: LimitHint, place: string): boolean {
  const known = seen.get(keyOf(hint, place));
  if (known === undefined) return false;
  return known.refill === 'continuous' ? known.isEnforced : known.proofs >= PROOFS_MIN;
}

/** Returns the mean amount of a limit that one call takes, according to the headers. 0 if unknown. */
export function meanCallTakes(hint: LimitHint, place: string): number {
  return seen.get(keyOf(hint, place))?.callTakes ?? 0;
}

function keyOf({ dimension, windowMs, limit }: LimitHint, place: string): string {
  return `${place} ${dimension} ${windowMs} ${limit}`;
}

/** Calls of this isolate that are in flight without an answer, by upstream and key. */
interface UnansweredCalls {
  calls: number;
  /** The recent maximum of concurrent calls, and when it was reached. */
  peak: number;
  peakAt: number;
}

const underWay = new BoundedMap<string, UnansweredCalls>(REMEMBERED_MAX);

const PEAK_MS = 10_000;

/**
 * Counts a call in flight. Call the returned function when the answer arrives.
 *
 * @param place names the upstream and the key that it sees
 */
export function noteUnderWay(place: string, now: number): () => void {
  const known = underWay.get(place) ?? { calls: 0, peak: 0, peakAt: now };
  if (known.calls === 0) underWay.set(place, known);
  known.calls += 1;
  if (known.calls >= known.peak || now - known.peakAt >= PEAK_MS) {
    known.peak = known.calls;
    known.peakAt = now;
  }
  return () => {
    known.calls -= 1;
  };
}

/**
 * Returns how many calls may still be sent before a pause takes effect: those in flight, and those that have a slot but
 * were not sent yet. The estimate is the recent maximum in flight.
 */
export function callsUnderWay(place: string): number {
  const known = underWay.get(place);
  return known === undefined ? 0 : Math.max(known.calls, known.peak - 1);
}

/** Minimum interval between reports, whatever the headers contain. A message costs more than it is worth. */
const REPORTED_EVERY_MS = 60_000;

/** How long reported limits count as delivered. A report may have been lost. */
const REPORTED_FOR_MS = 3_600_000;

const reported = new BoundedMap<string, { readonly limits: ReportedLimits; readonly at: number }>(
  REMEMBERED_MAX,
);

/**
 * The signal that reports an upstream's limits to a pool. null if they are not new, as far as this isolate knows.
 * `place` is the pool, the upstream and the model.
 */
export function newsOfLimits(hints: readonly LimitHint[], place: string): UpstreamSignal | null {
  if (!isNews(limitsReported(hints), place, steadyClock.now())) return null;
  return { kind: 'served', retryAfterMs: null, slotsMax: null, hints };
}

function isNews(limits: ReportedLimits, place: string, now: number): boolean {
  if (Object.keys(limits).length === 0) return false;
  const last = reported.get(place);
  if (last !== undefined) {
    const sinceMs = now - last.at;
    if (sinceMs < REPORTED_EVERY_MS) return false;
    if (sinceMs < REPORTED_FOR_MS && areSameLimits(last.limits, limits)) return false;
  }
  reported.set(place, { limits, at: now });
  return true;
}
