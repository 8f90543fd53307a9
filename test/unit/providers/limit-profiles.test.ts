import { describe, expect, it } from 'vitest';
import type { Dialect } from '../../../src/contract/http.ts';
import { countedTokens, DEFAULT_PROFILE, limitProfileFor } from '../../../src/providers/limits.ts';

function profileOf(id: string, dialect: Dialect = 'openai', model: string | null = null) {
  return limitProfileFor({ id, dialect, baseUrl: 'https://upstream.example' }, model);
}

describe('limitProfileFor', () => {
  it.each<[string, Dialect, object]>([
    [
      'anthropic',
      'anthropic',
      { reserveOutput: 'mean', countsCacheReads: false, refundsUnused: true },
    ],
    ['openai', 'openai', { reserveOutput: 'max_tokens', failedCount: true, refundsUnused: false }],
    ['cerebras', 'openai', { reserveOutput: 'max_tokens', refundsUnused: false }],
    ['gemini', 'gemini', { reserveOutput: 'none', countsCacheReads: true }],
    ['eastus', 'azure', { reserveOutput: 'max_tokens', refundsUnused: true, outputWeight: 1 }],
    ['frankfurt', 'bedrock', { reserveOutput: 'max_tokens', refundsUnused: true, outputWeight: 1 }],
  ])('%s, in the dialect %s', (id, dialect, expected) => {
    expect(profileOf(id, dialect)).toMatchObject(expected);
  });

  it('goes by a host that is known, whatever the upstream is called', () => {
    const mine = { id: 'mine', dialect: 'openai' as const, baseUrl: 'https://api.openai.com/v1' };
    expect(limitProfileFor(mine, null)).toEqual(profileOf('openai'));
    const other = { ...mine, id: 'openai', baseUrl: 'https://api.groq.com/openai/v1' };
    expect(limitProfileFor(other, null)).toEqual(DEFAULT_PROFILE);
  });

  it.each<[string, Dialect]>([
    ['my-gateway', 'anthropic'],
    ['my-vllm', 'openai'],
    ['constructor', 'opaque'],
    ['vertex', 'gemini'],
  ])('%s, in the dialect %s: nothing is known', (id, dialect) => {
    expect(profileOf(id, dialect)).toEqual(DEFAULT_PROFILE);
  });

  it.each([
    ['eu.anthropic.claude-sonnet-4-5-20250929-v1:0', 5],
    ['anthropic.claude-opus-4-6-v1', 5],
    ['claude-haiku-4-5', 5],
    ['foundation-model/Anthropic.Claude-Sonnet-4-6', 5],
    ['anthropic.claude-3-haiku-20240307-v1:0', 1],
    ['amazon.nova-pro-v1:0', 1],
    [null, 1],
  ])('on Bedrock a token that %s writes counts %i', (model, weight) => {
    expect(profileOf('frankfurt', 'bedrock', model)).toMatchObject({
      outputWeight: weight,
      reserveOutput: 'max_tokens',
      countsCacheReads: false,
    });
  });

  it('counts the cache reads of the one model of Anthropic that has them counted', () => {
    expect(profileOf('anthropic', 'anthropic', 'claude-3-5-haiku-20241022')).toEqual({
      ...profileOf('anthropic', 'anthropic', 'claude-haiku-4-5'),
      countsCacheReads: true,
    });
  });
});

describe('countedTokens', () => {
  const usage = { inputTokens: 1_000, cacheReadTokens: 600, outputTokens: 70 };

  it.each<[string, Dialect, string, number, number]>([
    ['anthropic', 'anthropic', 'claude-opus-4-6', 400, 70],
    ['anthropic', 'anthropic', 'claude-3-5-haiku-20241022', 1_000, 70],
    ['openai', 'openai', 'gpt-4o', 1_000, 70],
    ['gemini', 'gemini', 'gemini-2.5-pro', 1_000, 0],
    ['frankfurt', 'bedrock', 'us.anthropic.claude-opus-4-6-v1', 400, 350],
    ['frankfurt', 'bedrock', 'amazon.nova-pro-v1:0', 400, 70],
    ['my-vllm', 'openai', 'llama-4', 1_000, 70],
  ])('%s (%s) counts of a call of %s: %i in, %i out', (id, dialect, model, input, output) => {
    expect(countedTokens(profileOf(id, dialect, model), usage)).toEqual({
      inputTokens: input,
      outputTokens: output,
    });
  });

  it('never counts less than nothing, however an upstream reports its cache', () => {
    const odd = { inputTokens: 100, cacheReadTokens: 600, outputTokens: 0 };
    expect(countedTokens(profileOf('anthropic'), odd).inputTokens).toBe(0);
  });
});
