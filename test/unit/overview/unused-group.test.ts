// The figures of pools that nobody asks: what they said last, with what time and the configuration have done since.
import { describe, expect, it } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import type { PresenceReport } from '../../../src/contract/rpc/directory-rpc.ts';
import type { PoolStatus } from '../../../src/contract/status.ts';
import { emptyRates } from '../../../src/core/parts/rates.ts';
import { instant } from '../../../src/core/words/ids.ts';
import { resting, untouched } from '../../../src/overview/unused-group.ts';
import { aConfig } from '../routing/fixtures.ts';

type UnaskedGroup = NonNullable<ConfigInput['groups']>[number];

const [MINUTE_MS, HOUR_MS] = [60_000, 3_600_000];
const SAID_AT = Date.parse('2026-03-14T12:30:00Z');

const configured = (group: Partial<UnaskedGroup> = {}) =>
  aConfig({ groups: [{ name: 'g', ...group }] });

function firstOf(config: ReturnType<typeof aConfig>) {
  const [group] = config.groups;
  if (group === undefined) throw new Error('no group');
  return group;
}

/** Says something in the middle of a day, and is shown so much later. */
function shown(
  said: Partial<PoolStatus>,
  {
    afterMs = 0,
    config = configured(),
    group = 'g',
    rates = emptyRates(),
  }: {
    afterMs?: number;
    config?: ReturnType<typeof aConfig>;
    group?: string;
    rates?: PresenceReport['rates'];
  } = {},
): PoolStatus {
  const made = untouched(firstOf(configured()), instant(SAID_AT));
  const status: PoolStatus = { ...made.status, group, ...said };
  const at = instant(SAID_AT + afterMs);
  const reported = { at: SAID_AT, metrics: { ...made, status }, rates };
  return resting({ group, partition: null }, reported, config, at).status;
}

describe('a group that was never used', () => {
  it('has its limits, all of its rates, and nothing spent', () => {
    const config = configured({
      limits: { max_concurrency: 3, rpm: 60, budget_usd: { per_day: 5 } },
      paused: true,
    });
    expect(untouched(firstOf(config), instant(SAID_AT)).status).toMatchObject({
      limit: { configured: 3, effective: 3, source: 'configured' },
      rates: { rpm: { limit: 60, left: expect.any(Number) } },
      spend: { day_usd: 0, reserved_usd: 0 },
      paused: true,
      in_use: 0,
    });
  });
});

describe('a pool that rests', () => {
  it('has nobody, also where its process ended in the midst of calls', () => {
    const status = shown({
      in_use: 3,
      cooling: 1,
      unclaimed: 2,
      unclaimed_until: new Date(SAID_AT).toISOString(),
      lent: 2,
      queued: 4,
      queued_by_lane: { high: 1, normal: 2, low: 1 },
      oldest_wait_ms: 500,
      granted_total: 9,
    });
    expect(status).toMatchObject({
      in_use: 0,
      cooling: 0,
      unclaimed: 0,
      unclaimed_until: null,
      lent: 0,
      queued: 0,
      queued_by_lane: { high: 0, normal: 0, low: 0 },
      oldest_wait_ms: 0,
      granted_total: 9,
    });
  });

  it('says of when that is, and has been idle since', () => {
    const status = shown({ idle_ms: 1_000 }, { afterMs: 5_000 });
    expect(status.idle_ms).toBe(6_000);
    expect(status.as_of).toBe(new Date(SAID_AT).toISOString());
    // By a clock that is behind that of the pool.
    expect(shown({ idle_ms: 1_000 }, { afterMs: -5_000 }).idle_ms).toBe(1_000);
  });

  it('tells of waits for five minutes', () => {
    const said = { wait_p50_ms: 20, wait_p95_ms: 30, idle_ms: MINUTE_MS };
    expect(shown(said, { afterMs: 3 * MINUTE_MS }).wait_p95_ms).toBe(30);
    expect(shown(said, { afterMs: 4 * MINUTE_MS }).wait_p95_ms).toBeNull();
  });

  it('is paused by its upstream until that is over', () => {
    const said = { paused_until: new Date(SAID_AT + 1_000).toISOString() };
    expect(shown(said, { afterMs: 999 }).paused_until).toBe(said.paused_until);
    expect(shown(said, { afterMs: 1_000 }).paused_until).toBeNull();
  });

  it.each<[string, Partial<PoolStatus>, UnaskedGroup['limits'], PoolStatus['limit']]>([
    [
      'a limit that was changed',
      {},
      { max_concurrency: 7 },
      { configured: 7, effective: 7, source: 'configured' },
    ],
    [
      'what it has learned, below the limit',
      { limit: { configured: 9, effective: 4, source: 'learned' } },
      { max_concurrency: 7 },
      { configured: 7, effective: 4, source: 'learned' },
    ],
    [
      'a limit below what it has learned',
      { limit: { configured: 9, effective: 4, source: 'learned' } },
      { max_concurrency: 2 },
      { configured: 2, effective: 2, source: 'learned' },
    ],
    [
      'what it has learned where the limit is gone',
      { limit: { configured: 9, effective: 4, source: 'learned' } },
      {},
      { configured: null, effective: 4, source: 'learned' },
    ],
  ])('shows %s', (_, said, limits, limit) => {
    expect(shown(said, { config: configured({ limits }) }).limit).toEqual(limit);
  });

  it('has the switches of now, that of a group that Headgate made too', () => {
    const stopped = shown({ paused: false }, { config: configured({ draining: true }) });
    expect(stopped).toMatchObject({ paused: false, draining: true });
    const config = aConfig({ auto_groups: [{ name: 'auto:openai', paused: true }] });
    expect(shown({}, { group: 'auto:openai', config }).paused).toBe(true);
    expect(shown({ paused: true }, { group: 'auto:openai' }).paused).toBe(false);
  });

  describe('has spent', () => {
    const spend = {
      hour_usd: 1,
      day_usd: 2,
      month_usd: 3,
      reserved_usd: 4,
      day_usd_by_key: { k: 2 },
      day_usd_by_agent: {},
    };

    it.each([
      ['the same in the same hour', 29 * MINUTE_MS, 1, 2, 3],
      ['nothing in the next hour', 30 * MINUTE_MS, 0, 2, 3],
      ['nothing on the next day', 12 * HOUR_MS, 0, 0, 3],
      ['nothing in the next month', 18 * 24 * HOUR_MS, 0, 0, 0],
    ])('%s', (_, afterMs, hour, day, month) => {
      expect(shown({ spend }, { afterMs }).spend).toEqual({
        hour_usd: hour,
        day_usd: day,
        month_usd: month,
        reserved_usd: 0,
        day_usd_by_key: day === 0 ? {} : { k: 2 },
        day_usd_by_agent: {},
      });
    });

    it('a budget without room, for as long as its period lasts and it is neither raised nor gone', () => {
      const said = { budget_spent: { window: 'day', limit_usd: 5 } } as const;
      const now = (limits: UnaskedGroup['limits'], afterMs = 0) =>
        shown(said, { config: configured({ limits }), afterMs }).budget_spent;
      expect(now({ budget_usd: { per_day: 5 } })).toEqual(said.budget_spent);
      expect(now({ budget_usd: { per_day: 4 } })).toEqual(said.budget_spent);
      expect(now({ budget_usd: { per_day: 5 } }, 12 * HOUR_MS)).toBeNull();
      expect(now({ budget_usd: { per_day: 6 } })).toBeNull();
      expect(now({ budget_usd: { per_month: 5 } })).toBeNull();
      expect(now({})).toBeNull();
    });

    it('a budget of a member without room, until that is gone', () => {
      const said = { budget_spent: { window: 'day', limit_usd: 2 } } as const;
      const member = (per_day: number | null) => ({
        members: [{ upstream: 'openai', limits: { budget_usd: { per_day } } }],
      });
      expect(shown(said, { config: configured(member(2)) }).budget_spent).toEqual(
        said.budget_spent,
      );
      expect(shown(said, { config: configured(member(null)) }).budget_spent).toBeNull();
    });

    it('nothing of a budget that is new', () => {
      const config = configured({ limits: { budget_usd: { per_day: 5 } } });
      expect(shown({ spend: null }, { config }).spend).toMatchObject({ day_usd: 0 });
      expect(shown({ spend: null }).spend).toBeNull();
    });
  });
});
