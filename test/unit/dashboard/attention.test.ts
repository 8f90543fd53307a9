import { describe, expect, it } from 'vitest';
import type { Attention } from '../../../src/contract/attention.ts';
import {
  attentionLine,
  attentionOf,
  pageOf,
  rankOf,
} from '../../../dashboard/src/model/attention.ts';
import { isLearned, stateDetail } from '../../../dashboard/src/model/group-state.ts';
import { byPressure, keepOrder } from '../../../dashboard/src/model/order.ts';
import type { GroupView } from '../../../dashboard/src/model/status.ts';
import { groupStatus, partitionStatus } from './group-status.ts';

const NOW = Date.parse('2026-11-20T10:00:00Z');
const inMs = (ms: number): string => new Date(NOW + ms).toISOString();

const entry = (rule: Attention['rule'], group: string | null, id = group ?? ''): Attention => ({
  rule,
  subject: { kind: 'group', id },
  group,
  since: null,
  count: null,
  says: `${rule} of ${id}`,
  words: null,
  advice: '',
});

describe('the list of what needs a person', () => {
  const all = [entry('refused_by_upstream', 'a'), entry('paused', 'b'), entry('budget_near', 'b')];

  it('has the worst entry of each group first', () => {
    expect(attentionOf(all, 'b')?.rule).toBe('paused');
    expect(attentionOf(all, 'c')).toBeNull();
    expect([rankOf(all, 'a') < rankOf(all, 'b'), rankOf(all, 'c')]).toEqual([true, Infinity]);
  });

  it('says beside the state of a group only what the state does not', () => {
    expect(attentionLine(all, 'a')).toBe('refused_by_upstream of a');
    expect(attentionLine(all, 'b')).toBe('budget_near of b');
    expect(attentionLine(all, 'c')).toBe('');
  });

  it.each<[string, Attention]>([
    [
      '/admin/groups/team%3Ared',
      { ...entry('budget_spent', 'team:red'), subject: { kind: 'team', id: 'red' } },
    ],
    ['/admin/keys', { ...entry('key_refused', null), subject: { kind: 'key', id: 'app' } }],
    ['/admin/keys#teams', { ...entry('key_refused', null), subject: { kind: 'team', id: 'red' } }],
    [
      '/admin/upstreams',
      { ...entry('secret_missing', null), subject: { kind: 'upstream', id: 'openai' } },
    ],
    [
      '/admin/config',
      { ...entry('config_warning', null), subject: { kind: 'deployment', id: 'configuration' } },
    ],
    [
      '/admin/calls',
      { ...entry('model_refused', null), subject: { kind: 'deployment', id: 'headgate' } },
    ],
  ])('leads to %s', (page, one) => {
    expect(pageOf(one)).toBe(page);
  });
});

describe('the state of a group', () => {
  it.each<[string, Partial<GroupView>]>([
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
    expect(stateDetail(spent)).toBe('this month');
    expect(stateDetail(groupStatus({ in_use: 5, rate_used_up: 'rpm' }))).toBeNull();
    expect(isLearned(groupStatus())).toBe(false);
    const limit = { configured: 12, effective: 3, source: 'learned' } as const;
    expect(isLearned(groupStatus({ limit, in_use: 3 }))).toBe(true);
  });
});

describe('the order of the groups', () => {
  it('has what needs attention first, the worst of it before the rest, and quiet ones by name', () => {
    const groups = ['b', 'a', 'slow', 'refused'].map((name) => groupStatus({ name }));
    const all = [entry('refused_by_upstream', 'refused'), entry('queue_old', 'slow')];
    expect(byPressure(groups, (name) => rankOf(all, name))).toEqual(['refused', 'slow', 'a', 'b']);
  });

  it('has the longer queue first, then the fuller one', () => {
    const names = byPressure(
      [
        groupStatus({ name: 'half', in_use: 2 }),
        groupStatus({ name: 'most', in_use: 4 }),
        groupStatus({ name: 'short', queued: 1 }),
        groupStatus({ name: 'long', queued: 9 }),
      ],
      () => Infinity,
    );
    expect(names).toEqual(['long', 'short', 'most', 'half']);
  });

  it('does not follow each call that comes or goes', () => {
    const order = (a: number, b: number): readonly string[] =>
      byPressure(
        [groupStatus({ name: 'a', queued: a }), groupStatus({ name: 'b', queued: b })],
        () => Infinity,
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
