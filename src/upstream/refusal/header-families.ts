import type { LimitHint } from '../../core/words/signal.ts';

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;
/** How long a window must be to be for status, not for waiting. */
export const DAY_MS = 24 * HOUR_MS;
export const MONTH_MS = 30 * DAY_MS;

/** The names of the headers that tell one limit. Null: there is none. */
export interface LimitHeaders {
  readonly dimension: LimitHint['dimension'];
  /** Span that these headers count over where they do not say, in milliseconds; null: not known. */
  readonly windowMs: number | null;
  readonly limit: string | null;
  readonly remaining: string;
  readonly reset: string | null;
}

/** Ways in which a limit comes back: bit by bit, or all at once when its window ends. */
export type Refill = 'continuous' | 'window';

/** The rate-limit headers of one kind of provider. */
export interface HeaderFamily {
  readonly refill: Refill;
  /** An answer that carries any of them carries at least one of these. */
  readonly probes: readonly string[];
  readonly limits: readonly LimitHeaders[];
  /** Whether the IETF's headers, `RateLimit` and `RateLimit-*`, are read too. */
  readonly readsDraft?: true;
}

/** The rate-limit headers of a provider, and whether they may hold calls back. */
export interface HeaderProfile extends HeaderFamily {
  /** False: they are not read. An operator who knows better sets it. */
  readonly isReliable: boolean;
  /** Where the headers are described or were seen. */
  readonly source: string;
  /** When that was last known to hold, as `YYYY-MM-DD`. */
  readonly date: string;
  readonly note?: string;
}

/** Names the headers `x-ratelimit-{limit,remaining,reset}-{name}`. */
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

/** Names the same headers of a limit whose reset nobody tells. */
export function withoutReset(headers: LimitHeaders): LimitHeaders {
  return { ...headers, reset: null };
}

export const REQUESTS_PROBE = 'x-ratelimit-remaining-requests';
export const TOKENS_PROBE = 'x-ratelimit-remaining-tokens';

/** The names that most who send any have taken from OpenAI. */
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
