import { afterEach, expect, it } from 'vitest';
import type { StrictStats } from '../../strict-upstream/counts.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { NO_HOLDS, startStage } from '../support/lifecycle-stage.ts';
import { clock, FIGURE } from '../support/lifecycle-wait.ts';
import type { Party, OrderLoadSpan } from '../support/order-load.ts';
import { gatewayKey, p95, PartyCalls, slotSeconds } from '../support/order-load.ts';

/** Three share six slots and one of them floods; the upstream's own list says what each has got. */
const SHARE = 2;
const SLOTS = 3 * SHARE;
const MEASURED_MS = 4_000;
const FLOOD = 200;

let stage: LifecycleStage;

afterEach(() => stage.close());

/** Share of a party: slot time at the upstream within the measured stretch, and how long it waited. */
interface Got {
  readonly slotS: number;
  readonly p95WaitMs: number;
}

/** A stage with a group for all three, and for the quiet two a group each that is as large as a share. */
async function startSharing(keys: readonly string[], by: readonly string[]): Promise<void> {
  const group = (model: string, slots: number): unknown => ({
    name: model,
    match: { models: [model] },
    limits: { max_concurrency: slots },
    fairness: { by },
    holds: NO_HOLDS,
  });
  stage = await startStage({
    config: ({ url }) => ({
      upstreams: [{ id: 'practice', base_url: url, dialect: 'openai' }],
      groups: [group('shared', SLOTS), group('bursts-alone', SHARE), group('turns-alone', SHARE)],
      keys: keys.map(gatewayKey),
    }),
    upstream: {
      limits: { shared: SLOTS, 'bursts-alone': SHARE, 'turns-alone': SHARE },
      chunks: 5,
      chunkDelayMs: 20,
    },
  });
}

/**
 * The demand of the two that do not flood. One asks for eight calls of a tenth of a second every half
 * second, which is less than its share; the other wants three times its share all the time.
 */
async function runQuietTwo(bursts: PartyCalls, turns: PartyCalls): Promise<OrderLoadSpan> {
  const from = clock();
  await Promise.all([
    bursts.sendBursts(8, 500, MEASURED_MS),
    turns.sendInTurns(3 * SHARE, MEASURED_MS),
  ]);
  return { from, to: from + MEASURED_MS };
}

function gotOf(calls: PartyCalls, span: OrderLoadSpan): Got {
  const { arrivals } = stage.upstream.stats();
  const waits = calls.waits(arrivals);
  expect(waits).toHaveLength(calls.sent.length);
  return { slotS: slotSeconds(arrivals, calls.prefix, span), p95WaitMs: p95(waits) };
}

/** As alone, or a third of what was to be had on a machine that is busy with other things. */
function expectAsAlone(got: Got, alone: Got, third: number): void {
  expect(got.slotS).toBeGreaterThan(0.9 * Math.min(alone.slotS, third));
  expect(got.p95WaitMs).toBeLessThan(2 * alone.p95WaitMs);
}

/** Runs all of it and answers with what the upstream saw. */
async function shareOut(flooder: Party, bursty: Party, steady: Party): Promise<StrictStats> {
  const url = stage.url();
  const alone = [
    new PartyCalls(url, bursty, 'bursts-alone'),
    new PartyCalls(url, steady, 'turns-alone'),
  ] as const;
  const aloneSpan = await runQuietTwo(...alone);
  const flood = new PartyCalls(url, flooder, 'shared');
  for (let i = 0; i < FLOOD; i += 1) flood.send();
  await stage.admin.untilGroup('shared', { in_use: SLOTS });
  const together = [
    new PartyCalls(url, bursty, 'shared'),
    new PartyCalls(url, steady, 'shared'),
  ] as const;
  const span = await runQuietTwo(...together);
  const { queued } = await stage.admin.group('shared');
  // Otherwise the flood was over before the end, and nothing was shown.
  expect(queued).toBeGreaterThan(0);
  for (const { call } of flood.sent) call.leave('RST');
  const stats = stage.upstream.stats();
  const floodS = slotSeconds(stats.arrivals, flood.prefix, span);
  const gots = together.map((calls) => gotOf(calls, span));
  const alones = alone.map((calls) => gotOf(calls, aloneSpan));
  const third = slotSeconds(stats.arrivals, 'shared ', span) / 3;
  for (const [index, got] of gots.entries()) expectAsAlone(got, alones[index] ?? got, third);
  // Nobody is kept down either: what the bursts leave is for the other two.
  expect(floodS).toBeGreaterThan(0.9 * third);
  await stage.admin.untilIdle();
  return stats;
}

it(
  'two tenants get what they ask for up to their share beside a third that floods',
  FIGURE,
  async () => {
    const keys = ['hg_flood', 'hg_bursts', 'hg_turns'] as const;
    await startSharing(keys, ['caller']);
    const stats = await shareOut(
      { name: 'flood', key: keys[0] },
      { name: 'bursts', key: keys[1] },
      { name: 'turns', key: keys[2] },
    );
    expect(stats).toMatchObject({ rejected429: 0, models: { shared: { peak: SLOTS } } });
  },
);

it('so do two agents under one key beside a third that floods', FIGURE, async () => {
  await startSharing(['hg_team'], ['caller', 'agent']);
  const stats = await shareOut(
    { name: 'flood', key: 'hg_team', agent: 'run-flood' },
    { name: 'bursts', key: 'hg_team', agent: 'run-bursts' },
    { name: 'turns', key: 'hg_team', agent: 'run-turns' },
  );
  expect(stats).toMatchObject({ rejected429: 0, models: { shared: { peak: SLOTS } } });
});
