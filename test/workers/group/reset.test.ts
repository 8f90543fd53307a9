// What a reset of the object must not cost: a slot, a place in the queue, the limit. Direct calls to the
// object; `proxy/reset.test.ts` does the same with whole calls and lets the upstream count.
import { evictDurableObject } from 'cloudflare:test';
import { afterAll, expect, it } from 'vitest';
import { COMES_BACK_MS, EXTENSIONS_MAX, LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { acquireSlot } from '../../../src/call/acquire/acquire-slot.ts';
import {
  define,
  inside,
  loseNextAnswer,
  nothingLeaks,
  passAwake,
  pool,
  request,
  resetPool,
  rows,
  take,
  untilStatus,
} from '../support/pool.ts';
import { passTime } from '../support/time.ts';
import { until } from '../support/worker.ts';

const AS_LONG_AS_IT_TAKES = new AbortController().signal;

afterAll(nothingLeaks);

it.each([
  ['after its row was written', true],
  ['with its row on the way', false],
])(
  'a grant whose reply is lost %s is one slot when the caller asks again',
  async (_, isWritten) => {
    const group = `lost-${isWritten}`;
    await define(group, 2);
    const lost = loseNextAnswer(isWritten);
    const asked = await acquireSlot(() => pool(group), request(group, 'a'), AS_LONG_AS_IT_TAKES);
    if (asked.kind !== 'granted') throw new Error(asked.kind);
    expect(lost).toHaveBeenCalledTimes(2);
    lost.mockRestore();
    expect(asked.granted.leaseId).toBe('a.1');
    expect((await pool(group).status()).in_use).toBe(1);
    expect((await rows(group)).map(({ id }) => id)).toEqual(['a.1']);
    await asked.granted.lease.release('unused', null);
  },
);

it('a full group is still full after a reset', async () => {
  await define('full', 2);
  await take('full', 'a');
  await take('full', 'b');
  await resetPool('full');
  const refused = await pool('full').acquire(request('full', 'c', { wait: false }));
  expect(refused).toMatchObject({ kind: 'rejected', rejection: { reason: 'busy' } });
  expect(await pool('full').status()).toMatchObject({ in_use: 2, queued: 0 });
  for (const id of ['a.1', 'b.1']) await pool('full').release(id, 'unused', null);
});

it('waiters that come back in any order are granted in the order in which they first came', async () => {
  await define('order', 1);
  await take('order', 'holder');
  await resetPool('order');
  const first = Date.now() - 1_000;
  const granted: string[] = [];
  const askers = [3, 1, 2, 0].map(async (place) => {
    const { lease, leaseId } = await take('order', `w${place}`, { enqueuedAt: first + place });
    granted.push(leaseId);
    await lease.release('unused', null);
  });
  await untilStatus('order', { queued: 4 });
  await pool('order').release('holder.1', 'unused', null);
  await Promise.all(askers);
  expect(granted).toEqual(['w0.1', 'w1.1', 'w2.1', 'w3.1']);
});

it('nobody younger is granted before those who waited had time to come back', async () => {
  await define('settle', 2);
  const enqueuedAt = Date.now();
  await take('settle', 'holder');
  await resetPool('settle');
  const young = pool('settle').acquire(request('settle', 'young'));
  await untilStatus('settle', { queued: 1, in_use: 1 });
  const old = await take('settle', 'old', { enqueuedAt });
  expect(await pool('settle').status()).toMatchObject({ queued: 1, in_use: 2 });
  await old.lease.release('unused', null);
  await pool('settle').release('holder.1', 'unused', null);
  await pool('settle').release(((await young) as { leaseId: string }).leaseId, 'unused', null);
});

it('a holder that takes its lease up again counts its TTL from then, without the extension', async () => {
  await define('resume', 1);
  await take('resume', 'a');
  await resetPool('resume');
  await until(async () => expect((await rows('resume'))[0]?.extendedUntil).toBeTypeOf('number'));
  const resumed = await pool('resume').resume({ ...request('resume', 'a'), leaseId: 'a.1' });
  if (resumed.kind !== 'granted') throw new Error(resumed.kind);
  await until(async () => expect((await rows('resume'))[0]?.extendedUntil).toBeNull());
  const parked = resumed.lease.renew(200);
  expect(await pool('resume').status()).toMatchObject({ in_use: 1, resurrected_total: 0 });
  await resumed.lease.release('unused', 200);
  expect(await parked).toBe('gone');
});

it('resets that repeat extend the lease of a dead holder only so often', async () => {
  await define('dead', 1);
  await take('dead', 'a');
  for (let extensions = 1; extensions <= EXTENSIONS_MAX; extensions += 1) {
    passTime(LEASE_TTL_MS - COMES_BACK_MS + 1);
    await resetPool('dead');
    await until(async () => expect(await rows('dead')).toMatchObject([{ extensions }]));
  }
  const extended = (await rows('dead'))[0]?.extendedUntil ?? 0;
  expect(extended).toBeGreaterThan(Date.now() + LEASE_TTL_MS - 5_000);
  for (let boot = 0; boot < 3; boot += 1) {
    passTime(13_000);
    await resetPool('dead');
    await pool('dead').acquire(request('dead', `busy-${boot}`, { wait: false }));
    expect((await rows('dead'))[0]?.extendedUntil).toBe(extended);
  }
  await passAwake('dead', extended - Date.now() + 1);
  expect(await pool('dead').status()).toMatchObject({ in_use: 0, expired_total: 1 });
});

it('a lease whose time passed between two resets is not given out before its holder is back', async () => {
  await define('unseen', 1);
  await take('unseen', 'a');
  await resetPool('unseen');
  await until(async () => expect((await rows('unseen'))[0]?.extendedUntil).toBeTypeOf('number'));
  await inside('unseen', (_instance, { storage }) =>
    storage.sql.exec(
      `UPDATE lease SET data = json_set(data, '$.extendedUntil', ?)`,
      Date.now() - 1_000,
    ),
  );
  await resetPool('unseen');
  const refused = await pool('unseen').acquire(request('unseen', 'b', { wait: false }));
  expect(refused.kind).toBe('rejected');
  const resumed = await pool('unseen').resume({ ...request('unseen', 'a'), leaseId: 'a.1' });
  if (resumed.kind !== 'granted') throw new Error(resumed.kind);
  expect(await pool('unseen').status()).toMatchObject({ in_use: 1, resurrected_total: 0 });
  await resumed.lease.release('unused', null);
});

it('rows of a process that has died are freed at the start, and nobody waits for their holders', async () => {
  await define('boot', 1);
  await take('boot', 'a');
  await inside('boot', (_instance, { storage }) => storage.sql.exec(`UPDATE lease SET boot = 'x'`));
  await resetPool('boot');
  const { lease } = await take('boot', 'b', { wait: false });
  expect((await rows('boot')).map(({ id }) => id)).toEqual(['b.1']);
  await lease.release('unused', null);
});

it('an object that was evicted keeps its limit and the slots that cool down', async () => {
  await define('evicted', 1, { holds: { failure_hold_ms: 2_000 } });
  await inside('evicted', (_instance, { storage }) =>
    storage.sql.exec(
      `INSERT INTO lease (id, boot, data) VALUES ('a.1', '', ?)`,
      JSON.stringify({
        id: 'a.1',
        ticket: 'a',
        holder: { caller: 'caller', agent: null, upstream: 'openai', model: null },
        grantedAt: Date.now() - 1_000,
        phase: 'cooling',
        extendedUntil: null,
        coolingUntil: Date.now() + 2_000,
      }),
    ),
  );
  const before = await rows('evicted');
  await evictDurableObject(pool('evicted') as never);
  expect(await pool('evicted').status()).toMatchObject({
    limit: { configured: 1 },
    in_use: 0,
    cooling: 1,
  });
  expect(await rows('evicted')).toEqual(before);
  const refused = await pool('evicted').acquire(request('evicted', 'b', { wait: false }));
  expect(refused.kind).toBe('rejected');
  passTime(2_000);
  expect(await pool('evicted').status()).toMatchObject({ cooling: 0 });
});

it('an object that cannot write its leases is reset, and grants nothing that it did not write', async () => {
  await define('unwritable', 1);
  await inside('unwritable', (_instance, { storage }) =>
    storage.sql.exec('ALTER TABLE lease RENAME TO elsewhere'),
  );
  const asked = await acquireSlot(
    () => pool('unwritable'),
    request('unwritable', 'a'),
    AS_LONG_AS_IT_TAKES,
  );
  if (asked.kind !== 'granted') throw new Error(asked.kind);
  expect((await rows('unwritable')).map(({ id }) => id)).toEqual(['a.1']);
  await asked.granted.lease.release('unused', null);
});
