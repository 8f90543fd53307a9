import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { clock, FIGURE } from '../support/lifecycle-wait.ts';
import { lastExcessAt, seenIn, since } from '../support/limits-load.ts';
import { HIDDEN, fillQueue } from '../support/limits-hidden.ts';
import { startScopes } from '../support/limits-stage.ts';

/** Far more than it takes: a group that does not settle never does. */
const SETTLED_WITHIN_MS = 60_000;
const LOOK_MS = 5_000;

let stage: LifecycleStage;

beforeAll(async () => {
  stage = await startScopes(HIDDEN, { limit: 4, chunks: 4, chunkDelayMs: 100 });
});

afterAll(() => stage.close());

it.concurrent.each(HIDDEN)(
  'an upstream that takes 4 at once and is $name settles at 4, and no client sees a 429',
  { ...FIGURE, timeout: 120_000 },
  async ({ id }) => {
    const stats = () => stage.upstream.stats(id);
    const startedAt = clock();
    const queue = fillQueue(stage, id);
    // It has settled when it was refused nothing but single probes for a while.
    while (clock() - lastExcessAt(stats().refusals, startedAt) < LOOK_MS) {
      expect(clock() - startedAt).toBeLessThan(SETTLED_WITHIN_MS + LOOK_MS);
      await delay(100);
    }
    const span = since(clock() - LOOK_MS / 2);
    const { used } = seenIn(stats().arrivals, 4, span);
    const endings = await queue.stop();
    expect(Object.keys(endings)).toEqual(['200']);
    // It was told so by the upstream, and has not settled below it.
    expect(stats().refused.concurrency).toBeGreaterThan(4);
    expect(used).toBeGreaterThan(0.8);
  },
);
