import { BoundedMap } from '../core/parts/bounded-map.ts';
import type { LimitHint } from '../core/words/signal.ts';
import type { Refill } from '../upstream/refusal/header-families.ts';

/** Maximum limits that an isolate remembers. */
const REMEMBERED_MAX = 1_000;

/** How far resets may differ that are the same: most headers count whole seconds. */
const TOLERANCE_MS = 1_100;

/** The readings of a limit since it was last whole. */
interface Seen {
  /** The first reading. */
  readonly remaining: number;
  readonly resetAt: number;
  /** The last reading, by which a limit is known to be whole again. */
  lowest: number;
  /** Null: not known yet. */
  refill: Refill | null;
}

const seen = new BoundedMap<string, Seen>(REMEMBERED_MAX);

/**
 * Learns how a limit refills from what its headers say one after the other. In a fixed window the reset is one instant while
 * the remaining amount falls; in a bucket each call moves the reset, which is when the bucket is full.
 *
 * @param place names the upstream and the model
 * @returns null: not known yet
 */
export function refillSeen(hint: LimitHint, place: string, now: number): Refill | null {
  const { limit, remaining, resetMs, dimension, windowMs } = hint;
  if (limit === null || remaining === null || resetMs === null) return null;
  const key = `${place} ${dimension} ${windowMs} ${limit}`;
  const known = seen.get(key);
  const resetAt = now + resetMs;
  // Answers overtake each other: what left more than another one may be older.
  const isWhole =
    known !== undefined && remaining > known.lowest && resetAt > known.resetAt + TOLERANCE_MS;
  if (known === undefined || isWhole || remaining > known.remaining) {
    const refill = known?.refill ?? null;
    seen.set(key, { remaining, resetAt, lowest: remaining, refill });
    return refill;
  }
  known.lowest = Math.min(known.lowest, remaining);
  const used = limit - remaining;
  if (used <= 0) return known.refill;
  // As far as a bucket would have moved its reset since.
  const movesMs = ((known.remaining - remaining) * resetMs) / used;
  if (movesMs < 2 * TOLERANCE_MS) return known.refill;
  const hasMoved = Math.abs(resetAt - known.resetAt) > movesMs / 2;
  known.refill = hasMoved ? 'continuous' : 'window';
  return known.refill;
}

/** Calls of this isolate that were sent and have no answer yet, by upstream. */
const underWay = new Map<string, number>();

/** Counts a call that was sent (1), or that has its answer (-1). */
export function noteUnderWay(upstream: string, change: 1 | -1): void {
  const calls = callsUnderWay(upstream) + change;
  if (calls === 0) underWay.delete(upstream);
  else underWay.set(upstream, calls);
}

export function callsUnderWay(upstream: string): number {
  return underWay.get(upstream) ?? 0;
}
