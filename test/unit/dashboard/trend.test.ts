import { describe, expect, it } from 'vitest';
import {
  isQueueGrowing,
  lately,
  STEP_MS,
  STEPS,
  until,
  withStatus,
  type Trend,
} from '../../../dashboard/src/model/trend.ts';
import type { GroupStatus } from '../../../dashboard/src/model/status.ts';
import { groupStatus } from './group-status.ts';

const START = 1_000_000 * STEP_MS;

/** Plays words of the feed, each so many milliseconds after the start. */
function trendOf(words: readonly (readonly [ms: number, changes: Partial<GroupStatus>])[]): Trend {
  let trend: Trend | undefined;
  for (const [ms, changes] of words) trend = withStatus(trend, groupStatus(changes), START + ms);
  if (trend === undefined) throw new Error('nothing was said');
  return trend;
}

describe('what a group did lately', () => {
  it('knows nothing of what was before the first word', () => {
    expect(lately(trendOf([[0, { refusals_total: { requests: 40 } }]]), 'refused')).toBe(0);
  });

  it('counts increases, within one step and over several', () => {
    const trend = trendOf([
      [0, { refusals_total: { requests: 40 } }],
      [1_000, { refusals_total: { requests: 41 } }],
      [2_000, { refusals_total: { requests: 41, concurrency: 2 } }],
      [STEP_MS, { refusals_total: { requests: 42, concurrency: 2 } }],
    ]);
    expect(trend.steps.map(({ refused }) => refused)).toEqual([3, 1]);
  });

  it('counts as 429 neither a call that was too large nor an upstream that is ill', () => {
    const trend = trendOf([
      [0, {}],
      [1, { refusals_total: { egress: 1, never_fits: 1, overload: 1, error: 1, tokens: 1 } }],
    ]);
    expect(lately(trend, 'refused')).toBe(1);
  });

  it('starts anew when the totals of the group do', () => {
    const trend = trendOf([
      [0, { expired_total: 7 }],
      [1, { expired_total: 2 }],
    ]);
    expect(lately(trend, 'expired')).toBe(2);
  });

  it('goes on with what stood where nothing was said, without counting it again', () => {
    const trend = trendOf([
      [0, {}],
      [1, { wait_p95_ms: 900, refusals_total: { requests: 1 } }],
      [3 * STEP_MS, { wait_p95_ms: 100, refusals_total: { requests: 1 } }],
    ]);
    expect(trend.steps.map(({ waitP95Ms }) => waitP95Ms)).toEqual([900, 900, 900, 100]);
    expect(trend.steps.map(({ refused }) => refused)).toEqual([1, 0, 0, 0]);
  });

  it('holds five minutes and forgets what was before', () => {
    const trend = trendOf([
      [0, {}],
      [1, { refusals_total: { requests: 1 } }],
    ]);
    const full = until(trend, START + (STEPS - 1) * STEP_MS);
    expect([full.steps.length, lately(full, 'refused')]).toEqual([STEPS, 1]);
    const over = until(full, START + STEPS * STEP_MS);
    expect([over.steps.length, lately(over, 'refused')]).toEqual([STEPS, 0]);
    expect(until(trend, START + 1_000 * STEPS * STEP_MS).steps).toHaveLength(STEPS);
  });
});

describe('a queue grows', () => {
  const queue = (lengths: readonly number[]): Trend =>
    trendOf(lengths.map((queued, i) => [i * STEP_MS, { queued }] as const));

  it.each([
    ['when it is longer than half a minute ago', [0, 1, 2, 3, 4, 5, 6], true],
    ['not when it has been watched for less', [0, 2, 4, 6, 8, 10], false],
    ['not by a few', [0, 0, 0, 0, 0, 0, 4], false],
    ['not by a small part of it', [100, 100, 100, 100, 100, 100, 119], false],
    ['by a fifth of it', [100, 100, 100, 100, 100, 100, 120], true],
    ['not when it shrinks', [30, 25, 20, 15, 10, 5, 0], false],
  ])('%s', (_title, lengths, grows) => {
    expect(isQueueGrowing(queue(lengths))).toBe(grows);
  });
});
