import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import type { LifecycleOpenCall } from '../support/lifecycle-call.ts';
import { openChat } from '../support/lifecycle-call.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { practiceConfig, startStage } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

/**
 * A process that stands still for longer than a lease lasts: a laptop that sleeps, a virtual machine that is
 * moved. The upstream does not stand still, and goes on counting the calls that it has.
 */
const LIMIT = 2;

/** Longer than the 45 s of a lease. */
const FROZEN_MS = 50_000;

/** Until every holder has renewed. */
const RENEWED_MS = 20_000;

let stage: LifecycleStage;

afterEach(() => stage.close());

/** The process stands still, and goes on. */
async function freeze(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  try {
    await delay(FROZEN_MS);
  } finally {
    process.kill(pid, 'SIGCONT');
  }
}

it('a process that was frozen for longer than a lease lasts gives no slot out twice', async () => {
  stage = await startStage({
    config: practiceConfig(LIMIT),
    upstream: { silentAfterChunks: 1 },
  });
  const { upstream, admin } = stage;
  const calls: LifecycleOpenCall[] = Array.from({ length: LIMIT + 4 }, (_, i) =>
    openChat(stage.url(), { label: `call-${i}` }),
  );
  await until('all slots are held', () => upstream.stats().inFlight === LIMIT);
  await admin.untilGroup('practice', { in_use: LIMIT, queued: 4 });
  // With a freeze at once, and with one while renewals are parked.
  for (let times = 0; times < 2; times += 1) {
    await freeze(stage.workerdPid());
    await delay(RENEWED_MS);
    expect(upstream.stats()).toMatchObject({ inFlight: LIMIT, peak: LIMIT, completed: 0 });
    await admin.untilGroup('practice', { in_use: LIMIT, queued: 4 });
  }

  upstream.configure({ silentAfterChunks: null });
  upstream.resume();
  const ends = await Promise.all(calls.map((call) => call.ended));
  expect(new Set(ends)).toEqual(new Set(['complete']));
  expect(upstream.stats()).toMatchObject({ peak: LIMIT, completed: LIMIT + 4 });
  await admin.untilIdle();
  const { expired_total, resurrected_total } = await admin.group('practice');
  expect({ expired_total, resurrected_total }).toEqual({ expired_total: 0, resurrected_total: 0 });
});
