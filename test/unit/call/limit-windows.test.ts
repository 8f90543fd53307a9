// Headers say one after the other how a limit refills: all at once at a reset, or bit by bit.
import { describe, expect, test } from 'vitest';
import {
  callsUnderWay,
  isProven,
  meanCallTakes,
  noteUnderWay,
  refillSeen,
  waitAfterRefusal,
} from '../../../src/call/answer/limit-windows.ts';
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
    'a window is detected before it is empty, with a call every %d ms',
    (paceMs) => {
      const read = ofWindow(`window ${paceMs}`, paceMs, 58);
      expect(read.at(-1)).toBe('window');
      expect(read).not.toContain('continuous');
    },
  );

  test.each([20, 100, 200])('a bucket is detected, with a call every %d ms', (paceMs) => {
    const read = ofBucket(`bucket ${paceMs}`, paceMs, 58);
    expect(read.at(-1)).toBe('continuous');
    expect(read).not.toContain('window');
  });

  test('the detected kind stays in the next window, and answers that overtake each other do not change it', () => {
    ofWindow('next', 100, 58);
    expect(refillSeen(hintOf(59, 20_000), 'next', START + 20_000)).toBe('window');
    expect(refillSeen(hintOf(50, 19_000), 'next', START + 21_000)).toBe('window');
    expect(refillSeen(hintOf(53, 19_000), 'next', START + 21_000)).toBe('window');
  });

  test('several readings that agree prove a window, but never a bucket', () => {
    const before = ofWindow('proven', 100, 58);
    expect(before).toContain('window');
    expect(isProven(hintOf(2, 1_000), 'proven')).toBe(true);
    ofBucket('never', 100, 58);
    expect(isProven(hintOf(2, 1_000), 'never')).toBe(false);
  });

  test('a reading with more left than possible revokes the proof', () => {
    ofWindow('doubtful', 100, 58);
    const place = 'doubtful';
    refillSeen(hintOf(6, 14_000), place, START + 6_000, 6);
    expect(isProven(hintOf(6, 14_000), place)).toBe(true);
    refillSeen(hintOf(30, 14_000), place, START + 6_000, 6);
    expect(isProven(hintOf(30, 14_000), place)).toBe(false);
  });

  test('a limit that is always at 0 proves no window', () => {
    for (let at = 0; at < 15_000; at += 100) {
      refillSeen(hintOf(0, 20_000 - at), 'lies', START + at);
    }
    expect(isProven(hintOf(0, 1_000), 'lies')).toBe(false);
  });

  test('the first reading and headers without a reset show nothing', () => {
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

test('calls in flight are counted by upstream, and the recent maximum is expected again', () => {
  const answered = ['a', 'a', 'a', 'b'].map((place) => noteUnderWay(place, START));
  expect([callsUnderWay('a'), callsUnderWay('b'), callsUnderWay('c')]).toEqual([3, 1, 0]);
  for (const note of answered.slice(0, 3)) note();
  expect(callsUnderWay('a')).toBe(2);
  noteUnderWay('a', START + 20_000);
  expect(callsUnderWay('a')).toBe(1);
});

test('the amount of a call is the mean decrease of the remaining amount, and is kept over a reset', () => {
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

describe('a limit whose resets are reported exactly', () => {
  /** Reads what is left of `limit` after each of some calls, and what that shows. */
  const read = (
    place: string,
    { limit, calls, fromMs }: { limit: number; calls: number; fromMs: number },
    resetMsOf: (used: number, at: number) => number,
  ) =>
    Array.from({ length: calls }, (_, call) => {
      const used = call + 1;
      const at = fromMs + call * 7;
      const hint = { ...hintOf(limit - used, resetMsOf(used, at)), limit };
      return refillSeen(hint, place, START + at);
    }).at(-1);

  test.each([
    ['of a second', { limit: 20, calls: 10, fromMs: 3 }, 1_000],
    ['of two seconds', { limit: 20, calls: 6, fromMs: 3 }, 2_000],
    ['of a minute, in its last 2 s', { limit: 60, calls: 30, fromMs: 58_003 }, 60_000],
  ])('is known as a window %s', (name, readings, windowMs) => {
    expect(read(`exact ${name}`, readings, (_, at) => windowMs - at - 0.5)).toBe('window');
  });

  test('is detected as a bucket of a second', () => {
    const readings = { limit: 20, calls: 10, fromMs: 3 };
    const perRequestMs = 1_000 / 20;
    const resetMsOf = (used: number, at: number) => used * perRequestMs - at * 0.9 + 0.5;
    expect(read('exact bucket', readings, resetMsOf)).toBe('continuous');
  });

  test('shows nothing in such a short window if its resets are in whole seconds', () => {
    const readings = { limit: 20, calls: 10, fromMs: 3 };
    expect(read('rounded', readings, () => 1_000)).toBe(null);
  });
});

describe('after a refusal', () => {
  const refused = hintOf(0, 20_000);
  const waitOf = (
    place: string,
    {
      now = START,
      underWay = 0,
      hint = refused,
    }: { now?: number; underWay?: number; hint?: LimitHint } = {},
    refill: Parameters<typeof waitAfterRefusal>[2] = { usual: 'continuous', isSet: false },
  ) => waitAfterRefusal(hint, place, refill, { ...FEED_FORWARD_DEFAULTS, now, underWay });

  test.each([
    ['one request', {}, 334],
    ['a request for each call under way', { underWay: 5 }, 2_000],
    ['what is missing beside what is left', { underWay: 5, hint: hintOf(4, 18_667) }, 667],
    ['no more than the whole limit', { underWay: 99 }, 20_000],
    ['a twentieth of the tokens', { hint: { ...refused, dimension: 'tokens' } }, 1_000],
    ['the window, where no reset is told', { hint: { ...refused, resetMs: null } }, 1_000],
    ['nothing that is known', { hint: { ...refused, limit: null } }, 20_000],
  ] as const)('a bucket is waited for until the refill of %s', (what, seen, expected) => {
    expect(waitOf(`refused ${what}`, seen)).toBe(expected);
  });

  test('calls wait for the reset of a window', () => {
    const reset = 20_000;
    expect(waitOf('set', {}, { usual: 'window', isSet: true })).toBe(reset);
    expect(waitOf('usual', {}, { usual: 'window', isSet: false })).toBe(reset);
    refillSeen(hintOf(59, 20_000), 'learned', START);
    refillSeen(hintOf(20, 19_000), 'learned', START + 1_000);
    expect(waitOf('learned', { now: START + 2_000 })).toBe(reset);
    expect(waitOf('learned', {}, { usual: 'continuous', isSet: true })).toBe(334);
  });

  test('after a refill that was too short, calls wait for the reset, until a call is served', () => {
    const place = 'too short';
    expect(waitOf(place)).toBe(334);
    expect(waitOf(place, { now: START + 100 })).toBe(334);
    expect(waitOf(place, { now: START + 400 })).toBe(20_000);
    refillSeen(hintOf(0, 19_900), place, START + 500);
    expect(waitOf(place, { now: START + 600 })).toBe(334);
  });

  test.each([
    [60_000, 60_000],
    [3_600_000, null],
  ])(
    'where no reset is told, a window of %d ms is waited for until it must have ended',
    (windowMs, expected) => {
      const hint = { ...refused, windowMs, resetMs: null };
      const place = `no reset ${windowMs}`;
      waitOf(place, { hint });
      expect(waitOf(place, { hint, now: START + windowMs })).toBe(expected);
    },
  );

  test('an unknown bucket is used once it has refused a call', () => {
    const place = 'unknown bucket';
    for (let used = 1; used <= 30; used += 1) {
      refillSeen(hintOf(LIMIT - used, used * 333), place, START + used);
    }
    expect(isProven(refused, place)).toBe(false);
    waitOf(place, { hint: hintOf(10, 17_000) });
    expect(isProven(refused, place)).toBe(false);
    waitOf(place);
    expect(isProven(refused, place)).toBe(true);
  });
});
