import type { LimitName, RateSettings } from '../words/settings.ts';
import type { CallUsage } from '../words/ticket.ts';
import { after, instant, later, type InstantMs } from '../words/ids.ts';
import type { LimitHint } from '../words/signal.ts';

/**
 * The limits of requests and tokens, and the parameters that enforce them.
 *
 * A bucket alone is not enough. With capacity c and rate r, it lets c + 60 r pass in some minutes. So it either wastes
 * a part of the limit as large as its burst, or exceeds the limit. Each limit per minute therefore has two parts: a
 * bucket spreads the calls, and a window sums up the last minute and stops every call that would exceed the limit.
 * Together they use at least 95 % of the limit under load, and even the strictest upstream never refuses a call. A
 * limit per day has only a window.
 */

export interface RateLimit {
  readonly name: LimitName;
  readonly amountOf: (usage: CallUsage) => number;
  readonly bucket: BucketParams | null;
  readonly window: WindowParams | null;
}

/** Time in which the default burst refills. Providers enforce a minute in slices of it. */
export const BURST_MS = 10_000;

export const NO_RATES: RateSettings = {
  rpm: null,
  rpd: null,
  tpm: null,
  tpd: null,
  itpm: null,
  otpm: null,
  startsPerS: null,
  burstMs: BURST_MS,
};

/**
 * The share of a limit per minute at which its bucket refills. The window allows a little more, so a full queue runs
 * evenly and not in bursts with stops between them.
 */
const STEADY_SHARE = 0.97;

/**
 * The share of a limit that must be in the bucket for a larger call. The window enforces the minute. If the call waited
 * for the whole amount in the bucket, the overflow meanwhile would be wasted.
 */
const WHOLE_SHARE = 0.01;

export const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** Bins of a minute and of a day. They waste 2 % of each. */
const MINUTE_BIN_MS = 1_000;
const DAY_BIN_MS = 30 * MINUTE_MS;

/** Maximum time by which two calls may get closer on their way to the upstream. */
const MARGIN_MS = 500;

/** Number of seconds whose starts may happen at once. */
const STARTS_BURST_S = 0.1;

const AMOUNTS: Record<LimitName, (usage: CallUsage) => number> = {
  rpm: ({ requests }) => requests,
  rpd: ({ requests }) => requests,
  tpm: ({ inputTokens, outputTokens }) => inputTokens + outputTokens,
  tpd: ({ inputTokens, outputTokens }) => inputTokens + outputTokens,
  itpm: ({ inputTokens }) => inputTokens,
  otpm: ({ outputTokens }) => outputTokens,
  startsPerS: ({ requests }) => requests,
};

const LIMIT_NAMES = Object.keys(AMOUNTS) as LimitName[];

/** Settings are immutable, so their parameters are computed once. */
const known = new WeakMap<RateSettings, readonly RateLimit[]>();

/** Returns the limits that are set in `next` and were not set in `before`. */
export function limitsAdded(before: RateSettings, next: RateSettings): RateSettings {
  const kept = LIMIT_NAMES.filter((name) => before[name] !== null);
  return { ...next, ...Object.fromEntries(kept.map((name) => [name, null])) };
}

export function limitsOf(settings: RateSettings): readonly RateLimit[] {
  let limits = known.get(settings);
  if (limits === undefined) {
    limits = LIMIT_NAMES.flatMap((name) => {
      const limit = settings[name];
      return limit === null ? [] : [limitOf(name, limit, settings.burstMs)];
    });
    known.set(settings, limits);
  }
  return limits;
}

function limitOf(name: LimitName, limit: number, burstMs: number): RateLimit {
  const amountOf = AMOUNTS[name];
  if (name === 'startsPerS') {
    const capacity = limit === 0 ? 0 : Math.max(1, limit * STARTS_BURST_S);
    const bucket = { ratePerMs: limit / 1_000, capacity, wholeMax: 1 };
    return { name, amountOf, bucket, window: null };
  }
  const window = { limit, marginMs: MARGIN_MS };
  if (name === 'rpd' || name === 'tpd') {
    return {
      name,
      amountOf,
      bucket: null,
      window: { ...window, lengthMs: DAY_MS, binMs: DAY_BIN_MS },
    };
  }
  const ratePerMs = (STEADY_SHARE * limit) / MINUTE_MS;
  const capacity = limit === 0 ? 0 : Math.max(ratePerMs * burstMs, 1);
  return {
    name,
    amountOf,
    bucket: { ratePerMs, capacity, wholeMax: Math.max(1, limit * WHOLE_SHARE) },
    window: { ...window, lengthMs: MINUTE_MS, binMs: MINUTE_BIN_MS },
  };
}

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

/**
 * Amounts taken in the recent past, summed up in bins. An exact log would have one entry per call. An entry is the
 * number of its bin since the epoch and the amount in it. Oldest first.
 */
export interface Window {
  bins: [bin: number, amount: number][];
}

interface WindowParams {
  /** Maximum amount in any period of `lengthMs`. */
  readonly limit: number;
  readonly lengthMs: number;
  readonly binMs: number;
  /** How long a bin counts beyond its last instant plus the length, because messages take different times. */
  readonly marginMs: number;
}

export function emptyWindow(): Window {
  return { bins: [] };
}

export function usedAt(window: Window, params: WindowParams, now: InstantMs): number {
  let used = 0;
  for (const [bin, amount] of window.bins) if (leavesAt(bin, params) > now) used += amount;
  return used;
}

/** Returns when `amount` fits if nothing else is taken. `now` if it already does, Infinity if it never will. */
export function windowFitsAt(
  window: Window,
  params: WindowParams,
  amount: number,
  now: InstantMs,
): InstantMs {
  if (amount <= 0) return now;
  const room = params.limit * (1 + TOLERANCE) - amount;
  if (params.limit <= 0 || room < 0) return instant(Infinity);
  let used = usedAt(window, params, now);
  let at = now;
  for (const [bin, taken] of window.bins) {
    if (used <= room) break;
    const leaves = leavesAt(bin, params);
    if (leaves <= now) continue;
    used -= taken;
    at = leaves;
  }
  return at;
}

/** Returns when nothing counts any more if nothing is taken. `now` if nothing counts already. */
export function wholeAt(window: Window, params: WindowParams, now: InstantMs): InstantMs {
  const last = window.bins.findLast(([, amount]) => amount > 0);
  return last === undefined ? now : later(now, leavesAt(last[0], params));
}

/**
 * Returns how much may still be taken before `at` so that `amount` fits then. A negative result means that it will not
 * fit anyway.
 */
export function windowSpare(
  window: Window,
  params: WindowParams,
  amount: number,
  at: InstantMs,
): number {
  return params.limit * (1 + TOLERANCE) - amount - usedAt(window, params, at);
}

/** Returns when the oldest amount that counts at `now` stops counting. `now` if nothing counts. */
export function oldestLeavesAt({ bins }: Window, params: WindowParams, now: InstantMs): InstantMs {
  const oldest = bins.find(([bin, amount]) => amount > 0 && leavesAt(bin, params) > now);
  return oldest === undefined ? now : leavesAt(oldest[0], params);
}

export function count(window: Window, params: WindowParams, amount: number, now: InstantMs): void {
  const { bins } = window;
  window.bins = bins.filter(([bin]) => leavesAt(bin, params) > now);
  const last = window.bins.at(-1);
  const bin = Math.max(binOf(params, now), last?.[0] ?? 0);
  if (last?.[0] === bin) last[1] += amount;
  else window.bins.push([bin, amount]);
}

/**
 * Removes `amount` from what was counted at `takenAt`. If that has left the window, nothing changes, because later
 * amounts must still count in full.
 */
export function uncount(
  window: Window,
  params: WindowParams,
  amount: number,
  takenAt: InstantMs,
): void {
  const entry = window.bins.find(([bin]) => bin === binOf(params, takenAt));
  if (entry !== undefined) entry[1] = Math.max(0, entry[1] - amount);
}

export function add(window: Window, other: Window): void {
  const sums = new Map(window.bins);
  for (const [bin, amount] of other.bins) sums.set(bin, (sums.get(bin) ?? 0) + amount);
  window.bins = [...sums].toSorted(([a], [b]) => a - b);
}

/** Moves bins of the future back by the same number, so that the newest is now and they still expire one by one. */
export function rebase(window: Window, params: WindowParams, now: InstantMs): void {
  const ahead = Math.max(0, (window.bins.at(-1)?.[0] ?? 0) - binOf(params, now));
  if (ahead > 0) window.bins = window.bins.map(([bin, amount]) => [bin - ahead, amount]);
}

function binOf({ binMs }: WindowParams, at: InstantMs): number {
  return Math.floor(at / binMs);
}

function leavesAt(bin: number, { binMs, lengthMs, marginMs }: WindowParams): InstantMs {
  return after(instant((bin + 1) * binMs), lengthMs + marginMs);
}

/** Limits of an upstream, by their names in a group's configuration. */
export type ReportedLimits = Readonly<
  Partial<Record<'rpm' | 'tpm' | 'itpm' | 'otpm' | 'rpd' | 'tpd', number>>
>;

const PER_MINUTE = {
  requests: 'rpm',
  tokens: 'tpm',
  input_tokens: 'itpm',
  output_tokens: 'otpm',
} as const;

const PER_DAY = { requests: 'rpd', tokens: 'tpd' } as const;

/**
 * Returns the limits in headers, without the remaining amounts. Of two values for one limit, the lower one applies.
 * Limits over other windows have no name here. A limit of 0 means that the upstream does not know it.
 */
export function limitsReported(hints: readonly LimitHint[]): ReportedLimits {
  const reported: Partial<Record<keyof ReportedLimits, number>> = {};
  for (const { dimension, windowMs, limit } of hints) {
    const name =
      windowMs === MINUTE_MS
        ? PER_MINUTE[dimension]
        : windowMs === DAY_MS && (dimension === 'requests' || dimension === 'tokens')
          ? PER_DAY[dimension]
          : null;
    if (name === null || limit === null || limit <= 0) continue;
    reported[name] = Math.min(limit, reported[name] ?? Infinity);
  }
  return reported;
}

export function areSameLimits(one: ReportedLimits, other: ReportedLimits): boolean {
  const names = Object.keys({ ...one, ...other }) as (keyof ReportedLimits)[];
  return names.every((name) => one[name] === other[name]);
}
