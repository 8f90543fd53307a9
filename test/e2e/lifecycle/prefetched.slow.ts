import { afterEach, beforeEach, expect, it } from 'vitest';
import { openChat } from '../support/lifecycle-call.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { practiceConfig, startStage } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';
import { RESET_LEASE, resettableWorker } from '../support/changed-worker.ts';

/** Slots that two Workers were lent, to start calls on without asking; the upstream counts for itself. */

const LIMIT = 16;

let stage: LifecycleStage;

beforeEach(async () => {
  stage = await startStage({
    config: practiceConfig(LIMIT),
    workers: 2,
    upstream: { limit: LIMIT, chunks: 2, chunkDelayMs: 2 },
    module: resettableWorker,
  });
});

afterEach(() => stage.close());

/** Has two callers at each Worker call one after the other, until they are told to stop. */
function keepCalling(): { readonly stop: () => Promise<void> } {
  let goesOn = true;
  const call = async (url: string, label: string): Promise<void> => {
    for (let at = 0; goesOn; at += 1) {
      const one = openChat(url, { label: `${label}-${at}` });
      expect(await one.answered).toBe(200);
      expect(await one.ended).toBe('complete');
    }
  };
  const work = stage.urls().flatMap((url, at) => [call(url, `a${at}`), call(url, `b${at}`)]);
  const all = Promise.all(work);
  // Whatever is wrong is told at the end.
  all.catch(() => {});
  return {
    async stop() {
      goesOn = false;
      await all;
    },
  };
}

async function untilPrefetched(): Promise<void> {
  await until('slots are lent', async () => (await stage.admin.group('practice')).lent > 0);
}

function expectExact(): void {
  const { peak, rejected429 } = stage.upstream.stats();
  expect(peak).toBeLessThanOrEqual(LIMIT);
  expect(rejected429).toBe(0);
}

it('they come back as soon as others could use them, and the limit is full', async () => {
  const { upstream, admin } = stage;
  const calling = keepCalling();
  await untilPrefetched();
  upstream.configure({ silentAfterChunks: 1 });
  const callersAtOnce = Array.from({ length: LIMIT + 4 }, (_, at) =>
    openChat(stage.urls()[at % 2] ?? '', { label: `crowd-${at}` }),
  );
  // All four of the others are at the upstream, or wait as well.
  await until('each slot has a call', () => upstream.stats().inFlight === LIMIT);
  // What isolates have told of their loans may be a moment old.
  await admin.untilGroup('practice', { in_use: LIMIT, queued: 8, lent: 0 });
  expect(upstream.stats().inFlight).toBe(LIMIT);
  upstream.configure({ silentAfterChunks: null });
  upstream.resume();
  await Promise.all(callersAtOnce.map((call) => call.ended));
  await calling.stop();
  await admin.untilIdle();
  expectExact();
});

it('resets of the object put no more calls in flight, and lose none', async () => {
  const { upstream, admin } = stage;
  const calling = keepCalling();
  for (let resets = 0; resets < 3; resets += 1) {
    const { total } = upstream.stats();
    await until('many have come', () => upstream.stats().total > total + 80);
    const path = `/groups/practice/leases/${RESET_LEASE}`;
    expect((await admin.request('DELETE', path)).status).toBe(503);
  }
  await calling.stop();
  await admin.untilIdle();
  expectExact();
  expect((await admin.group('practice')).resurrected_total).toBe(0);
});

it('after the process was killed nothing is held, and slots are lent anew', async () => {
  const { upstream, admin } = stage;
  const before = keepCalling();
  await untilPrefetched();
  await stage.kill9();
  await before.stop().catch(() => {});
  await until('the upstream sees the end', () => upstream.stats().inFlight === 0);
  expectExact();
  await stage.start();
  const after = keepCalling();
  await untilPrefetched();
  await after.stop();
  await admin.untilIdle();
  expectExact();
  expect((await admin.group('practice')).resurrected_total).toBe(0);
});
