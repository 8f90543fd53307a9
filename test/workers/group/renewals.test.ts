// Renewals are parked in the object: they tell a holder at once that its lease was taken away, and their
// answer is fenced by a write.
import { afterAll, expect, it } from 'vitest';
import { RENEW_EVERY_MS } from '../../../src/core/words/settings.ts';
import type { LeaseRpc } from '../../../src/contract/rpc/group-rpc.ts';
import { define, inside, nothingLeaks, pool, resetPool, rows, take } from '../support/pool.ts';
import { passTime } from '../support/time.ts';
import { until } from '../support/worker.ts';

afterAll(nothingLeaks);

function heartbeat(name: string): Promise<number | null> {
  return inside(name, (_instance, { storage }) => {
    const row = storage.sql
      .exec<{ value: string }>(`SELECT value FROM memory WHERE key = 'heartbeat'`)
      .toArray()[0];
    return row === undefined ? null : Number(row.value);
  });
}

/** Parks a renewal. The next one answers it. */
async function park(name: string, lease: LeaseRpc): Promise<{ answer: Promise<string> }> {
  const before = Date.now();
  const answer = lease.renew(200);
  await until(async () => {
    const [info] = await pool(name).leases();
    expect(Date.parse(info?.expires_at ?? '')).toBeGreaterThanOrEqual(before + 45_000);
  });
  return { answer };
}

it('a parked renewal is answered at once when its lease is taken away', async () => {
  await define('revoked', 1);
  await define('kept', 1);
  const { lease } = await take('revoked', 'a');
  // This one is answered when its time is over, which comes before that of the other.
  const { lease: kept } = await take('kept', 'k');
  const later = (await park('kept', kept)).answer;
  const { answer } = await park('revoked', lease);
  expect(await pool('revoked').revoke('a.1')).toBe(true);
  expect(await Promise.race([answer, later])).toBe('revoking');
  expect(await pool('revoked').status()).toMatchObject({ in_use: 1 });
  expect(await pool('revoked').leases()).toMatchObject([{ id: 'a.1', state: 'revoking' }]);
  expect(await lease.renew(200)).toBe('revoking');
  await lease.release('cancelled', 200);
  await kept.release('unused', null);
  expect(await pool('revoked').status()).toMatchObject({ in_use: 0 });
});

it('a lease that was taken away is still to be let go of after a reset', async () => {
  await define('revoked-reset', 1);
  await take('revoked-reset', 'a');
  await pool('revoked-reset').revoke('a.1');
  await until(async () =>
    expect(await rows('revoked-reset')).toMatchObject([{ phase: 'revoking' }]),
  );
  await resetPool('revoked-reset');
  expect(await pool('revoked-reset').leases()).toMatchObject([{ id: 'a.1', state: 'revoking' }]);
  await pool('revoked-reset').release('a.1', 'unused', null);
});

it('a renewal of a lease that has ended is answered gone, a parked one too', async () => {
  await define('gone', 1);
  const { lease } = await take('gone', 'a');
  const { answer } = await park('gone', lease);
  await pool('gone').release('a.1', 'unused', null);
  expect(await answer).toBe('gone');
  expect(await lease.renew(null)).toBe('gone');
});

it('a lease that nobody holds cannot be taken away', async () => {
  await define('nobody', 1);
  expect(await pool('nobody').revoke('a.1')).toBe(false);
});

it('the answer to a renewal waits for a write, and there is one in ten seconds at most', async () => {
  await define('heartbeat', 1);
  const { lease } = await take('heartbeat', 'a');
  const first = await park('heartbeat', lease);
  expect(await heartbeat('heartbeat')).toBeNull();
  passTime(RENEW_EVERY_MS);
  const renewedAt = Date.now();
  const second = await park('heartbeat', lease);
  expect(await first.answer).toBe('ok');
  const written = await heartbeat('heartbeat');
  expect(written).toBeGreaterThanOrEqual(renewedAt);
  passTime(4_000);
  const third = await park('heartbeat', lease);
  expect(await second.answer).toBe('ok');
  expect(await heartbeat('heartbeat')).toBe(written);
  passTime(6_000);
  const fourth = await park('heartbeat', lease);
  expect(await third.answer).toBe('ok');
  expect(await heartbeat('heartbeat')).toBeGreaterThan(written ?? 0);
  await lease.release('unused', 200);
  expect(await fourth.answer).toBe('gone');
});

it('a renewal whose write fails is not answered ok', async () => {
  await define('fenced', 1);
  const { lease } = await take('fenced', 'a');
  const { answer } = await park('fenced', lease);
  const failed = answer.then(
    () => null,
    (error: unknown) => String(error),
  );
  await inside('fenced', (_instance, { storage }) =>
    storage.sql.exec('ALTER TABLE memory RENAME TO elsewhere'),
  );
  passTime(RENEW_EVERY_MS);
  lease.renew(200).catch(() => {});
  expect(await failed).toContain('memory');
  // The end of the pool's last call is written there too, and an instance that could not is gone with it.
  await inside('fenced', (_instance, { storage }) =>
    storage.sql.exec('ALTER TABLE elsewhere RENAME TO memory'),
  );
  await until(async () => {
    await pool('fenced').release('a.1', 'unused', null);
    expect(await rows('fenced')).toEqual([]);
  });
});
