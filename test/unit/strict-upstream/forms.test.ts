import { describe, expect, test } from 'vitest';
import { refusalForm } from '../../strict-upstream/forms.ts';
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
});
