import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { LifecycleOpenCall } from '../support/lifecycle-call.ts';
import { openChat } from '../support/lifecycle-call.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { practiceConfig, startStage } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

const CALLS = 24;

/** All but the first, behind which nobody waited when it began, and the last: and two that this process hears late. */
const IN_ORDER_MIN = CALLS - 4;

let stage: LifecycleStage;

beforeAll(async () => {
  // Through the forwarder an answer takes a hop more, and would always be the later one.
  const config = practiceConfig(1);
  stage = await startStage({ config, upstream: { limit: 1 }, forwarder: false });
});

afterAll(() => stage.close());

/** Sends a call whose answer is not streamed, and notes how many had reached the upstream when it came. */
function send(label: string, arrivedBy: number[]): LifecycleOpenCall {
  const call = openChat(stage.url(), { label, stream: false });
  const note = async (): Promise<void> => {
    await call.answered;
    // The upstream counts a call two turns of this process's loop after it came.
    await nextTurn();
    await nextTurn();
    arrivedBy.push(stage.upstream.stats().total);
  };
  note().catch(() => undefined);
  return call;
}

it('the next call is at the upstream before the caller of this one has its answer', async () => {
  const arrivedBy: number[] = [];
  const calls = Array.from({ length: CALLS }, (_, i) => send(`call-${i}`, arrivedBy));
  const statuses = await Promise.all(calls.map(({ answered }) => answered));
  expect(new Set(statuses)).toEqual(new Set([200]));
  await until('each answer was noted', () => arrivedBy.length === CALLS);
  const inOrder = arrivedBy.filter((arrived, answered) => arrived > answered + 1);
  expect(inOrder.length).toBeGreaterThanOrEqual(IN_ORDER_MIN);
  expect(stage.upstream.stats()).toMatchObject({ peak: 1, completed: CALLS, rejected429: 0 });
});

it('a caller that leaves while its answer is held back takes no slot with it', async () => {
  const { upstream, admin } = stage;
  upstream.reset();
  const calls = Array.from({ length: CALLS }, (_, i) => send(`leaver-${i}`, []));
  for (const [i, call] of calls.entries()) {
    await until(`call ${i} was answered`, () => upstream.stats().completed > i);
    call.leave('RST');
  }
  await admin.untilIdle();
  expect(upstream.stats()).toMatchObject({ peak: 1, rejected429: 0 });
});
