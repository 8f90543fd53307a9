import { describe, expect, test } from 'vitest';
import type { CallCost, RateHold, RateTable } from '../../strict-upstream/rates.ts';
import { StrictRateLimiter, checkRates } from '../../strict-upstream/rates.ts';

const call = (input: number, extra: Partial<CallCost> = {}): CallCost => ({
  input,
  cached: 0,
  maxOutput: 0,
  ...extra,
});

/** Asks once. What comes back: the hold, or why not. */
function ask(
  limiter: StrictRateLimiter,
  table: RateTable,
  cost: CallCost,
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

  test('that run into several limits are told the longest wait', () => {
    const limiter = new StrictRateLimiter();
    const both = { m: { rpm: 1, tpm: 100, windowMs: 1_000 } };
    granted(limiter, { m: { tpm: 100, windowMs: 1_000 } }, call(90), 0);
    granted(limiter, both, call(1), 500);
    expect(ask(limiter, both, call(80), 600)).toBe('requests rpm 900');
  });

  test('that can never fit are told so', () => {
    const limiter = new StrictRateLimiter();
    expect(ask(limiter, table, call(101), 0)).toBe('never_fits tpm null');
    granted(limiter, table, call(100), 0);
  });

  test('of a day are a long window', () => {
    const limiter = new StrictRateLimiter();
    const daily = { m: { rpd: 1, tpd: 50, dayMs: 5_000 } };
    granted(limiter, daily, call(1), 0);
    expect(ask(limiter, daily, call(1), 1_000)).toBe('long_window rpd 4000');
  });

  test('follow a change of the limits at once', () => {
    const limiter = new StrictRateLimiter();
    for (const at of [0, 1, 2]) granted(limiter, table, call(1), at);
    granted(limiter, { m: { ...table.m, rpm: 4 } }, call(1), 3);
    expect(ask(limiter, { m: { ...table.m, rpm: 2 } }, call(1), 4)).toBe('requests rpm 998');
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

  test('is counted at the instant at which it is produced', () => {
    const limiter = new StrictRateLimiter();
    const table = { m: { otpm: 5, windowMs: 1_000 } };
    const hold = granted(limiter, table, call(10), 0);
    hold.produce(5, 700);
    expect(ask(limiter, table, call(10), 1_200)).toBe('tokens otpm 500');
    granted(limiter, table, call(10), 1_700);
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

test('refused calls count as requests only where they are said to', () => {
  const limiter = new StrictRateLimiter();
  const table = {
    '*': { rpm: 9, countsRefused: true },
    m: { rpm: 9, tpm: 9 },
  };
  limiter.countRefused('m', table, 0);
  // The tighter of the two is shown.
  expect(usedOf(limiter, table, 0)).toEqual({ rpm: 1, tpm: 0 });
  expect(usedOf(limiter, { m: table.m }, 0)).toEqual({ rpm: 0, tpm: 0 });
});

test('a rate that does not exist is refused', () => {
  const mistake = { m: { rqm: 5 } } as RateTable;
  expect(() => checkRates(mistake)).toThrow('rqm');
});
