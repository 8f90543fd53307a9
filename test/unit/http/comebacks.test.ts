import { describe, expect, test } from 'vitest';
import type { Refusal } from '../../../src/contract/reasons.ts';
import { Comebacks, COMEBACKS_MAX } from '../../../src/http/comebacks.ts';

/** As a group says it, at the least and at the most. */
const drained = (retryAfterMs: number): Refusal => {
  return { reason: 'draining', message: '', retryAfterMs, isUnforeseen: true };
};

describe('a caller that comes back to what nobody knows the end of', () => {
  test.each([
    [15_000, [15_000, 30_000, 40_000, 40_000]],
    [22_500, [22_500, 45_000, 60_000, 60_000]],
  ])('is told longer with each time, up to a minute: from %i ms', (retryAfterMs, expected) => {
    const comebacks = new Comebacks();
    const told = expected.map((_, index) => {
      return comebacks.space(drained(retryAfterMs), 'ann', index * 60_000).retryAfterMs;
    });
    expect(told).toEqual(expected);
    expect(comebacks.space(drained(15_000), 'bob', 0).retryAfterMs).toBe(15_000);
  });

  test('begins anew after five minutes', () => {
    const comebacks = new Comebacks();
    comebacks.space(drained(15_000), 'ann', 0);
    expect(comebacks.space(drained(15_000), 'ann', 300_000).retryAfterMs).toBe(30_000);
    expect(comebacks.space(drained(15_000), 'ann', 600_001).retryAfterMs).toBe(15_000);
  });
});

test('a wait that can be foreseen stays as it is, and counts for nobody', () => {
  const comebacks = new Comebacks();
  const busy: Refusal = { reason: 'busy', message: '', retryAfterMs: 4_000 };
  expect([1, 2].map((at) => comebacks.space(busy, 'ann', at))).toEqual([busy, busy]);
  expect(comebacks.size).toBe(0);
});

test('no more callers are remembered than the bound, and the longest gone are forgotten', () => {
  const comebacks = new Comebacks();
  for (let index = 0; index <= COMEBACKS_MAX; index += 1) {
    comebacks.space(drained(15_000), `caller-${index}`, index);
  }
  expect(comebacks.size).toBe(COMEBACKS_MAX);
  expect(comebacks.space(drained(15_000), 'caller-0', 5_000).retryAfterMs).toBe(15_000);
});
