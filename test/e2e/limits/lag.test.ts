import { afterAll, beforeAll, expect, it } from 'vitest';
import type { OpenCall } from '../support/lifecycle-call.ts';
import { openChat } from '../support/lifecycle-call.ts';
import type { Stage } from '../support/lifecycle-stage.ts';
import { NO_HOLDS } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';
import { endingsOf } from '../support/limits-load.ts';
import { startScopes } from '../support/limits-stage.ts';

/** A provider of one call at a time counts each as in flight for a while after its last byte. */
const LAG_MS = 150;
const READERS = 6;
const LEAVERS = 3;

let stage: Stage;

beforeAll(async () => {
  const limits = { max_concurrency: 1 };
  stage = await startScopes(
    [
      { id: 'default', group: { limits } },
      { id: 'none', group: { limits, holds: NO_HOLDS } },
    ],
    { limit: 1, accountingLagMs: LAG_MS, chunks: 3, chunkDelayMs: 5 },
  );
});

afterAll(() => stage.close());

const send = (id: string, label: string, headers: Readonly<Record<string, string>> = {}) =>
  openChat(stage.url(), { path: `/${id}/v1/chat/completions`, label, headers });

it.concurrent('an accounting lag of 150 ms at a cap of 1 gives no 429 with the default hold', async () => {
  const { upstream } = stage;
  const readers: OpenCall[] = [];
  for (let at = 0; at < READERS; at += 1) {
    readers.push(send('default', `reader-${at}`));
    if (at >= LEAVERS) continue;
    // Some go in mid-stream: their slots are counted for as long.
    const leaver = send('default', `leaver-${at}`, { 'x-strict-silent-after-chunks': '1' });
    leaver.answered.then(
      () => leaver.leave('RST'),
      () => undefined,
    );
  }
  expect(await endingsOf(readers)).toEqual({ 200: READERS });
  await until('all have gone', () => upstream.stats('default').total === READERS + LEAVERS);
  expect(upstream.stats('default')).toMatchObject({ peak: 1, rejected429: 0, refused: {} });
});

it.concurrent('without a cooldown the same lag is met by the next call', async () => {
  await endingsOf(Array.from({ length: 4 }, (_, at) => send('none', `call-${at}`)));
  expect(stage.upstream.stats('none').refused.concurrency).toBeGreaterThan(0);
});
