import { after, instant, type InstantMs } from '../words/ids.ts';

/**
 * A token bucket that may be in debt: its level, and the time of that level. A negative level is debt. It makes the
 * same decisions as GCRA with variable cost, and a refund is one addition.
 */
export interface Bucket {
  level: number;
  at: InstantMs;
}

export interface BucketParams {
  /** Inflow per millisecond. 0 means that it never refills. */
  readonly ratePerMs: number;
  /** Maximum level. 0 means that nothing is ever granted. */
  readonly capacity: number;
  /** A larger amount needs only this level, and the rest becomes debt. */
  readonly wholeMax: number;
}

/** Maximum rounding error as a share of the capacity. The difference becomes debt and is not lost. */
const TOLERANCE = 1e-9;

export function fullBucket({ capacity }: BucketParams, now: InstantMs): Bucket {
  return { level: capacity, at: now };
}

/** Returns the level at `now`. A clock that was set back changes nothing. */
export function levelAt(bucket: Bucket, { ratePerMs, capacity }: BucketParams, now: InstantMs) {
  return Math.min(capacity, bucket.level + ratePerMs * Math.max(0, now - bucket.at));
}

/**
 * Whether `amount` may be taken now. A large amount needs only a part of itself and causes debt. So it gets its turn,
 * and later calls pay for it.
 */
export function fits(
  bucket: Bucket,
  params: BucketParams,
  amount: number,
  now: InstantMs,
): boolean {
  return lacking(bucket, params, amount, now) <= TOLERANCE * params.capacity;
}

/** Returns when `amount` fits if nothing else is taken. `now` if it already does. */
export function fitsAt(
  bucket: Bucket,
  params: BucketParams,
  amount: number,
  now: InstantMs,
): InstantMs {
  const missing = lacking(bucket, params, amount, now) - TOLERANCE * params.capacity;
  if (missing <= 0) return now;
  const waitMs = Math.ceil(missing / params.ratePerMs);
  return after(instant(Math.max(now, bucket.at)), Math.max(1, waitMs));
}

/** Takes `amount` even if it does not fit. The rest becomes debt. */
export function take(bucket: Bucket, params: BucketParams, amount: number, now: InstantMs): void {
  give(bucket, params, -amount, now);
}

/** Refunds `amount`, or debits it if it is negative. An overflow is lost. */
export function give(bucket: Bucket, params: BucketParams, amount: number, now: InstantMs): void {
  const level = levelAt(bucket, params, now) + amount;
  bucket.level = Math.min(params.capacity, level);
  bucket.at = instant(Math.max(bucket.at, now));
}

/** Lowers the level to `level`. Never raises it. */
export function lowerTo(bucket: Bucket, params: BucketParams, level: number, now: InstantMs): void {
  give(bucket, params, Math.min(0, level - levelAt(bucket, params, now)), now);
}

/** Empties the bucket. Debt stays. */
export function drain(bucket: Bucket, params: BucketParams, now: InstantMs): void {
  lowerTo(bucket, params, 0, now);
}

function lacking(bucket: Bucket, params: BucketParams, amount: number, now: InstantMs): number {
  if (amount <= 0) return 0;
  if (params.capacity <= 0) return Infinity;
  return Math.min(amount, params.wholeMax, params.capacity) - levelAt(bucket, params, now);
}
