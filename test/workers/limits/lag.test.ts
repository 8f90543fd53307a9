// An upstream that counts each call for a while after its last byte, by its own counts.
import { afterAll, expect, it } from 'vitest';
import { LAG_MAX_MS } from '../../../src/core/parts/lag.ts';
import { nothingLeaks } from '../support/pool.ts';
import { admin, worker } from '../support/worker.ts';
import { newStage, send, statusOf, reportedBy } from './stage.ts';

afterAll(nothingLeaks);

/** Far longer than a slot takes from one call to the next. */
const LAG_MS = 700;
const SLOTS = 2;
const CALLS = 6;

it('is waited for by the slots, no caller hears of it, and the ceiling stays', async () => {
  const stage = await newStage({
    settings: { limit: SLOTS, accountingLagMs: LAG_MS },
    group: { limits: { max_concurrency: SLOTS }, holds: {} },
  });
  const reported: Awaited<ReturnType<typeof reportedBy>>[] = [];
  // On a busy machine a slot may take longer than the lag to its next call, so that none is refused: then more are made.
  do {
    const calls = Array.from({ length: CALLS }, (_, index) => send(stage, `call-${index}`));
    reported.push(...(await Promise.all(calls.map(reportedBy))));
  } while ((await stage.strict.stats()).rejected429 === 0);
  expect(reported.map(({ status }) => status)).toEqual(reported.map(() => 200));
  // At once, after the first cool-down, and after the longest.
  const attempts = Math.max(...reported.map((one) => Number(one.tries)));
  expect(attempts).toBeGreaterThan(1);
  expect(attempts).toBeLessThanOrEqual(3);
  const { completed, peak, rejected429 } = await stage.strict.stats();
  expect(completed).toBe(reported.length);
  expect(peak).toBeLessThanOrEqual(SLOTS);
  expect(rejected429).toBeLessThanOrEqual(2 * SLOTS);
  const status = await statusOf(stage);
  expect(status).toMatchObject({
    limit: { configured: SLOTS, effective: SLOTS, source: 'configured' },
  });
  const { cooldown_ms: cooldownMs } = status;
  expect(cooldownMs).toBeGreaterThan(0);
  expect(cooldownMs).toBeLessThanOrEqual(LAG_MAX_MS);
  const { json } = await admin('GET', `/groups/${stage.group}/status`);
  expect(json).toMatchObject({ cooldown_ms: cooldownMs });
  const headers = { authorization: 'Bearer test-admin-token' };
  const metrics = await worker.fetch('https://headgate.test/metrics', { headers });
  const labels = `{group="${stage.group}",partition=""}`;
  expect(await metrics.text()).toContain(
    `headgate_cooldown_seconds${labels} ${cooldownMs / 1_000}\n`,
  );
});
