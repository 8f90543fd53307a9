import { afterEach, expect, it } from 'vitest';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { NO_HOLDS, startStage } from '../support/lifecycle-stage.ts';
import { clock, FIGURE, until } from '../support/lifecycle-wait.ts';
import { gatewayKey, PartyCalls, slotSeconds } from '../support/order-load.ts';

const LIMITS = { large: 4, small: 3 };
/** Of the provider as a whole: less than its models have together. */
const TOTAL = 5;
const CALLS_EACH = 34;
const LEAVE_EACH = 10;
const PARTY = { name: 'calls', key: 'hg_calls' };

let stage: LifecycleStage;

afterEach(() => stage.close());

it(
  'two models and their provider keep all limits at once, and the provider stays busy',
  FIGURE,
  async () => {
    const group = (name: string, slots: number, match: unknown): unknown => ({
      name,
      match,
      limits: { max_concurrency: slots },
      holds: NO_HOLDS,
    });
    stage = await startStage({
      config: ({ url }) => ({
        upstreams: [{ id: 'practice', base_url: url, dialect: 'openai' }],
        groups: [
          group('provider', TOTAL, { upstreams: ['practice'] }),
          group('large', LIMITS.large, { models: ['large'] }),
          group('small', LIMITS.small, { models: ['small'] }),
        ],
        keys: [gatewayKey(PARTY.key)],
      }),
      upstream: { limit: TOTAL, limits: LIMITS, chunks: 10, chunkDelayMs: 60 },
    });
    const { upstream, admin } = stage;
    const large = new PartyCalls(stage.url(), PARTY, 'large');
    const small = new PartyCalls(stage.url(), PARTY, 'small');
    for (let i = 0; i < CALLS_EACH; i += 1) large.send();
    await until('the large model has all its slots', () => upstream.stats().inFlight === 4);
    for (let i = 0; i < CALLS_EACH; i += 1) small.send();
    await until('the provider is full', () => upstream.stats().inFlight === TOTAL);
    const from = clock();
    // Some give up while they wait, wherever that is.
    for (const { sent } of [large, small]) {
      for (const { call } of sent.slice(-LEAVE_EACH)) call.leave('RST');
    }
    const stay = [large, small].map(({ sent }) => sent.slice(0, -LEAVE_EACH));
    // Both are saturated for as long as more calls of each are left than there are slots.
    const late = stay.flatMap((calls) => calls.slice(-8, -7));
    await Promise.race(late.map(({ call }) => call.answered));
    const span = { from, to: clock() };
    const isBusy =
      slotSeconds(upstream.stats().arrivals, '', span) / (span.to - from) / (TOTAL / 1e3);
    const ends = await Promise.all(stay.flat().map(({ call }) => call.ended));
    expect(new Set(ends)).toEqual(new Set(['complete']));
    const statuses = await Promise.all(stay.flat().map(({ call }) => call.answered));
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(isBusy).toBeGreaterThan(0.9);
    expect(upstream.stats()).toMatchObject({
      peak: TOTAL,
      rejected429: 0,
      models: { large: { peak: LIMITS.large }, small: { peak: LIMITS.small } },
    });
    await admin.untilIdle();
    for (const name of ['provider', 'large', 'small']) expect(await admin.leases(name)).toEqual([]);
  },
);
