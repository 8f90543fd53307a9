// When messages to a pool that failed together come again: nobody at once, and those in front first.
import { expect, it } from 'vitest';
import {
  firstRetryMs,
  openedRetryMs,
  overloadedRetryMs,
  releasePausesMs,
  resumeMs,
  resumeRetryMs,
  retryMs,
  type Random,
} from '../../../src/call/acquire/retry-delays.ts';

const least: Random = () => 0;
const most: Random = () => 1 - 2 ** -53;

it.each<[string, (random: Random) => number, least: number, most: number]>([
  ['a call that does not know its place', (random) => firstRetryMs(null, random), 50, 150],
  ['the first in the queue', (random) => firstRetryMs(0, random), 100, 100],
  ['one with 1,000 ahead', (random) => firstRetryMs(1_000, random), 850, 1_100],
  ['one with 10,000 ahead', (random) => firstRetryMs(10_000, random), 1_525, 2_000],
  ['the first retry after that', (random) => retryMs(1, random), 0, 100],
  ['the last ones', (random) => retryMs(20, random), 0, 1_000],
  ['what was not taken for overload', (random) => overloadedRetryMs(0, random), 0, 250],
  ['again', (random) => overloadedRetryMs(3, random), 0, 2_000],
  ['and again', (random) => overloadedRetryMs(1_000, random), 0, 4_000],
  ['the end of a pause', (random) => openedRetryMs(0, random), 250, 750],
  ['the same where that is not taken', (random) => openedRetryMs(1, random), 0, 500],
  ['a holder', resumeMs, 0, 100],
  ['a holder that failed', (random) => resumeRetryMs(0, false, random), 0, 50],
  ['a holder that was not taken', (random) => resumeRetryMs(0, true, random), 0, 250],
  ['a holder that failed often', (random) => resumeRetryMs(99, false, random), 0, 4_000],
])('%s', (_, delay, leastMs, mostMs) => {
  expect(delay(least)).toBe(leastMs);
  expect(delay(most)).toBeCloseTo(mostMs, 6);
});

it('holders are back before waiters, and waiters that are far apart in their order', () => {
  expect(resumeMs(most)).toBeLessThan(firstRetryMs(0, least));
  for (let place = 1; place < 1_400; place += 1) {
    expect(firstRetryMs(place, most)).toBeLessThan(
      firstRetryMs(Math.ceil(place / 0.75) + 1, least),
    );
  }
});

it('of 2,000 waiters that come back from a reset no 100 ms see more than 150', () => {
  let state = 1;
  const random: Random = () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
  const perWindow = new Map<number, number>();
  for (let place = 0; place < 2_000; place += 1) {
    const window = Math.floor(firstRetryMs(place, random) / 100);
    perWindow.set(window, (perWindow.get(window) ?? 0) + 1);
  }
  expect(Math.max(...perWindow.values())).toBeLessThanOrEqual(150);
  expect(Math.max(...perWindow.keys())).toBeLessThan(20);
});

it('releases are spread over ten seconds', () => {
  expect(releasePausesMs(most).reduce((sum, ms) => sum + ms)).toBeCloseTo(10_000, 6);
  expect(releasePausesMs(least)).toEqual([0, 0, 0]);
});
