import { fractionalSeconds, goDuration, rfc3339, wholeSeconds } from './durations.ts';
import type { LimitState, RateDimension } from './rates.ts';
import type { StrictProvider } from './refusal.ts';

type StrictHeaderPart = 'limit' | 'remaining' | 'reset';

/** The rate-limit headers of one provider. */
interface StrictHeaderFamily {
  /** Names by which the provider tells its limits. */
  readonly names: Partial<Record<RateDimension, string>>;
  readonly header: (part: StrictHeaderPart, name: string) => string;
  /** Writes the time until a limit is whole again; null: it does not. */
  readonly reset: (state: LimitState, now: number) => string | null;
  /** Converts a limit, or what remains of it, into the figure that is sent. */
  readonly count?: (value: number, state: LimitState, part: StrictHeaderPart) => number;
}

const xRatelimit = (part: StrictHeaderPart, name: string): string => `x-ratelimit-${part}-${name}`;

/** Anthropic rounds the tokens that remain to the nearest thousand. */
function roundedTokens(value: number, { dimension }: LimitState, part: StrictHeaderPart): number {
  return part === 'remaining' && dimension !== 'rpm' ? Math.round(value / 1_000) * 1_000 : value;
}

/** Providers that are not here send none. */
const FAMILIES: Partial<Record<StrictProvider, StrictHeaderFamily>> = {
  openai: {
    names: { rpm: 'requests', tpm: 'tokens' },
    header: xRatelimit,
    reset: ({ resetMs }) => goDuration(resetMs),
  },
  azure: {
    names: { rpm: 'requests', tpm: 'tokens' },
    header: xRatelimit,
    reset: ({ resetMs, dimension }) =>
      dimension === 'tpm' ? String(Math.ceil(resetMs / 1_000)) : null,
  },
  anthropic: {
    names: { rpm: 'requests', tpm: 'tokens', itpm: 'input-tokens', otpm: 'output-tokens' },
    header: (part, name) => `anthropic-ratelimit-${name}-${part}`,
    reset: ({ resetMs }, now) => rfc3339(now + resetMs),
    count: roundedTokens,
  },
  // Its requests are those of a day.
  groq: {
    names: { rpd: 'requests', tpm: 'tokens' },
    header: xRatelimit,
    reset: ({ resetMs }) => goDuration(resetMs),
  },
  cerebras: {
    names: {
      rpm: 'requests-minute',
      rpd: 'requests-day',
      tpm: 'tokens-minute',
      tpd: 'tokens-day',
    },
    header: xRatelimit,
    reset: ({ resetMs }) => fractionalSeconds(resetMs),
  },
  mistral: {
    names: { rpm: 'req-minute', tpm: 'tokens-minute' },
    header: xRatelimit,
    reset: () => null,
  },
  // Its numbers are those of a second: what remains is what one second may still have.
  together: {
    names: { rpm: 'x-ratelimit', tpm: 'x-tokenlimit' },
    header: (part, name) => `${name}-${part}`,
    reset: ({ resetMs, dimension }) => (dimension === 'rpm' ? wholeSeconds(resetMs) : null),
    count: (value, { limit, windowMs }) =>
      Math.min(value, Math.max(1, Math.floor((limit * 1_000) / windowMs))),
  },
};

/** The rate-limit headers of an answer. `lies`: nothing ever remains. */
export function limitHeaders(
  provider: StrictProvider,
  states: readonly LimitState[],
  now: number,
  lies: boolean,
): Record<string, string> {
  const family = FAMILIES[provider];
  const headers: Record<string, string> = {};
  if (family === undefined) return headers;
  const { names, header, reset, count = (value: number): number => value } = family;
  for (const state of states) {
    const name = names[state.dimension];
    if (name === undefined) continue;
    const remaining = lies ? 0 : Math.max(0, state.limit - state.used);
    const resetText = reset(state, now);
    headers[header('limit', name)] = String(Math.floor(count(state.limit, state, 'limit')));
    headers[header('remaining', name)] = String(Math.floor(count(remaining, state, 'remaining')));
    if (resetText !== null) headers[header('reset', name)] = resetText;
  }
  return headers;
}
