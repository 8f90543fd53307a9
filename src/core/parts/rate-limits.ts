import type { LimitName, RateSettings } from '../words/limits.ts';
import type { CallUsage } from '../words/usage.ts';
import type { BucketParams } from './bucket.ts';
import type { WindowParams } from './window.ts';

/**
 * The limits of requests and tokens, and the figures that make them hold.
 *
 * A bucket alone cannot do it: one of capacity c that fills at rate r lets c + 60 r pass in some minute,
 * so either it wastes a part of the limit as large as its burst, or it exceeds it. So each limit per minute
 * has two: a bucket that spreads the calls, and a window that adds up what was taken in the last minute and
 * lets no call pass that would exceed the limit, however large it is. Together they use at least 95 % of it
 * under load and never meet the refusal of an upstream that counts as strictly as can be. A limit per day is
 * a window alone.
 */

/** A limit with the figures that follow from it. */
export interface RateLimit {
  readonly name: LimitName;
  /** Reads the part of a call's usage that the limit is about. */
  readonly amountOf: (usage: CallUsage) => number;
  readonly bucket: BucketParams | null;
  readonly window: WindowParams | null;
}

/** How long the default burst takes to flow in. Providers enforce a minute in slices of it. */
export const BURST_MS = 10_000;

/** No limit at all. */
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
 * The part of a limit per minute at which its bucket fills. The window lets a little more pass, so a
 * queue that is always full runs evenly instead of in bursts with a stop after each.
 */
const STEADY_SHARE = 0.97;

/**
 * The part of a limit that a call must find in the bucket, if it is larger than that. The window sees to it
 * that the minute holds. To wait for the bucket as well would leave unused what flows over meanwhile.
 */
const WHOLE_SHARE = 0.01;

export const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** Bins of a minute and of a day: 2 % of each, which is what they cost. */
const MINUTE_BIN_MS = 1_000;
const DAY_BIN_MS = 30 * MINUTE_MS;

/** Maximum time by which two calls reach the upstream closer together than they left here. */
const MARGIN_MS = 500;

/** Seconds whose starts may happen at once. */
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

/** Settings never change, so the figures of each are worked out once. */
const known = new WeakMap<RateSettings, readonly RateLimit[]>();

/** Picks the limits that are set in `after` and were not before. */
export function limitsAdded(before: RateSettings, after: RateSettings): RateSettings {
  const kept = LIMIT_NAMES.filter((name) => before[name] !== null);
  return { ...after, ...Object.fromEntries(kept.map((name) => [name, null])) };
}

/** Lists the limits that are set, with their figures. */
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
