import { describe, expect, test } from 'vitest';
import { goDuration } from '../../strict-upstream/durations.ts';
import { refusalForm } from '../../strict-upstream/forms.ts';
import { limitHeaders } from '../../strict-upstream/limit-headers.ts';
import type { LimitState } from '../../strict-upstream/rates.ts';
import type { StrictProvider, StrictRefusal } from '../../strict-upstream/refusal.ts';
import { PROVIDERS, REFUSAL_KINDS } from '../../strict-upstream/refusal.ts';

/** 2026-10-06 13:31:37.5 UTC. */
const NOW = Date.UTC(2026, 9, 6, 13, 31, 37, 500);

const refusal = (
  kind: StrictRefusal['kind'],
  extra: Partial<StrictRefusal> = {},
): StrictRefusal => ({
  kind,
  dimension: null,
  model: 'model-x',
  limit: 40,
  used: 40,
  requested: 1,
  waitMs: kind === 'concurrency' || kind === 'quota' ? null : 1_500,
  at: NOW,
  ...extra,
});

describe('a refusal', () => {
  // What a client tells the cause by, as providers have sent it.
  test.each<[StrictProvider, StrictRefusal['kind'], number, string]>([
    ['openai', 'requests', 429, '"requests"'],
    [
      'openai',
      'tokens',
      429,
      'tokens per min (TPM): Limit 40, Used 40, Requested 1. Please try again in 1.5s.',
    ],
    ['openai', 'long_window', 429, 'requests per day (RPD)'],
    ['openai', 'quota', 429, '"insufficient_quota"'],
    ['openai', 'ramp', 429, '"slow_down"'],
    ['openai', 'never_fits', 429, 'Request too large'],
    ['anthropic', 'concurrency', 429, 'Number of concurrent connections'],
    ['anthropic', 'tokens', 429, 'rate limit of 40 input tokens per minute'],
    ['anthropic', 'overload', 529, '"overloaded_error"'],
    ['anthropic', 'quota', 429, '"enforced_spend_limit_reached"'],
    ['anthropic', 'ramp', 429, '"ramp_limit_exceeded"'],
    ['gemini', 'requests', 429, '"retryDelay":"1.5s"'],
    ['gemini', 'tokens', 429, 'InputTokensPerModelPerMinute'],
    ['gemini', 'long_window', 429, 'PerDay'],
    ['gemini', 'overload', 503, 'The model is overloaded'],
    ['azure', 'requests', 429, 'call rate limit'],
    [
      'azure',
      'tokens',
      429,
      'token rate limit of your current OpenAI S0 pricing tier. Please retry after 2 seconds',
    ],
    ['bedrock', 'tokens', 429, 'Too many tokens, please wait'],
    ['bedrock', 'long_window', 429, 'Too many tokens per day'],
    ['groq', 'tokens', 429, 'tokens per minute (TPM)'],
    ['groq', 'never_fits', 413, 'Request too large'],
    ['cerebras', 'overload', 429, '"queue_exceeded"'],
    ['cerebras', 'tokens', 429, '"token_quota_exceeded"'],
    ['mistral', 'requests', 429, '{"message":"Requests rate limit exceeded"}'],
    ['mistral', 'overload', 429, '"service_tier_capacity_exceeded"'],
    ['deepseek', 'quota', 402, 'Insufficient Balance'],
    ['zai', 'concurrency', 429, '"1302"'],
    ['zai', 'overload', 429, '"1305"'],
    // Beijing's time, rounded up to the second.
    ['zai', 'long_window', 429, 'Your limit will reset at 2026-10-06 21:31:39'],
    [
      'moonshot',
      'concurrency',
      429,
      'max organization concurrency: 40, please try again after 1 seconds',
    ],
    ['moonshot', 'requests', 429, 'max RPM: 40, please try again after 2 seconds'],
    ['moonshot', 'overload', 429, '"engine_overloaded_error"'],
    ['minimax', 'requests', 200, '{"base_resp":{"status_code":1002'],
    ['minimax', 'tokens', 200, '"status_code":1039'],
    ['dashscope', 'tokens', 429, '"insufficient_quota"'],
    ['dashscope', 'ramp', 429, 'Request rate increased too quickly'],
    ['openrouter', 'long_window', 429, `"X-RateLimit-Reset":"${NOW + 1_500}"`],
    ['openrouter', 'overload', 429, '"upstream_provider_shared_pool"'],
    ['openrouter', 'quota', 402, 'Insufficient credits'],
    ['ollama', 'concurrency', 429, '{"error":"too many concurrent requests"}'],
    ['ollama', 'overload', 503, 'maximum pending requests exceeded'],
    ['cohere', 'requests', 429, 'limited to 40 API calls / minute'],
    ['together', 'overload', 503, 'overloaded'],
  ])('of %s for %s has status %d and says %s', (provider, kind, status, said) => {
    const form = refusalForm(provider, refusal(kind));
    expect(form.status).toBe(status);
    expect(JSON.stringify(form.body)).toContain(said);
  });

  test.each(PROVIDERS)('of %s is a JSON object with a text for every cause', (provider) => {
    const texts = REFUSAL_KINDS.map((kind) => {
      const { status, body } = refusalForm(provider, refusal(kind));
      expect([200, 400, 402, 413, 429, 503, 529]).toContain(status);
      expect(body).toBeTypeOf('object');
      return JSON.stringify(body);
    });
    expect(texts.filter((text) => /"(?:message|status_msg|error)":"[^"]+/.test(text))).toEqual(
      texts,
    );
    expect(texts.join()).not.toMatch(/undefined|NaN/);
  });

  test.each<[StrictProvider, StrictRefusal['kind'], Record<string, string>]>([
    ['openai', 'tokens', { 'retry-after': '2' }],
    ['openai', 'concurrency', {}],
    ['azure', 'requests', { 'retry-after-ms': '1500', 'retry-after': '2' }],
    ['anthropic', 'requests', { 'retry-after': '2' }],
    ['anthropic', 'quota', {}],
    ['gemini', 'requests', {}],
    ['groq', 'tokens', { 'retry-after': '2' }],
    ['bedrock', 'tokens', { 'x-amzn-errortype': 'ThrottlingException' }],
    ['zai', 'concurrency', {}],
  ])('of %s for %s has the headers %j', (provider, kind, headers) => {
    expect(refusalForm(provider, refusal(kind)).headers).toEqual(headers);
  });

  test('of a spend cap has no Retry-After even where a wait is known', () => {
    const { headers } = refusalForm('anthropic', refusal('quota', { waitMs: 9_000 }));
    expect(headers).toEqual({});
  });
});

describe('limit headers', () => {
  const state = (dimension: LimitState['dimension'], limit: number, used: number): LimitState => ({
    dimension,
    limit,
    used,
    windowMs: 60_000,
    resetMs: dimension.endsWith('d') ? 9_076_752 : 1_780,
  });
  const states = [
    state('rpm', 60, 3),
    state('tpm', 10_000, 1_400.5),
    state('itpm', 8_000, 9_000),
    state('rpd', 1_000, 10),
  ];

  test.each<[StrictProvider, Record<string, string>]>([
    [
      'openai',
      {
        'x-ratelimit-limit-requests': '60',
        'x-ratelimit-remaining-requests': '57',
        'x-ratelimit-reset-requests': '1.78s',
        'x-ratelimit-limit-tokens': '10000',
        'x-ratelimit-remaining-tokens': '8599',
        'x-ratelimit-reset-tokens': '1.78s',
      },
    ],
    [
      'anthropic',
      {
        'anthropic-ratelimit-requests-limit': '60',
        'anthropic-ratelimit-requests-remaining': '57',
        'anthropic-ratelimit-requests-reset': '2026-10-06T13:31:40Z',
        'anthropic-ratelimit-tokens-limit': '10000',
        'anthropic-ratelimit-tokens-remaining': '9000',
        'anthropic-ratelimit-tokens-reset': '2026-10-06T13:31:40Z',
        'anthropic-ratelimit-input-tokens-limit': '8000',
        'anthropic-ratelimit-input-tokens-remaining': '0',
        'anthropic-ratelimit-input-tokens-reset': '2026-10-06T13:31:40Z',
      },
    ],
    [
      'groq',
      {
        'x-ratelimit-limit-requests': '1000',
        'x-ratelimit-remaining-requests': '990',
        'x-ratelimit-reset-requests': '2h31m16.752s',
        'x-ratelimit-limit-tokens': '10000',
        'x-ratelimit-remaining-tokens': '8599',
        'x-ratelimit-reset-tokens': '1.78s',
      },
    ],
    [
      'cerebras',
      {
        'x-ratelimit-limit-requests-minute': '60',
        'x-ratelimit-remaining-requests-minute': '57',
        'x-ratelimit-reset-requests-minute': '1.78',
        'x-ratelimit-limit-tokens-minute': '10000',
        'x-ratelimit-remaining-tokens-minute': '8599',
        'x-ratelimit-reset-tokens-minute': '1.78',
        'x-ratelimit-limit-requests-day': '1000',
        'x-ratelimit-remaining-requests-day': '990',
        'x-ratelimit-reset-requests-day': '9076.752',
      },
    ],
    [
      'azure',
      {
        'x-ratelimit-limit-requests': '60',
        'x-ratelimit-remaining-requests': '57',
        'x-ratelimit-limit-tokens': '10000',
        'x-ratelimit-remaining-tokens': '8599',
        'x-ratelimit-reset-tokens': '2',
      },
    ],
    [
      'mistral',
      {
        'x-ratelimit-limit-req-minute': '60',
        'x-ratelimit-remaining-req-minute': '57',
        'x-ratelimit-limit-tokens-minute': '10000',
        'x-ratelimit-remaining-tokens-minute': '8599',
      },
    ],
    [
      'together',
      {
        'x-ratelimit-limit': '1',
        'x-ratelimit-remaining': '1',
        'x-ratelimit-reset': '2',
        'x-tokenlimit-limit': '166',
        'x-tokenlimit-remaining': '166',
      },
    ],
    ['gemini', {}],
    ['deepseek', {}],
  ])('of %s', (provider, headers) => {
    expect(limitHeaders(provider, states, NOW, false)).toEqual(headers);
  });

  test('that lie say that nothing remains', () => {
    const lies = limitHeaders('openai', states, NOW, true);
    expect(lies['x-ratelimit-remaining-requests']).toBe('0');
    expect(lies['x-ratelimit-limit-requests']).toBe('60');
  });
});

test.each([
  [0, '0s'],
  [12, '12ms'],
  [999.2, '1s'],
  [1_000, '1s'],
  [179_560, '2m59.56s'],
  [360_000, '6m0s'],
  [3_600_000, '1h0m0s'],
])('%d ms is %s to Go', (ms, text) => {
  expect(goDuration(ms)).toBe(text);
});
