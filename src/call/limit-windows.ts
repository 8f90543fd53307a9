import { BoundedMap } from '../core/parts/bounded-map.ts';
import type { LimitHint } from '../core/words/signal.ts';
import { refillAfterRefusal, type FeedForwardOptions } from '../upstream/refusal/feed-forward.ts';
import { MINUTE_MS, type Refill } from '../upstream/refusal/header-families.ts';
import { isInWholeSeconds } from '../upstream/refusal/reset-time.ts';

/** Maximum limits that an isolate remembers. */
const REMEMBERED_MAX = 1_000;

/** How far resets may differ that are the same: most headers count whole seconds. */
const TOLERANCE_MS = 1_100;

/** The least that such resets may differ, as answers do not travel evenly. */
const TOLERANCE_MIN_MS = 50;

/** Resets that are exact may differ by a part of what is left until then. */
const TOLERANCE_SHARE = 1 / 10;

function toleranceMs(resetMs: number, now: number): number {
  if (isInWholeSeconds(resetMs, now)) return TOLERANCE_MS;
  return Math.min(TOLERANCE_MS, Math.max(TOLERANCE_MIN_MS, resetMs * TOLERANCE_SHARE));
}

/** The readings of a limit since it was last whole. */
interface Seen {
  /** The first reading. */
  readonly remaining: number;
  readonly resetAt: number;
  /** The last reading, by which a limit is known to be whole again. */
  lowest: number;
  /** How many readings there were since the first. */
  readings: number;
  /** How much a call takes of the limit, on average; null: not known yet. */
  callTakes: number | null;
  /** Null: not known yet. */
  refill: Refill | null;
  /** How many readings in a row showed a fixed window. */
  proofs: number;
  /** End of the wait that a refusal asked for; null: a call has been served since. */
  refusedUntil: number | null;
  /** Whether a call was refused when the headers said that nothing is left. */
  isEnforced: boolean;
}

/** Readings that must show a fixed window, one after the other, before an unknown upstream is believed. */
const PROOFS_MIN = 3;

/** How far answers that overtake each other may differ, beside those under way. */
const OVERTAKING_MAX = 2;

const seen = new BoundedMap<string, Seen>(REMEMBERED_MAX);

/**
 * Learns how a limit refills from what its headers say one after the other. In a fixed window the reset is one instant while
 * the remaining amount falls; in a bucket each call moves the reset, which is when the bucket is full.
 *
 * @param place names the upstream and the model
 * @param underWay other calls that were sent and have no answer yet
 * @returns null: not known yet
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
  // Answers overtake each other: what left more than another one may be older.
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
  // As far as a bucket would have moved its reset since.
  const movesMs = ((known.remaining - remaining) * resetMs) / used;
  if (movesMs < 2 * tolerance) return known.refill;
  const hasMoved = Math.abs(resetAt - known.resetAt) > movesMs / 2;
  known.refill = hasMoved ? 'continuous' : 'window';
  known.proofs = hasMoved ? 0 : known.proofs + 1;
  return known.refill;
}

/** Notes the first reading of a limit since it was last whole. */
function begin(key: string, remaining: number, resetAt: number): Seen {
  const { refill = null, callTakes = null, proofs = 0, isEnforced = false } = seen.get(key) ?? {};
  const noted: Seen = {
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
 * Computes how long calls had better wait after one was refused for a limit. A limit that comes back bit by bit needs as long
 * as it takes until there is room for those that would be refused too. If that was too short, calls wait until the reset.
 *
 * @param usual how the upstream's limits refill, where its headers have not shown it
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

/** Returns how long the window of a limit is, if calls may wait for it: the end of a used-up one is no further away. */
function wholeWindowMs({ windowMs }: LimitHint): number | null {
  return windowMs !== null && windowMs <= MINUTE_MS ? windowMs : null;
}

/** Checks whether more is left than can be, if the limit is a fixed window that has not ended. */
function isContrary(known: Seen, hint: LimitHint, now: number, underWay: number): boolean {
  if (now >= known.resetAt - toleranceMs(hint.resetMs ?? 0, now)) return false;
  const each = hint.dimension === 'requests' ? 1 : (known.callTakes ?? 0);
  return (hint.remaining ?? 0) > known.lowest + (underWay + OVERTAKING_MAX) * each;
}

/**
 * Returns whether the headers have shown how a limit refills so consistently that they can be believed: a fixed window by
 * several readings, a bucket by a refusal too.
 */
export function isProven(hint: LimitHint, place: string): boolean {
  const known = seen.get(keyOf(hint, place));
  if (known === undefined) return false;
  return known.refill === 'continuous' ? known.isEnforced : known.proofs >= PROOFS_MIN;
}

/** Returns how much of a limit one call takes on average, by what its headers said; 0: not known yet. */
export function meanCallTakes(hint: LimitHint, place: string): number {
  return seen.get(keyOf(hint, place))?.callTakes ?? 0;
}

function keyOf({ dimension, windowMs, limit }: LimitHint, place: string): string {
  return `${place} ${dimension} ${windowMs} ${limit}`;
}

/** Calls of this isolate that were sent and have no answer yet, by upstream and key. */
interface UnderWay {
  calls: number;
  /** The most at once lately, and when that was. */
  peak: number;
  peakAt: number;
}

const underWay = new BoundedMap<string, UnderWay>(REMEMBERED_MAX);

/** How long the most calls at once are expected again. */
const PEAK_MS = 10_000;

/**
 * Counts a call that is sent, until what this returns is called.
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
 * Returns how many calls may be sent before a pause takes effect: those under way, and those that have a slot and are not
 * sent yet. As many as were under way lately.
 */
export function callsUnderWay(place: string): number {
  const known = underWay.get(place);
  return known === undefined ? 0 : Math.max(known.calls, known.peak - 1);
}
