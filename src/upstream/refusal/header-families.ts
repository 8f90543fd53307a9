import type { LimitHint } from '../../core/words/signal.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** Windows of a day or longer are for status, not for waiting. */
export const DAY_MS = 24 * HOUR_MS;
const MONTH_MS = 30 * DAY_MS;

/** The names of the headers that tell one limit. Null: there is none. */
export interface LimitHeaders {
  readonly dimension: LimitHint['dimension'];
  /** What these headers are counted over where they do not say, in milliseconds; null: not known. */
  readonly windowMs: number | null;
  readonly limit: string | null;
  readonly remaining: string;
  readonly reset: string | null;
}

/** How a limit comes back: bit by bit, or all at once when its window ends. */
export type Refill = 'continuous' | 'window';

/** The rate-limit headers of one kind of provider. */
export interface HeaderFamily {
  readonly refill: Refill;
  /** An answer that carries any of them carries at least one of these. */
  readonly probes: readonly string[];
  readonly limits: readonly LimitHeaders[];
}

/** `x-ratelimit-{limit,remaining,reset}-{name}`. */
function named(
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

function anthropic(name: string, dimension: LimitHint['dimension']): LimitHeaders {
  const prefix = `anthropic-ratelimit-${name}`;
  return {
    dimension,
    windowMs: MINUTE_MS,
    limit: `${prefix}-limit`,
    remaining: `${prefix}-remaining`,
    reset: `${prefix}-reset`,
  };
}

function withoutReset(headers: LimitHeaders): LimitHeaders {
  return { ...headers, reset: null };
}

const REQUESTS = 'x-ratelimit-remaining-requests';
const TOKENS = 'x-ratelimit-remaining-tokens';

/** The families, by the name under which an upstream's profile refers to them. */
export const HEADER_FAMILIES = {
  openai: {
    refill: 'continuous',
    probes: [REQUESTS, TOKENS],
    limits: [
      named('requests', 'requests', MINUTE_MS),
      named('tokens', 'tokens', MINUTE_MS),
      named('project-tokens', 'tokens', MINUTE_MS),
      named('tokens_usage_based', 'tokens', MINUTE_MS),
    ],
  },
  anthropic: {
    refill: 'continuous',
    probes: ['anthropic-ratelimit-requests-remaining', 'anthropic-ratelimit-tokens-remaining'],
    limits: [
      anthropic('requests', 'requests'),
      anthropic('tokens', 'tokens'),
      anthropic('input-tokens', 'input_tokens'),
      anthropic('output-tokens', 'output_tokens'),
    ],
  },
  azure: {
    refill: 'window',
    probes: [REQUESTS, TOKENS],
    limits: [named('requests', 'requests', MINUTE_MS), named('tokens', 'tokens', MINUTE_MS)],
  },
  cerebras: {
    refill: 'window',
    probes: ['x-ratelimit-remaining-requests-day', 'x-ratelimit-remaining-tokens-minute'],
    limits: [
      named('requests-minute', 'requests', MINUTE_MS),
      named('requests-hour', 'requests', HOUR_MS),
      named('requests-day', 'requests', DAY_MS),
      named('tokens-minute', 'tokens', MINUTE_MS),
      named('tokens-hour', 'tokens', HOUR_MS),
      named('tokens-day', 'tokens', DAY_MS),
    ],
  },
  digitalocean: {
    refill: 'window',
    probes: [REQUESTS, 'x-ratelimit-remaining-tokens-per-minute'],
    limits: [
      named('requests', 'requests', MINUTE_MS),
      named('tokens-per-minute', 'tokens', MINUTE_MS),
      named('tokens-per-day', 'tokens', DAY_MS),
    ],
  },
  fireworks: {
    refill: 'continuous',
    probes: ['x-ratelimit-remaining-tokens-prompt', REQUESTS],
    limits: [
      withoutReset(named('requests', 'requests', MINUTE_MS)),
      withoutReset(named('tokens-prompt', 'input_tokens', MINUTE_MS)),
      withoutReset(named('tokens-cache-adjusted-prompt', 'input_tokens', MINUTE_MS)),
      withoutReset(named('tokens-generated', 'output_tokens', MINUTE_MS)),
    ],
  },
  groq: {
    refill: 'continuous',
    probes: [REQUESTS, TOKENS],
    // Its requests are those of a day.
    limits: [named('requests', 'requests', DAY_MS), named('tokens', 'tokens', MINUTE_MS)],
  },
  mistral: {
    refill: 'continuous',
    probes: ['x-ratelimit-remaining-req-minute', 'x-ratelimit-remaining-tokens-minute'],
    limits: [
      withoutReset(named('req-minute', 'requests', MINUTE_MS)),
      withoutReset(named('tokens-minute', 'tokens', MINUTE_MS)),
      withoutReset(named('tokens-month', 'tokens', MONTH_MS)),
    ],
  },
  openrouter: {
    refill: 'window',
    probes: ['x-ratelimit-remaining'],
    limits: [
      {
        dimension: 'requests',
        windowMs: null, // A minute or a day; it does not say.
        limit: 'x-ratelimit-limit',
        remaining: 'x-ratelimit-remaining',
        reset: 'x-ratelimit-reset',
      },
    ],
  },
  sambanova: {
    refill: 'window',
    probes: [REQUESTS, 'x-ratelimit-remaining-requests-day'],
    limits: [named('requests', 'requests', MINUTE_MS), named('requests-day', 'requests', DAY_MS)],
  },
  together: {
    refill: 'window',
    probes: ['x-ratelimit-remaining', 'x-tokenlimit-remaining'],
    limits: [
      {
        dimension: 'requests',
        windowMs: SECOND_MS,
        limit: 'x-ratelimit-limit',
        remaining: 'x-ratelimit-remaining',
        reset: 'x-ratelimit-reset',
      },
      {
        dimension: 'tokens',
        windowMs: SECOND_MS,
        limit: 'x-tokenlimit-limit',
        remaining: 'x-tokenlimit-remaining',
        reset: null,
      },
    ],
  },
} as const satisfies Readonly<Record<string, HeaderFamily>>;

export type HeaderFamilyName = keyof typeof HEADER_FAMILIES;
