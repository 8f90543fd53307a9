// Which grants are behind a write, and which need none, because they are below the mark that is on disk.
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { GroupRpc } from '../../../src/contract/rpc/group-rpc.ts';
import { CONFIRM_MS, COVERS_MS } from '../../../src/core/parts/bound.ts';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import {
  crashPool,
  define,
  heldBy,
  inside,
  nothingLeaks,
  passAwake,
  pool,
  request,
  resume,
  storedBound,
  storedBoundIn,
  take,
  untilWrittenEmpty,
} from '../support/pool.ts';
import { passTime, stopTime } from '../support/time.ts';
import { until } from '../support/worker.ts';

// A write covers grants for two seconds: on a busy machine they would be over too soon.
beforeAll(stopTime);

afterAll(nothingLeaks);

/** Calls may take several slots. */
const WIDE = { limits: { max_concurrency: 64, max_weight: 8 } };

/** Takes slots inside the object, and tells what was on disk at the instant at which the answer left. */
function takeInside(name: string, ticketId: string, slots = 1) {
  return inside(name, async (instance, state) => {
    const before = storedBoundIn(state)?.seq ?? 0;
    const { kind } = await instance.acquire(request(name, ticketId, { slots }));
    const { seq = 0, mark = 0 } = storedBoundIn(state) ?? {};
    // What was written arrives before the next call, as it does before an answer on the wire.
    await state.storage.sync();
    return { kind, writes: seq - before, mark };
  });
}

async function releaseAll(name: string): Promise<void> {
  for (const { id } of await pool(name).leases()) await pool(name).release(id, 'unused', null);
}

it('the first grant is behind a write, and those below its mark write nothing', async () => {
  await define('below', 64);
  // Four slots of margin; once three of them are taken, the next write is issued ahead.
  expect(await takeInside('below', 'a')).toEqual({ kind: 'granted', writes: 1, mark: 5 });
  for (const ticketId of ['b', 'c']) {
    expect(await takeInside('below', ticketId)).toEqual({ kind: 'granted', writes: 0, mark: 5 });
  }
  await releaseAll('below');
});

it('a grant above the mark is behind a write that covers it', async () => {
  await define('above', 64, WIDE);
  expect(await takeInside('above', 'a')).toMatchObject({ mark: 5 });
  const wide = await takeInside('above', 'wide', 5);
  expect(wide).toMatchObject({ kind: 'granted', writes: 1 });
  expect(wide.mark).toBeGreaterThanOrEqual(6);
  await releaseAll('above');
});

it('slots that came free give no room back before the next write', async () => {
  await define('freed', 64, WIDE);
  await takeInside('freed', 'a');
  await takeInside('freed', 'b', 2);
  await pool('freed').release('b.1', 'unused', null);
  // One and two and two are five, which is the mark; the next one is beyond it, though three are held.
  expect(await takeInside('freed', 'c', 2)).toMatchObject({ kind: 'granted' });
  await until(async () => expect(await storedBound('freed')).toMatchObject({ seq: 2, held: 3 }));
  expect((await storedBound('freed'))?.ended).toEqual(['b.1']);
  await releaseAll('freed');
});

it('a write covers grants for two seconds', async () => {
  await define('aged', 64);
  await takeInside('aged', 'a');
  passTime(COVERS_MS - 1);
  expect(await takeInside('aged', 'b')).toMatchObject({ writes: 0 });
  passTime(1);
  expect(await takeInside('aged', 'c')).toMatchObject({ writes: 1 });
  await releaseAll('aged');
});

it('a pool of eight slots writes every grant, and its mark is what it holds', async () => {
  await define('small', 8);
  for (let held = 1; held <= 8; held += 1) {
    expect(await takeInside('small', `t${held}`)).toEqual({
      kind: 'granted',
      writes: 1,
      mark: held,
    });
  }
  await releaseAll('small');
});

it('a pool that holds nothing writes that once, and nothing of it is unclaimed after a reset', async () => {
  await define('empty', 64);
  const held = await take('empty', 'a');
  const { seq = 0 } = (await storedBound('empty')) ?? {};
  await held.lease.release('unused', null);
  await untilWrittenEmpty('empty');
  expect(await storedBound('empty')).toMatchObject({ seq: seq + 1, mark: 0, ended: ['a.1'] });
  passTime(60_000);
  for (let at = 0; at < 3; at += 1) await pool('empty').status();
  expect(await storedBound('empty')).toMatchObject({ seq: seq + 1 });
  await crashPool('empty');
  expect(await pool('empty').status()).toMatchObject({ in_use: 0, unclaimed: 0 });
  expect(await take('empty', 'b', { wait: false })).toMatchObject({ leaseId: 'b.1' });
  await releaseAll('empty');
});

it('leases of before a pool was written empty have no slot any more', async () => {
  await define('since', 64);
  const first = await take('since', 'a');
  await first.lease.release('unused', null);
  await untilWrittenEmpty('since');
  await take('since', 'b');
  await crashPool('since');
  const { unclaimed: orphaned } = await pool('since').status();
  const late = { ...first, leaseId: 'never-seen.1' };
  expect(await resume('since', late)).toMatchObject({ kind: 'granted' });
  expect(await pool('since').status()).toMatchObject({
    unclaimed: orphaned,
    in_use: 1,
    resurrected_total: 1,
  });
  await releaseAll('since');
  await passAwake('since', LEASE_TTL_MS);
});

it('an instance whose writes do not arrive for five seconds ends', async () => {
  await define('lost', 1);
  await inside('lost', async (instance: GroupRpc, { storage }) => {
    const never = new Promise<void>(() => {});
    Object.defineProperty(storage, 'sync', { value: () => never, configurable: true });
    await instance.acquire(request('lost', 'a'));
  });
  passTime(CONFIRM_MS - 1);
  expect(await pool('lost').leases()).toMatchObject([{ id: 'a.1' }]);
  passTime(1);
  // The next instance knows of the slot, and not of its holder.
  await until(async () => expect(await pool('lost').leases()).toEqual([]));
  expect(await pool('lost').status()).toMatchObject({ in_use: 0, unclaimed: 1 });
  await passAwake('lost', LEASE_TTL_MS);
});

/** Lets a call ask inside the object, and stay there until its slot comes. */
function park(instance: GroupRpc, name: string, ticketId: string) {
  return instance.acquire(request(name, ticketId));
}

it('a slot of a full pool of one goes to the next waiter with nothing written on the way', async () => {
  await define('heirs', 1);
  const waiters = ['b', 'c', 'd', 'e', 'f'];
  const writes = await inside('heirs', async (instance, state) => {
    const seqOf = (): number => storedBoundIn(state)?.seq ?? 0;
    const answers = [park(instance, 'heirs', 'a')];
    await answers[0];
    answers.push(...waiters.map((ticketId) => park(instance, 'heirs', ticketId)));
    const behind: number[] = [];
    const isListed = (id: string): boolean => {
      const row = storedBoundIn(state);
      return row?.granted.length === 0 && row.heirs.some((heir) => heir === id);
    };
    for (const [at, ticketId] of waiters.entries()) {
      // What is written ahead is out of the way before the next call ends.
      while (at > 0 && !isListed(`${ticketId}.1`)) {
        passTime(1);
        await instance.status();
        await scheduler.wait(1);
      }
      await state.storage.sync();
      const before = seqOf();
      const held = await answers[at];
      if (held?.kind !== 'granted') throw new Error('not granted');
      const released = held.lease.release('success', 200, undefined, true);
      const next = await answers[at + 1];
      expect(next).toMatchObject({ kind: 'granted' });
      behind.push(seqOf() - before);
      await released;
    }
    return behind;
  });
  // The first one waits for a write, and with it begins who comes next to be written ahead.
  expect(writes).toEqual([1, 0, 0, 0, 0]);
  await releaseAll('heirs');
});

it('what is given back to the next instance is an heir’s, while one may have it', async () => {
  await define('passed', 1);
  const first = await take('passed', 'a');
  const parked = pool('passed')
    .acquire(request('passed', 'b'))
    .catch(() => 'lost');
  await until(async () => expect(await pool('passed').status()).toMatchObject({ queued: 1 }));
  await pool('passed').relearn();
  await until(async () => expect(await storedBound('passed')).toMatchObject({ heirs: ['b.1'] }));
  await crashPool('passed');
  expect(await parked).toBe('lost');
  await pool('passed').release('a.1', 'success', 200, undefined, heldBy('passed', first));
  expect(await pool('passed').status()).toMatchObject({ unclaimed: 1 });
  const asked = take('passed', 'b', { isAnew: true });
  await until(async () => expect(await pool('passed').status()).toMatchObject({ unclaimed: 0 }));
  await passAwake('passed', 1_000);
  expect(await asked).toMatchObject({ leaseId: 'b.1' });
  await releaseAll('passed');
});
