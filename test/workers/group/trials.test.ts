// The object of all pools on trial, while one of them is handed over: callers wait for the hand-over and do not retry in a
// loop, which would delay it.
import { afterAll, afterEach, expect, it, vi } from 'vitest';
import { directoryOf } from '../../../src/env.ts';
import { DirectoryObject } from '../../../src/directory/directory-object.ts';
import { poolName } from '../../../src/contract/pool-name.ts';
import { GroupObject } from '../../../src/group/group-object.ts';
import { TRIALS_MAX, TrialsObject } from '../../../src/group/trials-object.ts';
import { heldBy, inside, nothingLeaks, pool, request } from '../support/pool.ts';
import { configure, env, until } from '../support/worker.ts';

const GROUP = 'auto:openai';

afterEach(() => vi.restoreAllMocks());
afterAll(nothingLeaks);

/** Parks the hand-over of a pool at its message to the directory. */
function parkHandOver() {
  // oxlint-disable-next-line typescript/unbound-method -- called with its object below
  const { share } = DirectoryObject.prototype;
  const go = Promise.withResolvers<void>();
  const asked = vi
    .spyOn(DirectoryObject.prototype, 'share')
    .mockImplementation(async function parked(this: DirectoryObject, ...of) {
      await go.promise;
      return share.apply(this, of);
    });
  return { asked, go };
}

it.each(['done', 'failed'])(
  'a call with an older configuration waits until a hand-over is %s',
  async (end) => {
    await configure({ groups: [{ name: `any-${end}` }] });
    const partition = `older-${end}`;
    const fields = {
      group: GROUP,
      partition,
      assumed: { slotsMax: 8, source: 'unknown' },
    } as const;
    const { asked, go } = parkHandOver();
    if (end === 'failed') {
      const error = new Error('out of reach');
      vi.spyOn(GroupObject.prototype, 'takeOver').mockRejectedValueOnce(error);
    }
    await inside(`trials-${end}`, async (_instance, ctx) => {
      const trials = new TrialsObject(ctx, env);
      const first = await trials.acquire(request(GROUP, 'first', fields));
      if (first.kind !== 'granted') throw new Error(first.kind);
      await first.lease.release('success', 200);
      await until(() => expect(asked).toHaveBeenCalledOnce());
      const older = trials.acquire(request(GROUP, 'older', { ...fields, configVersion: 0 }));
      let isAnswered = false;
      older.then(() => (isAnswered = true)).catch(() => {});
      // The object still answers other calls, including those that wait for a message of another object.
      for (let others = 0; others < 5; others += 1) await pool('another').status();
      expect(isAnswered).toBe(false);
      go.resolve();
      expect((await older).kind).toBe(end === 'done' ? 'proved' : 'moved');
    });
    expect(await pool(poolName(GROUP, partition)).status()).toMatchObject({ in_use: 0 });
  },
);

const SPLIT = {
  name: 'split',
  partition_by: ['header:x-team'],
  limits: { max_concurrency: 2, budget_usd: { per_day: 10 } },
};

it('partitions that had objects of their own before stay there, listed or not, once they were learned', async () => {
  await configure({ groups: [SPLIT] });
  const partitions = ['listed', 'past'];
  for (const partition of partitions) await directoryOf(env).list({ group: 'split', partition });
  await directoryOf(env).unlist({ group: 'split', partition: 'past', jurisdiction: null });
  await until(async () => {
    const past = await directoryOf(env).pastPools(0);
    expect(past).toContainEqual(expect.objectContaining({ partition: 'past' }));
  });
  await inside('trials-older', async (_instance, ctx) => {
    // As the release left it that knew of trials for automatic groups alone.
    ctx.storage.sql.exec('CREATE TABLE proved (pool TEXT PRIMARY KEY) WITHOUT ROWID');
    ctx.storage.sql.exec(`INSERT INTO proved VALUES ('')`);
    const trials = new TrialsObject(ctx, env);
    await until(() => {
      const rows = ctx.storage.sql.exec(`SELECT 1 FROM proved WHERE pool = '#'`).toArray();
      expect(rows).toHaveLength(1);
    });
    const proved = (partition: string) => trials.isProved({ group: 'split', partition });
    expect(await Promise.all([...partitions, 'new'].map(proved))).toEqual([true, true, false]);
  });
  await directoryOf(env).unlist({ group: 'split', partition: 'listed', jurisdiction: null });
});

it('a lease that ends with success proves its partition if a budget is charged for it', async () => {
  await configure({ groups: [SPLIT] });
  await inside('trials-leases', async (_instance, ctx) => {
    const trials = new TrialsObject(ctx, env);
    const lease = async (partition: string, usd: number) => {
      const of = { group: 'split', partition };
      const estimate = {
        inputTokens: 1,
        maxOutputTokens: null,
        reserve: 'none' as const,
        price: { input: usd, output: 0 },
      };
      const asked = request('split', `of-${partition}`, { ...of, byId: true, estimate });
      const granted = await trials.acquire(asked);
      if (granted.kind !== 'granted') throw new Error(granted.kind);
      await trials.release(of, granted.leaseId, 'success', null);
      granted.lease[Symbol.dispose]();
      return of;
    };
    const charged = await lease('charged', 2);
    await until(async () => expect(await trials.isProved(charged)).toBe(true));
    expect(await trials.isProved(await lease('free', 0))).toBe(false);
  });
  const { spend } = await pool(poolName('split', 'charged')).status();
  expect(spend).toMatchObject({ day_usd: 2, reserved_usd: 0 });
});

it('an instance after a restart counts leases that are held by their ids, for the same pool alone', async () => {
  await configure({ groups: [{ ...SPLIT, limits: { max_concurrency: 1 } }] });
  await inside('trials-restarted', async (_instance, ctx) => {
    const of = { group: 'split', partition: 'leased' };
    const ask = (trials: TrialsObject, ticketId: string, partition = 'leased') =>
      trials.acquire(request('split', ticketId, { ...of, partition, byId: true, wait: false }));
    const before = await ask(new TrialsObject(ctx, env), 'held');
    if (before.kind !== 'granted') throw new Error(before.kind);
    const restarted = new TrialsObject(ctx, env);
    expect(await ask(restarted, 'early')).toMatchObject({ kind: 'rejected' });
    expect(await ask(restarted, 'other', 'other')).toMatchObject({ kind: 'granted' });
    const held = heldBy('split', before, of);
    expect(await restarted.renew(before.leaseId, null, held)).toMatchObject({ kind: 'ok' });
    expect(await ask(restarted, 'late')).toMatchObject({ kind: 'rejected' });
    await restarted.release(of, before.leaseId, 'failed', null, undefined, held);
    await restarted.release({ ...of, partition: 'other' }, 'other.1', 'failed', null);
    const rows = () => ctx.storage.sql.exec('SELECT pool FROM held_by_id').toArray();
    await until(() => expect(rows()).toEqual([]));
    expect(await ask(new TrialsObject(ctx, env), 'next')).toMatchObject({ kind: 'granted' });
  });
});

it('of pools that only remember their rate so many are kept, and it is logged that others are forgotten', async () => {
  await configure({ groups: [{ ...SPLIT, limits: { max_concurrency: 1, rpd: 2 } }] });
  const log = vi.spyOn(console, 'log').mockReturnValue(undefined);
  await inside('trials-many', async (_instance, ctx) => {
    const trials = new TrialsObject(ctx, env);
    const refused = async (partition: string): Promise<string> => {
      const asked = { group: 'split', partition, wait: false };
      const granted = await trials.acquire(request('split', crypto.randomUUID(), asked));
      if (granted.kind !== 'granted') return granted.kind;
      await granted.lease.release('success', 400);
      granted.lease[Symbol.dispose]();
      return 'granted';
    };
    for (let made = 0; made < TRIALS_MAX; made += 1) await refused(`made-${made}`);
    expect([await refused('made-0'), await refused('made-0')]).toEqual(['granted', 'rejected']);
    expect(log).not.toHaveBeenCalledWith(expect.stringContaining('trials_forgotten'));
    await refused('one-more');
    expect(log).toHaveBeenCalledWith(expect.stringContaining(`"pools":${TRIALS_MAX}`));
    expect(await refused('made-0')).toBe('granted');
  });
});
