import { describe, expect, test } from 'vitest';
import type { LimitHint } from '../../../../src/core/words/signal.ts';
import {
  FEED_FORWARD_DEFAULTS,
  type FeedForwardOptions,
  waitFromHints,
} from '../../../../src/upstream/refusal/feed-forward.ts';

function requests(changes: Partial<LimitHint> = {}): LimitHint {
  return {
    dimension: 'requests',
    windowMs: 60_000,
    limit: 60,
    remaining: 0,
    resetMs: 60_000,
    ...changes,
  };
}

function tokens(changes: Partial<LimitHint> = {}): LimitHint {
  return { ...requests(), dimension: 'tokens', limit: 30_000, ...changes };
}

describe('requests are nearly empty', () => {
  test.each([
    [60, 2, false],
    [60, 1, true],
    [1_000, 2, false],
    [1_000, 1, true],
    [30, 2, false],
    [30, 1, true],
    [20, 1, false],
    [20, 0, true],
    [1, 1, false],
    [1, 0, true],
  ])('of %i with %i left: %s', (limit, remaining, expected) => {
    const hint = requests({ limit, remaining });
    expect(waitFromHints([hint], () => 'continuous') !== null).toBe(expected);
  });

  test('without a limit when none is left', () => {
    expect(waitFromHints([requests({ limit: null })], () => 'continuous')).toBe(60_000);
    expect(waitFromHints([requests({ limit: null, remaining: 1 })], () => 'continuous')).toBeNull();
  });
});

describe('tokens are nearly empty', () => {
  test.each([
    ['tokens', 1_500, false],
    ['tokens', 1_499, true],
    ['input_tokens', 1_499, true],
    ['output_tokens', 1_499, true],
  ] as const)('%s of 30000 with %i left: %s', (dimension, remaining, expected) => {
    const hint = tokens({ dimension, remaining });
    expect(waitFromHints([hint], () => 'continuous') !== null).toBe(expected);
  });
});

describe('the wait', () => {
  test.each([
    ['one request, which takes as long as each of those used', requests(), 'continuous', 1_000],
    [
      'one request of a bucket that holds a day',
      requests({ limit: 10_000, resetMs: 8.64e7 }),
      'continuous',
      8_640,
    ],
    [
      'one request of the window where no reset is told',
      requests({ resetMs: null }),
      'continuous',
      1_000,
    ],
    [
      'tokens up to the threshold',
      tokens({ remaining: 500, resetMs: 59_000 }),
      'continuous',
      2_000,
    ],
    [
      'tokens of the window where no reset is told',
      tokens({ remaining: 500, resetMs: null }),
      'continuous',
      2_000,
    ],
    ['the end of a window', requests({ resetMs: 41_000 }), 'window', 42_000],
    [
      'a minute and a bit at most',
      requests({ windowMs: 3_600_000, resetMs: 3_000_000 }),
      'window',
      65_000,
    ],
    [
      'one request of a limit of one',
      requests({ limit: 1, resetMs: 59_000 }),
      'continuous',
      59_000,
    ],
  ] as const)('is that of %s', (_, hint, refill, expected) => {
    expect(waitFromHints([hint], () => refill)).toBe(expected);
  });

  test('is the longest of all limits', () => {
    const hints = [requests(), tokens({ remaining: 0 }), requests({ remaining: 60 })];
    expect(waitFromHints(hints, () => 'continuous')).toBe(3_000);
    expect(waitFromHints([], () => 'continuous')).toBeNull();
  });
});

describe('what holds nobody back', () => {
  test.each([
    ['a limit of 0', requests({ limit: 0 })],
    ['a window of a day', requests({ windowMs: 86_400_000 })],
    ['a window of a month', tokens({ windowMs: 30 * 86_400_000 })],
    ['a limit that does not say what remains', requests({ remaining: null })],
    ['a window that tells no end', requests({ limit: null, resetMs: null })],
  ])('%s', (_, hint) => {
    expect(waitFromHints([hint], () => 'continuous')).toBeNull();
    expect(waitFromHints([hint], () => 'window')).toBeNull();
  });

  test('in a bucket, a reset that is almost reached', () => {
    expect(waitFromHints([requests({ resetMs: 499 })], () => 'continuous')).toBeNull();
    expect(waitFromHints([requests({ resetMs: 499 })], () => 'window')).toBe(499);
  });
});

describe('the thresholds', () => {
  test.each([
    ['requestsMax', { requestsMax: 3 }, requests({ limit: 1_000, remaining: 2 }), 61],
    ['share', { share: 0.5 }, tokens({ remaining: 14_000, resetMs: 16_000 }), 1_000],
    ['resetMsMin', { resetMsMin: 100 }, requests({ resetMs: 300 }), 5],
    ['waitMsMax', { waitMsMax: 500 }, requests(), 500],
  ] as const)('are configurable: %s', (_, changes, hint, expected) => {
    const before = waitFromHints([hint], () => 'continuous');
    expect(before).not.toBe(expected);
    const options = { ...FEED_FORWARD_DEFAULTS, ...changes };
    expect(waitFromHints([hint], () => 'continuous', options)).toBe(expected);
  });
});

describe('tokens of a window', () => {
  const kept: readonly (readonly [string, Partial<FeedForwardOptions>, number])[] = [
    ['a twentieth', {}, 1_500],
    ['what a call takes, if that is more', { tokensOf: () => 2_000 }, 2_000],
    ['what calls under way take too', { tokensOf: () => 2_000, underWay: 5 }, 12_000],
    ['at most half of the limit for those', { tokensOf: () => 9_000, underWay: 5 }, 15_000],
    ['keep_tokens', { tokensMax: 4_000 }, 4_000],
    ['half of the limit, if keep_tokens is more', { tokensMax: 90_000 }, 15_000],
    ['nothing where keep_tokens is 0', { tokensMax: 0 }, 0],
  ];
  const waits = (remaining: number, options: Partial<FeedForwardOptions>) =>
    waitFromHints([tokens({ remaining })], () => 'window', {
      ...FEED_FORWARD_DEFAULTS,
      ...options,
    }) !== null;

  test.each(kept)('are nearly empty below %s', (_, options, least) => {
    expect(waits(least, options)).toBe(false);
    expect(waits(least - 1, options)).toBe(true);
  });
});

describe('calls under way', () => {
  const waitOf = (remaining: number, underWay: number, changes: Partial<FeedForwardOptions> = {}) =>
    waitFromHints(
      [requests({ remaining, resetMs: 1_000 * (60 - remaining) })],
      () => 'continuous',
      {
        ...FEED_FORWARD_DEFAULTS,
        underWay,
        ...changes,
      },
    );

  test.each([
    [7, 5, null],
    [6, 5, 1_000],
    [4, 5, 2_000],
    [0, 5, 6_000],
    [1, 0, 1_000],
  ])(
    'have room in a bucket: with %d left and %d under way it waits for %s ms',
    (left, underWay, ms) => {
      expect(waitOf(left, underWay)).toBe(ms);
    },
  );

  test('have none where no requests are kept', () => {
    expect(waitOf(0, 5, { requestsMax: 0 })).toBeNull();
  });

  test('have room for their tokens too', () => {
    const hint = tokens({ remaining: 2_000, resetMs: 56_000 });
    const options = { ...FEED_FORWARD_DEFAULTS, underWay: 3, tokensOf: () => 1_000 };
    // A twentieth for the next one, and a thousand for each of the three.
    expect(waitFromHints([hint], () => 'continuous', options)).toBe(5_000);
  });
});

test('an instant in whole seconds may be rounded down too', () => {
  const options = { ...FEED_FORWARD_DEFAULTS, now: 1_700_000_000_400 };
  const waitOf = (resetMs: number) =>
    waitFromHints([requests({ resetMs })], () => 'window', options);
  expect(waitOf(7_600)).toBe(8_600);
  expect(waitOf(7_601)).toBe(7_601);
});
