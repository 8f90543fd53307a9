// Refusals that are about some calls only, in a group of several pools: they are joined by those calls, and bounded.
import { describe, expect, it } from 'vitest';
import {
  SCOPES_SHOWN_MAX,
  type MemberStatus,
  type PoolStatus,
  type ScopeStatus,
} from '../../../src/contract/status.ts';
import {
  joinAbout,
  joinScopes,
  restingScopes,
  separateAbout,
  separateMembers,
} from '../../../src/routing/scopes-shown.ts';

const EARLY = '2026-11-27T10:00:00.000Z';
const LATE = '2026-11-27T10:05:00.000Z';

function scope(model: string, changes: Partial<ScopeStatus> = {}): ScopeStatus {
  return {
    about: { model, service_tier: null, credential: null },
    in_use: 0,
    limit: null,
    paused_until: null,
    breaker: 'closed',
    breaker_until: null,
    queued: 0,
    last_refused_at: EARLY,
    ...changes,
  };
}

describe('scopes of several pools', () => {
  it('are merged if they are about the same calls, with the worst state of each', () => {
    const { scopes } = joinScopes([
      scope('pro', {
        queued: 2,
        limit: 3,
        paused_until: EARLY,
        pause: { message: 'short', probe_at: null },
      }),
      scope('flash'),
      scope('pro', {
        queued: 1,
        in_use: 1,
        paused_until: LATE,
        pause: { message: 'long', probe_at: null },
        breaker: 'open',
        breaker_until: LATE,
        last_refused_at: LATE,
      }),
    ]);
    expect(scopes).toEqual([
      scope('pro', {
        queued: 3,
        in_use: 1,
        limit: 3,
        paused_until: LATE,
        pause: { message: 'long', probe_at: null },
        breaker: 'open',
        breaker_until: LATE,
        last_refused_at: LATE,
      }),
      scope('flash'),
    ]);
  });

  it('stay separate for each member', () => {
    const { scopes } = joinScopes([
      scope('pro', { member: 'a' }),
      scope('pro', { member: 'b' }),
      scope('pro', { member: 'a' }),
    ]);
    expect(scopes).toHaveLength(2);
  });

  it('are bounded: those that hold calls come first, then by their last refusal', () => {
    const many = Array.from({ length: 100 }, (_, index) => scope(`m-${index}`));
    const late = scope('late', { last_refused_at: LATE });
    const holding = scope('holding', { queued: 1 });
    const { scopes } = joinScopes([...many, late, holding]);
    expect(scopes).toHaveLength(SCOPES_SHOWN_MAX);
    expect(scopes?.slice(0, 2)).toEqual([holding, late]);
  });

  it('are absent if there are none', () => {
    expect(joinScopes([])).toEqual({});
  });
});

describe('the calls that the states of several pools are about', () => {
  const limit = { configured: 5, effective: 5, source: 'configured' } as const;
  const quiet = { paused_until: null, breaker: 'closed', limit } as const;
  const { about } = scope('pro');
  const paused = { ...quiet, paused_until: LATE, about };

  it('are shown if all pools whose state holds calls agree', () => {
    expect(joinAbout([quiet, paused, paused])).toEqual({ about });
    const other = { ...paused, about: scope('flash').about };
    expect(joinAbout([paused, other])).toEqual({});
    expect(joinAbout([paused, { ...quiet, breaker: 'open' }])).toEqual({});
    expect(joinAbout([quiet])).toEqual({});
  });
});

describe('the states of several pools that are about different calls', () => {
  const limit = { configured: 5, effective: 5, source: 'configured' } as const;
  const none = { in_use: 0, queued: 0, paused_until: null, breaker_until: null, upstreams: [] };
  const poolOf = (changes: Partial<PoolStatus>): PoolStatus =>
    // Only these fields are read.
    ({ ...none, breaker: 'closed', limit, ...changes }) as Partial<PoolStatus> as PoolStatus;
  const pro = poolOf({ about: scope('pro').about, paused_until: LATE, queued: 2 });
  const flash = poolOf({
    about: scope('flash').about,
    limit: { ...limit, effective: 3, source: 'learned' },
    in_use: 3,
  });

  it('are shown as scopes, and not as the state of all calls', () => {
    const [one, two] = separateAbout([pro, flash]);
    expect(one).toMatchObject({ paused_until: null, breaker: 'closed' });
    expect(one?.about).toBeUndefined();
    expect(one?.scopes).toMatchObject([{ about: pro.about, paused_until: LATE, queued: 2 }]);
    expect(two?.scopes).toMatchObject([{ about: flash.about, limit: 3, in_use: 3 }]);
  });

  it('stay separate from a pool whose state is about all calls', () => {
    const all = poolOf({ paused_until: EARLY });
    const [one, two] = separateAbout([all, pro]);
    expect(one).toBe(all);
    expect(two?.scopes).toHaveLength(1);
  });

  it('stay if the pools agree', () => {
    const pools = [pro, pro, poolOf({})];
    expect(separateAbout(pools)).toBe(pools);
  });
});

describe('the states of a member that are about different calls', () => {
  const limit = { configured: 5, effective: 5, source: 'configured' } as const;
  const memberOf = (changes: Partial<MemberStatus>): MemberStatus =>
    // Only these fields are read.
    ({
      id: 'a',
      upstream: 'groq',
      enabled: true,
      in_use: 0,
      limit,
      paused_until: null,
      breaker: 'closed',
      breaker_until: null,
      ...changes,
    }) as Partial<MemberStatus> as MemberStatus;
  const callsTo = (id: string, at: string) => ({
    id,
    in_flight: 0,
    last_call_at: at,
    day_granted: 1,
    day_refusals: {},
    spend: null,
    last_refusals: [{ kind: 'requests', at, retry_after_ms: null, model: null }],
  });
  const poolOf = (...members: Partial<MemberStatus>[]): PoolStatus =>
    ({
      members: members.map(memberOf),
      upstreams: [callsTo('groq', LATE), callsTo('other', '2026-11-27T11:00:00.000Z')],
    }) as Partial<PoolStatus> as PoolStatus;
  const about = (model: string) => scope(model).about;
  const other = { id: 'b', about: about('pro'), paused_until: EARLY };
  const pause = { message: 'full', probe_at: null };
  const pro = poolOf({ about: about('pro'), paused_until: LATE, pause, in_use: 1 }, other);
  const flash = poolOf({
    about: about('flash'),
    limit: { ...limit, effective: 3, source: 'learned' },
  });

  it('are shown as scopes of that member, with all that is known', () => {
    const [one, two] = separateMembers([pro, flash]);
    expect(one?.members?.[0]).toEqual(memberOf({ in_use: 1 }));
    expect(one?.members?.[1]).toEqual(memberOf(other));
    const shown = { member: 'a', last_refused_at: LATE };
    expect(one?.scopes).toEqual([scope('pro', { ...shown, paused_until: LATE, pause, in_use: 1 })]);
    expect(two?.members).toEqual([memberOf({})]);
    expect(two?.scopes).toEqual([scope('flash', { ...shown, limit: 3 })]);
  });

  it('stay separate from one that is about all calls', () => {
    const all = poolOf({ paused_until: EARLY });
    const [one, two] = separateMembers([all, pro]);
    expect(one).toBe(all);
    expect(two?.scopes).toHaveLength(1);
  });

  it('stay if the pools agree, or a pool has none', () => {
    const none: Partial<PoolStatus> = { upstreams: [] };
    const pools = [pro, pro, poolOf({}), none as PoolStatus];
    expect(separateMembers(pools)).toEqual(pools);
  });
});

describe('the scopes of an idle pool', () => {
  it('end with their pauses, and keep what was learned', () => {
    const scopes = [
      scope('over', { paused_until: EARLY, pause: { message: 'full', probe_at: null } }),
      scope('on', { paused_until: LATE, pause: { message: 'full', probe_at: null }, queued: 2 }),
      scope('learned', { limit: 2, paused_until: EARLY }),
    ];
    expect(restingScopes({ scopes }, Date.parse(EARLY) + 1)).toEqual({
      scopes: [
        scope('on', { paused_until: LATE, pause: { message: 'full', probe_at: null } }),
        scope('learned', { limit: 2 }),
      ],
    });
    expect(restingScopes({ scopes }, Date.parse(LATE))).toEqual({
      scopes: [scope('learned', { limit: 2 })],
    });
  });
});
