import { after, instant, type InstantMs } from '../words/ids.ts';

/**
 * A token bucket that may owe: its level, and the instant of that. Less than 0 is debt. It makes the
 * same decisions as GCRA with a variable cost, and a refund is one addition.
 */
export interface Bucket {
  level: number;
  at: InstantMs;
}

export interface BucketParams {
  /** Inflow per millisecond. 0: nothing ever comes. */
  readonly ratePerMs: number;
  /** Maximum that it holds. 0: nothing is ever granted. */
  readonly capacity: number;
  /** Maximum of an amount that must be there: the rest of a larger one is owed. */
  readonly wholeMax: number;
}

/** Maximum error of rounding, as a part of the capacity; the difference is owed, not lost. */
const TOLERANCE = 1e-9;

/** A bucket that nothing was taken from. */
export function fullBucket({ capacity }: BucketParams, now: InstantMs): Bucket {
  return { level: capacity, at: now };
}

/** Reads the level at `now`. A clock that went back adds nothing and takes nothing away. */
export function levelAt(bucket: Bucket, { ratePerMs, capacity }: BucketParams, now: InstantMs) {
  return Math.min(capacity, bucket.level + ratePerMs * Math.max(0, now - bucket.at));
}

/**
 * Whether `amount` may be taken now. What is large needs only a part of itself and goes into debt: so it
 * gets its turn, and those after it pay.
 */
export function fits(
  bucket: Bucket,
  params: BucketParams,
  amount: number,
  now: InstantMs,
): boolean {
  return lacking(bucket, params, amount, now) <= TOLERANCE * params.capacity;
}

/** Finds the instant from which `amount` fits, if nobody else takes: `now` if it does already. */
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

/** Takes `amount`, even where it does not fit: the rest is owed. */
export function take(bucket: Bucket, params: BucketParams, amount: number, now: InstantMs): void {
  give(bucket, params, -amount, now);
}

/** Gives `amount` back, and debits it where it is negative. What would overflow is lost. */
export function give(bucket: Bucket, params: BucketParams, amount: number, now: InstantMs): void {
  const level = levelAt(bucket, params, now) + amount;
  bucket.level = Math.min(params.capacity, level);
  bucket.at = instant(Math.max(bucket.at, now));
}

/** Brings the bucket down to `level`, never up. */
export function lowerTo(bucket: Bucket, params: BucketParams, level: number, now: InstantMs): void {
  give(bucket, params, Math.min(0, level - levelAt(bucket, params, now)), now);
}

/** Empties the bucket. A debt stays. */
export function drain(bucket: Bucket, params: BucketParams, now: InstantMs): void {
  lowerTo(bucket, params, 0, now);
}

function lacking(bucket: Bucket, params: BucketParams, amount: number, now: InstantMs): number {
  if (amount <= 0) return 0;
  if (params.capacity <= 0) return Infinity;
  return Math.min(amount, params.wholeMax, params.capacity) - levelAt(bucket, params, now);
}
