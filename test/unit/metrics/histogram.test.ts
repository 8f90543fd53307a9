import { describe, expect, it } from 'vitest';
import {
  addCounts,
  BOUNDS_MS,
  countsSince,
  emptyCounts,
  emptyHistogram,
  observe,
  quantileMs,
} from '../../../src/core/parts/totals.ts';

function of(...durationsMs: number[]): ReturnType<typeof emptyHistogram> {
  const histogram = emptyHistogram();
  for (const durationMs of durationsMs) observe(histogram, durationMs);
  return histogram;
}

describe('a histogram', () => {
  it.each([
    ['nothing', 0, 0],
    ['a clock that went back', -5, 0],
    ['the first bound', 10, 0],
    ['more than the first bound', 10.5, 1],
    ['a bound in the middle', 81_920, 13],
    ['the last bound', 655_360, 16],
    ['more than the last bound', 655_361, 17],
    ['for ever', Infinity, 17],
  ])('counts %s where Prometheus would', (_what, durationMs, bucket) => {
    expect(of(durationMs).counts.indexOf(1)).toBe(bucket);
  });

  it('adds up durations, and none below 0', () => {
    expect(of(5, 20, -7).sumMs).toBe(25);
  });

  it('has the bounds of the GenAI conventions, and three more', () => {
    expect(BOUNDS_MS.slice(0, 14).map((ms) => ms / 1_000)).toEqual([
      0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
    ]);
    expect(BOUNDS_MS).toHaveLength(17);
  });
});

describe('a quantile', () => {
  it.each([
    ['no calls', [], 0.5, null],
    ['all at once', [0, 0, 0, 0], 0.5, 5],
    ['half of a bucket', [15, 15], 0.5, 15],
    ['all of a bucket', [15, 15], 1, 20],
    ['the rare long one', [...Array.from({ length: 19 }, () => 0), 100], 0.95, 10],
    ['the rare long one, beyond it', [...Array.from({ length: 19 }, () => 0), 100], 0.99, 144],
    ['longer than the last bound', [10_000_000], 0.5, 655_360],
  ] as const)('of %s', (_what, durationsMs, share, expected) => {
    expect(quantileMs(of(...durationsMs).counts, share)).toBe(expected);
  });
});

it('tells what came since an earlier copy, and adds up what came apart', () => {
  const histogram = of(5);
  const before = [...histogram.counts];
  observe(histogram, 15);
  const since = countsSince(histogram.counts, before);
  expect(since).toEqual(of(15).counts);
  expect(addCounts(before, since)).toEqual(histogram.counts);
  expect(addCounts(emptyCounts(), since)).toEqual(since);
});
