import { describe, expect, it } from 'vitest';
import { actsOf, consequenceOf, type GroupAct } from '../../../dashboard/src/model/consequence.ts';
import { atOnceOf } from '../../../dashboard/src/model/rates.ts';
import type {
  Detail,
  GroupView,
  LeaseView,
  WaiterView,
} from '../../../dashboard/src/model/status.ts';
import { tenantsOf } from '../../../dashboard/src/model/tenants.ts';
import { groupStatus } from './group-status.ts';

describe('what an act will do', () => {
  const group = groupStatus({ in_use: 1, queued: 12 });

  it.each<[GroupAct, boolean, RegExp]>([
    ['pause', true, /1 call in flight ends as usual\. 12 queued calls keep their places/],
    ['drain', true, /503 .*1 call in flight and 12 queued calls continue to the end/],
    ['resume', false, /12 queued calls start/],
    ['relearn', true, /breaker closes.*12 queued calls can start immediately/],
    ['dry_run_on', true, /12 queued calls and all new calls go to the upstream immediately/],
    ['dry_run_off', true, /apply again .*1 call in flight ends/],
  ])('%s says to how many, and is asked first unless it undoes', (act, isGrave, says) => {
    const consequence = consequenceOf(act, group);
    expect(consequence.says).toMatch(says);
    expect(consequence.isGrave).toBe(isGrave);
    expect(consequence.title).toContain(group.name);
  });
});

const FULL_MODEL = {
  about: { model: 'pro', service_tier: null, credential: null },
  in_use: 0,
  limit: 2,
  paused_until: null,
  breaker: 'closed',
  breaker_until: null,
  queued: 0,
  last_refused_at: '2026-11-27T10:00:00.000Z',
} as const;

it.each<[Partial<GroupView>, GroupAct[]]>([
  [{}, ['pause', 'drain', 'dry_run_on']],
  [{ paused: true }, ['resume', 'drain', 'dry_run_on']],
  [{ kind: 'automatic' }, ['pause', 'drain']],
  [{ kind: 'automatic', paused: true }, ['resume', 'drain']],
  [{ kind: 'automatic', draining: true, breaker: 'open' }, ['resume', 'relearn']],
  [{ kind: 'key' }, []],
  [{ kind: 'retired', breaker: 'open' }, ['relearn']],
  [{ kind: 'automatic', scopes: [FULL_MODEL] }, ['pause', 'drain', 'relearn']],
])('of a group that is %j, these can be done: %j', (changes, acts) => {
  expect(actsOf(groupStatus(changes))).toEqual(acts);
});

it.each([
  ['rpm', 600, null, 100],
  ['rpm', 600, 0.5, 300],
  ['rpm', 2, null, 1],
  ['rpd', 600, null, 600],
  ['tpd', 600, 0.5, 600],
])('of %s, %i with a burst of %s, %i may go at once', (name, limit, burst, expected) => {
  expect(atOnceOf(name, limit, burst)).toBe(expected);
});

describe('the tenants of a group', () => {
  const detailOf = (leases: Partial<LeaseView>[], waiters: Partial<WaiterView>[]): Detail => ({
    name: 'openai-shared',
    leases: leases.map((changes) => ({ slots: 1, state: 'held', ...changes }) as LeaseView),
    waiters: waiters as WaiterView[],
    leases_total: leases.length,
    waiters_total: waiters.length,
    group: null,
  });

  it('have their slots, but not those that cool down, and their waiters', () => {
    const detail = detailOf(
      [{ tenant: 'b', slots: 3 }, { tenant: 'a' }, { tenant: 'a', state: 'cooling' }],
      [{ tenant: 'a' }, { tenant: 'c' }],
    );
    expect(tenantsOf(detail)).toEqual({
      most: [
        { tenant: 'a', inUse: 1, waiting: 1 },
        { tenant: 'b', inUse: 3, waiting: 0 },
        { tenant: 'c', inUse: 0, waiting: 1 },
      ],
      others: 0,
    });
  });

  it('are the eight that have most, and a count of the others', () => {
    const many = Array.from({ length: 11 }, (_, i) => ({ tenant: `team-${i}`, slots: 1 + i }));
    const { most, others } = tenantsOf(detailOf(many, []));
    expect(most.map(({ inUse }) => inUse).toSorted((a, b) => a - b)).toEqual([
      4, 5, 6, 7, 8, 9, 10, 11,
    ]);
    expect(others).toBe(3);
  });

  it('are none before anything is told', () => {
    expect(tenantsOf(null)).toEqual({ most: [], others: 0 });
  });
});
