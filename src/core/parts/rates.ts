import { instant, type InstantMs } from '../words/ids.ts';
import type { Exceeded, LimitName, RateSettings } from '../words/settings.ts';
import type { LimitHint } from '../words/signal.ts';
import type { CallUsage } from '../words/ticket.ts';
import {
  drain as drainBucket,
  fitsAt,
  fullBucket,
  give,
  levelAt,
  lowerTo,
  take as takeFrom,
  limitsOf,
  MINUTE_MS,
  add as addWindow,
  count,
  emptyWindow,
  rebase as rebaseWindow,
  uncount,
  usedAt,
  windowFitsAt,
  windowSpare,
  wholeAt,
  type Bucket,
  type BucketParams,
  type RateLimit,
  type Window,
} from './rate-limits.ts';

/** The use of rate limits: what is taken, refunded and corrected, and what is left of each limit. */

/** The used part of the limits. It is stored, so that a restarted group does not grant it again. */
export interface RateUse {
  readonly buckets: Partial<Record<LimitName, Bucket>>;
  readonly windows: Partial<Record<LimitName, Window>>;
}

/** The limit per minute that a hint is about. */
const LIMIT_OF_HINT: Record<LimitHint['dimension'], LimitName> = {
  requests: 'rpm',
  tokens: 'tpm',
  input_tokens: 'itpm',
  output_tokens: 'otpm',
};

export function emptyRates(): RateUse {
  return { buckets: {}, windows: {} };
}

/** Corrects times that were noted by a clock that was ahead of `now`. */
export function rebase(rates: RateUse, settings: RateSettings, now: InstantMs): void {
  for (const bucket of Object.values(rates.buckets)) {
    bucket.at = instant(Math.min(bucket.at, now));
  }
  for (const { name, window } of limitsOf(settings)) {
    const taken = rates.windows[name];
    if (window !== null && taken !== undefined) rebaseWindow(taken, window, now);
  }
}

/**
 * Returns when `demand` has room in all limits at once if nothing else is taken. `now` if it has room already, Infinity
 * if it never will. Changes nothing.
 */
export function roomAt(
  rates: RateUse,
  settings: RateSettings,
  demand: CallUsage,
  now: InstantMs,
): InstantMs {
  let at: number = now;
  for (const { name, amountOf, bucket, window } of limitsOf(settings)) {
    const amount = amountOf(demand);
    if (bucket !== null) {
      const held = rates.buckets[name] ?? fullBucket(bucket, now);
      at = Math.max(at, fitsAt(held, bucket, amount, now));
    }
    if (window !== null) {
      const taken = rates.windows[name] ?? emptyWindow();
      at = Math.max(at, windowFitsAt(taken, window, amount, now));
    }
  }
  return instant(at);
}

/** Returns the limit that `demand` exceeds even if nothing else is taken. null if there is none. */
export function exceededBy(settings: RateSettings, demand: CallUsage): Exceeded | null {
  for (const { name, amountOf, window } of limitsOf(settings)) {
    const amount = amountOf(demand);
    // A limit of 0 stops all calls for a while, and makes none too large.
    if (window === null || window.limit === 0 || amount <= window.limit) continue;
    return { limit: name, limitAmount: window.limit, amount };
  }
  return null;
}

/** A call that will have room at an instant if no other call takes it. */
interface Expected {
  readonly demand: CallUsage;
  readonly at: InstantMs;
}

/** Returns the spare amount of each window, minus that of an expected call, in the order of `limitsOf`. */
export function sparesBeside(
  { windows }: RateUse,
  settings: RateSettings,
  { demand, at }: Expected,
): readonly number[] {
  return limitsOf(settings).map(({ name, amountOf, window }) => {
    const amount = amountOf(demand);
    if (window === null || amount === 0) return Infinity;
    return windowSpare(windows[name] ?? emptyWindow(), window, amount, at);
  });
}

/** Whether `demand` needs no more than the spare amounts. */
export function isSpare(
  settings: RateSettings,
  spares: readonly number[],
  demand: CallUsage,
): boolean {
  return limitsOf(settings).every(({ amountOf }, index) => {
    const amount = amountOf(demand);
    return amount === 0 || amount <= (spares[index] ?? 0);
  });
}

/** Whether the buckets refill in time for an expected call although `demand` is taken at `at`. */
export function fillInTime(
  { buckets }: RateUse,
  settings: RateSettings,
  demand: CallUsage,
  expected: Expected,
  at: InstantMs,
): boolean {
  return limitsOf(settings).every(({ name, amountOf, bucket }) => {
    if (bucket === null) return true;
    const left = { ...(buckets[name] ?? fullBucket(bucket, at)) };
    takeFrom(left, bucket, amountOf(demand), at);
    return fitsAt(left, bucket, amountOf(expected.demand), at) <= expected.at;
  });
}

/** Takes `demand` from all limits. The caller has checked that each has room. */
export function take(
  rates: RateUse,
  settings: RateSettings,
  demand: CallUsage,
  now: InstantMs,
): void {
  for (const { name, amountOf, bucket, window } of limitsOf(settings)) {
    const amount = amountOf(demand);
    if (bucket !== null) takeFrom(bucketOf(rates, name, bucket, now), bucket, amount, now);
    if (window !== null) count(windowOf(rates, name), window, amount, now);
  }
}

/** Takes what an earlier instance may have used without a write: its blocks, and all starts per second. */
export function takeAhead(
  rates: RateUse,
  settings: RateSettings,
  amounts: Partial<Record<LimitName, number>>,
  mayHaveStarted: boolean,
  now: InstantMs,
): void {
  for (const { name, bucket, window } of limitsOf(settings)) {
    const amount = amounts[name] ?? 0;
    if (bucket !== null && name === 'startsPerS' && mayHaveStarted) {
      drainBucket(bucketOf(rates, name, bucket, now), bucket, now);
    } else if (amount > 0) {
      if (bucket !== null) takeFrom(bucketOf(rates, name, bucket, now), bucket, amount, now);
      if (window !== null) count(windowOf(rates, name), window, amount, now);
    }
  }
}

export function addRates(
  rates: RateUse,
  settings: RateSettings,
  other: RateUse,
  now: InstantMs,
): void {
  for (const { name, bucket, window } of limitsOf(settings)) {
    const level = other.buckets[name];
    if (bucket !== null && level !== undefined) {
      const taken = bucket.capacity - levelAt(level, bucket, now);
      takeFrom(bucketOf(rates, name, bucket, now), bucket, taken, now);
    }
    const taken = other.windows[name];
    if (window !== null && taken !== undefined) addWindow(windowOf(rates, name), taken);
  }
}

/** Whether nothing counts against any limit. */
export function isUntouched(rates: RateUse, settings: RateSettings, now: InstantMs): boolean {
  return limitsOf(settings).every(({ name, bucket, window }) => {
    const level = rates.buckets[name];
    const taken = rates.windows[name];
    const isFull =
      bucket === null || level === undefined || levelAt(level, bucket, now) >= bucket.capacity;
    return isFull && (window === null || taken === undefined || usedAt(taken, window, now) === 0);
  });
}

/**
 * Corrects what a call took at `takenAt` to what it used, by a refund or a debit. The caller ensures that this happens
 * once per call.
 */
export function settle(
  rates: RateUse,
  settings: RateSettings,
  call: { readonly reserved: CallUsage; readonly actual: CallUsage; readonly takenAt: InstantMs },
  now: InstantMs,
): void {
  for (const limit of limitsOf(settings)) {
    // The call did start, whatever its provider counts.
    if (limit.name === 'startsPerS') continue;
    const excess = limit.amountOf(call.reserved) - limit.amountOf(call.actual);
    correct(rates, limit, { excess, takenAt: call.takenAt }, now);
  }
}

/** Refunds everything that a call took at `takenAt`, because the upstream was never called. */
export function refund(
  rates: RateUse,
  settings: RateSettings,
  call: { readonly reserved: CallUsage; readonly takenAt: InstantMs },
  now: InstantMs,
): void {
  for (const limit of limitsOf(settings)) {
    const excess = limit.amountOf(call.reserved);
    correct(rates, limit, { excess, takenAt: call.takenAt }, now);
  }
}

/** Refunds a positive excess to one limit, or debits a negative one. */
function correct(
  rates: RateUse,
  { name, bucket, window }: RateLimit,
  { excess, takenAt }: { readonly excess: number; readonly takenAt: InstantMs },
  now: InstantMs,
): void {
  if (bucket !== null) give(bucketOf(rates, name, bucket, now), bucket, excess, now);
  if (window === null) return;
  if (excess < 0) count(windowOf(rates, name), window, -excess, now);
  else uncount(windowOf(rates, name), window, excess, takenAt);
}

/** Refunds debts and nothing else. They come from calls that a limit should have stopped and did not. */
export function refundDebts(rates: RateUse, settings: RateSettings, now: InstantMs): void {
  for (const { name, bucket } of limitsOf(settings)) {
    if (bucket === null) continue;
    const held = bucketOf(rates, name, bucket, now);
    give(held, bucket, Math.max(0, -levelAt(held, bucket, now)), now);
  }
}

/** Empties a limit after the upstream refused a call for it, because the rest does not exist there. */
export function drain(
  rates: RateUse,
  settings: RateSettings,
  dimension: LimitHint['dimension'],
  now: InstantMs,
): void {
  // A refusal for tokens does not name the kind of tokens.
  const names = dimension === 'tokens' ? ['tpm', 'itpm', 'otpm'] : [LIMIT_OF_HINT[dimension]];
  for (const { name, bucket } of limitsOf(settings)) {
    if (bucket === null || !names.includes(name)) continue;
    drainBucket(bucketOf(rates, name, bucket, now), bucket, now);
  }
}

/** Amounts that refusals removed from the buckets. They shrink as the buckets refill. */
export type Drained = Partial<Record<LimitName, Bucket>>;

/** Calls `lower` to lower limits, and adds the difference to `drained`. */
export function noteDrained(
  drained: Drained,
  rates: RateUse,
  settings: RateSettings,
  now: InstantMs,
  lower: () => void,
): void {
  const limits = limitsOf(settings).flatMap(({ name, bucket }) => {
    if (bucket === null) return [];
    const level = (): number => levelAt(bucketOf(rates, name, bucket, now), bucket, now);
    return [{ name, bucket, level, before: level() }];
  });
  lower();
  for (const { name, bucket, level, before } of limits) {
    const amount = leftOfDrained(drained[name], bucket, now) + before - level();
    if (amount > 0) drained[name] = { level: amount, at: now };
    else delete drained[name];
  }
}

/** Whether the buckets have not refilled yet. */
export function isDrained(drained: Drained, settings: RateSettings, now: InstantMs): boolean {
  return limitsOf(settings).some(
    ({ name, bucket }) => bucket !== null && leftOfDrained(drained[name], bucket, now) > 0,
  );
}

/** Restores the amounts that refusals removed from the buckets. */
export function giveDrained(
  rates: RateUse,
  settings: RateSettings,
  drained: Drained,
  now: InstantMs,
): void {
  for (const { name, bucket } of limitsOf(settings)) {
    if (bucket === null) continue;
    const amount = leftOfDrained(drained[name], bucket, now);
    if (amount > 0) give(bucketOf(rates, name, bucket, now), bucket, amount, now);
  }
}

function leftOfDrained(
  drained: Bucket | undefined,
  { ratePerMs }: BucketParams,
  now: InstantMs,
): number {
  if (drained === undefined) return 0;
  return Math.max(0, drained.level - ratePerMs * Math.max(0, now - drained.at));
}

/**
 * Lowers a limit per minute to the remaining amount that the upstream reports, minus `unseen`, which the upstream had
 * not counted at that time. Never raises it.
 */
export function lowerToHint(
  rates: RateUse,
  settings: RateSettings,
  hint: LimitHint,
  unseen: CallUsage,
  now: InstantMs,
): void {
  const { limit, windowMs, remaining } = hint;
  if (remaining === null || (limit !== null && limit <= 0)) return;
  // What is left of a second or a day does not describe the minute.
  if (windowMs !== null && windowMs !== MINUTE_MS) return;
  const wanted = LIMIT_OF_HINT[hint.dimension];
  for (const { name, amountOf, bucket } of limitsOf(settings)) {
    if (name !== wanted || bucket === null) continue;
    const left = Math.max(0, remaining - amountOf(unseen));
    lowerTo(bucketOf(rates, name, bucket, now), bucket, left, now);
  }
}

/** Returns how many requests the limit per minute allows at once, without its window. A negative number is debt. */
export function requestsAtOnce(rates: RateUse, settings: RateSettings, now: InstantMs): number {
  const bucket = limitsOf(settings).find(({ name }) => name === 'rpm')?.bucket ?? null;
  if (bucket === null) return Infinity;
  return levelAt(rates.buckets.rpm ?? fullBucket(bucket, now), bucket, now);
}

/** Returns what may be taken of each limit at once. A negative amount is debt. */
export function leftOf(
  rates: RateUse,
  settings: RateSettings,
  now: InstantMs,
): Partial<Record<LimitName, number>> {
  const all: Partial<Record<LimitName, number>> = {};
  for (const { name, bucket, window } of limitsOf(settings)) {
    const held = rates.buckets[name];
    const taken = rates.windows[name] ?? emptyWindow();
    const level =
      bucket === null ? Infinity : levelAt(held ?? fullBucket(bucket, now), bucket, now);
    const room = window === null ? Infinity : window.limit - usedAt(taken, window, now);
    all[name] = Math.min(level, room);
  }
  return all;
}

function bucketOf(rates: RateUse, name: LimitName, params: BucketParams, now: InstantMs): Bucket {
  return (rates.buckets[name] ??= fullBucket(params, now));
}

function windowOf(rates: RateUse, name: LimitName): Window {
  return (rates.windows[name] ??= emptyWindow());
}

/** The room in one limit of requests or tokens, over its minute or day. */
export interface RateRoom {
  readonly name: Exclude<LimitName, 'startsPerS'>;
  readonly limit: number;
  /** The amount that may still be taken before the minute or the day is full. */
  readonly left: number;
  /** Time until the full limit is available again if nothing is taken, in milliseconds. */
  readonly resetMs: number;
}

/** Most groups have no such limit. */
const NONE: readonly RateRoom[] = [];

/** Returns the room in each limit that is set, regardless of the pace at which it may be used. */
export function rateRooms(
  { windows }: RateUse,
  settings: RateSettings,
  now: InstantMs,
): readonly RateRoom[] {
  const limits = limitsOf(settings);
  if (limits.length === 0) return NONE;
  return limits.flatMap(({ name, window: params }) => {
    if (params === null || name === 'startsPerS') return [];
    const window = windows[name] ?? emptyWindow();
    const left = Math.max(0, Math.floor(params.limit - usedAt(window, params, now)));
    const resetMs = Math.ceil(wholeAt(window, params, now) - now);
    return [{ name, limit: params.limit, left, resetMs }];
  });
}
