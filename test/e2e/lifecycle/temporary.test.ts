import { afterEach, beforeEach, expect, it } from 'vitest';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { practiceConfig, startStage } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

/** Ends of changes for a while where Headgate hosts itself: workerd keeps no alarm beyond its process. */

let stage: LifecycleStage;

beforeEach(async () => {
  stage = await startStage({ config: practiceConfig(3), upstream: { limit: 3 } });
});

afterEach(() => stage.close());

const isPaused = async (): Promise<boolean> => {
  const response = await stage.admin.request('GET', '/groups/practice');
  return ((await response.json()) as { paused: boolean }).paused;
};

it('a pause ends at its time, also where the process did not live to see it', async () => {
  const paused = await stage.admin.request('POST', '/groups/practice/pause', { for_s: 2 });
  expect(await paused.json()).toMatchObject({ group: { paused: true } });
  await until('it ends by itself', async () => !(await isPaused()), { everyMs: 100 });
  await stage.admin.request('POST', '/groups/practice/pause', { for_s: 2 });
  await stage.kill9();
  await stage.start();
  await until('it ends after the restart', async () => !(await isPaused()), { everyMs: 100 });
  const audit = await stage.admin.request('GET', '/audit?limit=1');
  expect(await audit.json()).toMatchObject({
    entries: [
      {
        actor: 'headgate:directory',
        action: 'group practice: temporary change ended, reverted paused',
      },
    ],
  });
});
