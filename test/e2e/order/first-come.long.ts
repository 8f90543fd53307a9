import { afterEach, expect, it } from 'vitest';
import type { LifecycleOpenCall } from '../support/lifecycle-call.ts';
import { openChat } from '../support/lifecycle-call.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { practiceConfig, startStage } from '../support/lifecycle-stage.ts';

let stage: LifecycleStage;

afterEach(() => stage.close());

it('1,000 queued calls reach the upstream in the order in which they were sent', async () => {
  const count = 1_000;
  stage = await startStage({
    config: practiceConfig(1),
    upstream: { limit: 1, chunks: 2 },
  });
  const headers = { 'x-strict-silent-after-chunks': '1' };
  const holder = openChat(stage.url(), { label: 'holder', headers });
  expect(await holder.answered).toBe(200);
  const labels = Array.from({ length: count }, (_, i) => `call-${i}`);
  const calls: LifecycleOpenCall[] = [];
  for (const label of labels) {
    calls.push(openChat(stage.url(), { label }));
    // The next one is sent when this one stands in the queue, so their order is beyond doubt.
    await stage.admin.untilGroup('practice', { queued: calls.length });
  }
  stage.upstream.resume();
  expect(new Set(await Promise.all(calls.map(({ answered }) => answered)))).toEqual(new Set([200]));
  expect(new Set(await Promise.all(calls.map(({ ended }) => ended)))).toEqual(
    new Set(['complete']),
  );
  const stats = stage.upstream.stats();
  expect(stats).toMatchObject({ peak: 1, completed: count + 1, rejected429: 0 });
  expect(stats.arrivals.map(({ label }) => label)).toEqual(['holder', ...labels]);
  await stage.admin.untilIdle();
});
