// What a reset of the object must not cost: a slot, a place in the queue, the limit. Direct calls to the
// object; `proxy/reset.test.ts` does the same with whole calls and lets the upstream count.
import { evictDurableObject } from 'cloudflare:test';
import { afterAll, expect, it } from 'vitest';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { acquireSlot, type WaitTerms } from '../../../src/call/acquire/acquire-slot.ts';
import { onTimer } from '../../../src/runtime/async.ts';
import {
  crashPool,
  define,
  inside,
  loseNextAnswer,
  nothingLeaks,
  passAwake,
  pool,
  releaseById,
  request,
  resetPool,
  resume,
  storedBound,
  take,
  untilStatus,
  untilWrittenEmpty,
} from '../support/pool.ts';
import { passTime } from '../support/time.ts';

const AS_LONG_AS_IT_TAKES: WaitTerms = {
  signal: new AbortController().signal,
  after: onTimer,
  listener: null,
  until: Infinity,
  bypass: () => Promise.resolve(null),
};

afterAll(nothingLeaks);

it.each([
  ['after its write arrived', true],
  ['with its write on the way', false],
])('a grant whose reply is lost %s is granted when the caller asks again', async (_, isWritten) => {
  const group = `lost-${isWritten}`;
  await define(group, 2);
  const lost = loseNextAnswer(isWritten);
  const asked = await acquireSlot(() => pool(group), request(group, 'a'), AS_LONG_AS_IT_TAKES);
  if (asked.kind !== 'granted') throw new Error(asked.kind);
  expect(lost).toHaveBeenCalledTimes(2);
  lost.mockRestore();
  expect(asked.granted.leaseId).toBe('a.1');
  expect((await pool(group).leases()).map(({ id }) => id)).toEqual(['a.1']);
  // The row says whose answer left behind it, so it is nobody else's.
  expect(await pool(group).status()).toMatchObject({ in_use: 1, unclaimed: 0 });
  await asked.granted.lease.release('unused', null);
  expect(await pool(group).status()).toMatchObject({ in_use: 0, unclaimed: 0 });
});

it('a full group is still full after a reset', async () => {
  await define('full', 2);
  const held = [await take('full', 'a'), await take('full', 'b')];
  await resetPool('full');
  const refused = await pool('full').acquire(request('full', 'c', { wait: false }));
  expect(refused).toMatchObject({ kind: 'rejected', rejection: { reason: 'busy' } });
  expect(await pool('full').status()).toMatchObject({ in_use: 0, unclaimed: 2, queued: 0 });
  for (const lease of held) await releaseById('full', lease);
  expect(await pool('full').status()).toMatchObject({ in_use: 0, unclaimed: 0 });
});

it('waiters that come back in any order are granted in the order in which they first came', async () => {
  await define('order', 1);
  const holder = await take('order', 'holder');
  await resetPool('order');
  const first = Date.now() - 1_000;
  const granted: string[] = [];
  const askers = [3, 1, 2, 0].map(async (place) => {
    const { lease, leaseId } = await take('order', `w${place}`, { enqueuedAt: first + place });
    granted.push(leaseId);
    await lease.release('unused', null);
  });
  await untilStatus('order', { queued: 4 });
  await releaseById('order', holder);
  await Promise.all(askers);
  expect(granted).toEqual(['w0.1', 'w1.1', 'w2.1', 'w3.1']);
});

it('nobody younger is granted before those who waited had time to come back', async () => {
  await define('settle', 2);
  const enqueuedAt = Date.now();
  const holder = await take('settle', 'holder');
  await resetPool('settle');
  const young = pool('settle').acquire(request('settle', 'young'));
  await untilStatus('settle', { queued: 1, unclaimed: 1 });
  const old = await take('settle', 'old', { enqueuedAt });
  expect(await pool('settle').status()).toMatchObject({ queued: 1, in_use: 1, unclaimed: 1 });
  await old.lease.release('unused', null);
  await releaseById('settle', holder);
  await pool('settle').release(((await young) as { leaseId: string }).leaseId, 'unused', null);
});

it('a holder that takes its lease up again has its slot back, and a TTL from then on', async () => {
  await define('resume', 1);
  const held = await take('resume', 'a');
  await resetPool('resume');
  expect(await pool('resume').leases()).toEqual([]);
  await passAwake('resume', LEASE_TTL_MS - 1_000);
  const resumed = await resume('resume', held);
  if (resumed.kind !== 'granted') throw new Error(resumed.kind);
  expect(resumed.attachment).toBeGreaterThan(held.attachment);
  await passAwake('resume', LEASE_TTL_MS - 1_000);
  expect(await pool('resume').status()).toMatchObject({ in_use: 1, resurrected_total: 0 });
  await resumed.lease.release('unused', 200);
});

it('a dead holder blocks its slot for one TTL after the last of many resets', async () => {
  await define('dead', 1);
  await take('dead', 'a');
  for (let at = 0; at < 4; at += 1) {
    passTime(LEASE_TTL_MS - 5_000);
    await resetPool('dead');
    expect(await pool('dead').status()).toMatchObject({ unclaimed: 1 });
  }
  await passAwake('dead', LEASE_TTL_MS + 1);
  expect(await pool('dead').status()).toMatchObject({ in_use: 0, unclaimed: 0 });
});

it('what a process that has died handed out is free at the start, and nobody waits for its holders', async () => {
  await define('boot', 1);
  await take('boot', 'a');
  await inside('boot', (_instance, { storage }) => storage.sql.exec(`UPDATE bound SET boot = 'x'`));
  await crashPool('boot');
  const { lease } = await take('boot', 'b', { wait: false });
  expect(await storedBound('boot')).toMatchObject({ mark: 1 });
  await lease.release('unused', null);
});

it('an object that was evicted keeps its limit, and nothing of what it had written empty is unclaimed', async () => {
  await define('evicted', 1);
  const { lease } = await take('evicted', 'a');
  await lease.release('unused', null);
  lease[Symbol.dispose]();
  await untilWrittenEmpty('evicted');
  await evictDurableObject(pool('evicted') as never);
  expect(await pool('evicted').status()).toMatchObject({ limit: { configured: 1 }, unclaimed: 0 });
});

it('a slot that cools down at a reset is down for one TTL', async () => {
  await define('cooling', 1, { holds: { failure_hold_ms: 20_000 } });
  const { lease } = await take('cooling', 'a');
  await lease.release('failed', 500);
  expect(await pool('cooling').status()).toMatchObject({ in_use: 0, cooling: 1 });
  await crashPool('cooling');
  expect(await pool('cooling').status()).toMatchObject({ unclaimed: 1, cooling: 0 });
  await passAwake('cooling', LEASE_TTL_MS - 5_000);
  const refused = await pool('cooling').acquire(request('cooling', 'b', { wait: false }));
  expect(refused.kind).toBe('rejected');
  await passAwake('cooling', 5_000);
  expect(await pool('cooling').status()).toMatchObject({ unclaimed: 0 });
});

it('an object that cannot write its bound is reset, and grants nothing that is not covered', async () => {
  await define('unwritable', 1);
  await inside('unwritable', (_instance, { storage }) =>
    storage.sql.exec('ALTER TABLE bound RENAME TO elsewhere'),
  );
  const asked = await acquireSlot(
    () => pool('unwritable'),
    request('unwritable', 'a'),
    AS_LONG_AS_IT_TAKES,
  );
  if (asked.kind !== 'granted') throw new Error(asked.kind);
  expect(await storedBound('unwritable')).toMatchObject({ mark: 1 });
  await asked.granted.lease.release('unused', null);
});
