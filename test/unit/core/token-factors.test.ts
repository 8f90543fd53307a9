import { beforeEach, describe, expect, test } from 'vitest';
import {
  emptyTokenFactors,
  inputFactor,
  MODELS_MAX,
  observeUsage,
  outputMean,
  type TokenFactors,
} from '../../../src/core/parts/demand.ts';

let factors: TokenFactors;

beforeEach(() => {
  factors = emptyTokenFactors();
});

function see(inputTokens: number | null, outputTokens: number | null = null, model = 'm'): void {
  observeUsage(factors, model, { inputEstimate: 100, inputTokens, outputTokens });
}

test('of an unknown model nothing is known', () => {
  see(150, 10);
  expect(inputFactor(factors, 'other')).toBe(1);
  expect(outputMean(factors, 'other')).toBeNull();
});

test('the first calls are averaged', () => {
  for (const input of [120, 150, 180]) see(input, input);
  expect(inputFactor(factors, 'm')).toBeCloseTo(1.5);
  expect(outputMean(factors, 'm')).toBeCloseTo(150);
});

test('then the last calls count most', () => {
  for (let index = 0; index < 100; index += 1) see(60, 100);
  for (let index = 0; index < 30; index += 1) see(140, 900);
  expect(inputFactor(factors, 'm')).toBeGreaterThan(1.35);
  expect(outputMean(factors, 'm')).toBeGreaterThan(850);
});

test.each([
  [1, 0.5],
  [50, 0.5],
  [200, 2],
  [90_000, 2],
])('%d tokens for 100 are taken for a factor of %d', (tokens, expected) => {
  see(tokens);
  expect(inputFactor(factors, 'm')).toBe(expected);
});

test('one call that is far off hardly moves what was learned', () => {
  for (let index = 0; index < 20; index += 1) see(100);
  see(90_000);
  expect(inputFactor(factors, 'm')).toBeCloseTo(1.1);
});

describe('what is not known', () => {
  test('teaches nothing of the other', () => {
    see(150);
    expect(outputMean(factors, 'm')).toBeNull();
    see(null, 40, 'n');
    expect(inputFactor(factors, 'n')).toBe(1);
    expect(outputMean(factors, 'n')).toBe(40);
  });

  test('an estimate of nothing teaches nothing', () => {
    observeUsage(factors, 'm', { inputEstimate: 0, inputTokens: 50, outputTokens: null });
    expect(inputFactor(factors, 'm')).toBe(1);
  });
});

describe('the memory is bounded', () => {
  test('the model that was not called for longest goes first', () => {
    for (let index = 0; index < MODELS_MAX; index += 1) see(150, 1, `m-${index}`);
    see(150, 1, 'm-0');
    see(150, 1, 'new');
    expect(factors.models).toHaveLength(MODELS_MAX);
    expect(inputFactor(factors, 'm-0')).toBe(1.5);
    expect(inputFactor(factors, 'm-1')).toBe(1);
  });

  test('a name that is no name is not kept', () => {
    see(150, 1, 'x'.repeat(201));
    expect(factors).toEqual(emptyTokenFactors());
  });
});

test('it is the same after it was written and read', () => {
  see(150, 40);
  expect(JSON.parse(JSON.stringify(factors))).toEqual(factors);
});
