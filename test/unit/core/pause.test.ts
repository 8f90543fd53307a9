import { beforeEach, describe, expect, test } from 'vitest';
import { instant, leaseId, type InstantMs } from '../../../src/core/words/ids.ts';
import {
  emptyPause,
  isPaused,
  nextChangeAt,
  noteServed,
  pauseFor,
  rampSlotsMax,
  type Pause,
} from '../../../src/core/parts/pause.ts';

const NOW = instant(5_000_000);
const at = (ms: number) => instant(NOW + ms);

let pause: Pause;

beforeEach(() => {
  pause = emptyPause();
});

/** A refusal after so many ms, of a call that was granted just before. */
function refuse(ms: number, retryAfterMs: number | null, isLongWindow = false): void {
  pauseFor(pause, { grantedAt: at(ms - 1), retryAfterMs, isLongWindow }, at(ms));
}

/** A call was served that was granted then. */
function served(grantedAt: InstantMs, now: InstantMs): void {
  noteServed(pause, { leaseId: leaseId('some.1'), grantedAt, isMistake: false }, now);
}

/** How long the pause lasts from then on. */
function pausedMs(ms = 0): number {
  return pause.until - at(ms);
}

test('a group that was never paused has all its slots', () => {
  expect(isPaused(pause, NOW)).toBe(false);
  expect(rampSlotsMax(pause, 64, NOW)).toBe(64);
  expect(nextChangeAt(pause, 64, NOW)).toBe(Infinity);
});

test('a pause lasts as long as the upstream says, to the millisecond', () => {
  refuse(0, 7_300);
  expect(isPaused(pause, at(7_299))).toBe(true);
  expect(isPaused(pause, at(7_300))).toBe(false);
});

test('a later refusal extends a pause and never shortens it', () => {
  refuse(0, 7_000);
  refuse(100, 2_000);
  expect(pausedMs()).toBe(7_000);
  refuse(200, 9_000);
  expect(pausedMs()).toBe(9_200);
});

test.each([
  [false, 365 * 86_400_000, 3_600_000],
  [true, 5 * 86_400_000, 5 * 86_400_000],
  [true, 365 * 86_400_000, 31 * 86_400_000],
])('with a long window (%s), %d ms asked for are %d ms', (isLongWindow, askedMs, expected) => {
  refuse(0, askedMs, isLongWindow);
  expect(pausedMs()).toBe(expected);
});

describe('where the upstream does not say how long', () => {
  /** The lengths of so many pauses, one after the other. */
  function lengths(pauses: number, isLongWindow = false): number[] {
    let ms = 0;
    return Array.from({ length: pauses }, () => {
      refuse(ms, null, isLongWindow);
      const lengthMs = pausedMs(ms);
      ms += lengthMs + 1_000;
      return lengthMs / 1_000;
    });
  }

  test('each pause is twice as long, up to a minute', () => {
    expect(lengths(8)).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
  });

  test('those for a long window are longer', () => {
    expect(lengths(6, true)).toEqual([60, 120, 240, 480, 600, 600]);
  });

  test('a burst of refusals is one', () => {
    const cause = { retryAfterMs: null, isLongWindow: false };
    for (let index = 0; index < 9; index += 1) {
      pauseFor(pause, { ...cause, grantedAt: at(-50 + index) }, at(index));
    }
    expect(pausedMs()).toBe(1_000);
  });

  test('a call that was served begins anew, if it was granted since', () => {
    lengths(3);
    served(pause.notedAt, at(49_000));
    refuse(50_000, null);
    expect(pausedMs(50_000)).toBe(8_000);
    served(at(50_001), at(51_000));
    refuse(90_000, null);
    expect(pausedMs(90_000)).toBe(1_000);
  });
});

describe('after a pause', () => {
  test('the slots come back a quarter first, then twice as many every 2 s', () => {
    refuse(0, 10_000);
    const seen = [9_999, 10_000, 11_999, 12_000, 13_999, 14_000].map((ms) => {
      return rampSlotsMax(pause, 10, at(ms));
    });
    expect(seen).toEqual([0, 3, 3, 6, 6, 10]);
  });

  test.each([
    [1, 1],
    [2, 1],
    [0, 0],
    [Infinity, Infinity],
  ])('of %d slots there are %d at first', (slotsMax, expected) => {
    refuse(0, 1_000);
    expect(rampSlotsMax(pause, slotsMax, at(1_000))).toBe(expected);
  });

  test('it says when there will be more', () => {
    refuse(0, 10_000);
    const from = (ms: number) => nextChangeAt(pause, 10, at(ms)) - NOW;
    expect([from(0), from(10_000), from(11_999), from(12_000)]).toEqual([
      10_000, 12_000, 12_000, 14_000,
    ]);
    expect(from(14_000)).toBe(Infinity);
  });

  test('another one begins it anew', () => {
    refuse(0, 1_000);
    refuse(60_000, 1_000);
    expect(rampSlotsMax(pause, 100, at(61_000))).toBe(25);
  });
});

test('it is the same after it was written and read', () => {
  refuse(0, 10_000);
  expect(JSON.parse(JSON.stringify(pause))).toEqual(pause);
});
