import { describe, expect, test } from 'vitest';
import type { StrictCallCost, RateHold, RateTable } from '../../strict-upstream/rates.ts';
import { StrictRateLimiter } from '../../strict-upstream/rates.ts';

const call = (input: number, extra: Partial<StrictCallCost> = {}): StrictCallCost => ({
  input,
  cached: 0,
  maxOutput: 0,
  ...extra,
});

/** Asks once. What comes back: the hold, or why not. */
function ask(
  limiter: StrictRateLimiter,
  table: RateTable,
  cost: StrictCallCost,
  now: number,
): RateHold | string {
  const { refusal, hold } = limiter.admit('m', table, cost, now);
  return hold ?? `${refusal?.kind} ${refusal?.dimension} ${refusal?.waitMs}`;
}

function granted(...asked: Parameters<typeof ask>): RateHold {
  const answer = ask(...asked);
  if (typeof answer === 'string') throw new Error(answer);
  return answer;
}

const usedOf = (limiter: StrictRateLimiter, table: RateTable, now: number): unknown =>
  Object.fromEntries(limiter.states('m', table, now).map((s) => [s.dimension, s.used]));

describe('requests and tokens', () => {
  const table = { m: { rpm: 3, tpm: 100, windowMs: 1_000 } };

  test('are refused from the first that exceeds until the oldest has left', () => {
    const limiter = new StrictRateLimiter();
    for (const at of [0, 100, 200]) granted(limiter, table, call(1), at);
    expect(ask(limiter, table, call(1), 999)).toBe('requests rpm 1');
    granted(limiter, table, call(1), 1_000);
    expect(ask(limiter, table, call(1), 1_000)).toBe('requests rpm 100');
  });

  test('are taken in one step or not at all', () => {
    const limiter = new StrictRateLimiter();
    granted(limiter, table, call(80), 0);
    expect(ask(limiter, table, call(30), 10)).toBe('tokens tpm 990');
    expect(usedOf(limiter, table, 10)).toEqual({ rpm: 1, tpm: 80 });
  });
});

test('the limits of a model and those of all calls hold together', () => {
  const limiter = new StrictRateLimiter();
  const table = { '*': { rpm: 2, windowMs: 1_000 }, m: { rpm: 1, windowMs: 1_000 } };
  granted(limiter, table, call(1), 0);
  expect(ask(limiter, table, call(1), 0)).toBe('requests rpm 1000');
  expect(limiter.admit('other', table, call(1), 0).refusal).toBeNull();
  expect(limiter.admit('third', table, call(1), 0).refusal).toMatchObject({ limit: 2, used: 2 });
});

describe('what counts of the answer', () => {
  const rates = { tpm: 100, itpm: 100, otpm: 100, windowMs: 1_000 };

  test.each([
    ['max_tokens', { tpm: 50, itpm: 10, otpm: 40 }, { tpm: 50, itpm: 10, otpm: 40 }, 50],
    ['reserved', { tpm: 50, itpm: 10, otpm: 40 }, { tpm: 17, itpm: 10, otpm: 7 }, 17],
    ['produced', { tpm: 10, itpm: 10, otpm: 0 }, { tpm: 17, itpm: 10, otpm: 7 }, 17],
    ['none', { tpm: 10, itpm: 10, otpm: 0 }, { tpm: 10, itpm: 10, otpm: 0 }, 10],
  ] as const)('%s', (countsOutput, atStart, atEnd, counted) => {
    const limiter = new StrictRateLimiter();
    const table = { m: { ...rates, countsOutput } };
    const hold = granted(limiter, table, call(10, { maxOutput: 40 }), 0);
    expect(usedOf(limiter, table, 0)).toEqual(atStart);
    hold.produce(3, 100);
    hold.produce(4, 200);
    hold.settle(300);
    hold.settle(300);
    expect(usedOf(limiter, table, 300)).toEqual(atEnd);
    expect(hold.countedTokens).toBe(counted);
  });
});

test('a cached prompt counts or not', () => {
  const cost = call(10, { cached: 7 });
  for (const countsCached of [true, false]) {
    const limiter = new StrictRateLimiter();
    const table = { m: { itpm: 100, countsCached } };
    granted(limiter, table, cost, 0);
    expect(usedOf(limiter, table, 0)).toEqual({ itpm: countsCached ? 10 : 3 });
  }
});
