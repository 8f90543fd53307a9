import { describe, expect, it } from 'vitest';
import {
  isSought,
  NO_FILTER,
  type GroupFilter,
} from '../../../dashboard/src/model/group-filter.ts';
import { totalsOf } from '../../../dashboard/src/model/totals.ts';
import { groupStatus, partitionStatus } from './group-status.ts';

const NOW = Date.parse('2026-03-14T12:30:00Z');

describe('the search', () => {
  const group = groupStatus({
    queued: 1,
    partitions: [partitionStatus('fp_12ab', { in_use: 5, queued: 1 })],
  });
  const matches = ['gpt-4o*', 'azure'];

  it.each<[string, Partial<GroupFilter>, boolean]>([
    ['everything', {}, true],
    ['a part of the name, in whatever case', { text: 'OpenAI' }, true],
    ['all words, in whatever order', { text: ' shared gpt-4o ' }, true],
    ['a partition', { text: 'fp_12' }, true],
    ['an upstream of its configuration', { text: 'azure' }, true],
    ['a word that is nowhere', { text: 'openai claude' }, false],
    ['its state', { state: 'full' }, true],
    ['another state', { state: 'paused' }, false],
    ['its kind', { kind: 'configured' }, true],
    ['another kind', { kind: 'automatic' }, false],
  ])('finds a group, or not, by %s', (_title, filter, isFound) => {
    expect(isSought({ ...NO_FILTER, ...filter }, group, matches)).toBe(isFound);
  });
});

describe('the totals', () => {
  it('add up what is known, and leave out slots without a limit', () => {
    const spend = {
      hour_usd: 1,
      day_usd: 2,
      month_usd: 3,
      reserved_usd: 0,
      day_usd_by_key: {},
      day_usd_by_agent: {},
    };
    const all = [
      groupStatus({ in_use: 3, queued: 2, oldest_wait_ms: 500, spend }),
      groupStatus({
        limit: { configured: null, effective: null, source: 'configured' },
        in_use: 9,
        queued: 1,
        oldest_wait_ms: 900,
        rejected_total: { queue_full: 100 },
        refusals_total: { requests: 100 },
        last_hour: {
          granted: 8,
          rejected: { queue_full: 1, busy: 2 },
          refusals: { requests: 4, overload: 1 },
          steps: { refused: [], wait_p95_ms: [] },
        },
      }),
    ];
    // They were told three seconds ago, and nothing has changed since.
    const totals = totalsOf(all, () => NOW, NOW + 3_000);
    expect(totals).toEqual({
      groups: 2,
      inUse: 12,
      slots: 5,
      waiting: 3,
      oldestWaitMs: 3_900,
      granted: 8,
      rejected: 3,
      refused: 4,
      dayUsd: 2,
    });
  });

  it('have no cost where nobody counts it', () => {
    expect(totalsOf([groupStatus()], () => undefined, NOW).dayUsd).toBeNull();
  });
});
