import { afterEach, expect, it } from 'vitest';
import type { LifecycleOpenCall } from '../support/lifecycle-call.ts';
import { openChat } from '../support/lifecycle-call.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { practiceConfig, startStage } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

/** Some more than 500, for those that are let through before the last high call is sent. */
const LOW_CALLS = 520;
const ROUNDS = 5;

let stage: LifecycleStage;

afterEach(() => stage.close());

function open(
  label: string,
  lane: string,
  headers: Readonly<Record<string, string>> = {},
): LifecycleOpenCall {
  return openChat(stage.url(), { label, headers: { 'headgate-lane': lane, ...headers } });
}

it('a high call overtakes 500 low ones and waits for one slot at most', async () => {
  // Every low call keeps its slot until it is told to leave.
  stage = await startStage({
    config: practiceConfig(2, { queue: { lane_max: 'high' } }),
    upstream: { limit: 2, silentAfterChunks: 1 },
  });
  const { upstream, admin } = stage;
  const holders = (): readonly number[] =>
    upstream.stats().arrivals.flatMap(({ label, state }) => {
      const at = /^low-(\d+)$/.exec(label ?? '')?.[1];
      return state === 'open' && at !== undefined ? [Number(at)] : [];
    });
  const low = Array.from({ length: LOW_CALLS }, (_, at) => open(`low-${at}`, 'low'));
  await admin.untilGroup('practice', { in_use: 2, queued: LOW_CALLS - 2 });
  for (let round = 0; round < ROUNDS; round += 1) {
    await until('two low calls are there', () => holders().length === 2);
    const { queued } = await admin.group('practice');
    expect(queued).toBeGreaterThanOrEqual(500);
    const call = open(`high-${round}`, 'high', { 'x-strict-silent-after-chunks': '2' });
    await admin.untilGroup('practice', { in_use: 2, queued: queued + 1 });
    const { arrivals } = upstream.stats();
    expect(arrivals.map(({ label }) => label)).not.toContain(`high-${round}`);
    // One slot comes free, and that is the one.
    low[holders()[0] ?? NaN]?.leave('RST');
    expect(await call.answered).toBe(200);
    expect(upstream.stats().arrivals[arrivals.length]?.label).toBe(`high-${round}`);
    call.leave('RST');
  }
  for (const call of low) call.leave('RST');
  await admin.untilIdle();
  expect(upstream.stats()).toMatchObject({ peak: 2, rejected429: 0 });
});
