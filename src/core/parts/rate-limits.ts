import type { LimitName, RateSettings } from '../words/limits.ts';
import type { CallUsage } from '../words/usage.ts';
import type { BucketParams } from './bucket.ts';
import type { WindowParams } from './window.ts';

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

/** Returns the limits that are set in `after` and were not set in `before`. */
export function limitsAdded(before: RateSettings, after: RateSettings): RateSettings {
  const kept = LIMIT_NAMES.filter((name) => before[name] !== null);
  return { ...after, ...Object.fromEntries(kept.map((name) => [name, null])) };
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
