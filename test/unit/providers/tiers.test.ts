// Prices of tiers of service, as multiples of a model's price.
import { describe, expect, test } from 'vitest';
import {
  TIERS,
  tierFactor,
  unknownTier,
  type TierPrices,
} from '../../../src/providers/prices/tiers.ts';
import { priceOf, tierListOf } from '../../../src/providers/prices/price-table.ts';

const at = (
  list: keyof typeof TIERS | null,
  model: string,
  own: Record<string, number> = {},
): TierPrices => ({
  list: list === null ? null : TIERS[list],
  model,
  own,
});

describe('built-in tiers', () => {
  test.each([
    ['openai', 'gpt-5', 'priority', 2],
    ['openai', 'gpt-5', 'fast', 2],
    ['openai', 'gpt-5.5-2026-04-23', 'priority', 2.5],
    ['openai', 'gpt-5-mini', 'priority', 1.8],
    ['openai', 'gpt-4o-2024-08-06', 'priority', 1.7],
    ['openai', 'gpt-4o-mini', 'priority', 5 / 3],
    ['openai', 'a-new-model', 'priority', 2.5],
    ['openai', 'gpt-6-astra', 'ultrafast', 6],
    ['openai', 'gpt-5', 'flex', 0.5],
    ['openai', 'gpt-5', 'auto', 1],
    ['azure', 'gpt-5', 'priority', 2],
    ['gemini', 'gemini-3-flash-preview', 'priority', 1.8],
    ['vertex', 'gemini-2.5-pro', 'flex', 0.5],
    ['anthropic', 'claude-sonnet-4-5', 'priority', 1],
    ['anthropic', 'claude-sonnet-4-5', 'standard_only', 1],
    ['bedrock', 'nova-pro', 'reserved', 1],
    ['groq', 'llama-3.3-70b-versatile', 'performance', 1],
  ] as const)('%s %s %s', (list, model, tier, factor) => {
    const tiers = { service_tier: tier };
    expect(unknownTier(at(list, model), tiers)).toBeNull();
    expect(tierFactor(at(list, model), tiers, false)).toBeCloseTo(factor);
  });

  test.each([
    ['claude-opus-4-6', 6],
    ['claude-opus-4-8', 2],
    ['claude-opus-5', 2],
  ])('Anthropic fast mode of %s', (model, factor) => {
    expect(tierFactor(at('anthropic', model), { speed: 'fast' }, false)).toBe(factor);
  });

  test('have a source and a day', () => {
    for (const { source, date } of Object.values(TIERS)) {
      expect(source).toMatch(/^https:\/\//);
      expect(date).toMatch(/^20\d\d-\d\d-\d\d$/);
    }
  });
});

describe('an unknown tier', () => {
  test.each([
    [at('openai', 'gpt-5'), { service_tier: 'hyper' }, 'service_tier'],
    [at('openai', 'gpt-5'), { service_tier: 'ultrafast' }, 'service_tier'],
    [at('bedrock', 'nova-pro'), { service_tier: 'priority' }, 'service_tier'],
    [at('bedrock', 'nova-pro'), { latency: 'optimized' }, 'latency'],
    [at('anthropic', 'claude-haiku-4-5'), { speed: 'fast' }, 'speed'],
    [at(null, 'm'), { service_tier: 'priority' }, 'service_tier'],
    [at(null, 'm'), { service_tier: '' }, 'service_tier'],
    [at(null, 'm'), { service_tier: 'constructor' }, 'service_tier'],
  ])('is named: %#', (prices, tiers, field) => {
    expect(unknownTier(prices, tiers)).toBe(field);
  });

  test('counts as the most expensive known one', () => {
    expect(tierFactor(at('openai', 'gpt-5'), { service_tier: 'hyper' }, false)).toBe(2);
    expect(tierFactor(at(null, 'm'), { service_tier: 'hyper' }, false)).toBe(1);
  });

  test('is assumed for a body that was not read, unless the answer reports its tier', () => {
    expect(tierFactor(at('openai', 'gpt-5'), {}, true)).toBe(2);
    expect(tierFactor(at('openai', 'gpt-5'), { service_tier: 'default' }, true)).toBe(1);
    expect(tierFactor(at(null, 'm'), {}, true)).toBe(1);
  });
});

describe('the tiers of an operator', () => {
  const prices = at('openai', 'gpt-5', { Priority: 3, auto: 3, optimized: 1.25 });

  test('come before the built-in ones', () => {
    expect(tierFactor(prices, { service_tier: 'priority' }, false)).toBe(3);
    expect(tierFactor(prices, { service_tier: 'flex' }, false)).toBe(0.5);
    expect(tierFactor(prices, { service_tier: 'default', latency: 'optimized' }, false)).toBe(1.25);
  });

  test('set the price of a call that asks for none', () => {
    expect(tierFactor(prices, {}, false)).toBe(3);
    expect(tierFactor(at('openai', 'gpt-5'), {}, false)).toBe(1);
  });

  test('are part of the prices of the model', () => {
    const tiers = { priority: 2 };
    const overrides = { 'llama*': { input: 1, output: 2, tiers } };
    expect(priceOf('x', 'llama-4', overrides)?.tiers).toEqual(tiers);
    expect(priceOf('x', 'other', overrides)).toBeNull();
  });
});

test.each([
  ['openai', 'openai', 'http://127.0.0.1:1', TIERS.openai],
  ['mine', 'openai', 'https://api.openai.com', TIERS.openai],
  ['mine', 'bedrock', 'http://127.0.0.1:1', TIERS.bedrock],
  ['mine', 'openai', 'http://127.0.0.1:1', null],
] as const)('the upstream %s of dialect %s at %s', (id, dialect, baseUrl, list) => {
  expect(tierListOf({ id, dialect, baseUrl })).toBe(list);
});
