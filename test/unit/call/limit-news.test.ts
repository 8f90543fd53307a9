import { afterEach, expect, test, vi } from 'vitest';
import { newsOfLimits } from '../../../src/call/answer/limit-windows.ts';
import type { LimitHint } from '../../../src/core/words/signal.ts';
import { steadyClock } from '../../../src/runtime/async.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

function rpm(limit: number): LimitHint[] {
  return [{ dimension: 'requests', windowMs: 60_000, limit, remaining: 9, resetMs: null }];
}

test('a pool hears of limits once, when they change, and after an hour; never twice in a minute', () => {
  let now = 1_000_000;
  vi.spyOn(steadyClock, 'now').mockImplementation(() => now);
  const isReported = (limit: number) => newsOfLimits(rpm(limit), 'a pool') !== null;
  expect(newsOfLimits(rpm(5), 'a pool')).toMatchObject({ kind: 'served', hints: rpm(5) });
  expect(isReported(5)).toBe(false);
  expect(isReported(6)).toBe(false);
  now += 60_000;
  expect([isReported(5), isReported(6), isReported(5)]).toEqual([false, true, false]);
  now += 3_599_999;
  expect(isReported(6)).toBe(false);
  now += 1;
  expect(isReported(6)).toBe(true);
});

test('each pool hears of its own, and of what has no name nobody does', () => {
  expect(newsOfLimits(rpm(5), 'one')).not.toBeNull();
  expect(newsOfLimits(rpm(5), 'another')).not.toBeNull();
  const [hint] = rpm(5);
  expect(newsOfLimits(hint === undefined ? [] : [{ ...hint, windowMs: null }], 'third')).toBeNull();
});
