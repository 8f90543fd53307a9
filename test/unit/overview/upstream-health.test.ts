// The health of the upstreams of a group: where only some calls are stopped, it says so and names them.
import { describe, expect, it } from 'vitest';
import type { ScopeFields } from '../../../src/contract/shared-shapes.ts';
import type {
  MemberStatus,
  ScopeStatus,
  UpstreamCallsStatus,
} from '../../../src/contract/status.ts';
import { joinStopped, upstreamsOfGroup } from '../../../src/overview/upstream-health.ts';

const EARLY = '2026-11-27T10:00:00.000Z';
const LATE = '2026-11-27T10:05:00.000Z';

const limit = { configured: 5, effective: 5, source: 'configured' } as const;
const FREE = { paused_until: null, breaker: 'closed', breaker_until: null } as const;
const PAUSED = { ...FREE, paused_until: EARLY };
const OPEN = { paused_until: null, breaker: 'open', breaker_until: LATE } as const;

const model = (name: string): ScopeFields => ({
  model: name,
  service_tier: null,
  credential: null,
});
const FLEX: ScopeFields = { model: null, service_tier: 'flex', credential: null };

function scope(about: ScopeFields, changes: Partial<ScopeStatus> = {}): ScopeStatus {
  return {
    about,
    in_use: 0,
    limit: null,
    ...PAUSED,
    queued: 0,
    last_refused_at: EARLY,
    ...changes,
  };
}

/** Calls to an upstream, with refusals of these models at these times. */
function calls(id: string, ...refused: [model: string, at: string][]): UpstreamCallsStatus {
  return {
    id,
    in_flight: 0,
    last_call_at: EARLY,
    day_granted: 1,
    day_refusals: {},
    spend: null,
    last_refusals: refused.map(([name, at], index) => ({
      kind: `kind-${index}`,
      at,
      retry_after_ms: null,
      model: name,
    })),
  };
}

function member(id: string, upstream: string, changes: Partial<MemberStatus> = {}): MemberStatus {
  return {
    id,
    upstream,
    tier: 1,
    weight: 1,
    enabled: true,
    limit,
    in_use: 0,
    cooling: 0,
    unclaimed: 0,
    ...FREE,
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

type UpstreamHealthGroup = Parameters<typeof upstreamsOfGroup>[1];

const SOLE = [calls('openai')];

function healthOf(group: Partial<UpstreamHealthGroup>, all = SOLE) {
  return upstreamsOfGroup(all, { limit, ...FREE, ...group }).map(
    ({ id, state, paused_until, breaker_until, stopped }) => ({
      id,
      state,
      until: paused_until ?? breaker_until,
      stopped,
    }),
  );
}

describe('an upstream of a group without members', () => {
  it.each<[string, Partial<UpstreamHealthGroup>, ScopeFields[], string | null]>([
    ['the only model', { ...PAUSED, about: model('pro') }, [model('pro')], EARLY],
    ['the breaker of a model', { ...OPEN, about: model('pro') }, [model('pro')], LATE],
    ['one of several models', { scopes: [scope(model('pro'))] }, [model('pro')], EARLY],
    ['a tier', { scopes: [scope(FLEX, OPEN)] }, [FLEX], LATE],
    [
      'a tier besides the only model',
      { ...PAUSED, about: model('pro'), scopes: [scope(FLEX, { paused_until: LATE })] },
      [model('pro'), FLEX],
      LATE,
    ],
    [
      'a full limit of a model',
      { scopes: [scope(model('pro'), { ...FREE, limit: 1, queued: 2 })] },
      [model('pro')],
      null,
    ],
  ])('is partly paused by %s, and lists it', (_, group, stopped, until) => {
    expect(healthOf(group)).toEqual([{ id: 'openai', state: 'partly paused', until, stopped }]);
  });

  it.each<[string, Partial<UpstreamHealthGroup>]>([
    ['ok', {}],
    ['ok', { about: model('pro'), scopes: [scope(FLEX, FREE)] }],
    ['waiting', { ...PAUSED, scopes: [scope(FLEX)] }],
    ['open', { ...OPEN, scopes: [scope(FLEX)] }],
  ])('is %s for all calls, and lists none', (state, group) => {
    expect(healthOf(group)).toMatchObject([{ state, stopped: undefined }]);
  });

  it('is the one that last refused the stopped model', () => {
    const both = [calls('openai', ['PRO', EARLY]), calls('groq', ['flash', LATE], ['x', EARLY])];
    const stopped = (group: Partial<UpstreamHealthGroup>) =>
      healthOf(group, both).map((one) => one.stopped);
    expect(stopped({ scopes: [scope(model('pro')), scope(model('flash'))] })).toEqual([
      [model('pro')],
      [model('flash')],
    ]);
    expect(stopped({ scopes: [scope(FLEX)] })).toEqual([undefined, [FLEX]]);
    expect(stopped({ ...PAUSED, about: model('pro') })).toEqual([[model('pro')], undefined]);
    expect(healthOf(PAUSED, both)).toMatchObject([{ state: 'ok' }, { state: 'waiting' }]);
  });
});

describe('an upstream with members', () => {
  const two = [calls('openai'), calls('groq')];
  it('is partly paused by what stops some calls of its members', () => {
    const members = [
      member('a', 'openai', { ...PAUSED, about: model('pro') }),
      member('b', 'openai'),
      member('c', 'groq'),
    ];
    const scopes = [scope(FLEX, { member: 'b', paused_until: LATE }), scope(model('all'))];
    expect(healthOf({ members, scopes }, two)).toEqual([
      { id: 'openai', state: 'partly paused', until: LATE, stopped: [model('pro'), FLEX] },
      { id: 'groq', state: 'ok', until: null, stopped: undefined },
    ]);
  });

  it('is open or waiting if all calls of one of its members are stopped', () => {
    const members = [
      member('a', 'openai', { ...OPEN, about: model('pro') }),
      member('b', 'openai', PAUSED),
      member('c', 'groq', OPEN),
    ];
    expect(healthOf({ members }, two)).toMatchObject([
      { state: 'waiting', until: EARLY, stopped: undefined },
      { state: 'open', until: LATE, stopped: undefined },
    ]);
  });
});

it('lists each scope once, and at most 64', () => {
  expect(joinStopped([FLEX, { ...FLEX }, model('pro')])).toEqual([FLEX, model('pro')]);
  expect(joinStopped(Array.from({ length: 100 }, (_, index) => model(`m-${index}`)))).toHaveLength(
    64,
  );
});
