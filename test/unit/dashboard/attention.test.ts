import { describe, expect, it } from 'vitest';
import { attentionOf, missingSecrets } from '../../../dashboard/src/model/attention.ts';
import { isLearned, stateDetail } from '../../../dashboard/src/model/group-state.ts';
import { byPressure, keepOrder } from '../../../dashboard/src/model/order.ts';
import { STEP_MS, withStatus, type Trend } from '../../../dashboard/src/model/trend.ts';
import type { GroupStatus } from '../../../dashboard/src/model/status.ts';
import { groupStatus, partitionStatus } from './group-status.ts';

const NOW = Date.parse('2026-11-20T10:00:00Z');
const inMs = (ms: number): string => new Date(NOW + ms).toISOString();

/** Shows a page that was open while a group changed from quiet to this. */
function seen(changes: Partial<GroupStatus>): Trend {
  return withStatus(withStatus(undefined, groupStatus(), NOW - 1), groupStatus(changes), NOW);
}

/** The worst first, as the page has them. */
const CASES: readonly (readonly [string, Partial<GroupStatus>, string])[] = [
  ['no pool answers', { error: 'it was reset' }, 'it was reset'],
  [
    'the breaker is open',
    { breaker: 'open', queued: 3 },
    'the upstream fails: the breaker is open, 3 waiting',
  ],
  [
    'a budget is spent, and everything is refused',
    { budget_spent: { window: 'day', limit_usd: 2 } },
    '$2 has no room: calls are refused',
  ],
  [
    'the provider serves nobody from here',
    { refusals_total: { egress: 3 } },
    'the provider serves nobody from where the Worker runs, 3 ×',
  ],
  [
    'the account of the provider has nothing left',
    { refusals_total: { quota: 2 } },
    'the provider says that the account has nothing left, 2 ×',
  ],
  [
    'a budget has no room for large calls',
    { rejected_total: { budget_exhausted: 4 } },
    'a budget has no room for some calls: 4 refused',
  ],
  [
    'the limit of a day is used up',
    { rates: { rpd: { limit: 100, left: 0 } }, queued: 1 },
    'rpd: the limit of 24 hours is used up, 1 waiting',
  ],
  ['some of its pools do not answer', { error: 'b: it was reset', in_use: 1 }, 'b: it was reset'],
  ['an operator paused it', { paused: true, queued: 2 }, 'paused by an operator, 2 waiting'],
  [
    'the upstream is backing off for long',
    { paused_until: inMs(120_000) },
    'the upstream is backing off for another 2 min',
  ],
  [
    'its limit is 0 and calls wait',
    { limit: { configured: 0, effective: 0, source: 'configured' }, queued: 1 },
    'its limit is 0, 1 waiting',
  ],
  ['the watchdog took slots back', { expired_total: 1 }, 'the watchdog took 1 slot back'],
  [
    'calls passed without a slot',
    { passed_unlimited_total: 2 },
    '2 passed without a slot, because it was out of reach',
  ],
  [
    'somebody has waited for long',
    { in_use: 5, queued: 3, oldest_wait_ms: 31_000 },
    'full, 3 waiting, the oldest for 31 s',
  ],
];

describe('a group needs attention when', () => {
  it.each(CASES)('%s', (_title, changes, says) => {
    expect(attentionOf(groupStatus(changes), seen(changes), NOW)?.says).toBe(says);
  });

  it('somebody has waited for long since the feed said so, because nothing changes', () => {
    const group = groupStatus({ in_use: 5, queued: 3, oldest_wait_ms: 1_000 });
    const trend = withStatus(undefined, group, NOW);
    expect(attentionOf(group, trend, NOW + 29_000)).toBeNull();
    expect(attentionOf(group, trend, NOW + 40_000)?.says).toBe(
      'full, 3 waiting, the oldest for 41 s',
    );
  });

  it('its queue grows', () => {
    let trend: Trend | undefined;
    for (let i = 0; i <= 6; i += 1) {
      trend = withStatus(trend, groupStatus({ queued: 2 * i }), NOW + i * STEP_MS);
    }
    const group = groupStatus({ queued: 12 });
    expect(attentionOf(group, trend, NOW)?.says).toBe('full, 12 waiting, and the queue grows');
  });

  it('two things are amiss: the worse is said', () => {
    const group = groupStatus({ paused: true, breaker: 'half_open' });
    expect(attentionOf(group, undefined, NOW)?.says).toBe(
      'the upstream fails: the breaker is half open',
    );
  });
});

it.each<[string, Partial<GroupStatus>]>([
  ['is quiet', {}],
  ['is full, and nobody has waited for long', { in_use: 5, queued: 9, oldest_wait_ms: 29_000 }],
  ['makes a pause that is over in a moment', { paused_until: inMs(2_000) }],
  [
    'has a limit of 0 that nobody wants',
    { limit: { configured: 0, effective: 0, source: 'configured' } },
  ],
  ['lost slots to the watchdog before the page was opened', { expired_total: 9 }],
])('a group that %s needs no attention', (_title, changes) => {
  const group = groupStatus(changes);
  expect(attentionOf(group, withStatus(undefined, group, NOW), NOW)).toBeNull();
});

describe('the state of a group', () => {
  it.each<[string, Partial<GroupStatus>]>([
    ['unreachable', { error: 'reset' }],
    ['broken', { breaker: 'half_open', paused: true }],
    ['paused', { paused: true, draining: true }],
    ['paused', { paused_until: inMs(5_000) }],
    ['draining', { draining: true, dry_run: true }],
    ['dry run', { dry_run: true, queued: 1 }],
    ['budget spent', { budget_spent: { window: 'day', limit_usd: 1 }, queued: 1, in_use: 5 }],
    ['dry run', { budget_spent: { window: 'day', limit_usd: 1 }, dry_run: true }],
    ['full', { in_use: 4, cooling: 1 }],
    ['full', { in_use: 4, lent: 1 }],
    ['full', { in_use: 5, queued: 1, rate_used_up: 'rpm' }],
    ['full', { limit: { configured: 12, effective: 3, source: 'learned' }, in_use: 3 }],
    ['rate limited', { in_use: 1, queued: 9, rate_used_up: 'rpm' }],
    ['flowing', { queued: 1 }],
    ['flowing', { limit: { configured: 12, effective: 3, source: 'learned' }, in_use: 2 }],
    ['flowing', { in_use: 4 }],
    [
      'full',
      {
        in_use: 5,
        queued: 1,
        partitions: [partitionStatus('a', { in_use: 5, queued: 1 }), partitionStatus('b')],
      },
    ],
    [
      'flowing',
      { in_use: 5, partitions: [partitionStatus('a', { in_use: 5 }), partitionStatus('b')] },
    ],
  ])('is %s', (state, changes) => {
    expect(groupStatus(changes).state).toBe(state);
  });

  it('says which rate and whose budget, and whether the limit is learned beside it', () => {
    const limited = groupStatus({ queued: 9, rate_used_up: 'rpm' });
    expect(stateDetail(limited)).toBe('no rpm left');
    const spent = groupStatus({ budget_spent: { window: 'month', limit_usd: 5 } });
    expect(stateDetail(spent)).toBe('of this month');
    expect(stateDetail(groupStatus({ in_use: 5, rate_used_up: 'rpm' }))).toBeNull();
    expect(isLearned(groupStatus())).toBe(false);
    const limit = { configured: 12, effective: 3, source: 'learned' } as const;
    expect(isLearned(groupStatus({ limit, in_use: 3 }))).toBe(true);
  });
});

describe('the order of the groups', () => {
  it('has what needs attention first, the worst of it before the rest, and quiet ones by name', () => {
    const worstFirst = CASES.map(([, changes], i) =>
      groupStatus({ ...changes, name: `group-${i}` }),
    );
    const quiet = ['b', 'a'].map((name) => groupStatus({ name }));
    const trends = new Map(CASES.map(([, changes], i) => [`group-${i}`, seen(changes)]));
    expect(
      byPressure([...quiet, ...worstFirst.toReversed()], (name) => trends.get(name), NOW),
    ).toEqual([...worstFirst.map(({ name }) => name), 'a', 'b']);
  });

  it('has the longer queue first, then the fuller one', () => {
    const names = byPressure(
      [
        groupStatus({ name: 'half', in_use: 2 }),
        groupStatus({ name: 'most', in_use: 4 }),
        groupStatus({ name: 'short', queued: 1 }),
        groupStatus({ name: 'long', queued: 9 }),
      ],
      () => undefined,
      NOW,
    );
    expect(names).toEqual(['long', 'short', 'most', 'half']);
  });

  it('does not follow each call that comes or goes', () => {
    const order = (a: number, b: number): readonly string[] =>
      byPressure(
        [groupStatus({ name: 'a', queued: a }), groupStatus({ name: 'b', queued: b })],
        () => undefined,
        NOW,
      );
    expect([order(10, 12), order(12, 10), order(10, 40)]).toEqual([
      ['a', 'b'],
      ['a', 'b'],
      ['b', 'a'],
    ]);
  });

  it('is kept while nobody may move: what is gone goes, what is new comes last', () => {
    expect(keepOrder(['c', 'a', 'b'], ['a', 'b', 'd', 'c'])).toEqual(['c', 'a', 'b', 'd']);
    expect(keepOrder(['c', 'a', 'b'], ['b', 'c'])).toEqual(['c', 'b']);
  });
});

it('names the upstreams with a secret that is not set or refused, each secret once', () => {
  const secret = (isSet: boolean, name = 'UPSTREAM_KEY', fault = 'is not set') => ({
    name,
    is_set: isSet,
    fault: isSet ? null : fault,
    set_with: `${name}=…`,
    command: `${name}=…`,
    afterwards: '',
  });
  const ofMembers = [secret(false), secret(true, 'UPSTREAM_A'), secret(false, 'UPSTREAM_B')];
  expect(
    missingSecrets([
      { id: 'bare', secret: null, member_secrets: [] },
      { id: 'set', secret: secret(true), member_secrets: [] },
      { id: 'unset', secret: secret(false), member_secrets: ofMembers },
      { id: 'two', secret: secret(false, 'UPSTREAM_C', 'has white space'), member_secrets: [] },
    ]),
  ).toEqual([
    { id: 'unset', says: 'the secret UPSTREAM_KEY is not set: its calls are refused' },
    { id: 'unset', says: 'the secret UPSTREAM_B is not set: no call runs at its members' },
    { id: 'two', says: 'the secret UPSTREAM_C has white space: its calls are refused' },
  ]);
});
