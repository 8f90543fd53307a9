import { beforeEach, describe, expect, test } from 'vitest';
import { instant } from '../../../src/core/words/ids.ts';
import {
  count,
  emptyWindow,
  uncount,
  usedAt,
  windowFitsAt,
  windowSpare,
  type Window,
} from '../../../src/core/parts/rate-limits.ts';

/** 100 in any minute, counted in bins of a second. */
const PARAMS = { limit: 100, lengthMs: 60_000, binMs: 1_000, marginMs: 500 };
const at = (ms: number) => instant(7_000_000 + ms);

/** When what was taken in the first second has left. */
const LEFT = 1_000 + 60_000 + 500;

let window: Window;

beforeEach(() => {
  window = emptyWindow();
});

test('what was taken counts until a minute after the end of its bin, and a margin', () => {
  count(window, PARAMS, 30, at(0));
  count(window, PARAMS, 5, at(999));
  expect(usedAt(window, PARAMS, at(LEFT - 1))).toBe(35);
  expect(usedAt(window, PARAMS, at(LEFT))).toBe(0);
});

test('an amount fits up to the limit exactly', () => {
  count(window, PARAMS, 85, at(0));
  expect(windowFitsAt(window, PARAMS, 15, at(0))).toBe(at(0));
  expect(windowFitsAt(window, PARAMS, 16, at(0))).toBe(at(LEFT));
});

test('it fits when enough of the oldest has left', () => {
  count(window, PARAMS, 50, at(0));
  count(window, PARAMS, 40, at(5_000));
  count(window, PARAMS, 10, at(9_000));
  expect(windowFitsAt(window, PARAMS, 15, at(10_000))).toBe(at(LEFT));
  count(window, PARAMS, 45, at(10_000));
  expect(windowFitsAt(window, PARAMS, 15, at(10_000))).toBe(at(LEFT + 5_000));
});

test('what has left makes no room a second time', () => {
  count(window, PARAMS, 50, at(0));
  count(window, PARAMS, 90, at(30_000));
  expect(windowFitsAt(window, PARAMS, 20, at(LEFT))).toBe(at(LEFT + 30_000));
});

test('a large amount fits whole or not at all, and never where it is more than the limit', () => {
  count(window, PARAMS, 1, at(0));
  expect(windowFitsAt(window, PARAMS, 99, at(0))).toBe(at(0));
  expect(windowFitsAt(window, PARAMS, 100, at(0))).toBe(at(LEFT));
  expect(windowFitsAt(window, PARAMS, 101, at(0))).toBe(Infinity);
});

test('what may be taken before another amount is what that leaves', () => {
  count(window, PARAMS, 60, at(0));
  count(window, PARAMS, 30, at(5_000));
  expect(windowSpare(window, PARAMS, 50, at(LEFT))).toBeCloseTo(20);
  expect(windowSpare(window, PARAMS, 50, at(LEFT - 1))).toBeCloseTo(-40);
});

test('a limit of 0 lets nothing pass, and nothing always fits', () => {
  expect(windowFitsAt(window, { ...PARAMS, limit: 0 }, 1, at(0))).toBe(Infinity);
  expect(windowFitsAt(window, { ...PARAMS, limit: 0 }, 0, at(0))).toBe(at(0));
});

test('it holds no more entries than it has bins', () => {
  for (let ms = 0; ms < 600_000; ms += 250) count(window, PARAMS, 1, at(ms));
  expect(window.bins.length).toBeLessThanOrEqual(62);
});

describe('what is taken back', () => {
  test('counts less in its own bin', () => {
    count(window, PARAMS, 30, at(0));
    count(window, PARAMS, 30, at(2_000));
    uncount(window, PARAMS, 25, at(0));
    expect(usedAt(window, PARAMS, at(3_000))).toBe(35);
    expect(usedAt(window, PARAMS, at(LEFT))).toBe(30);
  });

  test('changes nothing once it has left, whoever took since', () => {
    count(window, PARAMS, 30, at(0));
    count(window, PARAMS, 30, at(LEFT + 10));
    uncount(window, PARAMS, 30, at(0));
    expect(usedAt(window, PARAMS, at(LEFT + 10))).toBe(30);
  });

  test('is no more than was taken', () => {
    count(window, PARAMS, 30, at(0));
    uncount(window, PARAMS, 90, at(0));
    expect(usedAt(window, PARAMS, at(0))).toBe(0);
  });
});

test('a clock that goes back forgets nothing and counts as late as it was', () => {
  count(window, PARAMS, 30, at(10_000));
  count(window, PARAMS, 5, at(0));
  expect(usedAt(window, PARAMS, at(LEFT))).toBe(35);
  expect(windowFitsAt(window, PARAMS, 65, at(-5_000))).toBe(at(-5_000));
  expect(windowFitsAt(window, PARAMS, 66, at(-5_000))).toBe(at(LEFT + 10_000));
});

test('it is the same after it was written and read', () => {
  count(window, PARAMS, 90, at(0));
  const read = JSON.parse(JSON.stringify(window)) as Window;
  expect(windowFitsAt(read, PARAMS, 20, at(0))).toBe(at(LEFT));
});
