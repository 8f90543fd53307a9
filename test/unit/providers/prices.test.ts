import { describe, expect, it } from 'vitest';
import { BUILT_IN_UPSTREAMS, PROVIDERS } from '../../../src/providers/catalog.ts';
import {
  costUsd,
  PRICE_LISTS,
  priceListId,
  priceOf,
  type BilledUsage,
  type PriceRates,
} from '../../../src/providers/prices/price-table.ts';

const lists = Object.entries(PRICE_LISTS);

describe('the table of prices', () => {
  const known = new Set([...BUILT_IN_UPSTREAMS.map(({ id }) => id), 'azure', 'bedrock']);

  it('has the upstreams that name a provider of the public list, and no other', () => {
    const priced = PROVIDERS.filter(({ pricedAs }) => pricedAs !== undefined);
    expect(lists.map(([upstream]) => upstream)).toEqual(priced.map(({ id }) => id));
  });

  it.each(lists)('says of %s where its figures are from and when they held', (upstream, list) => {
    expect(known).toContain(upstream);
    expect(new URL(list.source).protocol).toBe('https:');
    expect(new Date(list.date).toISOString().slice(0, 10)).toBe(list.date);
  });

  it.each(lists)('has no model of %s twice, and all names in lower case', (_, { rows }) => {
    const names = rows.flatMap(([models]) => models.split(' '));
    expect(new Set(names).size).toBe(names.length);
    expect(names.filter((name) => name === '' || name !== name.toLowerCase())).toEqual([]);
  });

  it.each(lists)('has only figures of %s that can be', (upstream, { rows }) => {
    const prices = rows
      .flatMap(([models]) => models.split(' '))
      .flatMap((model) => priceOf(upstream, model, {}) ?? []);
    const isOdd = ({ inputUsd, cacheReadUsd, cacheWriteUsd, outputUsd }: PriceRates) =>
      !(inputUsd > 0 && inputUsd < 1_000) ||
      !(outputUsd >= 0 && outputUsd < 1_000) ||
      !(cacheReadUsd > 0 && cacheReadUsd <= inputUsd) ||
      !(cacheWriteUsd >= inputUsd);
    const dearer = prices.flatMap(({ above }) => (above === null ? [] : [above.rates]));
    expect(prices.length).toBeGreaterThanOrEqual(rows.length);
    expect([...prices, ...dearer].filter(isOdd)).toEqual([]);
    const cheaper = prices.filter(
      ({ above, inputUsd }) => (above?.rates.inputUsd ?? 1e9) < inputUsd,
    );
    expect(cheaper).toEqual([]);
  });

  it('is small: every isolate carries it', () => {
    expect(JSON.stringify(PRICE_LISTS).length).toBeLessThan(40_000);
  });
});

describe('priceOf', () => {
  it.each([
    ['openai', 'gpt-4o', 2.5, 10],
    ['openai', 'GPT-4o', 2.5, 10],
    ['openai', 'gpt-4o-2024-08-06', 2.5, 10],
    ['openai', 'gpt-4o-2024-05-13', 5, 15],
    ['openai', 'gpt-4o-mini', 0.15, 0.6],
    ['openai', 'gpt-4o-mini-2024-07-18', 0.15, 0.6],
    ['openai', 'gpt-5-2025-08-07', 1.25, 10],
    ['openai', 'gpt-5-pro', 15, 120],
    ['openai', 'gpt-5-chat-latest', 1.25, 10],
    ['openai', 'openai/gpt-4o', 2.5, 10],
    ['anthropic', 'claude-opus-4-1-20250805', 15, 75],
    ['anthropic', 'claude-opus-4-20250514', 15, 75],
    ['anthropic', 'claude-opus-4-5', 5, 25],
    ['anthropic', 'claude-3-5-sonnet-latest', 3, 15],
    ['gemini', 'models/gemini-2.5-flash', 0.3, 2.5],
    ['gemini', 'gemini-2.5-flash-lite', 0.1, 0.4],
    ['gemini', 'gemini-2.0-flash-001', 0.1, 0.4],
    ['vertex', 'claude-sonnet-4-5@20250929', 3, 15],
    ['vertex', 'publishers/google/models/gemini-2.5-pro', 1.25, 10],
    ['bedrock', 'us.anthropic.claude-opus-4-5-20251101-v1:0', 5, 25],
    ['bedrock', 'eu.anthropic.claude-opus-4-5-20251101-v1:0', 5.5, 27.5],
    ['bedrock', 'eu.anthropic.claude-opus-4-6-v1', 5.5, 27.5],
    ['fireworks', 'accounts/fireworks/models/gpt-oss-20b', 0.07, 0.3],
    ['groq', 'openai/gpt-oss-120b', 0.15, 0.6],
    ['together', 'google/gemma-4-31B-it', 0.39, 0.97],
    ['together', 'pearl-ai/gemma-4-31b-it', 0.28, 0.86],
    ['workers-ai', '@cf/meta/llama-3.2-3b-instruct', 0.0509, 0.335],
    ['deepinfra', 'deepseek-ai/DeepSeek-V3.2', 0.26, 0.38],
  ])('%s, %s: %d in, %d out', (upstream, model, inputUsd, outputUsd) => {
    expect(priceOf(upstream, model, {})).toMatchObject({ inputUsd, outputUsd });
  });

  it.each<[string, string | null, string]>([
    ['openai', 'gpt-4.5-preview', 'begins with gpt-4'],
    ['openai', 'gpt-4-32k', 'begins with gpt-4'],
    ['openai', 'gpt-4-1106-preview', 'begins with gpt-4'],
    ['openai', 'gpt-5.9', 'begins with gpt-5'],
    ['openai', 'gpt-4o-audio-preview', 'begins with gpt-4o'],
    ['openai', 'ft:gpt-4o-2024-08-06:acme::abc', 'is tuned'],
    ['openai', 'gpt-image-2', 'writes images'],
    ['openai', '', 'has no name'],
    ['openai', null, 'is not known'],
    ['openai', 'constructor', 'is called like a method'],
    ['constructor', 'name', 'is of no upstream of the table'],
    ['zai', 'glm-4.5-flash', 'begins with glm-4.5 and is listed at 0'],
    ['gemini', 'gemini-flash-latest', 'stands for others from time to time'],
    ['gemini', 'gemini-embedding-002', 'is the next of its kind'],
    ['bedrock', 'nvidia.nemotron-nano-9b-v3', 'is the next of its kind'],
    ['bedrock', 'au.anthropic.claude-opus-4-6-v1', 'is listed at a price that cannot be'],
    ['together', 'gemma-4-31b-it', 'has two vendors'],
    ['ollama', 'gpt-oss:120b', 'is of a plan'],
    ['my-vllm', 'llama-3.3-70b-instruct', 'is served by oneself'],
    ['lm-studio', 'openai/gpt-oss-20b', 'is served by oneself'],
  ])('%s, %s: unknown, for it %s', (upstream, model, _why) => {
    expect(priceOf(upstream, model, {})).toBeNull();
  });

  it('says where a price is from', () => {
    expect(priceOf('openai', 'gpt-4o', {})).toMatchObject({
      source: PRICE_LISTS['openai']?.source,
      date: PRICE_LISTS['openai']?.date,
    });
    expect(priceOf('openai', 'gpt-4o', { 'gpt-4o': { input: 1, output: 2 } })).toMatchObject({
      source: 'configured',
      date: null,
    });
  });

  it('reads a name of any length quickly', () => {
    const started = process.cpuUsage();
    expect(
      priceOf('openai', 'gpt-4o/'.repeat(100_000), { 'a*': { input: 1, output: 1 } }),
    ).toBeNull();
    expect(process.cpuUsage(started).user).toBeLessThan(1_000_000);
  });
});

describe('configured prices', () => {
  const price = (input: number) => ({ input, output: 2 * input });
  const overrides = {
    'gpt-4o': price(1),
    'GPT-4o-mini*': price(2),
    'gpt-*': price(3),
    'meta/llama-4': price(4),
    '*': price(5),
  };

  it.each([
    ['gpt-4o', 1, 'by its name'],
    ['gpt-4o-2024-08-06', 1, 'by its name without the date'],
    ['openai/gpt-4o', 1, 'by its name without the vendor'],
    ['gpt-4o-mini', 2, 'by the longest beginning'],
    ['gpt-4o-mini-tts', 2, 'by the longest beginning'],
    ['gpt-4o-audio-preview', 3, 'by a shorter beginning, since it is another model than gpt-4o'],
    ['gpt-*', 3, 'by the beginning that it is called like'],
    ['meta/llama-4', 4, 'with its vendor'],
    ['llama-4', 5, 'by what fits all, since its vendor is missing'],
    ['qwen', 5, 'by what fits all'],
  ])('%s costs %d: found %s', (model, inputUsd) => {
    expect(priceOf('my-vllm', model, overrides)?.inputUsd).toBe(inputUsd);
  });

  it('go before listed ones, which hold for the rest', () => {
    expect(priceOf('openai', 'gpt-4o', overrides)?.inputUsd).toBe(1);
    expect(priceOf('openai', 'o3', { 'gpt-*': price(3) })?.inputUsd).toBe(2);
  });

  it('take caching for plain input where they do not say what it costs', () => {
    expect(priceOf('my-vllm', 'a', { a: { input: 3, output: 4 } })).toMatchObject({
      cacheReadUsd: 3,
      cacheWriteUsd: 3,
    });
    const whole = { input: 3, output: 4, cache_read: 0, cache_write: 5 };
    expect(priceOf('my-vllm', 'a', { a: whole })).toEqual({
      inputUsd: 3,
      cacheReadUsd: 0,
      cacheWriteUsd: 5,
      outputUsd: 4,
      above: null,
      source: 'configured',
      date: null,
    });
  });
});

describe('priceListId', () => {
  it.each([
    ['openai', 'openai', 'openai'],
    ['eastus', 'azure', 'azure'],
    ['frankfurt', 'bedrock', 'bedrock'],
    ['my-gateway', 'anthropic', 'my-gateway'],
    ['my-vllm', 'openai', 'my-vllm'],
  ] as const)('of %s in the dialect %s: %s', (id, dialect, expected) => {
    expect(priceListId({ id, dialect })).toBe(expected);
  });
});

describe('costUsd', () => {
  /** Input, of it cache reads, of it cache writes, output. */
  type Tokens = readonly [number, number, number, number];

  function cost(upstream: string, model: string, [input, read, write, output]: Tokens): number {
    const usage: BilledUsage = {
      inputTokens: input,
      cacheReadTokens: read,
      cacheWriteTokens: write,
      outputTokens: output,
    };
    const price = priceOf(upstream, model, {});
    return price === null ? Number.NaN : costUsd(price, usage);
  }

  it('of tokens that are cached for an hour is twice the price of input', () => {
    const price = priceOf('anthropic', 'claude-sonnet-4-5', {});
    if (price === null) throw new Error('it has a price');
    const usage = { inputTokens: 100_000, cacheReadTokens: 0, cacheWriteTokens: 100_000 };
    const kept = { ...usage, outputTokens: 0, longCacheWriteTokens: 40_000 };
    // 60,000 × 3.75 + 40,000 × 6, per million
    expect(costUsd(price, kept)).toBeCloseTo(0.465, 12);
    // Not more than what was written.
    const odd = { ...kept, longCacheWriteTokens: 1_000_000 };
    expect(costUsd(price, odd)).toBeCloseTo(0.6, 12);
  });

  it.each<[string, string, Tokens, number]>([
    // 1,000 × 2.50 + 500 × 10, per million
    ['openai', 'gpt-4o', [1_000, 0, 0, 500], 0.0075],
    // 200 × 2.50 + 800 × 1.25 + 500 × 10
    ['openai', 'gpt-4o', [1_000, 800, 0, 500], 0.0065],
    // 10,000 × 3 + 70,000 × 0.30 + 20,000 × 3.75 + 1,000 × 15
    ['anthropic', 'claude-sonnet-4-5', [100_000, 70_000, 20_000, 1_000], 0.141],
    // No price for cached input: 1,000 × 30 + 100 × 180
    ['openai', 'gpt-5.4-pro', [1_000, 900, 0, 100], 0.048],
    // 1,000,000 × 0.02
    ['openai', 'text-embedding-3-small', [1_000_000, 0, 0, 0], 0.02],
    // At the bound, 200,000 × 1.25 + 1,000 × 10, and above it 100,001 × 2.50 + 100,000 × 0.25 + 1,000 × 15
    ['gemini', 'gemini-2.5-pro', [200_000, 0, 0, 1_000], 0.26],
    ['gemini', 'gemini-2.5-pro', [200_001, 100_000, 0, 1_000], 0.2900025],
    ['openai', 'gpt-4o', [0, 0, 0, 0], 0],
    // Cached tokens that the total forgot: 800 × 1.25
    ['openai', 'gpt-4o', [100, 800, 0, 0], 0.001],
  ])('%s, %s, %j: %d', (upstream, model, tokens, expected) => {
    expect(cost(upstream, model, tokens)).toBeCloseTo(expected, 12);
  });
});
