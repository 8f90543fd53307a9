// Many acquire calls of one turn: every lease is covered on disk before its caller hears of it, and they share writes.
import { afterAll, expect, it, vi } from 'vitest';
import { poolName } from '../../../src/contract/pool-name.ts';
import { BoundStore } from '../../../src/group/bound-store.ts';
import { Verification } from '../../../src/group/verification.ts';
import { Timers } from '../../../src/runtime/async.ts';
import {
  define,
  inside,
  nothingLeaks,
  pool,
  request,
  storedBoundIn,
  take,
  untilWrittenEmpty,
} from '../support/pool.ts';
import { env } from '../support/worker.ts';

const CALLS = 200;

afterAll(nothingLeaks);

it('leases of one turn are all below the mark before any of them is answered, in fewer writes than grants', async () => {
  await define('turn', CALLS);
  const write = vi.spyOn(BoundStore.prototype, 'write');
  const marks = await inside('turn', (instance, state) =>
    Promise.all(
      Array.from({ length: CALLS }, async (_, at) => {
        const { kind } = await instance.acquire(request('turn', `t${at}`));
        return kind === 'granted' ? (storedBoundIn(state)?.mark ?? 0) : 0;
      }),
    ),
  );
  const written = write.mock.calls.length;
  write.mockRestore();
  // The first one hears of its lease as soon as that is written, the others once all of theirs are.
  expect(marks[0]).toBeGreaterThanOrEqual(1);
  expect(Math.min(...marks.slice(1))).toBeGreaterThanOrEqual(CALLS);
  // The first at once, the others together on the next turn.
  expect(written).toBe(2);
  await Promise.all(
    Array.from({ length: CALLS }, (_, at) => pool('turn').release(`t${at}.1`, 'unused', null)),
  );
  await untilWrittenEmpty('turn');
});

it('callers on the wire find themselves below the mark when the reply arrives', async () => {
  await define('wire', CALLS);
  const write = vi.spyOn(BoundStore.prototype, 'write');
  let granted = 0;
  const held = await Promise.all(
    Array.from({ length: CALLS }, async (_, at) => {
      const { lease } = await take('wire', `t${at}`);
      granted += 1;
      const marks = write.mock.calls.map(([{ bound }]) => bound.mark);
      return { lease, isBelow: granted <= Math.max(...marks) };
    }),
  );
  const written = write.mock.calls.length;
  write.mockRestore();
  expect(held.filter(({ isBelow }) => !isBelow)).toEqual([]);
  expect(written).toBeLessThan(CALLS);
  await Promise.all(held.map(({ lease }) => lease.release('unused', null)));
  await untilWrittenEmpty('wire');
});

it('ends of leases are written once, when nothing is held any more', async () => {
  // So few that nothing is written ahead.
  await define('ends', 8);
  const held = await Promise.all(Array.from({ length: 8 }, (_, at) => take('ends', `t${at}`)));
  const write = vi.spyOn(BoundStore.prototype, 'write');
  await Promise.all(held.map(({ lease }) => lease.release('unused', null)));
  await untilWrittenEmpty('ends');
  expect(write.mock.calls.map(([{ bound }]) => bound)).toMatchObject([{ mark: 0, held: 0 }]);
  write.mockRestore();
});

it('pools on trial, of which many share an object, set one timer each and none for writes', async () => {
  const POOLS = 50;
  const group = 'auto:openai';
  const set = await inside('trials', async (_instance, ctx) => {
    const timers = vi.spyOn(globalThis, 'setTimeout');
    for (let at = 0; at < POOLS; at += 1) {
      const partition = `trial-${at}`;
      const events = {
        onProved: () => Promise.resolve(),
        onIdle: () => undefined,
        onHeldById: () => undefined,
      };
      const begins = { name: poolName(group, partition), timers: new Timers(), held: 0 };
      const verification = new Verification(ctx, env, begins, events);
      const assumed = { slotsMax: 1, source: 'unknown' as const };
      const acquire = request(group, 'a', { partition, assumed, configVersion: 0 });
      const answer = await verification.call((own) => own.acquire(acquire));
      expect(answer).toMatchObject({ kind: 'granted' });
      await verification.call((own) => own.release('a.1', 'refused', 401));
    }
    const delays = timers.mock.calls.map(([, ms]) => ms);
    timers.mockRestore();
    return delays;
  });
  expect(set.length).toBeLessThanOrEqual(POOLS);
});
