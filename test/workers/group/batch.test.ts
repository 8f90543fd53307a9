// Many acquire calls of one turn: every lease has its row before its caller hears of it, and they share writes.
import { afterAll, expect, it, vi } from 'vitest';
import { poolName } from '../../../src/contract/pool-name.ts';
import { GroupStore } from '../../../src/group/store.ts';
import { Trial } from '../../../src/group/trial.ts';
import {
  define,
  inside,
  nothingLeaks,
  pool,
  request,
  rows,
  take,
  untilNoRows,
} from '../support/pool.ts';
import { env } from '../support/worker.ts';

const CALLS = 200;

afterAll(nothingLeaks);

it('leases of one turn are all in rows before any of them is answered, in fewer writes than grants', async () => {
  await define('turn', CALLS);
  const write = vi.spyOn(GroupStore.prototype, 'write');
  const missing = await inside('turn', async (instance, { storage }) => {
    const acquires = Array.from({ length: CALLS }, async (_, at) => {
      const answer = await instance.acquire(request('turn', `t${at}`));
      if (answer.kind !== 'granted') return answer.kind;
      const row = storage.sql.exec('SELECT id FROM lease WHERE id = ?', answer.leaseId).toArray();
      return row.length === 1 ? null : answer.leaseId;
    });
    return (await Promise.all(acquires)).filter((one) => one !== null);
  });
  expect(missing).toEqual([]);
  const written = write.mock.calls.filter(([{ saved }]) => saved.length > 0).length;
  write.mockRestore();
  // The first at once, the others together on the next turn.
  expect(written).toBe(2);
  expect(await rows('turn')).toHaveLength(CALLS);
  await Promise.all(
    Array.from({ length: CALLS }, (_, at) => pool('turn').release(`t${at}.1`, 'unused', null)),
  );
});

it('callers on the wire find their row written when the reply arrives', async () => {
  await define('wire', CALLS);
  const write = vi.spyOn(GroupStore.prototype, 'write');
  const seen = new Set<string>();
  const held = await Promise.all(
    Array.from({ length: CALLS }, async (_, at) => {
      const { leaseId, lease } = await take('wire', `t${at}`);
      const isWritten = write.mock.calls.some(([{ saved }]) =>
        saved.some(({ id }) => id === leaseId),
      );
      if (isWritten) seen.add(leaseId);
      return lease;
    }),
  );
  const written = write.mock.calls.filter(([{ saved }]) => saved.length > 0).length;
  write.mockRestore();
  expect(seen.size).toBe(CALLS);
  expect(written).toBeLessThan(CALLS);
  await Promise.all(held.map((lease) => lease.release('unused', null)));
});

it('rows of leases that have ended are deleted together, within a moment', async () => {
  await define('deletes', 20);
  const held = await Promise.all(Array.from({ length: 20 }, (_, at) => take('deletes', `t${at}`)));
  const write = vi.spyOn(GroupStore.prototype, 'write');
  await Promise.all(held.map(({ lease }) => lease.release('unused', null)));
  await untilNoRows('deletes');
  expect(write.mock.calls.length).toBeLessThan(20);
  write.mockRestore();
});

it('pools on trial, of which many share an object, set one timer each and none for writes', async () => {
  const POOLS = 50;
  const group = 'auto:openai';
  const set = await inside('trials', async (_instance, ctx) => {
    const timers = vi.spyOn(globalThis, 'setTimeout');
    for (let at = 0; at < POOLS; at += 1) {
      const partition = `trial-${at}`;
      const events = { onProved: () => undefined, onIdle: () => undefined };
      const trial = new Trial(ctx, env, poolName(group, partition), events);
      const assumed = { slotsMax: 1, source: 'unknown' as const };
      const acquire = request(group, 'a', { partition, assumed, configVersion: 0 });
      const answer = await trial.call((own) => own.acquire(acquire));
      expect(answer).toMatchObject({ kind: 'granted' });
      await trial.call((own) => own.release('a.1', 'refused', 401));
    }
    const delays = timers.mock.calls.map(([, ms]) => ms);
    timers.mockRestore();
    return delays;
  });
  expect(set.length).toBeLessThanOrEqual(POOLS);
});
