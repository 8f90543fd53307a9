import { describe, expect, it } from 'vitest';
import {
  cellsOf,
  slotsOfGroup,
  slotsOfPool,
  type Slots,
} from '../../../dashboard/src/model/slots.ts';
import {
  estimateInWords,
  orphanedInWords,
  slotsInWords,
  sentenceOf,
} from '../../../dashboard/src/model/sentence.ts';
import { groupStatus, partitionStatus } from './group-status.ts';

const configured = (n: number | null) =>
  ({ configured: n, effective: n, source: 'configured' }) as const;
const learned = (of: number | null, n: number) =>
  ({ configured: of, effective: n, source: 'learned' }) as const;

describe('the slots of a pool', () => {
  it.each<[string, Parameters<typeof slotsOfPool>[0], Slots, string]>([
    [
      'in use, cooling, and the rest free',
      groupStatus({ in_use: 3, cooling: 1 }),
      {
        inUse: 3,
        capacity: 5,
        cooling: 1,
        unclaimed: 0,
        lent: 0,
        free: 1,
        beyond: 0,
        ceilingAt: null,
      },
      '3 of 5 slots',
    ],
    [
      'beyond the learned ceiling, those that the upstream does not take',
      groupStatus({ limit: learned(12, 3), in_use: 2 }),
      {
        inUse: 2,
        capacity: 3,
        cooling: 0,
        unclaimed: 0,
        lent: 0,
        free: 1,
        beyond: 9,
        ceilingAt: 3,
      },
      '2 of 3 slots',
    ],
    [
      'more in use than the ceiling that was learned meanwhile',
      groupStatus({ limit: learned(12, 3), in_use: 5 }),
      {
        inUse: 5,
        capacity: 3,
        cooling: 0,
        unclaimed: 0,
        lent: 0,
        free: 0,
        beyond: 7,
        ceilingAt: 3,
      },
      '5 of 3 slots',
    ],
    [
      'more in use than a limit that was lowered',
      groupStatus({ limit: configured(1), in_use: 4 }),
      {
        inUse: 4,
        capacity: 1,
        cooling: 0,
        unclaimed: 0,
        lent: 0,
        free: 0,
        beyond: 0,
        ceilingAt: null,
      },
      '4 of 1 slot',
    ],
    [
      'an assumed limit that grew has nothing beyond it',
      groupStatus({ limit: learned(null, 80), in_use: 70 }),
      {
        inUse: 70,
        capacity: 80,
        cooling: 0,
        unclaimed: 0,
        lent: 0,
        free: 10,
        beyond: 0,
        ceilingAt: null,
      },
      '70 of 80 slots',
    ],
    [
      'unclaimed since a restart, which are neither in use nor free',
      groupStatus({ in_use: 1, unclaimed: 3 }),
      {
        inUse: 1,
        capacity: 5,
        cooling: 0,
        unclaimed: 3,
        lent: 0,
        free: 1,
        beyond: 0,
        ceilingAt: null,
      },
      '1 of 5 slots',
    ],
    [
      'more unclaimed than there are slots, because the bound may exceed the limit',
      groupStatus({ in_use: 2, unclaimed: 4 }),
      {
        inUse: 2,
        capacity: 5,
        cooling: 0,
        unclaimed: 4,
        lent: 0,
        free: 0,
        beyond: 0,
        ceilingAt: null,
      },
      '2 of 5 slots',
    ],
    [
      'lent to Workers, which are neither in use nor free',
      groupStatus({ in_use: 1, lent: 2 }),
      {
        inUse: 1,
        capacity: 5,
        cooling: 0,
        unclaimed: 0,
        lent: 2,
        free: 2,
        beyond: 0,
        ceilingAt: null,
      },
      '1 of 5 slots',
    ],
    [
      'no limit',
      groupStatus({ limit: configured(null), in_use: 7 }),
      {
        inUse: 7,
        capacity: null,
        cooling: 0,
        unclaimed: 0,
        lent: 0,
        free: null,
        beyond: 0,
        ceilingAt: null,
      },
      '7 slots, no limit',
    ],
  ])('%s', (_title, pool, slots, words) => {
    expect(slotsOfPool(pool)).toEqual(slots);
    expect(slotsInWords(slots)).toBe(words);
  });
});

describe('the slots of a split group', () => {
  it('are those of its pools, of which a retired one has none that are free', () => {
    const group = groupStatus({
      limit: configured(2),
      in_use: 3,
      partitions: [
        partitionStatus('a', { limit: configured(2), in_use: 2 }),
        partitionStatus('b', { limit: learned(2, 1), in_use: 0, unclaimed: 1 }),
        { ...partitionStatus('c', { limit: configured(2), in_use: 1 }), retired: true },
        { partition: 'd', error: 'out of reach' },
      ],
    });
    const slots = slotsOfGroup(group);
    expect(slots).toEqual({
      inUse: 3,
      capacity: 3,
      cooling: 0,
      unclaimed: 1,
      lent: 0,
      free: 0,
      beyond: 1,
      ceilingAt: 4,
    });
    expect(cellsOf(slots)).toBe(5);
  });
});

describe('the sentence of a picture', () => {
  it('tells slots, lanes and the oldest wait', () => {
    const group = groupStatus({
      in_use: 4,
      cooling: 1,
      queued: 12,
      queued_by_lane: { high: 2, normal: 10, low: 0 },
      oldest_wait_ms: 8_200,
    });
    expect(sentenceOf(slotsOfGroup(group), group)).toBe(
      '4 of 5 slots in use, 1 cooling down, 12 queued (2 high, 10 normal), the oldest for 8.2 s.',
    );
  });

  it('tells slots that nobody has claimed, and not as in use', () => {
    const group = groupStatus({ in_use: 1, unclaimed: 3 });
    expect(sentenceOf(slotsOfGroup(group), group)).toBe(
      '1 of 5 slots in use, 3 orphaned, no queued calls.',
    );
    const until = new Date(2026, 10, 22, 9, 5, 7).toISOString();
    expect(orphanedInWords(until)).toBe(
      'orphaned: granted before the last restart of this pool; free by 09:05:07 unless its call reclaims it',
    );
  });

  it('tells slots that Workers were lent', () => {
    const group = groupStatus({ in_use: 1, lent: 2 });
    expect(sentenceOf(slotsOfGroup(group), group)).toBe(
      '1 of 5 slots in use, 2 prefetched, no queued calls.',
    );
  });

  it('says when nobody waits', () => {
    expect(sentenceOf(slotsOfGroup(groupStatus()), groupStatus())).toBe(
      '0 of 5 slots in use, no queued calls.',
    );
  });
});

it.each([
  [8_200, 1_000, false, '≈ 7.2 s'],
  [1_800, 1_000, false, 'soon'],
  [0, 2_000, false, 'soon'],
  [0, 2_001, false, 'unknown'],
  [null, 0, false, 'unknown'],
  [8_200, 0, true, 'when resumed'],
])('an estimate of %s ms, %i ms ago, paused %s: %s', (estimateMs, sinceMs, isPaused, words) => {
  expect(estimateInWords(estimateMs, sinceMs, isPaused)).toBe(words);
});
