import { describe, expect, it } from 'vitest';
import {
  isFound,
  isUsed,
  seenOf,
  type UpstreamInfo,
} from '../../../dashboard/src/model/upstream-view.ts';

type UpstreamViewAt = Parameters<typeof seenOf>[1][number]['upstreams'][number];

const OPENAI: UpstreamInfo = {
  id: 'openai',
  is_built_in: true,
  enabled: true,
  base_url: 'https://api.openai.com',
  dialect: 'openai',
  models: [],
  openai_at: '/v1',
  anthropic_at: null,
  via: null,
  secret: null,
  member_secrets: [],
  configured: null,
  groups: ['openai-shared'],
  calls: {
    in_flight: 0,
    last_call_at: '2026-11-20T09:00:00.000Z',
    day_granted: 4,
    day_refusals: { requests: 2 },
    spend: null,
    last_refusals: [],
  },
  health: {
    state: 'ok',
    paused_until: null,
    breaker_until: null,
    refusals_total: { requests: 2 },
    limits: {},
  },
};

const FLOWING: UpstreamViewAt = {
  id: 'openai',
  in_flight: 0,
  last_call_at: '2026-11-20T09:00:00.000Z',
  day_granted: 0,
  day_refusals: {},
  spend: null,
  last_refusals: [],
  state: 'ok',
  paused_until: null,
  breaker_until: null,
  limit: 5,
};

const at = (...all: Partial<UpstreamViewAt>[]) =>
  all.map((one) => ({ upstreams: [{ ...FLOWING, ...one }] }));

describe('what groups have seen of an upstream', () => {
  it.each(['ok', 'partly paused', 'waiting', 'open'] as const)('is %s', (state) => {
    expect(seenOf(OPENAI, at({}, { state })).state).toBe(state);
  });

  it('names the calls that it stops, and when the last of them may start again', () => {
    const scope = (model: string) => ({ model, service_tier: null, credential: null });
    const [early, late] = ['2026-11-20T10:00:00.000Z', '2026-11-20T11:00:00.000Z'];
    const partly = (until: string, ...models: string[]): Partial<UpstreamViewAt> => ({
      state: 'partly paused',
      paused_until: until,
      stopped: models.map(scope),
    });
    const both = at(partly(early, 'pro'), {}, partly(late, 'pro', 'flash'));
    expect(seenOf(OPENAI, both)).toMatchObject({
      state: 'partly paused',
      stopped: 'model pro and 1 more',
      until: late,
    });
    const waiting: Partial<UpstreamViewAt> = { state: 'waiting', paused_until: early };
    expect(seenOf(OPENAI, at(waiting, partly(late, 'pro')))).toMatchObject({
      state: 'waiting',
      until: early,
    });
    const health = { ...OPENAI.health, state: 'partly paused', stopped: [scope('pro')] } as const;
    expect(seenOf({ ...OPENAI, health }, [])).toMatchObject({ stopped: 'model pro' });
  });

  it('is what the API said where no group was called for it, whatever became of other upstreams', () => {
    const elsewhere = at({ id: 'house', state: 'open', day_granted: 7 });
    expect(seenOf({ ...OPENAI, calls: null }, elsewhere)).toMatchObject({
      state: 'ok',
      refusals: [],
      grantedToday: 0,
      lastCallAt: null,
      spend: null,
    });
    expect(seenOf(OPENAI, [])).toMatchObject({ refusals: [['requests', 2]], grantedToday: 4 });
  });

  it('is off where the upstream takes no calls', () => {
    expect(seenOf({ ...OPENAI, enabled: false }, at({})).state).toBe('off');
  });

  it('adds up calls, refusals and spend, and has the longest pause and the last refusals', () => {
    const refusal = (kind: string, when: string) => ({
      kind,
      at: when,
      retry_after_ms: null,
      model: null,
    });
    const spend = { day_usd: 2, month_usd: 10 };
    const [early, late] = ['2026-11-20T10:00:00.000Z', '2026-11-20T11:00:00.000Z'];
    const seen = seenOf(
      OPENAI,
      at(
        {
          in_flight: 1,
          day_granted: 3,
          day_refusals: { tokens: 1, requests: 2 },
          spend,
          last_refusals: [refusal('requests', early), refusal('tokens', early)],
        },
        {
          in_flight: 2,
          day_granted: 4,
          day_refusals: { requests: 3 },
          spend,
          paused_until: early,
          breaker_until: late,
          last_refusals: [refusal('requests', late)],
        },
      ),
    );
    expect(seen).toMatchObject({
      inFlight: 3,
      grantedToday: 7,
      refusals: [
        ['requests', 5],
        ['tokens', 1],
      ],
      lastRefusals: [refusal('requests', late), refusal('tokens', early)],
      spend: { dayUsd: 4, monthUsd: 20 },
      until: late,
    });
  });
});

describe('upstreams in a list', () => {
  it.each([
    ['', true],
    ['OPENAI', true],
    ['api.openai shared', true],
    ['anthropic', false],
  ])('are found by "%s": %s', (searched, isThere) => {
    expect(isFound(OPENAI, searched)).toBe(isThere);
  });

  it('are in use when they are configured, were called, or have a group', () => {
    expect(isUsed(OPENAI)).toBe(true);
    const unused = { ...OPENAI, groups: [], calls: null };
    expect(isUsed(unused)).toBe(false);
    expect(isUsed({ ...unused, configured: { id: 'openai' } })).toBe(true);
  });
});
