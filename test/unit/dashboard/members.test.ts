// Members of a group on its page: their state in words, and what a button means.
import { describe, expect, it } from 'vitest';
import { placedSentence } from '../../../dashboard/src/model/call-words.ts';
import {
  affinityInWords,
  consequenceOfSwitch,
  membersInWords,
  memberStateOf,
  outlookOf,
  pauseOf,
  slotsOfMember,
  type MemberView,
} from '../../../dashboard/src/model/members.ts';
import type { ScopeView } from '../../../dashboard/src/model/scope-words.ts';

const NOW = Date.parse('2026-11-20T10:00:00.000Z');

const PRO = { model: 'pro', service_tier: null, credential: null };

const OUT = {
  reason: 'unauthorized',
  since: '2026-11-20T09:59:00.000Z',
  probe_at: '2026-11-20T10:00:30.000Z',
} as const;

function member(changes: Partial<MemberView> = {}): MemberView {
  return {
    id: 'a',
    upstream: 'openai',
    tier: 1,
    weight: 1,
    enabled: true,
    limit: { configured: 4, effective: 4, source: 'configured' },
    in_use: 0,
    cooling: 0,
    unclaimed: 0,
    paused_until: null,
    breaker: 'closed',
    breaker_until: null,
    out: null,
    rates: {},
    spend: null,
    granted_total: 0,
    refused_total: 0,
    input_tokens_total: 0,
    output_tokens_total: 0,
    cost_usd_total: 0,
    ...changes,
  };
}

describe('the state of a member', () => {
  const learned = { configured: 4, effective: 3, source: 'learned' } as const;
  it.each<[string, Partial<MemberView>]>([
    ['idle', {}],
    ['flowing', { in_use: 2 }],
    ['full', { in_use: 2, cooling: 1, unclaimed: 1 }],
    ['learning', { limit: learned }],
    ['full', { limit: learned, in_use: 3 }],
    ['paused', { paused_until: OUT.probe_at }],
    ['broken', { breaker: 'open', paused_until: OUT.probe_at }],
    ['partly paused', { about: PRO, paused_until: OUT.probe_at }],
    ['partly paused', { about: PRO, breaker: 'half_open', in_use: 1 }],
    ['full', { about: PRO, breaker: 'open', in_use: 4 }],
    ['flowing', { about: PRO, in_use: 1 }],
    ['disabled', { enabled: false }],
    ['no longer configured', { retired: true, enabled: false }],
    ['ejected: key refused', { out: OUT, breaker: 'open' }],
    ['ejected: quota used up', { out: { ...OUT, reason: 'quota' } }],
    ['disabled', { enabled: false, out: OUT }],
  ])('is %s', (words, changes) => {
    expect(memberStateOf(member(changes)).words).toBe(words);
  });

  it('is partly paused by its own scopes, next to the calls that its own state is about', () => {
    const scope: ScopeView = {
      about: { ...PRO, model: 'flash' },
      member: 'a',
      in_use: 0,
      limit: null,
      paused_until: null,
      breaker: 'open',
      breaker_until: '2026-11-20T10:01:00.000Z',
      queued: 0,
      last_refused_at: OUT.since,
    };
    const elsewhere = { ...scope, member: 'b' };
    expect(memberStateOf(member(), [elsewhere]).words).toBe('idle');
    expect(memberStateOf(member({ paused_until: OUT.probe_at }), [scope]).words).toBe('paused');
    expect(memberStateOf(member({ in_use: 4 }), [scope]).words).toBe('full');
    expect(memberStateOf(member(), [elsewhere, scope]).words).toBe('partly paused');
    expect(pauseOf(member(), NOW, [elsewhere, scope])).toBe('model flash for 1 min more');
    const own = { about: PRO, paused_until: OUT.probe_at };
    expect(pauseOf(member(own), NOW, [scope])).toBe('model pro and 1 more for 1 min more');
    const full: ScopeView = { ...scope, breaker: 'closed', breaker_until: null, queued: 1 };
    expect(pauseOf(member(), NOW, [full])).toBe('model flash');
  });

  it('goes with what comes next where it is out', () => {
    expect(outlookOf(member(), NOW)).toBeNull();
    expect(outlookOf(member({ out: OUT }), NOW)).toBe('for 1 min; next probe in 30 s');
    expect(outlookOf(member({ out: OUT }), NOW + 60_000)).toBe(
      'for 2 min; the next call probes it',
    );
    expect(outlookOf(member({ out: OUT, enabled: false }), NOW)).toBeNull();
  });

  it('goes with how long it lasts where its upstream paused it or its breaker stopped it', () => {
    const paused = { paused_until: OUT.probe_at };
    expect(pauseOf(member(paused), NOW)).toBe('for 30 s more');
    expect(pauseOf(member(paused), NOW + 30_000)).toBeNull();
    const open = { breaker: 'open', breaker_until: '2026-11-20T10:02:00.000Z' } as const;
    expect(pauseOf(member({ ...paused, ...open }), NOW)).toBe('for 2 min more');
    expect(pauseOf(member({ ...paused, ...open, about: PRO }), NOW)).toBe(
      'model pro for 2 min more',
    );
    expect(pauseOf(member({ breaker: 'half_open', about: PRO }), NOW)).toBe('model pro');
    expect(pauseOf(member({ ...paused, enabled: false }), NOW)).toBeNull();
    expect(pauseOf(member(), NOW)).toBeNull();
  });
});

it('its slots are drawn as those of a group', () => {
  expect(slotsOfMember(member({ in_use: 1, cooling: 1, unclaimed: 1 }))).toEqual({
    inUse: 1,
    cooling: 1,
    unclaimed: 1,
    lent: 0,
    capacity: 4,
    free: 1,
    beyond: 0,
    ceilingAt: null,
  });
});

it('a button says what becomes of calls', () => {
  expect(consequenceOfSwitch(member({ in_use: 1 }), 1).says).toBe(
    'It receives no calls until it is restored. 1 call in flight ends as usual. Queued calls go to the other members.',
  );
  expect(consequenceOfSwitch(member(), 0).says).toContain('calls queue until one is restored');
  expect(consequenceOfSwitch(member({ out: OUT }), 1).verb).toBe('Restore member');
  expect(consequenceOfSwitch(member({ enabled: false }), 1).verb).toBe('Restore member');
});

it('who waits is told with the members that it does not go to', () => {
  expect(membersInWords({})).toBe('any');
  expect(membersInWords({ excluded_members: ['a', 'b'] })).toBe('except a, b');
  expect(membersInWords({ waits_for_member: 'c', excluded_members: ['a'] })).toBe(
    'waits for c; except a',
  );
});

it('calls that belong to a member are told of where there are any', () => {
  const none = { kept_total: 0, left_total: 0, waited_total: 0 };
  expect(affinityInWords({})).toBeNull();
  expect(affinityInWords({ affinity: none })).toBeNull();
  expect(affinityInWords({ affinity: { ...none, kept_total: 9, left_total: 1 } })).toBe(
    '9 calls went to the preferred member, 1 to another, 0 waited for it',
  );
});

it('a call is told where it went, and why not elsewhere', () => {
  expect(placedSentence({})).toBeNull();
  const others = [
    { member: 'b', cause: 'slots' },
    { member: 'c', cause: 'out' },
  ] as const;
  expect(placedSentence({ placed: { member: 'a', by: 'load', others } })).toBe(
    'It went to a, which had the largest share of free slots. Other members: b was full, c was ejected.',
  );
});
