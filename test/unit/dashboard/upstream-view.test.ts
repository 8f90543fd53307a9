import { describe, expect, it } from 'vitest';
import {
  isFound,
  isUsed,
  lastRefusals,
  seenOf,
  type UpstreamInfo,
} from '../../../dashboard/src/model/upstream-view.ts';

type GroupStatus = Parameters<typeof seenOf>[1][number];
type Decision = Parameters<typeof lastRefusals>[0][number];

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
  health: {
    state: 'ok',
    paused_until: null,
    breaker_until: null,
    refusals_total: { requests: 2 },
    limits: {},
  },
};

const FLOWING: GroupStatus = {
  name: 'openai-shared',
  kind: 'configured',
  limit: { configured: 5, effective: 5, source: 'configured' },
  in_use: 0,
  cooling: 0,
  cooldown_ms: 0,
  unclaimed: 0,
  unclaimed_until: null,
  lent: 0,
  queued: 0,
  queued_by_lane: { high: 0, normal: 0, low: 0 },
  oldest_wait_ms: 0,
  wait_p50_ms: null,
  wait_p95_ms: null,
  paused: false,
  paused_until: null,
  breaker: 'closed',
  breaker_until: null,
  refusals_total: {},
  rates: null,
  spend: null,
  draining: false,
  dry_run: false,
  granted_total: 0,
  rejected_total: {},
  would_wait_total: 0,
  expired_total: 0,
  resurrected_total: 0,
  passed_unlimited_total: 0,
  idle_ms: 0,
  overlaps_with: [],
  partitions: [],
};

describe('what groups have seen of an upstream', () => {
  it.each([
    ['ok', {}],
    ['waiting', { paused_until: '2026-11-20T10:00:00.000Z' }],
    ['open', { breaker: 'half_open', paused_until: '2026-11-20T10:00:00.000Z' }],
    ['unreachable', { error: 'out of reach' }],
  ] as const)('is %s', (state, status) => {
    expect(seenOf(OPENAI, [{ ...FLOWING, ...status }]).state).toBe(state);
  });

  it('is ok where only some groups cannot be reached', () => {
    expect(seenOf(OPENAI, [FLOWING, { ...FLOWING, error: 'out of reach' }]).state).toBe('ok');
  });

  it('is what the API said where no group is known', () => {
    const seen = seenOf(OPENAI, []);
    expect(seen).toMatchObject({ state: 'ok', refusals: [['requests', 2]], spend: null });
  });

  it('is off where the upstream takes no calls', () => {
    expect(seenOf({ ...OPENAI, enabled: false }, [FLOWING]).state).toBe('off');
  });

  it('adds up refusals and spend, and has the longest pause', () => {
    const spend = {
      hour_usd: 0,
      day_usd: 2,
      month_usd: 10,
      reserved_usd: 0,
      day_usd_by_key: {},
      day_usd_by_agent: {},
    };
    const a = { ...FLOWING, refusals_total: { tokens: 1, requests: 2 }, spend };
    const b = {
      ...FLOWING,
      refusals_total: { requests: 3 },
      spend,
      paused_until: '2026-11-20T10:00:00.000Z',
      breaker_until: '2026-11-20T11:00:00.000Z',
    };
    expect(seenOf(OPENAI, [a, b])).toMatchObject({
      refusals: [
        ['requests', 5],
        ['tokens', 1],
      ],
      spend: { dayUsd: 4, monthUsd: 20 },
      until: '2026-11-20T11:00:00.000Z',
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

  it('are in use when they are configured or have a group', () => {
    expect(isUsed(OPENAI)).toBe(true);
    expect(isUsed({ ...OPENAI, groups: [] })).toBe(false);
    expect(isUsed({ ...OPENAI, groups: [], configured: { id: 'openai' } })).toBe(true);
  });
});

describe('the last refusals of an upstream', () => {
  const refusal = (
    said: Decision['upstream_said'],
    decided_at: string,
    upstream = 'openai',
  ): Decision => ({
    partition: null,
    lease: 'a.1',
    ticket: 'a',
    attempt: 1,
    lane: 'normal',
    tenant: 't',
    agent: null,
    upstream,
    model: null,
    slots: 1,
    arrived_at: decided_at,
    decided_at,
    waited_ms: 0,
    position_at_arrival: 0,
    waited_for: null,
    outcome: 'granted',
    rejection: null,
    upstream_status: null,
    upstream_said: said,
    upstream_retry_after_ms: null,
    ended: null,
    held_ms: null,
  });

  it('are one of each kind, the latest first', () => {
    const found = lastRefusals(
      [
        refusal('tokens', '2026-11-20T10:00:01.000Z'),
        refusal('concurrency', '2026-11-20T10:00:02.000Z'),
        refusal('tokens', '2026-11-20T10:00:03.000Z'),
        refusal('served', '2026-11-20T10:00:04.000Z'),
        refusal(null, '2026-11-20T10:00:05.000Z'),
        refusal('overload', '2026-11-20T10:00:06.000Z', 'anthropic'),
      ],
      'openai',
    );
    expect(found.map((one) => [one.upstream_said, one.decided_at.slice(17, 19)])).toEqual([
      ['tokens', '03'],
      ['concurrency', '02'],
    ]);
  });
});
