import { describe, expect, it } from 'vitest';
import {
  ariaSort,
  byColumn,
  COLUMNS,
  isIdle,
  nextSort,
  sortOf,
  type ColumnId,
} from '../../../dashboard/src/model/group-columns.ts';
import { overviewChoice } from '../../../dashboard/src/model/overview-choice.ts';
import type { GroupView } from '../../../dashboard/src/model/status.ts';
import { groupStatus } from './group-status.ts';

const spend = (usd: number): GroupView['spend'] => ({
  hour_usd: 0,
  day_usd: usd,
  month_usd: usd,
  reserved_usd: 0,
  day_usd_by_key: {},
  day_usd_by_agent: {},
});

const hour = (changes: Partial<GroupView['last_hour']>): GroupView['last_hour'] => ({
  granted: 0,
  rejected: {},
  refusals: {},
  steps: { refused: [], wait_p95_ms: [] },
  ...changes,
});

describe('the columns', () => {
  const groups = [
    groupStatus({ name: 'b-2', in_use: 5, queued: 7, wait_p95_ms: 900, spend: spend(1) }),
    groupStatus({
      name: 'b-10',
      in_use: 2,
      breaker: 'open',
      last_hour: hour({ rejected: { busy: 2, queue_full: 7 }, refusals: { requests: 1 } }),
    }),
    groupStatus({
      name: 'a',
      in_use: 3,
      queued: 1,
      wait_p95_ms: 40,
      last_hour: hour({ rejected: { busy: 8 }, refusals: { requests: 4, overload: 9 } }),
      spend: spend(0.5),
    }),
  ];

  it.each<[ColumnId, string, string]>([
    ['name', 'a b-2 b-10', 'b-10 b-2 a'],
    ['state', 'b-10 b-2 a', 'a b-2 b-10'],
    ['slots', 'b-2 a b-10', 'b-10 a b-2'],
    ['queue', 'b-2 a b-10', 'b-10 a b-2'],
    // What is not known is last either way.
    ['p95', 'b-2 a b-10', 'a b-2 b-10'],
    ['rejected', 'b-10 a b-2', 'b-2 a b-10'],
    ['429s', 'a b-10 b-2', 'b-2 b-10 a'],
    ['usd', 'b-2 a b-10', 'a b-2 b-10'],
  ])('sort by %s, the worst or the most first, and the other way', (by, first, reversed) => {
    expect(byColumn(groups, { by, isReversed: false }).join(' ')).toBe(first);
    expect(byColumn(groups, { by, isReversed: true }).join(' ')).toBe(reversed);
  });

  it('have equals by name whichever way', () => {
    const equal = ['c', 'a', 'b'].map((name) => groupStatus({ name, queued: 3 }));
    expect(byColumn(equal, { by: 'queue', isReversed: false })).toEqual(['a', 'b', 'c']);
    expect(byColumn(equal, { by: 'queue', isReversed: true })).toEqual(['a', 'b', 'c']);
  });

  it('are pressed for an order, its reverse, and none', () => {
    expect(nextSort(null, 'usd')).toBe('usd');
    expect(nextSort(sortOf('name'), 'usd')).toBe('usd');
    expect(nextSort(sortOf('usd'), 'usd')).toBe('-usd');
    expect(nextSort(sortOf('-usd'), 'usd')).toBeUndefined();
  });

  it('tell screen readers which way they are sorted', () => {
    const [name, , slots] = COLUMNS;
    expect(ariaSort(sortOf('name'), name)).toBe('ascending');
    expect(ariaSort(sortOf('-name'), name)).toBe('descending');
    expect(ariaSort(sortOf('slots'), slots)).toBe('descending');
    expect(ariaSort(sortOf('-slots'), slots)).toBe('ascending');
    expect(ariaSort(sortOf('slots'), name)).toBe('none');
  });
});

describe('the link of the page', () => {
  it('says what is looked for, how and in which order', () => {
    const query = { q: 'gpt', state: 'budget spent', kind: 'team', view: 'table' };
    expect(overviewChoice({ ...query, sort: '-p95', idle: 'shown' })).toEqual({
      filter: { text: 'gpt', state: 'budget spent', kind: 'team' },
      view: 'table',
      sort: { by: 'p95', isReversed: true },
      isIdleShown: true,
    });
  });

  it('counts what it does not know as not said', () => {
    const query = { state: 'odd', kind: '__proto__', view: 'tree', sort: '--usd', idle: '1' };
    expect(overviewChoice(query)).toEqual(overviewChoice({}));
    expect(overviewChoice({ sort: 'constructor' }).sort).toBeNull();
  });
});

describe('an idle group', () => {
  it.each<[string, Partial<GroupView>, boolean]>([
    ['has no figure at all', {}, true],
    ['has cost nothing', { spend: spend(0) }, true],
    ['but not one that cost something today', { spend: spend(0.01) }, false],
    ['but not one with a call', { in_use: 1 }, false],
    ['but not one with a slot that nobody has claimed', { unclaimed: 1 }, false],
    [
      'but not one with a queue',
      { queued: 1, queued_by_lane: { high: 0, normal: 1, low: 0 } },
      false,
    ],
    ['but not one that granted within the hour', { last_hour: hour({ granted: 1 }) }, false],
    ['but not one that rejected', { last_hour: hour({ rejected: { busy: 1 } }) }, false],
    ['but not one that was refused', { last_hour: hour({ refusals: { quota: 1 } }) }, false],
    ['but not one that is paused', { paused: true }, false],
    ['but not one with a pool out of reach', { error: 'out of reach' }, false],
  ])('%s', (_title, changes, idle) => {
    expect(isIdle(groupStatus(changes))).toBe(idle);
  });
});
