// A pool that a caller's value makes leaves nothing behind before its first success, and loses no more for that than it must:
// direct calls to the object.
import { runDurableObjectAlarm } from 'cloudflare:test';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { DirectoryObject } from '../../../src/directory/directory-object.ts';
import { directoryOf } from '../../../src/env.ts';
import { poolName } from '../../../src/contract/pool-name.ts';
import { SETTLE_MS } from '../../../src/core/words/settings.ts';
import {
  crashPool,
  inside,
  NO_COOLDOWN,
  nothingLeaks,
  pool,
  releaseById,
  request,
  resetPool,
  resume,
  storedBound,
  tables,
  take,
  untilStatus,
  untilWrittenEmpty,
  type PoolGranted,
} from '../support/pool.ts';
import { passTime } from '../support/time.ts';
import { configure, env, until } from '../support/worker.ts';

const GROUP = 'auto:openai';

/** A pool of an automatic group of two slots, and the acquire calls that its Workers make. */
function automatic(partition: string) {
  const name = poolName(GROUP, partition);
  const at = { group: GROUP, partition, assumed: { slotsMax: 2, source: 'unknown' } } as const;
  const of = { ...at, configVersion: 0 };
  return {
    name,
    take: (ticketId: string) => take(name, ticketId, of),
    busy: (ticketId: string) => pool(name).acquire(request(name, ticketId, { ...of, wait: false })),
    resumeOne: (ticketId: string) =>
      resume(name, { leaseId: `${ticketId}.1`, attachment: null }, at),
  };
}

async function isListed(partition: string): Promise<boolean> {
  const pools = await directoryOf(env).pools();
  return pools.some((one) => one.group === GROUP && one.partition === partition);
}

afterAll(nothingLeaks);

it('a key that its provider refuses leaves no table, no row, no alarm and no entry behind', async () => {
  const { name, take: takeOne, busy } = automatic('refused');
  const first = await takeOne('a');
  const second = await takeOne('b');
  expect(await busy('c')).toMatchObject({ kind: 'rejected', rejection: { reason: 'busy' } });
  const renewal = first.lease.renew(401);
  await second.lease.release('refused', 403);
  await first.lease.release('failed', 500);
  expect(await renewal).toBe('gone');
  await until(async () => expect(await pool(name).status()).toMatchObject({ in_use: 0 }));
  passTime(60_000);
  await pool(name).status();
  expect(await tables(name)).toEqual([]);
  expect(await inside(name, (_instance, { storage }) => storage.getAlarm())).toBeNull();
  expect(await isListed('refused')).toBe(false);
});

it('from the first success on what is held is covered on disk, and what the pool knows is stored', async () => {
  const { name, take: takeOne } = automatic('good');
  const long = await takeOne('long');
  const short = await takeOne('short');
  expect(await tables(name)).toEqual([]);
  await short.lease.release('success', 200);
  expect(await tables(name)).toEqual(['bound', 'call_log', 'cost', 'history', 'marker', 'memory']);
  // The write comes before the end of the lease that tells of the success.
  expect(await storedBound(name)).toMatchObject({ mark: 2 });
  await until(async () => expect(await isListed('good')).toBe(true));
  // So does a slot that cools down, though nobody can come back for it.
  await untilStatus(name, { cooling: 0 });
  await resetPool(name);
  // Its limit is known to the new instance by itself, and how many slots are held.
  expect(await pool(name).status()).toMatchObject({ unclaimed: 1, limit: { effective: 2 } });
  const resumed = await resume(name, long);
  if (resumed.kind !== 'granted') throw new Error(resumed.kind);
  expect(await pool(name).status()).toMatchObject({
    in_use: 1,
    unclaimed: 0,
    resurrected_total: 0,
  });
  await resumed.lease.release('success', 200);
  await untilWrittenEmpty(name);
});

it('a reset before the first success loses no call that runs: holders are counted, and nobody comes between', async () => {
  const { name, take: takeOne, busy, resumeOne } = automatic('lost');
  await takeOne('a');
  await takeOne('b');
  await crashPool(name);
  const a = await resumeOne('a');
  // The other holder is on its way: its slot is not given away.
  expect(await busy('c')).toMatchObject({ kind: 'rejected' });
  const b = await resumeOne('b');
  if (a.kind !== 'granted' || b.kind !== 'granted') throw new Error(`${a.kind}, ${b.kind}`);
  expect(await pool(name).status()).toMatchObject({ in_use: 2 });
  passTime(SETTLE_MS);
  expect(await busy('d')).toMatchObject({ kind: 'rejected', rejection: { reason: 'busy' } });
  await a.lease.release('cancelled', null);
  await b.lease.release('cancelled', null);
  expect(await tables(name)).toEqual([]);
});

/** A group that is split by what callers write, with two slots in each partition. */
const SPLIT = {
  name: 'split',
  partition_by: ['header:x-team'],
  limits: { max_concurrency: 2, rpm: 100 },
  holds: NO_COOLDOWN,
};

/** A pool of that group, and the acquire calls that its Workers make. */
async function partitionOf(partition: string) {
  await configure({ groups: [SPLIT] });
  const name = poolName('split', partition);
  const of = { group: 'split', partition };
  return {
    name,
    take: (ticketId: string) => take(name, ticketId, of),
    busy: (ticketId: string) => pool(name).acquire(request(name, ticketId, { ...of, wait: false })),
    resume: (lease: PoolGranted) => resume(name, lease, of),
  };
}

describe('a partition of a configured group', () => {
  it('stores nothing while it is only looked at', async () => {
    const { name } = await partitionOf('looked-at');
    await pool(name).status();
    expect(await tables(name)).toEqual([]);
    expect(await inside(name, (_instance, { storage }) => storage.getAlarm())).toBeNull();
  });

  it('has its limit through a reset before its first success too', async () => {
    const { name, take: takeOne, busy, resume: resumeOne } = await partitionOf('crashed');
    const first = await takeOne('a');
    const second = await takeOne('b');
    await crashPool(name);
    expect(await busy('c')).toMatchObject({ kind: 'rejected', rejection: { reason: 'busy' } });
    expect(await pool(name).status()).toMatchObject({ unclaimed: 2 });
    for (const lease of [first, second]) {
      const resumed = await resumeOne(lease);
      if (resumed.kind !== 'granted') throw new Error(resumed.kind);
      await resumed.lease.release('failed', 500);
    }
    await untilWrittenEmpty(name);
  });

  it('is removed once it is not in use and its rate remembers nothing, and begins again', async () => {
    const { name, take: takeOne } = await partitionOf('refused');
    const alarm = (): Promise<boolean> => runDurableObjectAlarm(pool(name) as never);
    const { lease } = await takeOne('a');
    expect(await alarm()).toBe(true);
    expect(await tables(name)).toContain('bound');
    await lease.release('refused', 403);
    expect(await alarm()).toBe(true);
    expect(await tables(name)).toContain('bound');
    passTime(120_000);
    expect(await alarm()).toBe(true);
    expect(await tables(name)).toEqual([]);
    expect(await alarm()).toBe(false);
    // The same instance goes on, and no caller gets a grant before it is covered on disk.
    const again = await takeOne('b');
    expect(await storedBound(name)).toMatchObject({ held: 1 });
    await crashPool(name);
    expect(await pool(name).status()).toMatchObject({ unclaimed: 1 });
    await releaseById(name, again, { group: 'split', partition: 'refused' });
    await untilWrittenEmpty(name);
  });

  it('wakes less and less often while a limit of a day remembers its calls', async () => {
    await configure({ groups: [{ ...SPLIT, limits: { max_concurrency: 2, rpd: 100 } }] });
    const name = poolName('split', 'remembered');
    const { lease } = await take(name, 'a', { group: 'split', partition: 'remembered' });
    await lease.release('refused', 403);
    await untilWrittenEmpty(name);
    const minutesToAlarm = async (idleMinutes: number): Promise<number> => {
      passTime(idleMinutes * 60_000);
      await crashPool(name);
      expect(await runDurableObjectAlarm(pool(name) as never)).toBe(true);
      const at = await inside(name, (_instance, { storage }) => storage.getAlarm());
      return Math.round(((at ?? 0) - Date.now()) / 60_000);
    };
    const minutes = [];
    for (const idle of [0, 1, 9, 110]) minutes.push(await minutesToAlarm(idle));
    expect(minutes).toEqual([1, 1, 10, 60]);
    passTime(2 * 86_400_000);
    expect(await runDurableObjectAlarm(pool(name) as never)).toBe(true);
    expect(await tables(name)).toEqual([]);
  });

  it('stays once it had a success, and is listed', async () => {
    const { name, take: takeOne } = await partitionOf('good');
    const { lease } = await takeOne('a');
    await lease.release('success', 200);
    await until(async () => {
      const listed = await directoryOf(env).pools();
      expect(listed).toContainEqual(expect.objectContaining({ group: 'split', partition: 'good' }));
    });
    await untilWrittenEmpty(name);
    passTime(120_000);
    await runDurableObjectAlarm(pool(name) as never);
    expect(await tables(name)).toContain('bound');
  });

  it('stays once it had a success that it could not report to the directory, through a reset too', async () => {
    const { name, take: takeOne } = await partitionOf('unlisted');
    const list = vi.spyOn(DirectoryObject.prototype, 'list');
    list.mockRejectedValueOnce(new Error('out of reach'));
    const good = await takeOne('a');
    await good.lease.release('success', 200);
    await until(() => expect(list).toHaveBeenCalled());
    list.mockRestore();
    await untilWrittenEmpty(name);
    await crashPool(name);
    const bad = await takeOne('b');
    await bad.lease.release('failed', 500);
    await untilWrittenEmpty(name);
    passTime(120_000);
    expect(await runDurableObjectAlarm(pool(name) as never)).toBe(true);
    expect(await tables(name)).toContain('call_log');
  });
});
