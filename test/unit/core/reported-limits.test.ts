import { expect, test } from 'vitest';
import { areSameLimits, limitsReported } from '../../../src/core/parts/rate-limits.ts';
import type { LimitHint } from '../../../src/core/words/signal.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

function hint(
  dimension: LimitHint['dimension'],
  windowMs: number | null,
  limit: number | null,
): LimitHint {
  return { dimension, windowMs, limit, remaining: 1, resetMs: null };
}

test('limits are told by the names of the configuration, the smaller one of two', () => {
  const hints = [
    hint('requests', MINUTE_MS, 500),
    hint('requests', DAY_MS, 10_000),
    hint('tokens', MINUTE_MS, 30_000),
    hint('tokens', MINUTE_MS, 20_000),
    hint('tokens', DAY_MS, 1_000_000),
    hint('input_tokens', MINUTE_MS, 7),
    hint('output_tokens', MINUTE_MS, 8),
  ];
  expect(limitsReported(hints)).toEqual({
    rpm: 500,
    rpd: 10_000,
    tpm: 20_000,
    tpd: 1_000_000,
    itpm: 7,
    otpm: 8,
  });
});

test('of other spans, without a number, and of 0 nothing is told', () => {
  const hints = [
    hint('requests', null, 20),
    hint('requests', 3_600_000, 20),
    hint('output_tokens', DAY_MS, 20),
    hint('requests', MINUTE_MS, null),
    hint('tokens', MINUTE_MS, 0),
  ];
  expect(limitsReported(hints)).toEqual({});
});

test.each([
  [{ rpm: 1 }, { rpm: 1 }, true],
  [{}, {}, true],
  [{ rpm: 1 }, { rpm: 2 }, false],
  [{ rpm: 1 }, { rpm: 1, tpm: 1 }, false],
])('%o and %o are the same: %s', (one, other, same) => {
  expect(areSameLimits(one, other)).toBe(same);
  expect(areSameLimits(other, one)).toBe(same);
});
