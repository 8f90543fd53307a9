// Leases that are held by their ids alone: no answer's disposal frees them, renewals are answered at once, and the exactness
// after resets holds for them, without anybody above the limit.
import { afterAll, expect, it } from 'vitest';
import type { RenewByIdAnswer } from '../../../src/contract/rpc/group-rpc.ts';
import type { RequestFields } from '../../support/requests.ts';
import { LEASE_TTL_MS, ORPHAN_GRACE_MS } from '../../../src/core/words/settings.ts';
import {
  crashPool,
  define,
  heldBy,
  nothingLeaks,
  passAwake,
  pool,
  queueUp,
  releaseById,
  request,
  resetPool,
  take,
  type PoolGranted,
} from '../support/pool.ts';
import { until } from '../support/worker.ts';

afterAll(nothingLeaks);

const BY_ID = { isById: true, kind: 'lease' } as const;

function takeById(group: string, ticket: string, fields: RequestFields = {}): Promise<PoolGranted> {
  return take(group, ticket, { ...BY_ID, ...fields });
}

function renew(group: string, lease: PoolGranted, fields = {}): Promise<RenewByIdAnswer> {
  return pool(group).renew(lease.leaseId, null, heldBy(group, lease, { ...BY_ID, ...fields }));
}

it('outlives its answer, and is had again by asking again', async () => {
  await define('id-answer', 1);
  const first = await takeById('id-answer', 'a');
  expect(first.expiresAt).toBeGreaterThan(Date.now() + LEASE_TTL_MS - 5_000);
  first.lease[Symbol.dispose]();
  const again = await takeById('id-answer', 'a');
  expect(again.leaseId).toBe(first.leaseId);
  expect(again.attachment).toBeGreaterThan(first.attachment);
  again.lease[Symbol.dispose]();
  expect(await pool('id-answer').status()).toMatchObject({ in_use: 1, granted_total: 1 });
  expect(await pool('id-answer').leases()).toMatchObject([{ id: 'a.1', kind: 'lease' }]);
  await releaseById('id-answer', again, BY_ID);
  expect(await pool('id-answer').status()).toMatchObject({ in_use: 0 });
  expect(await renew('id-answer', again)).toMatchObject({ kind: 'gone' });
});

it('is renewed at once, and lapses unless it is', async () => {
  await define('id-renewed', 1);
  const held = await takeById('id-renewed', 'a');
  await passAwake('id-renewed', LEASE_TTL_MS - 5_000);
  const renewed = await renew('id-renewed', held);
  expect(renewed).toMatchObject({ kind: 'ok', attachment: held.attachment });
  await passAwake('id-renewed', LEASE_TTL_MS - 5_000);
  expect(await pool('id-renewed').status()).toMatchObject({ in_use: 1 });
  await passAwake('id-renewed', 5_001);
  expect(await pool('id-renewed').status()).toMatchObject({ in_use: 0, expired_total: 1 });
  // Nobody is counted above the limit: its holder was told when it would lapse.
  expect(await renew('id-renewed', held, { hasLapsed: true })).toMatchObject({ kind: 'gone' });
  expect(await renew('id-renewed', held)).toMatchObject({ kind: 'gone' });
  expect(await pool('id-renewed').status()).toMatchObject({ in_use: 0, resurrected_total: 0 });
});

it('a holder may not count on it for longer than an instance that comes after would', async () => {
  await define('id-counts', 1);
  const held = await takeById('id-counts', 'a');
  await passAwake('id-counts', 8_000);
  const renewed = await renew('id-counts', held);
  // The last write is eight seconds old, and a renewal asks for none before it is ten.
  const { expiresAt } = renewed as Extract<RenewByIdAnswer, { kind: 'ok' }>;
  const [info] = await pool('id-counts').leases();
  expect(expiresAt).toBeLessThan(Date.parse(info?.expires_at ?? '') - 7_000);
  await releaseById('id-counts', held, BY_ID);
});

it('an operator takes it away: its holder hears so at the next renewal, and never has it back', async () => {
  await define('id-revoked', 1);
  const held = await takeById('id-revoked', 'a');
  await pool('id-revoked').revoke('a.1');
  expect(await renew('id-revoked', held)).toEqual({ kind: 'revoking' });
  expect(await pool('id-revoked').status()).toMatchObject({ in_use: 1 });
  await crashPool('id-revoked');
  expect(await renew('id-revoked', held)).toMatchObject({ kind: 'gone' });
  await passAwake('id-revoked', LEASE_TTL_MS);
  expect(await pool('id-revoked').status()).toMatchObject({ unclaimed: 0, in_use: 0 });
});

it.each([
  ['reset', resetPool],
  ['crash', crashPool],
])('is taken up after a %s out of what is unclaimed, once', async (name, reset) => {
  const group = `id-${name}`;
  await define(group, 2);
  const held = await takeById(group, 'a');
  const other = await takeById(group, 'b');
  await reset(group);
  expect(await pool(group).status()).toMatchObject({ unclaimed: 2 });
  const renewed = await renew(group, held);
  expect(renewed).toMatchObject({ kind: 'ok' });
  const { attachment } = renewed as Extract<RenewByIdAnswer, { kind: 'ok' }>;
  expect(attachment).toBeGreaterThan(held.attachment);
  // With what it knew before it is the same lease.
  expect(await renew(group, held)).toMatchObject({ kind: 'ok', attachment });
  expect(await pool(group).status()).toMatchObject({ unclaimed: 1, in_use: 1 });
  expect(await pool(group).leases()).toMatchObject([{ id: 'a.1', kind: 'lease' }]);
  await releaseById(group, other, BY_ID);
  await releaseById(group, held, BY_ID);
  await releaseById(group, held, BY_ID);
  expect(await renew(group, held)).toMatchObject({ kind: 'gone' });
  expect(await pool(group).status()).toMatchObject({
    in_use: 0,
    unclaimed: 0,
    resurrected_total: 0,
  });
});

it('one that lapsed before a reset is gone, where others would be counted above the limit', async () => {
  await define('id-lapsed', 1);
  const held = await takeById('id-lapsed', 'a');
  await passAwake('id-lapsed', LEASE_TTL_MS);
  const next = await takeById('id-lapsed', 'b');
  await crashPool('id-lapsed');
  expect(await renew('id-lapsed', held, { hasLapsed: true })).toMatchObject({ kind: 'gone' });
  expect(await renew('id-lapsed', held)).toMatchObject({ kind: 'gone' });
  expect(await renew('id-lapsed', next)).toMatchObject({ kind: 'ok' });
  await releaseById('id-lapsed', next, BY_ID);
});

it('a slot that an answer holds is held by its id from its renewal on', async () => {
  await define('id-later', 1);
  const held = await take('id-later', 'a');
  expect(await renew('id-later', held, { kind: 'run' })).toMatchObject({ kind: 'ok' });
  held.lease[Symbol.dispose]();
  expect(await pool('id-later').leases()).toMatchObject([{ id: 'a.1', kind: 'run' }]);
  await pool('id-later').release('a.1', 'success', null);
  const log = { fromMs: 0, toMs: Date.now() + 1, leases: ['a.1'], limit: 1 };
  expect(await pool('id-later').calls(log)).toMatchObject({
    calls: [{ lease: 'a.1', kind: 'run' }],
  });
});

it('one who waits is told so, and a renewal beside the ask of its ticket takes nobody’s place', async () => {
  await define('id-waits', 1);
  const held = await takeById('id-waits', 'a');
  const { answer } = await queueUp('id-waits', 'w', BY_ID);
  expect(await pool('id-waits').waiters()).toMatchObject([{ ticket: 'w', kind: 'lease' }]);
  await pool('id-waits').cancel('w');
  expect(await answer).toMatchObject({ kind: 'gone' });
  await crashPool('id-waits');
  // It asks for what it holds, which the new instance does not know yet, and is heard as its holder meanwhile.
  const asked = pool('id-waits').acquire({
    ...heldBy('id-waits', held, BY_ID),
    ...request('id-waits', 'a'),
    sliceMs: ORPHAN_GRACE_MS,
  });
  expect(await renew('id-waits', held)).toMatchObject({ kind: 'ok' });
  expect(['granted', 'pending']).toContain((await asked).kind);
  await releaseById('id-waits', held, BY_ID);
  expect(await pool('id-waits').status()).toMatchObject({ in_use: 0 });
});

it('is returned only by the last request that has it, and is requested again under the same number', async () => {
  await define('id-returned', 1);
  const narrow = { waitsElsewhere: true };
  const first = await takeById('id-returned', 'a', narrow);
  const second = await takeById('id-returned', 'a', narrow);
  await first.lease.release('unused', null);
  first.lease[Symbol.dispose]();
  expect(await pool('id-returned').status()).toMatchObject({ in_use: 1 });
  await until(async () => {
    await second.lease.release('unused', null);
    expect(await pool('id-returned').status()).toMatchObject({ in_use: 0 });
  });
  const again = await takeById('id-returned', 'a', narrow);
  expect(again.leaseId).toBe('a.2');
  // Once it has all its groups, no request returns it: another request may have answered with it.
  await again.lease.confirm();
  await again.lease.release('unused', null);
  expect(await pool('id-returned').status()).toMatchObject({ in_use: 1 });
  await releaseById('id-returned', again, BY_ID);
  const late = await pool('id-returned').acquire(
    request('id-returned', 'a', { ...BY_ID, ...narrow }),
  );
  expect(late.kind).toBe('gone');
});
