// The last hour of a group is that of its pools together, step by step.
import { expect, it } from 'vitest';
import type { LastHour } from '../../../src/contract/status.ts';
import { joinLastHours, NOTHING_LATELY, restingHour } from '../../../src/overview/joins.ts';

const BUSY: LastHour = {
  granted: 5,
  rejected: { busy: 1 },
  refusals: { requests: 2 },
  steps: { refused: [0, 2], wait_p95_ms: [null, 900] },
};

const OTHER: LastHour = {
  granted: 1,
  rejected: { busy: 2, paused: 1 },
  refusals: {},
  steps: { refused: [3, 1], wait_p95_ms: [20, 30] },
};

it('counts add up, and of waits the longest is told', () => {
  expect(joinLastHours([BUSY, OTHER])).toEqual({
    granted: 6,
    rejected: { busy: 3, paused: 1 },
    refusals: { requests: 2 },
    steps: { refused: [3, 3], wait_p95_ms: [20, 900] },
  });
});

it('a pool in which nothing was changes nothing', () => {
  expect(joinLastHours([NOTHING_LATELY, BUSY, NOTHING_LATELY])).toEqual(BUSY);
  expect(joinLastHours([])).toEqual(NOTHING_LATELY);
});

it('what a pool that rests has said holds for an hour', () => {
  expect(restingHour(BUSY, 3_599_999)).toBe(BUSY);
  expect(restingHour(BUSY, 3_600_000)).toEqual(NOTHING_LATELY);
});

it('steps before a pool recorded anything are unknown, unless another pool did', () => {
  const young = { ...OTHER, steps: { refused: [null, 1], wait_p95_ms: [null, 30] } };
  expect(joinLastHours([young, young]).steps.refused).toEqual([null, 2]);
  expect(joinLastHours([young, BUSY]).steps.refused).toEqual([0, 3]);
});
