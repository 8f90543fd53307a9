// Headers say one after the other how a limit refills: all at once at a reset, or bit by bit.
import { describe, expect, test } from 'vitest';
import {
  callsUnderWay,
  isProvenWindow,
  meanCallTakes,
  noteUnderWay,
  refillSeen,
} from '../../../src/call/limit-windows.ts';
import {
  waitFromHints,
  FEED_FORWARD_DEFAULTS,
} from '../../../src/upstream/refusal/feed-forward.ts';
import type { LimitHint } from '../../../src/core/words/signal.ts';

const START = 1_000_000;
const LIMIT = 60;

const hintOf = (remaining: number, resetMs: number): LimitHint => ({
  dimension: 'requests',
  windowMs: 60_000,
  limit: LIMIT,
  remaining,
  resetMs,
});

describe('of 60 requests in 20 s', () => {
  /** A window that is whole again every 20 s, with resets in whole seconds. */
  const ofWindow = (place: string, paceMs: number, calls: number) =>
    Array.from({ length: calls }, (_, call) => {
      const at = call * paceMs;
      const resetMs = Math.ceil((20_000 - (at % 20_000)) / 1_000) * 1_000;
      const inWindow = Math.floor((at % 20_000) / paceMs) + 1;
      return refillSeen(hintOf(Math.max(0, LIMIT - inWindow), resetMs), place, START + at);
    });

  /** A bucket that gains a request every 333 ms. */
  const ofBucket = (place: string, paceMs: number, calls: number) => {
    let used = 0;
    return Array.from({ length: calls }, (_, call) => {
      used = Math.max(0, used - (call === 0 ? 0 : (paceMs * LIMIT) / 20_000)) + 1;
      const hint = hintOf(Math.floor(LIMIT - used), Math.ceil(used * (20_000 / LIMIT)));
      return refillSeen(hint, place, START + call * paceMs);
    });
  };

  test.each([20, 100, 300])(
    'a window is known before it is empty, at a call every %d ms',
    (paceMs) => {
      const read = ofWindow(`window ${paceMs}`, paceMs, 58);
      expect(read.at(-1)).toBe('window');
      expect(read).not.toContain('continuous');
    },
  );

  test.each([20, 100, 200])('a bucket is known as one, at a call every %d ms', (paceMs) => {
    const read = ofBucket(`bucket ${paceMs}`, paceMs, 58);
    expect(read.at(-1)).toBe('continuous');
    expect(read).not.toContain('window');
  });

  test('what was learned holds in the next window, and answers that overtake each other change nothing', () => {
    ofWindow('next', 100, 58);
    expect(refillSeen(hintOf(59, 20_000), 'next', START + 20_000)).toBe('window');
    expect(refillSeen(hintOf(50, 19_000), 'next', START + 21_000)).toBe('window');
    expect(refillSeen(hintOf(53, 19_000), 'next', START + 21_000)).toBe('window');
  });

  test('a window is proven by several readings that agree, a bucket never', () => {
    const before = ofWindow('proven', 100, 58);
    expect(before).toContain('window');
    expect(isProvenWindow(hintOf(2, 1_000), 'proven')).toBe(true);
    ofBucket('never', 100, 58);
    expect(isProvenWindow(hintOf(2, 1_000), 'never')).toBe(false);
  });

  test('what says that more is left than can be is proven no longer', () => {
    ofWindow('doubtful', 100, 58);
    const place = 'doubtful';
    refillSeen(hintOf(6, 14_000), place, START + 6_000, 6);
    expect(isProvenWindow(hintOf(6, 14_000), place)).toBe(true);
    refillSeen(hintOf(30, 14_000), place, START + 6_000, 6);
    expect(isProvenWindow(hintOf(30, 14_000), place)).toBe(false);
  });

  test('nothing that is always left proves no window', () => {
    for (let at = 0; at < 15_000; at += 100) {
      refillSeen(hintOf(0, 20_000 - at), 'lies', START + at);
    }
    expect(isProvenWindow(hintOf(0, 1_000), 'lies')).toBe(false);
  });

  test('the first reading says nothing, nor do headers without a reset', () => {
    expect(refillSeen(hintOf(1, 1_000), 'first', START)).toBe(null);
    expect(refillSeen({ ...hintOf(1, 0), resetMs: null }, 'first', START)).toBe(null);
  });
});

describe('a window that is nearly empty', () => {
  const waitOf = (remaining: number, resetMs: number, underWay: number) =>
    waitFromHints([hintOf(remaining, resetMs)], () => 'window', {
      ...FEED_FORWARD_DEFAULTS,
      underWay,
    });

  test.each([
    [1, 7_300, 0, 7_300],
    [1, 7_000, 0, 8_000],
    [0, 200, 0, 200],
    [2, 7_300, 0, null],
    [6, 7_300, 5, 7_300],
    [7, 7_300, 5, null],
    [0, 600_000, 0, 65_000],
  ])(
    'with %d left, a reset in %d ms and %d calls under way holds calls for %s ms',
    (remaining, resetMs, underWay, expected) => {
      expect(waitOf(remaining, resetMs, underWay)).toBe(expected);
    },
  );
});

test('calls under way are counted by upstream, and those of lately are expected again', () => {
  noteUnderWay('a', 1, START);
  noteUnderWay('a', 1, START);
  noteUnderWay('a', 1, START);
  noteUnderWay('b', 1, START);
  expect([callsUnderWay('a'), callsUnderWay('b'), callsUnderWay('c')]).toEqual([3, 1, 0]);
  for (let ended = 0; ended < 3; ended += 1) noteUnderWay('a', -1, START + 1);
  expect(callsUnderWay('a')).toBe(2);
  noteUnderWay('a', 1, START + 20_000);
  expect(callsUnderWay('a')).toBe(1);
});

test('what a call takes is the mean fall of what remains, and is kept over a reset', () => {
  const hintOfTokens = (remaining: number, resetMs: number): LimitHint => ({
    ...hintOf(remaining, resetMs),
    dimension: 'tokens',
  });
  for (const remaining of [50, 47, 44, 38]) {
    refillSeen(hintOfTokens(remaining, 9_000), 'mean', START);
  }
  expect(meanCallTakes(hintOfTokens(0, 0), 'mean')).toBe(4);
  expect(meanCallTakes(hintOfTokens(0, 0), 'another')).toBe(0);
  refillSeen(hintOfTokens(58, 20_000), 'mean', START + 9_000);
  expect(meanCallTakes(hintOfTokens(0, 0), 'mean')).toBe(4);
});
