import { describe, expect, it } from 'vitest';
import { providerNamed } from '../../../src/providers/catalog.ts';
import { knownLimitFor, limitsOfModels, UNKNOWN_LIMIT } from '../../../src/providers/limits.ts';

it('leaves what nobody knows at 64', () => {
  expect(UNKNOWN_LIMIT).toBe(64);
});

const limitAt = (provider: string, model: string | null) =>
  knownLimitFor(providerNamed(provider), model);

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
    ['zai-coding', 'glm-5.1', 1],
    ['zai-coding', 'glm-4.6', 3],
    ['zhipu-coding', 'glm-5.2', 3],
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
    expect(limitAt(upstream, model)?.maxConcurrency).toBe(maxConcurrency);
  });

  it.each([
    ['zai', 'cogview-4'],
    ['zai', 'glm-4-plus'],
    ['zai', null],
    ['deepseek', null],
    ['openai', 'gpt-4o'],
    ['no-such-upstream', 'glm-5.1'],
  ])('%s, %s: nothing is known', (upstream, model) => {
    expect(limitAt(upstream, model)).toBeNull();
  });

  it('gives models of one row the same row, and models of two rows two', () => {
    expect(limitAt('zai', 'glm-4.6')).toBe(limitAt('zai', 'glm-4.7-flash'));
    expect(limitAt('zai', 'glm-4.6')).not.toBe(limitAt('zai', 'glm-5.1'));
  });
});

describe('limitsOfModels', () => {
  it.each([
    ['zai', true],
    ['zhipu', true],
    ['deepseek', true],
    ['moonshot', false],
    ['deepinfra', false],
    ['openai', false],
    ['no-such-upstream', false],
  ])('%s: %s', (upstream, expected) => {
    expect(limitsOfModels(providerNamed(upstream)).length > 0).toBe(expected);
  });
});
