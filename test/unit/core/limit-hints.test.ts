import { expect, test } from 'vitest';
import { hintWaitMs } from '../../../src/core/limit-hints.ts';
import type { LimitHint } from '../../../src/core/signal.ts';

const HINT: LimitHint = {
  dimension: 'requests',
  windowMs: 60_000,
  limit: 60,
  remaining: 2,
  resetMs: 30_000,
};

test.each<[string, Partial<LimitHint>, number]>([
  ['nearly out: until one request is back', {}, 1_000],
  ['at the threshold of a small limit', { limit: 20, remaining: 1 }, 3_000],
  ['above the threshold of a small limit', { limit: 20, remaining: 2 }, 0],
  ['enough left', { remaining: 3 }, 0],
  ['out of tokens: until the reset', { dimension: 'tokens', limit: 10_000, remaining: 0 }, 30_000],
  ['out of it, no limit told', { limit: null, remaining: 0 }, 30_000],
  ['something left, no limit told', { limit: null, remaining: 1 }, 0],
  ['no window told', { windowMs: null }, 30_000],
  ['a reset that is nearer than one request', { limit: 1, remaining: 0, resetMs: 900 }, 900],
  ['a reset that is over at once', { resetMs: 499 }, 0],
  ['no reset told', { resetMs: null }, 1_000],
  ['nothing told to wait for', { windowMs: null, resetMs: null }, 0],
  ['a reset far away', { windowMs: null, resetMs: 900_000 }, 65_000],
  ['a day', { windowMs: 86_400_000, remaining: 0 }, 0],
  ['no limit at all', { limit: -1, remaining: -1 }, 0],
  ['a limit of 0', { limit: 0, remaining: 0 }, 0],
  ['nothing told of what is left', { remaining: null }, 0],
])('%s', (_case, changes, expected) => {
  expect(hintWaitMs({ ...HINT, ...changes })).toBe(expected);
});
