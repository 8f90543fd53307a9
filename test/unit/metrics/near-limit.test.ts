/** When a pool has been near its limit for a minute, however few slots it has. */
import { describe, expect, it } from 'vitest';
import { instant } from '../../../src/core/words/ids.ts';
import { NearLimit } from '../../../src/group/observe/limit-warnings.ts';

/** Slots in use, and for how many milliseconds. */
type NearLimitSpan = readonly [inUse: number, ms: number];

/** Plays spans one after the other; gives the seconds at which a minute was over, and the mean of each. */
function play(spans: readonly NearLimitSpan[], limit: number, warnAt: number | null = 0.8) {
  const near = new NearLimit();
  const reported: (readonly [atS: number, mean: number])[] = [];
  let now = 1_000_000;
  for (const [inUse, ms] of spans) {
    for (const until = now + ms; now < until; now = Math.min(until, now + 5_000)) {
      const mean = near.note(inUse, limit, warnAt, instant(now));
      if (mean !== null) reported.push([(now - 1_000_000) / 1_000, Math.round(100 * mean) / 100]);
    }
  }
  return reported;
}

const times = (count: number, spans: readonly NearLimitSpan[]): NearLimitSpan[] =>
  Array.from({ length: count }, () => spans).flat();

describe('a minute near the limit', () => {
  it.each([
    [1, 1],
    [2, 2],
    [3, 3],
    [4, 4],
    [5, 4],
    [15, 12],
  ])('of %i slots is over after a minute at %i, and one less is not near', (limit, inUse) => {
    expect(play([[inUse, 65_000]], limit)).toEqual([[60, inUse]]);
    expect(play([[inUse - 1, 300_000]], limit)).toEqual([]);
    expect(play([[inUse, 55_000]], limit)).toEqual([]);
  });

  it.each([
    [0.55, 100, 55],
    [0.29, 100, 29],
    [0.07, 300, 21],
  ])('is reached at exactly %d of %i slots', (warnAt, limit, inUse) => {
    expect(play([[inUse, 65_000]], limit, warnAt)).toEqual([[60, inUse]]);
    expect(play([[inUse - 1, 300_000]], limit, warnAt)).toEqual([]);
  });

  it.each([1, 2, 4, 5])('of %i slots is not begun anew by each call that ends', (limit) => {
    const calls = times(8, [
      [limit, 9_900],
      [limit - 1, 100],
    ]);
    expect(play(calls, limit)).toHaveLength(1);
  });

  it('is not told where the slots were free for much of it', () => {
    const half = times(40, [
      [1, 5_000],
      [0, 5_000],
    ]);
    expect(play(half, 1)).toEqual([]);
    expect(
      play(
        times(10, [
          [5, 40_000],
          [0, 20_000],
        ]),
        5,
      ),
    ).toEqual([]);
  });

  it('begins when it is near: what was before, or a limit that was changed, does not count', () => {
    expect(
      play(
        [
          [0, 600_000],
          [5, 65_000],
        ],
        5,
      ),
    ).toEqual([[660, 5]]);
    const near = new NearLimit();
    near.note(4, 5, 0.8, instant(0));
    expect(near.note(4, 4, 0.8, instant(59_000))).toBeNull();
    expect(near.note(4, 4, 0.8, instant(61_000))).toBeNull();
    expect(near.note(4, 4, 0.8, instant(119_000))).toBe(4);
  });

  it('is none where nobody wants to know, or there is no limit', () => {
    expect(play([[5, 300_000]], 5, null)).toEqual([]);
    expect(play([[5, 300_000]], Infinity)).toEqual([]);
    expect(play([[0, 300_000]], 0)).toEqual([]);
  });
});
