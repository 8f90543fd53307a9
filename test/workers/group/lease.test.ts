// Who holds a lease, and everything that lets go of one.
import { afterAll, expect, it, vi } from 'vitest';
import type { AcquireAnswer } from '../../../src/contract/rpc/group-rpc.ts';
import { LeaseHandle } from '../../../src/group/lease-handle.ts';
import {
  define,
  nothingLeaks,
  pool,
  queueUp,
  request,
  storedBound,
  take,
  untilWrittenEmpty,
  untilStatus,
  type PoolGranted,
} from '../support/pool.ts';
import { until } from '../support/worker.ts';

afterAll(nothingLeaks);

function granted(answer: AcquireAnswer): PoolGranted {
  if (answer.kind !== 'granted') throw new Error(answer.kind);
  return answer;
}

it('a limit of N admits exactly N, and the next one only when a slot is back', async () => {
  await define('exact', 3);
  const held = await Promise.all(['a', 'b', 'c'].map((id) => take('exact', id, { wait: false })));
  const { answer } = await queueUp('exact', 'd');
  expect(await pool('exact').status()).toMatchObject({ in_use: 3, queued: 1 });
  await held[1]?.lease.release('unused', null);
  expect(granted(await answer).leaseId).toBe('d.1');
  await Promise.all(['a.1', 'c.1', 'd.1'].map((id) => pool('exact').release(id, 'unused', null)));
});

it('a limit of 0 admits nobody', async () => {
  await define('zero', 0);
  const answer = await pool('zero').acquire(request('zero', 'a', { wait: false }));
  expect(answer).toMatchObject({ kind: 'rejected', rejection: { reason: 'busy', slotsMax: 0 } });
});

it('dropping the answer frees the slot at once, and that is written', async () => {
  await define('dropped', 1);
  const { lease } = await take('dropped', 'a');
  expect(await storedBound('dropped')).toMatchObject({ mark: 1 });
  lease[Symbol.dispose]();
  await untilStatus('dropped', { in_use: 0 });
  await untilWrittenEmpty('dropped');
});

it('dropping the older of two answers to one ticket frees nothing', async () => {
  await define('twice', 1);
  const disposal = vi.spyOn(LeaseHandle.prototype, Symbol.dispose);
  const first = await take('twice', 'a');
  const second = await take('twice', 'a');
  expect(second.leaseId).toBe(first.leaseId);
  expect(second.attachment).toBeGreaterThan(first.attachment);
  const { answer } = await queueUp('twice', 'b');
  first.lease[Symbol.dispose]();
  await until(() => expect(disposal).toHaveBeenCalledOnce());
  expect(await pool('twice').status()).toMatchObject({ in_use: 1, queued: 1 });
  second.lease[Symbol.dispose]();
  await granted(await answer).lease.release('unused', null);
  disposal.mockRestore();
});

it('an acquire call that supersedes another one answers it, and one of them gets the slot', async () => {
  await define('superseded', 1);
  const { lease } = await take('superseded', 'holder');
  const { answer: older } = await queueUp('superseded', 'a');
  const newer = pool('superseded').acquire(request('superseded', 'a'));
  expect(await older).toMatchObject({ kind: 'pending', position: 0 });
  expect(await pool('superseded').status()).toMatchObject({ in_use: 1, queued: 1 });
  await lease.release('unused', null);
  const { lease: second } = granted(await newer);
  expect(await pool('superseded').status()).toMatchObject({ in_use: 1, granted_total: 2 });
  await second.release('unused', null);
});

it('a lease that is released twice frees one slot', async () => {
  await define('once', 1);
  const { lease } = await take('once', 'a');
  const { answer: second } = await queueUp('once', 'b');
  const { answer: third } = await queueUp('once', 'c');
  await lease.release('success', 200);
  await lease.release('success', 200);
  await pool('once').release('a.1', 'success', 200);
  lease[Symbol.dispose]();
  const next = granted(await second);
  expect(await pool('once').status()).toMatchObject({ in_use: 1, queued: 1 });
  await next.lease.release('unused', null);
  await granted(await third).lease.release('unused', null);
});

it('a release that arrives before its acquire call ends the attempt', async () => {
  await define('early', 1);
  await pool('early').release('a.1', 'cancelled', null);
  expect(await pool('early').acquire(request('early', 'a'))).toMatchObject({ kind: 'gone' });
  expect(await pool('early').status()).toMatchObject({ in_use: 0, queued: 0 });
});

it('a ticket that is cancelled in the queue leaves it, and the next in line is granted', async () => {
  await define('cancelled', 1);
  const { lease } = await take('cancelled', 'holder');
  await queueUp('cancelled', 'leaves');
  const { answer } = await queueUp('cancelled', 'stays');
  await pool('cancelled').cancel('leaves');
  expect(await pool('cancelled').status()).toMatchObject({ in_use: 1, queued: 1 });
  await lease.release('unused', null);
  expect(granted(await answer).leaseId).toBe('stays.1');
  expect(await pool('cancelled').acquire(request('cancelled', 'leaves'))).toMatchObject({
    kind: 'gone',
  });
  await pool('cancelled').release('stays.1', 'unused', null);
});

it('a ticket that is cancelled after its grant gives the slot back', async () => {
  await define('late-cancel', 1);
  await take('late-cancel', 'a');
  await pool('late-cancel').cancel('a');
  expect(await pool('late-cancel').status()).toMatchObject({ in_use: 0 });
});

it('a cool-down keeps the slot down after its end, and the caller is not kept', async () => {
  await define('cooling', 1, { holds: { release_cooldown_ms: 300 } });
  const { lease } = await take('cooling', 'a');
  const { answer } = await queueUp('cooling', 'b');
  const releasedAt = Date.now();
  await lease.release('success', 200);
  expect(await pool('cooling').status()).toMatchObject({ in_use: 0, cooling: 1, queued: 1 });
  const next = granted(await answer);
  expect(Date.now() - releasedAt).toBeGreaterThanOrEqual(299);
  await next.lease.release('unused', null);
});

it('a full queue turns the next one away, and lets go of nobody', async () => {
  await define('full', 1, { queue: { max_length: 1 } });
  const { lease } = await take('full', 'a');
  const { answer } = await queueUp('full', 'b');
  expect(await pool('full').acquire(request('full', 'c'))).toMatchObject({
    kind: 'rejected',
    rejection: { reason: 'queue_full', queueLengthMax: 1 },
  });
  await lease.release('unused', null);
  await granted(await answer).lease.release('unused', null);
  expect((await pool('full').status()).rejected_total).toEqual({ queue_full: 1 });
});
