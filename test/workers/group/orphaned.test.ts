// Slots that nobody has claimed after a reset: who takes them out, who does not, and when they are free.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import {
  crashPool,
  define,
  heldBy,
  inside,
  nothingLeaks,
  passAwake,
  pool,
  releaseById,
  request,
  resume,
  storedBound,
  take,
  type PoolGranted,
  untilStatus,
} from '../support/pool.ts';
import { stopTime } from '../support/time.ts';

beforeAll(stopTime);

afterAll(nothingLeaks);

async function takeAll(group: string, ...tickets: string[]): Promise<PoolGranted[]> {
  const held: PoolGranted[] = [];
  for (const ticketId of tickets) held.push(await take(group, ticketId));
  return held;
}

/** Counts of a pool: slots that calls hold, and those that nobody has claimed. */
async function counts(group: string): Promise<readonly [inUse: number, unclaimed: number]> {
  const { in_use, unclaimed: orphaned } = await pool(group).status();
  return [in_use, orphaned];
}

async function resumed(group: string, lease: PoolGranted): Promise<PoolGranted> {
  const answer = await resume(group, lease);
  if (answer.kind !== 'granted') throw new Error(answer.kind);
  return answer;
}

it('everything below the mark is unclaimed, whoever resumes takes his slots, and the rest lapses', async () => {
  await define('claims', 64);
  const [a, b, c] = (await takeAll('claims', 'a', 'b', 'c')) as [
    PoolGranted,
    PoolGranted,
    PoolGranted,
  ];
  const { mark = 0 } = (await storedBound('claims')) ?? {};
  expect(mark).toBeGreaterThan(3);
  await crashPool('claims');
  expect(await counts('claims')).toEqual([0, mark]);
  const [newA, newB] = [await resumed('claims', a), await resumed('claims', b)];
  expect(await counts('claims')).toEqual([2, mark - 2]);
  expect((await pool('claims').leases()).map(({ id }) => id).toSorted()).toEqual(['a.1', 'b.1']);
  // Once more changes nothing.
  const again = await resumed('claims', newA);
  expect(again.attachment).toBeGreaterThan(newA.attachment);
  await releaseById('claims', c);
  expect(await counts('claims')).toEqual([2, mark - 3]);
  await again.lease.release('unused', null);
  await newB.lease.release('unused', null);
  await passAwake('claims', LEASE_TTL_MS - 1);
  expect(await counts('claims')).toEqual([0, mark - 3]);
  await passAwake('claims', 1);
  expect(await counts('claims')).toEqual([0, 0]);
  expect(await pool('claims').status()).toMatchObject({ resurrected_total: 0, expired_total: 0 });
});

it('a lease that is released by its id frees its slots once, however often that is told', async () => {
  await define('twice', 2);
  const [a, b] = (await takeAll('twice', 'a', 'b')) as [PoolGranted, PoolGranted];
  await crashPool('twice');
  await releaseById('twice', a);
  await releaseById('twice', a);
  expect(await counts('twice')).toEqual([0, 1]);
  expect(await resume('twice', a)).toMatchObject({ kind: 'gone' });
  // Nor in the instance after that.
  await take('twice', 'c');
  await crashPool('twice');
  await releaseById('twice', a);
  expect(await counts('twice')).toEqual([0, 2]);
  await releaseById('twice', b);
  expect(await counts('twice')).toEqual([0, 1]);
  await passAwake('twice', LEASE_TTL_MS);
});

it('one that had ended before the reset, and whose slot was handed on, frees none', async () => {
  await define('ended', 2);
  const [a, b] = (await takeAll('ended', 'a', 'b')) as [PoolGranted, PoolGranted];
  // Its release arrives, and the answer to it is lost.
  await pool('ended').release(a.leaseId, 'unused', null);
  const c = await take('ended', 'c');
  await crashPool('ended');
  await releaseById('ended', a);
  expect(await resume('ended', a)).toMatchObject({ kind: 'gone' });
  expect(await counts('ended')).toEqual([0, 2]);
  const refused = await pool('ended').acquire(request('ended', 'd', { wait: false }));
  expect(refused).toMatchObject({ kind: 'rejected', rejection: { reason: 'busy' } });
  await releaseById('ended', b);
  await releaseById('ended', c);
  expect(await counts('ended')).toEqual([0, 0]);
});

it('a holder whose lease lapsed is resurrected, and frees nothing of others', async () => {
  await define('lapsed', 2);
  const [a, b] = (await takeAll('lapsed', 'a', 'b')) as [PoolGranted, PoolGranted];
  await crashPool('lapsed');
  await releaseById('lapsed', b, { hasLapsed: true });
  expect(await counts('lapsed')).toEqual([0, 2]);
  const answer = await resume('lapsed', a, { hasLapsed: true });
  if (answer.kind !== 'granted') throw new Error(answer.kind);
  expect(await counts('lapsed')).toEqual([1, 2]);
  expect(await pool('lapsed').status()).toMatchObject({ resurrected_total: 1 });
  // It is behind a write that covers all three.
  expect(await storedBound('lapsed')).toMatchObject({ mark: 3 });
  await answer.lease.release('unused', null);
  await passAwake('lapsed', LEASE_TTL_MS);
});

it('a call that is wider than what is unclaimed takes that, counts as resurrected, and is behind a write', async () => {
  const wide = { limits: { max_concurrency: 8, max_weight: 4 } };
  await define('wide', 8, wide);
  const a = await take('wide', 'a', { slots: 4 });
  await crashPool('wide');
  await releaseById('wide', { ...a, leaseId: 'stranger.1' }, { slots: 2 });
  expect(await counts('wide')).toEqual([0, 2]);
  // Nobody is freed of a part of his slots.
  await releaseById('wide', a, { slots: 4 });
  expect(await counts('wide')).toEqual([0, 2]);
  const answer = await resume('wide', { ...a, leaseId: 'other.1' }, { slots: 4 });
  if (answer.kind !== 'granted') throw new Error(answer.kind);
  expect(await counts('wide')).toEqual([4, 0]);
  expect(await pool('wide').status()).toMatchObject({ resurrected_total: 1 });
  expect(await storedBound('wide')).toMatchObject({ mark: 4 });
  await answer.lease.release('unused', null);
});

it('resets in a row keep what is unclaimed, add nothing to it, and give it a whole TTL each time', async () => {
  await define('row', 64);
  const [a] = (await takeAll('row', 'a', 'b', 'c')) as [PoolGranted];
  const { mark = 0 } = (await storedBound('row')) ?? {};
  for (let at = 0; at < 5; at += 1) {
    await crashPool('row');
    expect(await counts('row')).toEqual([0, mark]);
    await passAwake('row', LEASE_TTL_MS - 1);
  }
  const back = await resumed('row', a);
  expect(await counts('row')).toEqual([1, mark - 1]);
  await crashPool('row');
  expect(await counts('row')).toEqual([0, mark]);
  await releaseById('row', back);
  await passAwake('row', LEASE_TTL_MS);
  expect(await counts('row')).toEqual([0, 0]);
});

it('an instance refuses to resume a lease that a newer one has granted', async () => {
  await define('older', 1);
  const held = await take('older', 'a');
  const newer = { ...held, attachment: held.attachment + 3_600_000_000 };
  const refusal = await inside('older', async (instance) => {
    const answer = instance.resume(heldBy('older', newer));
    return answer.then(({ kind }) => kind, String);
  });
  expect(refusal).toContain('a newer instance has granted the lease');
  expect(await pool('older').leases()).toMatchObject([{ id: 'a.1' }]);
  await held.lease.release('unused', null);
});

it('an instance that says gone says how far its attachments go', async () => {
  await define('gone', 1);
  const held = await take('gone', 'a');
  await held.lease.release('unused', null);
  const answer = await resume('gone', held);
  expect(answer).toMatchObject({ kind: 'gone' });
  expect((answer as { attachment?: number }).attachment).toBeGreaterThan(held.attachment);
});

it('waiters go before slots that come free, and nobody takes an unclaimed one', async () => {
  await define('waits', 1);
  const [a] = (await takeAll('waits', 'a')) as [PoolGranted];
  await crashPool('waits');
  const waiting = pool('waits').acquire(request('waits', 'b'));
  await passAwake('waits', 2_000);
  await untilStatus('waits', { queued: 1, in_use: 0, unclaimed: 1 });
  await releaseById('waits', a);
  const next = await waiting;
  expect(next.kind).toBe('granted');
  if (next.kind !== 'granted') return;
  await next.lease.release('unused', null);
});
