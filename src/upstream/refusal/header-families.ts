import type { LimitHint } from '../../core/words/signal.ts';

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;
/** Minimum length of a window that is only displayed and holds no calls back. */
export const DAY_MS = 24 * HOUR_MS;
export const MONTH_MS = 30 * DAY_MS;

/** The names of the headers that report one limit. null for headers that do not exist. */
export interface LimitHeaders {
  readonly dimension: LimitHint['dimension'];
  /** Window of these headers in milliseconds, which they do not report themselves. null if unknown. */
  readonly windowMs: number | null;
  readonly limit: string | null;
  readonly remaining: string;
  readonly reset: string | null;
}

/** How a limit refills: continuously, or completely when its window ends. */
export type Refill = 'continuous' | 'window';

export interface HeaderFamily {
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
