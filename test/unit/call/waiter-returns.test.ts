import { describe, expect, test } from 'vitest';
import type { ErrorReply } from '../../../src/contract/reasons.ts';
import { WaiterReturns, RETURNS_MAX } from '../../../src/call/acquire/rejections.ts';

/** As a group says it, at the least and at the most. */
const drained = (retryAfterMs: number): ErrorReply => {
  return { reason: 'draining', message: '', retryAfterMs, isUnforeseen: true };
};

describe('a caller that comes back to what nobody knows the end of', () => {
  test.each([
    [15_000, [15_000, 30_000, 40_000, 40_000]],
    [22_500, [22_500, 45_000, 60_000, 60_000]],
  ])('is told longer with each time, up to a minute: from %i ms', (retryAfterMs, expected) => {
    const returns = new WaiterReturns();
    const reported = expected.map((_, index) => {
      return returns.space(drained(retryAfterMs), 'ann', index * 60_000).retryAfterMs;
    });
    expect(reported).toEqual(expected);
    expect(returns.space(drained(15_000), 'bob', 0).retryAfterMs).toBe(15_000);
  });

  test('is told from a second on, where the limiter is out of reach', () => {
    const returns = new WaiterReturns();
    const refusal: ErrorReply = { reason: 'limiter_unavailable', message: '' };
    const reported: (number | undefined)[] = [];
    for (let now = 0; reported.length < 8; now += (reported.at(-1) ?? 0) + 3_000) {
      reported.push(returns.space(refusal, 'ann', now).retryAfterMs);
    }
    expect(reported).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 40_000, 40_000]);
  });

  test('is told the same with all the calls that it has under way', () => {
    const returns = new WaiterReturns();
    const reported = (now: number) => returns.space(drained(22_500), 'ann', now).retryAfterMs;
    expect([0, 10, 14_999].map(reported)).toEqual([22_500, 22_500, 22_500]);
    expect([15_000, 15_010, 44_999].map(reported)).toEqual([45_000, 45_000, 45_000]);
    expect(reported(45_000)).toBe(60_000);
  });

  test('begins anew after five minutes', () => {
    const returns = new WaiterReturns();
    returns.space(drained(15_000), 'ann', 0);
    expect(returns.space(drained(15_000), 'ann', 300_000).retryAfterMs).toBe(30_000);
    expect(returns.space(drained(15_000), 'ann', 600_001).retryAfterMs).toBe(15_000);
  });
});

test('a wait that can be foreseen stays as it is, and counts for nobody', () => {
  const returns = new WaiterReturns();
  const busy: ErrorReply = { reason: 'busy', message: '', retryAfterMs: 4_000 };
  expect([1, 2].map((at) => returns.space(busy, 'ann', at))).toEqual([busy, busy]);
  expect(returns.size).toBe(0);
});

test('no more callers are remembered than the bound, and the longest gone are forgotten', () => {
  const returns = new WaiterReturns();
  for (let index = 0; index <= RETURNS_MAX; index += 1) {
    returns.space(drained(15_000), `caller-${index}`, index);
  }
  expect(returns.size).toBe(RETURNS_MAX);
  expect(returns.space(drained(15_000), 'caller-0', 5_000).retryAfterMs).toBe(15_000);
});
