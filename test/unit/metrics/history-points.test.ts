// Points of a history are added up over time, and over the pools of a group.
import { expect, it } from 'vitest';
import type { HistoryPoint } from '../../../src/contract/history.ts';
import { emptyCounts } from '../../../src/core/parts/histogram.ts';
import { inSteps, joinPools } from '../../../src/history/points.ts';

const EMPTY: HistoryPoint = {
  at: 0,
  inUseMax: 0,
  slotMs: 0,
  limit: 4,
  limitConfigured: 4,
  queuedMax: 0,
  waits: emptyCounts(),
  granted: 0,
  rejected: {},
  refusals: {},
  inputTokens: 0,
  outputTokens: 0,
  usd: 0,
};

const BUSY: HistoryPoint = {
  ...EMPTY,
  inUseMax: 3,
  granted: 5,
  grantedByMember: { a: 3, b: 2 },
  refusedByMember: {},
  inUseMaxByMember: { a: 2, b: 1 },
};
const LATER: HistoryPoint = {
  ...BUSY,
  at: 60_000,
  inUseMax: 2,
  inUseMaxByMember: { b: 2, c: 1 },
};

it('of several minutes the most in use is that of one of them, and grants add up', () => {
  expect(inSteps([BUSY, LATER], 120_000)).toMatchObject([
    {
      at: 0,
      inUseMax: 3,
      inUseMaxByMember: { a: 2, b: 2, c: 1 },
      granted: 10,
      grantedByMember: { a: 6, b: 4 },
    },
  ]);
});

it('of several pools the most in use adds up too, as a bound', () => {
  expect(joinPools(BUSY, LATER)).toMatchObject({
    inUseMax: 5,
    inUseMaxByMember: { a: 2, b: 3, c: 1 },
    grantedByMember: { a: 6, b: 4 },
  });
});

it('a group that names no members has nothing by member', () => {
  const [joined] = inSteps([EMPTY, { ...EMPTY, at: 60_000 }], 120_000);
  expect(Object.keys(joined ?? {}).filter((key) => key.endsWith('ByMember'))).toEqual([]);
});

it('a minute that an older release wrote has none in use by member', () => {
  const { inUseMaxByMember: _, ...older } = BUSY;
  expect(inSteps([older, LATER], 120_000)).toMatchObject([{ inUseMaxByMember: { b: 2, c: 1 } }]);
});
