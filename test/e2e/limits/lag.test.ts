import { afterAll, beforeAll, expect, it } from 'vitest';
import type { LifecycleOpenCall } from '../support/lifecycle-call.ts';
import { openChat } from '../support/lifecycle-call.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { NO_HOLDS } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';
import { endingsOf } from '../support/limits-load.ts';
import { startScopes } from '../support/limits-stage.ts';

/** A provider of one call at a time counts each as in flight for a while after its last byte. */
const LAG_MS = 150;
const READERS = 6;
const LEAVERS = 3;
/** Longer by far: on a busy machine the provider notices an end late, and counts from then on. */
const LONG_ENOUGH = { release_cooldown_ms: 600, cancel_cooldown_ms: 600 };

/** Refusals of a group that learns the lag: of the first call, and of those that try a shorter cool-down. */
const LESSONS_MAX = 5;

let stage: LifecycleStage;

beforeAll(async () => {
  const limits = { max_concurrency: 1 };
  stage = await startScopes(
    [
      { id: 'default', group: { limits } },
      { id: 'set', group: { limits, holds: LONG_ENOUGH } },
      { id: 'none', group: { limits, holds: NO_HOLDS } },
    ],
    { limit: 1, accountingLagMs: LAG_MS, chunks: 3, chunkDelayMs: 5 },
  );
});

afterAll(() => stage.close());

const send = (id: string, label: string, headers: Readonly<Record<string, string>> = {}) =>
  openChat(stage.url(), { path: `/${id}/v1/chat/completions`, label, headers });

/** Has calls read and left at a cap of one, and counts what the upstream refused of them. */
async function readAndLeave(id: string): Promise<number> {
  const { upstream } = stage;
  const readers: LifecycleOpenCall[] = [];
  for (let at = 0; at < READERS; at += 1) {
    readers.push(send(id, `reader-${at}`));
    if (at >= LEAVERS) continue;
    // Some go in mid-stream: their slots are counted for as long.
    const leaver = send(id, `leaver-${at}`, { 'x-strict-silent-after-chunks': '1' });
    leaver.answered.then(
      () => leaver.leave('RST'),
      () => undefined,
    );
  }
  expect(await endingsOf(readers)).toEqual({ 200: READERS });
  await until('all have gone', () => upstream.stats(id).granted === READERS + LEAVERS);
  expect(upstream.stats(id).peak).toBe(1);
  return upstream.stats(id).rejected429;
}

it.concurrent('an accounting lag of 150 ms at a cap of 1 is learned, and no caller sees a 429', async () => {
  expect(await readAndLeave('default')).toBeLessThanOrEqual(LESSONS_MAX);
});

it.concurrent('a configured cooldown that is longer than the lag gives no 429 at all', async () => {
  expect(await readAndLeave('set')).toBe(0);
});

it.concurrent('without a cooldown the same lag is met by the next call', async () => {
  await endingsOf(Array.from({ length: 4 }, (_, at) => send('none', `call-${at}`)));
  expect(stage.upstream.stats('none').refused.concurrency).toBeGreaterThan(0);
});
