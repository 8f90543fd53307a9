import type { LimitHint } from '../../core/words/signal.ts';
import { listItems, parseHeaderValue } from '../../runtime/header-value.ts';
import { parseResetMs } from './reset-time.ts';

/** Limits in the headers of a response: the families of header names, the draft of the IETF, and how both are read. */

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;
/** Minimum length of a window that is only displayed and holds no calls back. */
export const DAY_MS = 24 * HOUR_MS;
export const MONTH_MS = 30 * DAY_MS;

/** The names of the headers that report one limit. null for headers that do not exist. */
interface LimitHeaders {
  readonly dimension: LimitHint['dimension'];
  /** Window of these headers in milliseconds, which they do not report themselves. null if unknown. */
  readonly windowMs: number | null;
  readonly limit: string | null;
  readonly remaining: string;
  readonly reset: string | null;
}

/** How a limit refills: continuously, or completely when its window ends. */
export type Refill = 'continuous' | 'window';

interface HeaderFamily {
  readonly refill: Refill;
  /** A response that has any of the headers has at least one of these. */
  readonly probes: readonly string[];
  readonly limits: readonly LimitHeaders[];
  /** Whether the IETF headers, `RateLimit` and `RateLimit-*`, are read as well. */
  readonly readsDraft?: true;
}

/** The rate-limit headers of a provider, and whether they may hold calls back. */
export interface HeaderProfile extends HeaderFamily {
  /** Whether the headers are read. An operator can set it to override a profile. */
  readonly isReliable: boolean;
  /** Where the headers are documented or were seen. */
  readonly source: string;
  /** When that was last verified, as `YYYY-MM-DD`. */
  readonly date: string;
  readonly note?: string;
}

/** The headers `x-ratelimit-{limit,remaining,reset}-{name}`. */
export function xRateLimit(
  name: string,
  dimension: LimitHint['dimension'],
  windowMs: number | null,
): LimitHeaders {
  return {
    dimension,
    windowMs,
    limit: `x-ratelimit-limit-${name}`,
    remaining: `x-ratelimit-remaining-${name}`,
    reset: `x-ratelimit-reset-${name}`,
  };
}

/** The same headers for a limit whose reset is not reported. */
export function withoutReset(headers: LimitHeaders): LimitHeaders {
  return { ...headers, reset: null };
}

export const REQUESTS_PROBE = 'x-ratelimit-remaining-requests';
export const TOKENS_PROBE = 'x-ratelimit-remaining-tokens';

/** Names that most providers have adopted from OpenAI. */
export const COMMON_HEADERS: HeaderFamily = {
  refill: 'continuous',
  probes: [REQUESTS_PROBE, TOKENS_PROBE],
  limits: [
    xRateLimit('requests', 'requests', MINUTE_MS),
    xRateLimit('tokens', 'tokens', MINUTE_MS),
    xRateLimit('project-tokens', 'tokens', MINUTE_MS),
    xRateLimit('tokens_usage_based', 'tokens', MINUTE_MS),
  ],
};

function anthropicLimit(name: string, dimension: LimitHint['dimension']): LimitHeaders {
  const prefix = `anthropic-ratelimit-${name}`;
  return {
    dimension,
    windowMs: MINUTE_MS,
    limit: `${prefix}-limit`,
    remaining: `${prefix}-remaining`,
    reset: `${prefix}-reset`,
  };
}

/** Names used by Anthropic and gateways in front of it. */
export const ANTHROPIC_HEADERS: HeaderFamily = {
  refill: 'continuous',
  probes: ['anthropic-ratelimit-requests-remaining', 'anthropic-ratelimit-tokens-remaining'],
  limits: [
    anthropicLimit('requests', 'requests'),
    anthropicLimit('tokens', 'tokens'),
    anthropicLimit('input-tokens', 'input_tokens'),
    anthropicLimit('output-tokens', 'output_tokens'),
  ],
};

/** All common names, for unknown upstreams. */
export const ALL_COMMON_HEADERS: HeaderFamily = {
  refill: 'continuous',
  probes: [
    ...COMMON_HEADERS.probes,
    'x-ratelimit-remaining',
    'ratelimit',
    'ratelimit-remaining',
    ...ANTHROPIC_HEADERS.probes,
  ],
  limits: [
    ...COMMON_HEADERS.limits,
    {
      dimension: 'requests',
      windowMs: null,
      limit: 'x-ratelimit-limit',
      remaining: 'x-ratelimit-remaining',
      reset: 'x-ratelimit-reset',
    },
    ...ANTHROPIC_HEADERS.limits,
  ],
  readsDraft: true,
};

const COUNT = /^\d{1,15}(?:\.\d{1,6})?$/;

/**
 * Reads the limits that the headers of a response report. Empty if the upstream's headers are unknown or not reliable.
 * It runs for every response, and costs two look-ups if there are no such headers.
 */
export function readLimitHints(
  headers: Headers,
  profile: HeaderProfile | null,
  now: number,
): readonly LimitHint[] {
  const isSent = profile?.probes.some((name) => headers.has(name)) === true;
  return isSent ? readAllLimitHints(headers, profile, now) : [];
}

/** As `readLimitHints`, without the check for any header. Used for refusals, which are rare. */
export function readAllLimitHints(
  headers: Headers,
  profile: HeaderProfile | null,
  now: number,
): readonly LimitHint[] {
  if (profile === null || !profile.isReliable) return [];
  const hints: LimitHint[] = [];
  for (const limit of profile.limits) {
    const hint = readHint(headers, limit, now);
    if (hint !== null) hints.push(hint);
  }
  if (profile.readsDraft === true) hints.push(...readDraftHints(headers, now));
  return hints;
}

/** Responses that are searched for all names: the first ones, and then one in `SEARCHED_EVERY`. */
const SEARCHED_FIRST = 8;
const SEARCHED_EVERY = 16;

/**
 * Reads the limit headers of an unknown upstream. Each look-up calls into the runtime, so most responses are searched
 * only for names that it has sent before with a reset. Without a reset, it is unknown how a limit refills.
 */
export class SentLimitHeaders {
  readonly #family: HeaderFamily;
  readonly #sent = new Set<LimitHeaders>();
  #sendsDraft = false;
  #answers = 0;

  constructor(family: HeaderFamily) {
    this.#family = family;
  }

  read(headers: Headers, now: number): readonly LimitHint[] {
    const isTurn = this.#answers < SEARCHED_FIRST || this.#answers % SEARCHED_EVERY === 0;
    this.#answers += 1;
    const { limits, probes } = this.#family;
    const isSearched = isTurn && probes.some((name) => headers.has(name));
    const hints: LimitHint[] = [];
    for (const names of isSearched ? limits : this.#sent) {
      const hint = readHint(headers, names, now);
      if (hint === null) continue;
      hints.push(hint);
      if (hint.resetMs !== null) this.#sent.add(names);
    }
    if (!isSearched && !this.#sendsDraft) return hints;
    const drafts = readDraftHints(headers, now);
    if (drafts.length > 0) this.#sendsDraft = true;
    return [...hints, ...drafts];
  }
}

function readHint(headers: Headers, names: LimitHeaders, now: number): LimitHint | null {
  const remaining = readCount(headers, names.remaining);
  const limit = readCount(headers, names.limit);
  if (remaining === null && limit === null) return null;
  const reset = names.reset === null ? null : headers.get(names.reset);
  return {
    dimension: names.dimension,
    windowMs: names.windowMs,
    limit,
    remaining,
    resetMs: reset === null ? null : parseResetMs(reset, now),
  };
}

/** Reads a count. Returns null if it is absent or invalid. Some upstreams send -1 if they do not know it. */
function readCount(headers: Headers, name: string | null): number | null {
  const text = name === null ? null : headers.get(name);
  return text !== null && COUNT.test(text) ? Number(text) : null;
}

/** The rate-limit headers of the IETF draft (draft-ietf-httpapi-ratelimit-headers), in its three forms. */

/** Maximum length of a header that is read. */
const LENGTH_MAX = 512;

const LIMITS_MAX = 8;

const LEADING_COUNT = /^\s*(\d{1,15})(?!\d)/;

/**
 * Reads the limits in these headers:
 * - `RateLimit: "default";r=50;t=30`, with the limit in `RateLimit-Policy: "default";q=100;w=60`
 * - `RateLimit: limit=100, remaining=50, reset=30`
 * - `RateLimit-Limit: 100, 100;w=60`, `RateLimit-Remaining: 50`, `RateLimit-Reset: 30`
 */
function readDraftHints(headers: Headers, now: number): readonly LimitHint[] {
  const text = headers.get('ratelimit');
  if (text === null || text.length > LENGTH_MAX) return readApart(headers, now);
  const remaining = numberOf(text, 'remaining');
  if (remaining !== null) {
    return [hintOf('', numberOf(text, 'limit'), remaining, resetMsOf(text, 'reset', now))];
  }
  const policies = itemsOf(headers.get('ratelimit-policy') ?? '');
  return itemsOf(text).flatMap((item) => {
    const left = numberOf(item, 'r');
    if (left === null) return [];
    const policy = policies.find((each) => nameOf(each) === nameOf(item)) ?? '';
    return [hintOf(policy, numberOf(policy, 'q'), left, resetMsOf(item, 't', now))];
  });
}

function readApart(headers: Headers, now: number): readonly LimitHint[] {
  const remaining = leadingCount(headers.get('ratelimit-remaining'));
  if (remaining === null) return [];
  const reset = headers.get('ratelimit-reset');
  const resetMs = reset === null ? null : parseResetMs(reset, now);
  return [hintOf('', leadingCount(headers.get('ratelimit-limit')), remaining, resetMs)];
}

function hintOf(
  policy: string,
  limit: number | null,
  remaining: number,
  resetMs: number | null,
): LimitHint {
  const windowS = numberOf(policy, 'w');
  const windowMs = windowS === null ? null : windowS * 1_000;
  const dimension = /token/i.test(policy) ? 'tokens' : 'requests';
  return { dimension, windowMs, limit, remaining, resetMs };
}

function itemsOf(text: string): readonly string[] {
  return text.length > LENGTH_MAX ? [] : listItems(text).slice(0, LIMITS_MAX);
}

/** Returns the name of an item, quoted or not. */
function nameOf(item: string): string {
  return parseHeaderValue(item).value;
}

/** The name of a policy may contain any word. */
const QUOTED = /"(?:[^"\\]|\\.)*"/gs;

/** Reads a numeric parameter. null if there is none. */
function numberOf(text: string, name: string): number | null {
  const plain = text.replaceAll(QUOTED, '""');
  const value = new RegExp(`(?:^|[;,])\\s*${name}=(\\d{1,15})(?!\\d)`, 'i').exec(plain)?.[1];
  return value === undefined ? null : Number(value);
}

function resetMsOf(text: string, name: string, now: number): number | null {
  const seconds = numberOf(text, name);
  return seconds === null ? null : parseResetMs(String(seconds), now);
}

function leadingCount(text: string | null): number | null {
  const count = LEADING_COUNT.exec(text ?? '')?.[1];
  return count === undefined ? null : Number(count);
}
