// Leases that nobody renews, and leases that nobody could. Time passes by shifting the clock that the object reads.
import { afterAll, expect, it } from 'vitest';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import {
  define,
  nothingLeaks,
  passAwake,
  pool,
  queueUp,
  request,
  resetPool,
  take,
  untilStatus,
  resume,
} from '../support/pool.ts';
import { passTime } from '../support/time.ts';
import { until } from '../support/worker.ts';

afterAll(nothingLeaks);

it('a lease that nobody renews ends at its TTL, and its slot goes to the next', async () => {
  await define('ttl', 1);
  await take('ttl', 'a');
  const { answer } = await queueUp('ttl', 'b', { sliceMs: 2 * LEASE_TTL_MS });
  await passAwake('ttl', LEASE_TTL_MS - 5_000);
  expect(await pool('ttl').status()).toMatchObject({ in_use: 1, queued: 1, expired_total: 0 });
  await passAwake('ttl', 5_000);
  expect(await pool('ttl').status()).toMatchObject({ in_use: 1, queued: 0, expired_total: 1 });
  const next = await answer;
  if (next.kind !== 'granted') throw new Error(next.kind);
  await next.lease.release('unused', null);
});

it('a renewal extends a lease by its TTL', async () => {
  await define('renewed', 1);
  const { lease } = await take('renewed', 'a');
  await passAwake('renewed', LEASE_TTL_MS - 5_000);
  const first = lease.renew(200);
  await until(async () => {
    const [info] = await pool('renewed').leases();
    expect(Date.parse(info?.expires_at ?? '') - Date.now()).toBeGreaterThan(LEASE_TTL_MS - 5_000);
  });
  await passAwake('renewed', LEASE_TTL_MS - 5_000);
  expect(await pool('renewed').status()).toMatchObject({ in_use: 1, expired_total: 0 });
  await lease.release('unused', 200);
  expect(await first).toBe('ok');
});

it('a stream whose lease had lapsed counts again when it resumes, even above the limit', async () => {
  await define('lapsed', 1);
  await take('lapsed', 'a');
  await passAwake('lapsed', LEASE_TTL_MS);
  const other = await take('lapsed', 'b', { wait: false });
  const resumed = await resume('lapsed', { leaseId: 'a.1', attachment: null });
  expect(resumed.kind).toBe('granted');
  expect(await pool('lapsed').status()).toMatchObject({ in_use: 2, resurrected_total: 1 });
  const { answer } = await queueUp('lapsed', 'c');
  await other.lease.release('unused', null);
  expect(await pool('lapsed').status()).toMatchObject({ in_use: 1, queued: 1 });
  await pool('lapsed').release('a.1', 'unused', null);
  expect(await answer).toMatchObject({ kind: 'granted', leaseId: 'c.1' });
  await pool('lapsed').release('c.1', 'unused', null);
});

it('a lease that was taken away ends at its TTL if its holder does not let go, and cannot come back', async () => {
  await define('revoked', 1);
  await take('revoked', 'a');
  expect(await pool('revoked').revoke('a.1')).toBe(true);
  await passAwake('revoked', LEASE_TTL_MS);
  expect(await pool('revoked').status()).toMatchObject({ in_use: 0, expired_total: 1 });
  const resumed = await resume('revoked', { leaseId: 'a.1', attachment: null });
  expect(resumed).toMatchObject({ kind: 'gone' });
});

it('a holder that died before a reset blocks its slot for one TTL, and no longer', async () => {
  await define('dead', 1);
  await take('dead', 'a');
  await resetPool('dead');
  await untilStatus('dead', { in_use: 0, unclaimed: 1 });
  await passAwake('dead', LEASE_TTL_MS - 5_000);
  expect(await pool('dead').status()).toMatchObject({ unclaimed: 1 });
  await passAwake('dead', 5_000);
  const { lease } = await take('dead', 'b', { wait: false });
  expect(await pool('dead').status()).toMatchObject({ in_use: 1, unclaimed: 0 });
  await lease.release('unused', null);
});

it('a waiter whose caller no longer asks leaves the queue without a slot', async () => {
  await define('orphan', 1);
  const { lease } = await take('orphan', 'a');
  const { answer } = await queueUp('orphan', 'silent', { sliceMs: 1_000 });
  passTime(1_000);
  await pool('orphan').status();
  expect(await answer).toMatchObject({ kind: 'pending', position: 0 });
  passTime(5_000);
  expect(await pool('orphan').status()).toMatchObject({ in_use: 1, queued: 0 });
  await lease.release('unused', null);
});

it('a lease lives through time in which its holder could not renew, and a dead one no longer than that', async () => {
  await define('frozen', 1);
  await take('frozen', 'a');
  const { answer } = await queueUp('frozen', 'b', { sliceMs: 600_000 });
  // A frozen process and a wall clock that is set forward look the same: the timer is late.
  for (const jumpMs of [60_000, 3_600_000]) {
    passTime(jumpMs);
    const next = await pool('frozen').acquire(request('frozen', 'busy', { wait: false }));
    expect(next).toMatchObject({ kind: 'rejected', rejection: { reason: 'busy' } });
    expect(await pool('frozen').status()).toMatchObject({ in_use: 1, expired_total: 0 });
  }
  await passAwake('frozen', LEASE_TTL_MS);
  expect(await pool('frozen').status()).toMatchObject({ expired_total: 1 });
  expect(await answer).toMatchObject({ kind: 'rejected', rejection: { reason: 'queue_timeout' } });
});
