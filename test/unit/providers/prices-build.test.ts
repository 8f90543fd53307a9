import { describe, expect, it } from 'vitest';
import { pricesOf, type SourceModel } from '../../../scripts/prices/price-rows.ts';

/** Table that the script makes of a public list. */

type Cost = NonNullable<SourceModel['cost']>;

function rowsOf(models: Readonly<Record<string, SourceModel>>, upstream = 'together') {
  const { prices } = pricesOf(upstream, models);
  return prices.map(({ name, rates, above }) => [name, ...rates, ...(above ?? [])]);
}

function of(cost: Cost, output: readonly string[] = ['text']): SourceModel {
  return { cost, modalities: { output } };
}

describe('a price', () => {
  it.each<[string, Cost, readonly unknown[]]>([
    ['all four', { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 }, [3, 0.3, 3.75, 15]],
    ['no caching', { input: 3, output: 15 }, [3, null, null, 15]],
    ['free caching', { input: 3, output: 15, cache_read: 0, cache_write: 0 }, [3, null, null, 15]],
    [
      'a cache read dearer than input',
      { input: 3, output: 15, cache_read: 4 },
      [3, null, null, 15],
    ],
    [
      'a cache write cheaper than input',
      { input: 3, output: 15, cache_write: 0.3 },
      [3, null, null, 15],
    ],
    ['free output', { input: 0.1, output: 0 }, [0.1, null, null, 0]],
    [
      'a figure off by a rounding',
      { input: 0.049999999999999996, output: 0.1 },
      [0.05, null, null, 0.1],
    ],
    [
      'a long prompt that costs more',
      {
        input: 1,
        output: 2,
        tiers: [{ input: 2, output: 3, cache_read: 0.5, tier: { size: 200_000 } }],
      },
      [1, null, null, 2, 200_000, 2, 0.5, null, 3],
    ],
    ['reasoning that costs as output', { input: 1, output: 2, reasoning: 2 }, [1, null, null, 2]],
  ])('with %s is taken over', (_, cost, expected) => {
    expect(rowsOf({ model: of(cost) })).toEqual([['model', ...expected]]);
  });

  it.each<[string, SourceModel, string]>([
    ['none', {}, 'no price'],
    ['nothing but zeros', of({ input: 0, output: 0 }), 'a price of 0'],
    ['images', of({ input: 1, output: 2 }, ['text', 'image']), 'output that is not only text'],
    ['speech', of({ input: 1, output: 2, output_audio: 9 }), 'output that is not only text'],
    ['dearer reasoning', of({ input: 1, output: 2, reasoning: 4 }), 'reasoning has its own price'],
    [
      'a price for each request',
      of({ input: 1, output: 2, request: 5 }),
      'more than tokens is paid for',
    ],
    [
      'three sets of rates',
      of({
        input: 1,
        output: 2,
        tiers: [
          { input: 2, output: 3, tier: { size: 1 } },
          { input: 3, output: 4, tier: { size: 2 } },
        ],
      }),
      'more than two sets of rates',
    ],
  ])('with %s is left out, and it is said why', (_, model, reason) => {
    expect(pricesOf('together', { model })).toEqual({
      prices: [],
      leftOut: [{ name: 'model', reason }],
    });
  });

  it('that is known to mislead is left out at that upstream only', () => {
    const models = { 'model-router': of({ input: 1, output: 2 }) };
    expect(rowsOf(models, 'azure')).toEqual([]);
    expect(rowsOf(models, 'openai')).toHaveLength(1);
  });
});

describe('a name', () => {
  const cheap: Cost = { input: 1, output: 2 };
  const dear: Cost = { input: 3, output: 4 };

  it.each<[string, Readonly<Record<string, Cost>>, readonly string[]]>([
    ['loses its vendor', { 'Qwen/Qwen3.5-9B': cheap }, ['qwen3.5-9b']],
    [
      'keeps its vendor beside another of another price',
      { 'google/gemma': cheap, 'pearl/gemma': dear },
      ['pearl/gemma', 'google/gemma'],
    ],
    ['is one for vendors of one price', { 'google/gemma': cheap, 'pearl/gemma': cheap }, ['gemma']],
    ['loses its date', { 'claude-9-20260101': cheap }, ['claude-9']],
    ['is one for snapshots of one price', { 'gpt-9': cheap, 'gpt-9-2026-08-06': cheap }, ['gpt-9']],
    [
      'keeps the date of a snapshot of another price',
      { 'gpt-9': cheap, 'gpt-9-2026-05-13': dear, 'gpt-9-2026-08-06': cheap },
      ['gpt-9-2026-05-13', 'gpt-9'],
    ],
    [
      'keeps its date where another date has another price',
      { 'gpt-9-2026-05-13': dear, 'gpt-9-2026-08-06': cheap },
      ['gpt-9-2026-05-13', 'gpt-9-2026-08-06'],
    ],
    ['keeps its number', { 'gemini-embedding-001': cheap }, ['gemini-embedding-001']],
  ])('%s', (_, costs, expected) => {
    const models = Object.fromEntries(Object.entries(costs).map(([id, cost]) => [id, of(cost)]));
    expect(pricesOf('together', models).prices.map(({ name }) => name)).toEqual(expected);
  });
});
