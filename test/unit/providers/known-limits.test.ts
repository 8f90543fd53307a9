import { describe, expect, it } from 'vitest';
import { BUILT_IN_UPSTREAMS } from '../../../src/providers/catalog.ts';
import {
  hasModelRows,
  KNOWN_LIMITS,
  knownLimitFor,
  UNKNOWN_LIMIT,
} from '../../../src/providers/known-limits.ts';

describe('the table of known limits', () => {
  it.each(KNOWN_LIMITS)(
    'says of $provider $modelPrefix where its figure is from and when it held',
    ({ source, date }) => {
      expect(new URL(source).protocol).toBe('https:');
      expect(new Date(date).toISOString().slice(0, 10)).toBe(date);
    },
  );

  it('names upstreams of the catalog, and no row twice', () => {
    const ids = new Set(BUILT_IN_UPSTREAMS.map((upstream) => upstream.id));
    const rows = new Set<string>();
    for (const row of KNOWN_LIMITS) {
      expect(ids).toContain(row.provider);
      expect(row.modelPrefix).toBe(row.modelPrefix.toLowerCase());
      expect(row.maxConcurrency).toBeGreaterThan(0);
      rows.add(`${row.provider} ${row.modelPrefix}`);
    }
    expect(rows.size).toBe(KNOWN_LIMITS.length);
  });

  it('leaves everything else at 64', () => {
    expect(UNKNOWN_LIMIT).toBe(64);
  });
});

describe('knownLimitFor', () => {
  it.each([
    ['zai', 'glm-5.1', 1],
    ['zai', 'GLM-5.1', 1],
    ['zai', 'glm-5', 2],
    ['zai', 'glm-5-turbo', 2],
    ['zai', 'glm-5.2', 10],
    ['zai', 'glm-4.6', 10],
    ['zai', 'glm-4.5-air', 10],
    ['zai', 'zai-org/GLM-4.6', 10],
    ['zai', 'models/glm-5.1', 1],
    ['zhipu', 'glm-5.1', 1],
    ['zhipu', 'glm-4.6', 10],
    ['kimi-code', 'kimi-for-coding', 1],
    ['moonshot', 'kimi-k2.6', 1],
    ['moonshot', null, 1],
    ['moonshot-cn', 'kimi-k2.6', 1],
    ['deepseek', 'deepseek-v4-pro', 500],
    ['deepseek', 'deepseek-flash', 2500],
    ['deepseek', 'deepseek-v4-flash', 2500],
    ['ollama', 'gpt-oss:120b', 1],
    ['scaleway', 'llama-3.3-70b-instruct', 25],
    ['deepinfra', 'meta-llama/Llama-3.3-70B-Instruct', 200],
  ])('%s, %s: %i', (upstream, model, maxConcurrency) => {
    expect(knownLimitFor(upstream, model)?.maxConcurrency).toBe(maxConcurrency);
  });

  it.each([
    ['zai', 'cogview-4'],
    ['zai', 'glm-4-plus'],
    ['zai', null],
    ['deepseek', null],
    ['openai', 'gpt-4o'],
    ['no-such-upstream', 'glm-5.1'],
  ])('%s, %s: nothing is known', (upstream, model) => {
    expect(knownLimitFor(upstream, model)).toBeNull();
  });

  it('gives models of one row the same row, and models of two rows two', () => {
    expect(knownLimitFor('zai', 'glm-4.6')).toBe(knownLimitFor('zai', 'glm-4.7-flash'));
    expect(knownLimitFor('zai', 'glm-4.6')).not.toBe(knownLimitFor('zai', 'glm-5.1'));
  });
});

describe('hasModelRows', () => {
  it.each([
    ['zai', true],
    ['zhipu', true],
    ['deepseek', true],
    ['moonshot', false],
    ['deepinfra', false],
    ['openai', false],
    ['no-such-upstream', false],
  ])('%s: %s', (upstream, expected) => {
    expect(hasModelRows(upstream)).toBe(expected);
  });
});
