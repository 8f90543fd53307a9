// What the dashboard says of calls that the upstream stops while all others of their group start.
import { describe, expect, it, test } from 'vitest';
import { stateDetail } from '../../../dashboard/src/model/group-state.ts';
import {
  scopeEnd,
  scopeState,
  scopeWords,
  type ScopeView,
} from '../../../dashboard/src/model/scope-words.ts';
import { groupStatus } from './group-status.ts';

const LATER = '2026-11-27T10:05:00.000Z';

const PRO = { model: 'pro', service_tier: null, credential: null };

function scope(changes: Partial<ScopeView> = {}): ScopeView {
  return {
    about: PRO,
    in_use: 0,
    limit: null,
    paused_until: null,
    breaker: 'closed',
    breaker_until: null,
    queued: 0,
    last_refused_at: LATER,
    ...changes,
  };
}

test.each([
  [PRO, 'model pro'],
  [{ model: 'pro', service_tier: 'flex', credential: 'fp_1' }, 'model pro, tier flex, key fp_1'],
  [{ model: null, service_tier: null, credential: null }, 'all calls'],
])('calls %j are named: %s', (about, words) => {
  expect(scopeWords(about)).toBe(words);
});

test.each([
  [{ paused_until: LATER }, 'paused', LATER],
  [{ breaker: 'open', breaker_until: LATER }, 'breaker open', LATER],
  [{ breaker: 'half_open' }, 'breaker half open: one call probes', null],
  [{ limit: 2 }, 'limit of 2 learned', null],
] as const)('%j is %s', (changes, words, end) => {
  expect(scopeState(scope(changes))).toBe(words);
  expect(scopeEnd(scope(changes))).toBe(end);
});

describe('a group of which some calls are stopped', () => {
  it.each([
    ['by its scopes', { scopes: [scope({ paused_until: LATER, queued: 2 })], queued: 2 }],
    ['in its own state', { about: PRO, paused_until: LATER, queued: 2 }],
    ['by a breaker', { about: PRO, breaker: 'open', breaker_until: LATER, queued: 2 } as const],
  ])('is not called paused, and names them: %s', (_, changes) => {
    const group = groupStatus(changes);
    expect(group.state).toBe('partly paused');
    expect(stateDetail(group)).toBe('model pro');
  });

  it('counts the others', () => {
    const flash = { ...PRO, model: 'flash' };
    const scopes = [scope({ queued: 1 }), scope({ about: flash, paused_until: LATER })];
    expect(stateDetail(groupStatus({ scopes }))).toBe('model pro and 1 more');
  });

  it('flows if only a limit was learned', () => {
    expect(groupStatus({ scopes: [scope({ limit: 3 })] }).state).toBe('flowing');
  });
});
