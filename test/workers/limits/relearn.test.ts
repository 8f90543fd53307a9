// An operator knows that what the upstream said last is over: the quota was raised, or it was a mistake.
import { afterAll, expect, it } from 'vitest';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { SERVED } from '../../../src/core/words/signal.ts';
import {
  define,
  crashPool,
  inside,
  nothingLeaks,
  passAwake,
  pool,
  releaseById,
  resetPool,
  resume,
  take,
} from '../support/pool.ts';
import { admin, until } from '../support/worker.ts';
import { newStage, send, served, statusOf, reportedBy } from './stage.ts';

afterAll(nothingLeaks);

it('calls go again at once after a limit of days, also for an object that was reset since', async () => {
  const stage = await newStage();
  await stage.strict.failNext('long_window');
  expect(await reportedBy(send(stage, 'refused'))).toMatchObject({ status: 429 });
  expect((await statusOf(stage)).paused_until).not.toBe(null);
  const answer = await admin('POST', `/groups/${stage.group}/relearn`);
  expect(answer).toMatchObject({ status: 200, json: { pools: 1, unreachable: [] } });
  expect(await statusOf(stage)).toMatchObject({
    paused_until: null,
    refusals_total: { long_window: 1 },
  });
  await resetPool(stage.group);
  expect((await statusOf(stage)).paused_until).toBe(null);
  expect(await reportedBy(send(stage, 'served'))).toEqual(served(1));
});

it('is done when its operator hears so: a reset right after it undoes nothing', async () => {
  await define('undone', 1);
  const held = await take('undone', 'a');
  await held.lease.report({ ...SERVED, kind: 'requests', retryAfterMs: 3_600_000 }, false);
  await until(async () => expect(await controlsRow('undone')).toContain('until'));
  expect((await pool('undone').status()).paused_until).not.toBe(null);
  await pool('undone').relearn();
  await crashPool('undone');
  expect((await pool('undone').status()).paused_until).toBe(null);
  await releaseById('undone', held);
});

it('and so is a lease that was taken away', async () => {
  await define('taken', 1);
  const lease = await take('taken', 'a');
  expect(await pool('taken').revoke('a.1')).toBe(true);
  await crashPool('taken');
  expect(await resume('taken', lease)).toMatchObject({ kind: 'gone' });
  // Its slot is not known to be free before its time is over.
  expect(await pool('taken').status()).toMatchObject({ unclaimed: 1 });
  await passAwake('taken', LEASE_TTL_MS);
});

it('is written into the audit log, and needs a group', async () => {
  const stage = await newStage();
  await admin('POST', `/groups/${stage.group}/relearn`);
  const { json } = await admin('GET', '/audit?limit=1');
  expect(json.entries[0]).toMatchObject({ action: `group ${stage.group}: relearn` });
  expect((await admin('POST', '/groups/nobody/relearn')).status).toBe(404);
});

function controlsRow(name: string): Promise<string> {
  return inside(name, (_instance, { storage }) =>
    JSON.stringify(
      storage.sql.exec("SELECT value ->> 'pause' FROM memory WHERE key = 'controls'").toArray(),
    ),
  );
}
