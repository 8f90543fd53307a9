// An operator knows that what the upstream said last is over: the quota was raised, or it was a mistake.
import { afterAll, expect, it } from 'vitest';
import { nothingLeaks, resetPool } from '../support/pool.ts';
import { admin } from '../support/worker.ts';
import { newStage, send, served, statusOf, toldBy } from './stage.ts';

afterAll(nothingLeaks);

it('calls go again at once after a limit of days, also for an object that was reset since', async () => {
  const stage = await newStage();
  await stage.strict.failNext('long_window');
  expect(await toldBy(send(stage, 'refused'))).toMatchObject({ status: 429 });
  expect((await statusOf(stage)).paused_until).not.toBe(null);
  const answer = await admin('POST', `/groups/${stage.group}/relearn`);
  expect(answer).toMatchObject({ status: 200, json: { pools: 1, unreachable: [] } });
  expect(await statusOf(stage)).toMatchObject({
    paused_until: null,
    refusals_total: { long_window: 1 },
  });
  await resetPool(stage.group);
  expect((await statusOf(stage)).paused_until).toBe(null);
  expect(await toldBy(send(stage, 'served'))).toEqual(served(1));
});

it('is written into the audit log, and needs a group', async () => {
  const stage = await newStage();
  await admin('POST', `/groups/${stage.group}/relearn`);
  const { json } = await admin('GET', '/audit?limit=1');
  expect(json.entries[0]).toMatchObject({ action: `group ${stage.group}: relearn` });
  expect((await admin('POST', '/groups/nobody/relearn')).status).toBe(404);
});
