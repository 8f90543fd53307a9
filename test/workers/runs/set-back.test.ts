// Leases of background runs when the wall clock is set back.
import { runInDurableObject } from 'cloudflare:test';
import { afterAll, expect, it, vi } from 'vitest';
import { RunsObject } from '../../../src/runs/runs-object.ts';
import { steadyClock } from '../../../src/runtime/async.ts';
import { nothingLeaks, pool, resetPool, untilStatus } from '../support/pool.ts';
import { passTime } from '../support/time.ts';
import { env, until } from '../support/worker.ts';
import {
  poll,
  renewNow,
  resetRuns,
  runScene,
  runsObject,
  started,
  type RunScene,
} from './scene.ts';

const STEP_MS = 60_000;

/** How often the leases of runs are renewed. */
const RENEW_EVERY_MS = 12_000;

afterAll(nothingLeaks);

/** Puts the wall clock ahead of the runtime's own, which alarms go by, so that it may be set back to that. */
function setAhead(): void {
  passTime(STEP_MS);
}

function setBack(): void {
  steadyClock.now();
  passTime(-STEP_MS);
  steadyClock.now();
}

async function endRun(scene: RunScene, id: string): Promise<void> {
  await scene.strict.endRun('completed', id);
  await poll(scene, `/v1/responses/${id}`);
  await untilStatus(scene.group, { in_use: 0 });
}

function inRuns<T>(scene: RunScene, work: (state: DurableObjectState) => Promise<T>): Promise<T> {
  return runInDurableObject(runsObject(scene) as never, (_: object, state: DurableObjectState) =>
    work(state),
  );
}

it('a run of an unused group keeps its slot when the pool is reset', async () => {
  setAhead();
  const scene = await runScene('run-back-new', 1);
  setBack();
  const id = await started(scene);
  await untilStatus(scene.group, { in_use: 1 });
  await resetPool(scene.group);
  await until(async () => {
    await renewNow(scene);
    expect(await pool(scene.group).leases()).toMatchObject([{ kind: 'run' }]);
  });
  await endRun(scene, id);
});

it('an alarm that the step back has put off is set again by the next instance', async () => {
  setAhead();
  const scene = await runScene('run-back-alarm', 1);
  const id = await started(scene);
  await untilStatus(scene.group, { in_use: 1 });
  const alarmIn = (): Promise<number> =>
    inRuns(scene, async ({ storage }) => ((await storage.getAlarm()) ?? Infinity) - Date.now());
  setBack();
  expect(await alarmIn()).toBeGreaterThan(STEP_MS);
  await resetRuns(scene);
  await until(async () => expect(await alarmIn()).toBeLessThanOrEqual(RENEW_EVERY_MS));
  await endRun(scene, id);
});

it('in one process the next instance has a timer as well, which no step back puts off', async () => {
  const scene = await runScene('run-back-timer', 1);
  const id = await started(scene);
  await untilStatus(scene.group, { in_use: 1 });
  await inRuns(scene, async (state) => {
    await state.storage.setAlarm(Date.now() + RENEW_EVERY_MS);
    const setTimer = vi.spyOn(globalThis, 'setTimeout');
    new RunsObject(state, { ...env, BOOT_ID: 'one process' });
    await until(() => expect(setTimer).toHaveBeenCalled());
    const [, delayMs] = setTimer.mock.lastCall ?? [];
    expect(delayMs).toBeLessThanOrEqual(RENEW_EVERY_MS);
    setTimer.mockRestore();
  });
  await resetRuns(scene);
  await endRun(scene, id);
});
