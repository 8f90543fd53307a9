import { afterEach, expect, it } from 'vitest';
import type { OpenCall } from '../support/lifecycle-call.ts';
import { openChat } from '../support/lifecycle-call.ts';
import type { Stage } from '../support/lifecycle-stage.ts';
import { practiceConfig, startStage } from '../support/lifecycle-stage.ts';
import { clock, until } from '../support/lifecycle-wait.ts';

/** Some more than 500, for those that are done before the last high call is sent. */
const LOW_CALLS = 560;

let stage: Stage;

afterEach(() => stage.close());

function open(
  label: string,
  lane: string,
  headers: Readonly<Record<string, string>> = {},
): OpenCall {
  return openChat(stage.url(), { label, headers: { 'headgate-lane': lane, ...headers } });
}

it('a high call overtakes 500 low ones and waits for one slot at most', async () => {
  stage = await startStage({
    config: practiceConfig(2),
    upstream: { limit: 2, chunks: 5, chunkDelayMs: 60 },
  });
  const { upstream, admin } = stage;
  // The first one takes longer, so that from then on the two slots never end at the same time.
  const low = [open('low-0', 'low', { 'x-strict-chunk-delay-ms': '90' })];
  while (low.length < LOW_CALLS) low.push(open(`low-${low.length}`, 'low'));
  await until('all low calls have come', async () => {
    const { queued } = await admin.group('practice');
    return queued + upstream.stats().total >= low.length;
  });
  for (let round = 0; round < 5; round += 1) {
    expect((await admin.group('practice')).queued).toBeGreaterThanOrEqual(500);
    // Right after a grant the next end is some way off, and the call is in the queue before it.
    const { total } = upstream.stats();
    await until('a low call was granted', () => upstream.stats().total > total);
    const before = upstream.stats().total;
    const sentAt = clock();
    const call = open(`high-${round}`, 'high');
    expect(await call.answered).toBe(200);
    const { arrivals } = upstream.stats();
    const arrival = arrivals[before];
    expect(arrival?.label).toBe(`high-${round}`);
    const arrivedAt = arrival?.at ?? 0;
    const endsMeanwhile = arrivals.filter(
      ({ endedAt }) => endedAt !== null && endedAt > sentAt && endedAt < arrivedAt,
    );
    expect(endsMeanwhile).toHaveLength(1);
    await call.ended;
  }
  for (const call of low) call.leave('RST');
  await admin.untilIdle();
  expect(upstream.stats()).toMatchObject({ peak: 2, rejected429: 0 });
});
