// The object of all pools on trial, while one of them is handed over: callers wait for the hand-over and do not retry in a
// loop, which would delay it.
import { afterAll, afterEach, expect, it, vi } from 'vitest';
import { DirectoryObject } from '../../../src/directory/directory-object.ts';
import { noteVerified, poolSourceOfHeld } from '../../../src/call/acquire/pools.ts';
import type { RoutingTable } from '../../../src/config/snapshots.ts';
import { OVERFLOW_PARTITION, poolName } from '../../../src/contract/pool-name.ts';
import { SERVED } from '../../../src/core/words/signal.ts';
import { SETTLE_MS } from '../../../src/core/words/settings.ts';
import { GroupObject } from '../../../src/group/group-object.ts';
import { VerifiedPools, SHARING_MAX } from '../../../src/group/verification.ts';
import { VERIFICATIONS_MAX, TrialsObject } from '../../../src/group/trials-object.ts';
import { RunsObject } from '../../../src/runs/runs-object.ts';
import { heldBy, inside, NO_COOLDOWN, nothingLeaks, pool, request } from '../support/pool.ts';
import { passTime } from '../support/time.ts';
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
      const verifications = new TrialsObject(ctx, env);
      const first = await verifications.acquire(request(GROUP, 'first', fields));
      if (first.kind !== 'granted') throw new Error(first.kind);
      await first.lease.release('success', 200);
      await until(() => expect(asked).toHaveBeenCalledOnce());
      const older = verifications.acquire(request(GROUP, 'older', { ...fields, configVersion: 0 }));
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

it('a call that was under way when a hand-over failed gets no slot beside those of the pool', async () => {
  await configure({
    groups: [{ ...SPLIT, limits: { max_concurrency: 1 }, holds: NO_COOLDOWN }],
  });
  const of = { group: 'split', partition: 'failed', wait: false };
  await inside('trials-under-way', async (_instance, ctx) => {
    const verifications = new TrialsObject(ctx, env);
    const first = await verifications.acquire(request('split', 'first', of));
    if (first.kind !== 'granted') throw new Error(first.kind);
    // oxlint-disable-next-line typescript/unbound-method -- called with its object below
    const { definition } = DirectoryObject.prototype;
    const go = Promise.withResolvers<void>();
    const asked = vi
      .spyOn(DirectoryObject.prototype, 'definition')
      .mockImplementationOnce(async function parked(this: DirectoryObject, group) {
        await go.promise;
        return definition.call(this, group);
      });
    // The definition is old by now, so the next call waits until it is read.
    passTime(5_000);
    const slow = verifications.acquire(request('split', 'slow', of));
    await until(() => expect(asked).toHaveBeenCalledOnce());
    const fail = Promise.withResolvers<never>();
    const takeOver = vi
      .spyOn(GroupObject.prototype, 'takeOver')
      .mockImplementationOnce(() => fail.promise);
    await first.lease.release('success', 200);
    await until(() => expect(takeOver).toHaveBeenCalledOnce());
    go.resolve();
    await until(async () => expect(await asked.mock.results[0]?.value).toBeDefined());
    // Another object's answer comes after that of the directory.
    await pool('another').status();
    fail.reject(new Error('out of reach'));
    const answer = await slow;
    expect(answer.kind).toBe('granted');
    expect(await verifications.acquire(request('split', 'other', of))).toMatchObject({
      kind: 'rejected',
    });
    if (answer.kind === 'granted') await answer.lease.release('failed', 500);
  });
});

it.each(['tier', 'model', 'credential'] as const)(
  'an unverified key stays held for its %s while calls for other models arrive',
  async (scope) => {
    await configure({ groups: [{ ...SPLIT, limits: {}, holds: NO_COOLDOWN }] });
    const of = { group: 'split', partition: `refused-${scope}`, wait: false };
    await inside(`trials-refused-${scope}`, async (_instance, ctx) => {
      const verifications = new TrialsObject(ctx, env);
      const granted: string[] = [];
      for (let index = 0; index < 20; index += 1) {
        const model = `m${index % 2}`;
        const asked = { ...of, model, ...(scope === 'tier' && { tier: 'flex' }) };
        const answer = await verifications.acquire(request('split', `call-${index}`, asked));
        if (answer.kind !== 'granted') continue;
        granted.push(model);
        const refusal = { ...SERVED, kind: 'requests', retryAfterMs: 13_873_000, scope } as const;
        await answer.lease.report(refusal, false);
        await answer.lease.release('refused', 429);
      }
      expect(granted).toEqual(scope === 'credential' ? ['m0'] : ['m0', 'm1']);
    });
  },
);

it('what shares a pool is handed over to the one to which Workers send it', async () => {
  await configure({ groups: [SPLIT] });
  vi.spyOn(DirectoryObject.prototype, 'share').mockResolvedValue(OVERFLOW_PARTITION);
  const inUse = async (partition: string): Promise<number> => {
    const { in_use } = await pool(poolName('split', partition)).status();
    return in_use;
  };
  await inside('trials-shared', async (_instance, ctx) => {
    const verifications = new TrialsObject(ctx, env);
    for (const [partition, shared] of [
      ['of-team', OVERFLOW_PARTITION],
      ['of-team,own-fp_0123456789abcdef01234567', 'of-team,own-none'],
    ] as const) {
      const of = { group: 'split', partition };
      const answer = await verifications.acquire(request('split', `in-${shared}`, of));
      if (answer.kind !== 'granted') throw new Error(answer.kind);
      const renewed = answer.lease.renew(200);
      await until(async () => expect(await verifications.isVerified(of)).toBe(true));
      expect(await inUse(shared)).toBe(1);
      expect(await verifications.isVerified({ group: 'split', partition: shared })).toBe(true);
      await answer.lease.release('success', 200);
      expect(await renewed).toBe('gone');
      await until(async () => expect(await inUse(shared)).toBe(0));
    }
  });
});

const SPLIT = {
  name: 'split',
  partition_by: ['header:x-team'],
  limits: { max_concurrency: 2, budget_usd: { per_day: 10 } },
};

/** The environment in which this object has all unverified pools. */
function selfHostedWith(verifications: TrialsObject): typeof env {
  return { ...env, TRIALS: { getByName: () => verifications } } as unknown as typeof env;
}

it('a run whose lease was granted on trial renews and releases it in the pool that its key shares since', async () => {
  await configure({ groups: [SPLIT] });
  vi.spyOn(DirectoryObject.prototype, 'share').mockResolvedValue(OVERFLOW_PARTITION);
  const inUse = async (partition: string): Promise<number> =>
    (await pool(poolName('split', partition)).status()).in_use;
  await inside('trials-run', async (_instance, ctx) => {
    const verifications = new TrialsObject(ctx, env);
    const own = { group: 'split', partition: 'run,own-fp_0123456789abcdef01234567' };
    const of = { ...own, isById: true };
    const leased = await verifications.acquire(request('split', 'run', of));
    const call = await verifications.acquire(request('split', 'call', own));
    if (leased.kind !== 'granted' || call.kind !== 'granted') throw new Error('two are free');
    await call.lease.release('success', 200);
    await until(async () => expect(await verifications.isVerified(of)).toBe(true));
    const runs = new RunsObject(ctx, selfHostedWith(verifications));
    const { heldMs, hasLapsed, sentAt: _, ...lease } = heldBy('split', leased, of);
    const place = { jurisdiction: null, location: null, status: 200 };
    const leases = [{ lease, heldMs, hasLapsed, ...place }];
    expect(await runs.hold({ run: 'run_1', forMs: 60_000, leases })).toBe('held');
    expect([await inUse('run,own-none'), await inUse(OVERFLOW_PARTITION)]).toEqual([1, 0]);
    await runs.end('run_1', 'success');
    await until(async () => expect(await inUse('run,own-none')).toBe(0));
  });
});

it('a lease that was granted on trial is renewed and released in the pool that its partition shares since', async () => {
  await configure({ groups: [SPLIT] });
  vi.spyOn(DirectoryObject.prototype, 'share').mockResolvedValue(OVERFLOW_PARTITION);
  const shared = () => pool(poolName('split', OVERFLOW_PARTITION));
  await inside('trials-held', async (_instance, ctx) => {
    const verifications = new TrialsObject(ctx, env);
    const of = { group: 'split', partition: 'held' };
    const leased = await verifications.acquire(request('split', 'leased', { ...of, isById: true }));
    const call = await verifications.acquire(request('split', 'call', of));
    if (leased.kind !== 'granted' || call.kind !== 'granted') throw new Error('two are free');
    await call.lease.release('success', 200);
    await until(async () => expect(await verifications.isVerified(of)).toBe(true));
    noteVerified(of);
    const selfHosted = selfHostedWith(verifications);
    const table = { snapshot: { fullGroups: ['split'] } } as unknown as RoutingTable;
    const placement = { ...of, assumed: null, config: null, isOfProvider: false, ruledLane: null };
    const held = heldBy('split', leased, { ...of, isById: true });
    const source = () => poolSourceOfHeld(selfHosted, placement, table)();
    expect(await source().renew(leased.leaseId, null, held)).toMatchObject({ kind: 'ok' });
    expect(await shared().status()).toMatchObject({ in_use: 1 });
    await source().release(leased.leaseId, 'failed', null, undefined, held);
    await until(async () => expect(await shared().status()).toMatchObject({ in_use: 0 }));
  });
});

it('a lease that ends with success proves its partition if a budget is charged for it', async () => {
  await configure({ groups: [SPLIT] });
  await inside('trials-leases', async (_instance, ctx) => {
    const verifications = new TrialsObject(ctx, env);
    const lease = async (partition: string, usd: number) => {
      const of = { group: 'split', partition };
      const estimate = {
        inputTokens: 1,
        maxOutputTokens: null,
        reserve: 'none' as const,
        price: { input: usd, output: 0 },
      };
      const asked = request('split', `of-${partition}`, { ...of, isById: true, estimate });
      const granted = await verifications.acquire(asked);
      if (granted.kind !== 'granted') throw new Error(granted.kind);
      await verifications.release(of, granted.leaseId, 'success', null);
      granted.lease[Symbol.dispose]();
      return of;
    };
    const charged = await lease('charged', 2);
    await until(async () => expect(await verifications.isVerified(charged)).toBe(true));
    expect(await verifications.isVerified(await lease('free', 0))).toBe(false);
  });
  const { spend } = await pool(poolName('split', 'charged')).status();
  expect(spend).toMatchObject({ day_usd: 2, reserved_usd: 0 });
});

it('an instance after a restart counts leases that are held by their ids, for the same pool alone', async () => {
  await configure({ groups: [{ ...SPLIT, limits: { max_concurrency: 1 } }] });
  await inside('trials-restarted', async (_instance, ctx) => {
    const of = { group: 'split', partition: 'leased' };
    const ask = (verifications: TrialsObject, ticketId: string, partition = 'leased') =>
      verifications.acquire(
        request('split', ticketId, { ...of, partition, isById: true, wait: false }),
      );
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

it('leases by id of two processes before are both counted after another restart', async () => {
  await configure({ groups: [{ ...SPLIT, limits: { max_concurrency: 2 } }] });
  await inside('trials-restarted-twice', async (_instance, ctx) => {
    const of = { group: 'split', partition: 'twice' };
    const ask = (verifications: TrialsObject, ticketId: string) =>
      verifications.acquire(request('split', ticketId, { ...of, isById: true, wait: false }));
    const first = await ask(new TrialsObject(ctx, env), 'first');
    const between = new TrialsObject(ctx, env);
    await between.status(of);
    // Until then holders from before may report, and nothing is granted.
    passTime(SETTLE_MS);
    const second = await ask(between, 'second');
    const restarted = new TrialsObject(ctx, env);
    expect(await ask(restarted, 'third')).toMatchObject({ kind: 'rejected' });
    for (const granted of [first, second]) {
      if (granted.kind !== 'granted') throw new Error(granted.kind);
      const held = heldBy('split', granted, of);
      expect(await restarted.renew(granted.leaseId, null, held)).toMatchObject({ kind: 'ok' });
      await restarted.release(of, granted.leaseId, 'failed', null, undefined, held);
    }
  });
});

it('of partitions that share a pool so many are remembered, and every pool of its own', async () => {
  await inside('trials-sharing', async (_instance, ctx) => {
    const verified = new VerifiedPools(ctx.storage.sql);
    verified.add('group#own');
    for (let made = 0; made <= SHARING_MAX; made += 1) verified.addSharing(`group#made-${made}`);
    const names = ['group#made-0', 'group#made-1', `group#made-${SHARING_MAX}`, 'group#own'];
    expect(names.map((name) => verified.has(name))).toEqual([false, true, true, true]);
    const [rows] = ctx.storage.sql.exec('SELECT COUNT(*) AS rows FROM proved_sharing');
    expect(rows).toEqual({ rows: SHARING_MAX });
  });
});

it('of pools that only remember their rate so many are kept, and it is logged that others are forgotten', async () => {
  await configure({ groups: [{ ...SPLIT, limits: { max_concurrency: 1, rpd: 2 } }] });
  const log = vi.spyOn(console, 'log').mockReturnValue(undefined);
  await inside('trials-many', async (_instance, ctx) => {
    const verifications = new TrialsObject(ctx, env);
    const refused = async (partition: string): Promise<string> => {
      const asked = { group: 'split', partition, wait: false };
      const granted = await verifications.acquire(request('split', crypto.randomUUID(), asked));
      if (granted.kind !== 'granted') return granted.kind;
      await granted.lease.release('success', 400);
      granted.lease[Symbol.dispose]();
      return 'granted';
    };
    for (let made = 0; made < VERIFICATIONS_MAX; made += 1) await refused(`made-${made}`);
    expect([await refused('made-0'), await refused('made-0')]).toEqual(['granted', 'rejected']);
    expect(log).not.toHaveBeenCalledWith(expect.stringContaining('trials_forgotten'));
    await refused('one-more');
    expect(log).toHaveBeenCalledWith(expect.stringContaining(`"pools":${VERIFICATIONS_MAX}`));
    expect(await refused('made-0')).toBe('granted');
  });
});
