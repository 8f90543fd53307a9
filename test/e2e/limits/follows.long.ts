import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { clock, until } from '../support/lifecycle-wait.ts';
import type { LimitsLoadSeen } from '../support/limits-load.ts';
import { lastExcessAt, seenIn, since } from '../support/limits-load.ts';
import { HIDDEN, fillQueue } from '../support/limits-hidden.ts';
import { startScopes } from '../support/limits-stage.ts';

/** A limit that nobody told and that changes, before calls of a second each. */
const SETTLED_WITHIN_MS = 20_000;
const RISEN_WITHIN_MS = 120_000;
const FALLEN_WITHIN_MS = 5_000;

/** While probes fail they become rarer; after this time they are as rare as they get. */
const PROBES_RARE_MS = 70_000;
const STEADY_MS = 100_000;

let stage: LifecycleStage;

beforeAll(async () => {
  stage = await startScopes(HIDDEN, { limit: 4, chunks: 10, chunkDelayMs: 100 });
});

afterAll(() => stage.close());

/** When it settled after `from`, in milliseconds, as seen a good while later. */
const settledMs = (id: string, from: number): number =>
  lastExcessAt(stage.upstream.stats(id).refusals, from) - from;

/** Watches what the upstream sees in a stretch of time that begins now. */
async function watch(id: string, slots: number, lengthMs: number): Promise<LimitsLoadSeen> {
  const from = clock();
  await delay(lengthMs);
  return seenIn(stage.upstream.stats(id).arrivals, slots, since(from));
}

function expectSteady({ used, refused }: LimitsLoadSeen): void {
  expect(used).toBeGreaterThanOrEqual(0.95);
  expect(refused).toBeLessThanOrEqual(0.02);
}

it.concurrent.each(HIDDEN)(
  'a hidden limit that is $name is followed from 4 to 8 and to 2, used and hardly exceeded',
  async ({ id }) => {
    const { upstream } = stage;
    const startedAt = clock();
    const queue = fillQueue(stage, id);
    await delay(PROBES_RARE_MS);
    expect(settledMs(id, startedAt)).toBeLessThan(SETTLED_WITHIN_MS);
    expectSteady(await watch(id, 4, STEADY_MS));

    upstream.configure({ limit: 8 }, id);
    await until('eight are in flight', () => upstream.stats(id).admitted === 8, {
      withinMs: RISEN_WITHIN_MS,
      everyMs: 50,
    });
    // The climb ends with one step too many.
    await delay(SETTLED_WITHIN_MS);
    expectSteady(await watch(id, 8, STEADY_MS));

    upstream.configure({ limit: 2 }, id);
    const fallenAt = clock();
    await delay(4 * FALLEN_WITHIN_MS);
    expect(settledMs(id, fallenAt)).toBeLessThan(FALLEN_WITHIN_MS);
    expect(upstream.stats(id).refusals.filter(({ at }) => at > fallenAt).length).toBeGreaterThan(0);

    const endings = await queue.stop();
    expect(Object.keys(endings)).toEqual(['200']);
  },
);
