import { afterEach, expect, it } from 'vitest';
import type { LifecycleOpenCall } from '../support/lifecycle-call.ts';
import { openChat } from '../support/lifecycle-call.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { practiceConfig, startStage } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';
import { RESET_LEASE, resettableWorker } from '../support/changed-worker.ts';

/** Calls that wait before the first slot comes free; a third of them in each lane. */
const WAITING = 36;

/** After so many calls at the upstream the object is reset, each time in the middle of the queue. */
const RESET_AFTER = [5, 17, 29];

const LANES = ['low', 'high', 'normal'] as const;

let stage: LifecycleStage;

afterEach(() => stage.close());

/** Ends the group's instance: the call that does so learns nothing but that. */
async function reset(): Promise<void> {
  const path = `/groups/practice/leases/${RESET_LEASE}`;
  expect((await stage.admin.request('DELETE', path)).status).toBe(503);
}

it('an object that is reset in the middle of a contended queue keeps its limit and everybody in place', async () => {
  stage = await startStage({
    // Lanes that are owed no turns: what is owed is not kept over a reset, the order of arrival is.
    config: practiceConfig(1, { queue: { lane_max: 'high', lane_shares: { normal: 0, low: 0 } } }),
    upstream: { limit: 1, chunks: 3, chunkDelayMs: 15 },
    module: resettableWorker,
  });
  const { upstream, admin } = stage;
  const silent = { 'x-strict-silent-after-chunks': '1' };
  const holder = openChat(stage.url(), { label: 'holder', headers: silent });
  expect(await holder.answered).toBe(200);
  const calls: LifecycleOpenCall[] = [holder];
  const sent: { readonly label: string; readonly lane: string }[] = [];
  for (let at = 0; at < WAITING; at += 1) {
    const lane = LANES[at % LANES.length] ?? 'normal';
    const label = `${lane}-${at}`;
    sent.push({ label, lane });
    calls.push(openChat(stage.url(), { label, headers: { 'headgate-lane': lane } }));
    await admin.untilGroup('practice', { in_use: 1, queued: at + 1 });
  }
  upstream.resume();
  for (const total of RESET_AFTER) {
    await until(`${total} have come`, () => upstream.stats().total >= total);
    await reset();
    expect(upstream.stats().total).toBeLessThan(total + 5);
  }
  expect(new Set(await Promise.all(calls.map(({ ended }) => ended)))).toEqual(
    new Set(['complete']),
  );
  const inLane = (wanted: string) =>
    sent.filter(({ lane }) => lane === wanted).map(({ label }) => label);
  const { arrivals, ...counted } = upstream.stats();
  expect(arrivals.map(({ label }) => label)).toEqual([
    'holder',
    ...inLane('high'),
    ...inLane('normal'),
    ...inLane('low'),
  ]);
  expect(counted).toMatchObject({ peak: 1, completed: WAITING + 1, rejected429: 0 });
  await admin.untilIdle();
});
