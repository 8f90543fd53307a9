// Renewals are parked in the object: they tell a holder at once that its lease was taken away, and their
// answer is fenced by a write.
import { afterAll, expect, it } from 'vitest';
import { LEASE_TTL_MS, RENEW_EVERY_MS } from '../../../src/core/words/settings.ts';
import type { LeaseRpc } from '../../../src/contract/rpc/group-rpc.ts';
import {
  crashPool,
  define,
  inside,
  nothingLeaks,
  passAwake,
  pool,
  releaseById,
  resume,
  storedBound,
  take,
} from '../support/pool.ts';
import { passTime } from '../support/time.ts';
import { until } from '../support/worker.ts';

afterAll(nothingLeaks);

/** When the last write of a pool was issued. */
async function writtenAt(name: string): Promise<number> {
  return (await storedBound(name))?.at ?? 0;
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

it('a lease that was taken away is gone after a reset, and its slot lapses', async () => {
  await define('revoked-reset', 1);
  const held = await take('revoked-reset', 'a');
  await pool('revoked-reset').revoke('a.1');
  await crashPool('revoked-reset');
  expect(await resume('revoked-reset', held)).toMatchObject({ kind: 'gone' });
  await releaseById('revoked-reset', held);
  expect(await pool('revoked-reset').status()).toMatchObject({
    unclaimed: 1,
    resurrected_total: 0,
  });
  await passAwake('revoked-reset', LEASE_TTL_MS);
  expect(await pool('revoked-reset').status()).toMatchObject({ unclaimed: 0 });
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

it('the answer to a renewal is behind a write that is ten seconds old at most', async () => {
  await define('fence', 1);
  const { lease } = await take('fence', 'a');
  const granted = await writtenAt('fence');
  const first = await park('fence', lease);
  passTime(RENEW_EVERY_MS);
  const renewedAt = Date.now();
  const second = await park('fence', lease);
  expect(await first.answer).toBe('ok');
  const written = await writtenAt('fence');
  expect(written).toBeGreaterThanOrEqual(renewedAt);
  expect(written).toBeGreaterThan(granted);
  passTime(4_000);
  const third = await park('fence', lease);
  expect(await second.answer).toBe('ok');
  expect(await writtenAt('fence')).toBe(written);
  passTime(6_000);
  const fourth = await park('fence', lease);
  expect(await third.answer).toBe('ok');
  expect(await writtenAt('fence')).toBeGreaterThan(written);
  await lease.release('unused', 200);
  expect(await fourth.answer).toBe('gone');
});

it('a renewal whose write fails is not answered ok', async () => {
  await define('fenced', 1);
  const held = await take('fenced', 'a');
  const { answer } = await park('fenced', held.lease);
  const failed = answer.then(
    () => null,
    (error: unknown) => String(error),
  );
  await inside('fenced', (_instance, { storage }) =>
    storage.sql.exec('ALTER TABLE bound RENAME TO elsewhere'),
  );
  passTime(RENEW_EVERY_MS);
  held.lease.renew(200).catch(() => {});
  expect(await failed).toContain('bound');
  // An instance that could not write is gone, and what it wrote before is gone with the table.
  await until(() => releaseById('fenced', held));
});
