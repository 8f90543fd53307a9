// What the live feed asks of a pool, what it costs, and what becomes of it after a reset.
import { runDurableObjectAlarm } from 'cloudflare:test';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { PresenceReport } from '../../../src/contract/rpc/directory-rpc.ts';
import { DirectoryObject } from '../../../src/directory/directory-object.ts';
import { directoryOf, feedOf } from '../../../src/env.ts';
import { FeedObject } from '../../../src/feed/feed-object.ts';
import { GroupObject } from '../../../src/group/group-object.ts';
import { inside, pool, queueUp, request, resetPool, take } from '../support/pool.ts';
import { passTime } from '../support/time.ts';
import { admin, change, env, until } from '../support/worker.ts';
import {
  keyOf,
  resetHub,
  snapshotOf,
  untilEvent,
  untilInUse,
  usesFeed,
  wanted,
  withGroups,
} from './feed-scene.ts';

usesFeed();
beforeEach(() => {
  // The clock of the test before goes on.
  passTime(0);
});

interface WatchingShown {
  readonly name: string;
  readonly limit: { readonly effective: number | null };
}

async function watchRows(name: string): Promise<number> {
  return inside(name, (_instance, { storage }) => {
    const rows = storage.sql.exec(`SELECT value FROM memory WHERE key = 'watched'`);
    return rows.toArray().length;
  });
}

async function watchedUntil(name: string): Promise<number> {
  return inside(name, (_instance, { storage }) => {
    const { value } = storage.sql
      .exec<{ value: string }>(`SELECT value FROM memory WHERE key = 'watched'`)
      .one();
    return (JSON.parse(value) as { untilAt: number }).untilAt;
  });
}

describe('details of a group', () => {
  it('come after the snapshot, and whenever they change', async () => {
    const [name = '', other = ''] = await withGroups(2, 1);
    const held = await take(name, 'holds');
    const reader = await snapshotOf(`?group=${name}`);
    const first = await untilEvent(reader, 'detail', () => true);
    expect(first).toMatchObject({ name, leases_total: 1, waiters_total: 0 });
    const { json } = await admin('GET', `/groups/${name}/leases`);
    const ageless = { age_ms: expect.any(Number) };
    expect(first).toMatchObject({
      leases: json.leases.map((lease: object) => ({ ...lease, ...ageless })),
    });
    const first4 = ['snapshot', 'attention', 'warnings', 'detail'];
    // Beats and changes may come between.
    const order = new Set(reader.events.map((event) => event.name));
    expect([...order].filter((event) => first4.includes(event))).toEqual(first4);
    const waiting = await queueUp(name, 'waits');
    const second = await untilEvent(
      reader,
      'detail',
      (detail: { waiters_total: number }) => detail.waiters_total === 1,
    );
    const waiters = await admin('GET', `/groups/${name}/waiters`);
    const waitless = { waited_ms: expect.any(Number), estimate_ms: null };
    expect(second).toMatchObject({
      waiters: waiters.json.waiters.map((waiter: object) => ({ ...waiter, ...waitless })),
    });
    const elsewhere = await take(other, 'elsewhere');
    await untilInUse(reader, other, 1);
    expect(reader.of('detail').every((detail) => detail.name === name)).toBe(true);
    await held.lease.release('success', 200);
    await elsewhere.lease.release('success', 200);
    const granted = await waiting.answer;
    if (granted.kind === 'granted') await granted.lease.release('success', 200);
  });

  it('hold the first 200, and count the rest', async () => {
    const [name = ''] = await withGroups(1, 1);
    const held = await take(name, 'holds');
    const asked = Array.from({ length: 230 }, (_, index) =>
      pool(name).acquire(request(name, `waits-${index}`, { sliceMs: 20_000 })),
    );
    const reader = await snapshotOf(`?group=${name}`);
    const detail = await untilEvent<{ waiters: unknown[]; waiters_total: number }>(
      reader,
      'detail',
      ({ waiters_total }) => waiters_total === 230,
    );
    expect(detail.waiters).toHaveLength(200);
    await Promise.all(
      Array.from({ length: 230 }, (_, index) => pool(name).cancel(`waits-${index}`)),
    );
    await held.lease.release('success', 200);
    await Promise.all(asked);
  });

  it('are not computed for who looks at another group', async () => {
    const [name = ''] = await withGroups(1);
    const reader = await snapshotOf();
    const push = vi.spyOn(FeedObject.prototype, 'push');
    const held = await take(name, 'a');
    await untilInUse(reader, name, 1);
    const own = push.mock.calls.filter(([key]) => key === keyOf(name));
    expect(own.map(([, { detail }]) => detail)).toEqual([null]);
    await held.lease.release('success', 200);
  });

  it('of a group that nobody knows are empty', async () => {
    await withGroups(1);
    const reader = await snapshotOf('?group=nobody');
    expect(await untilEvent(reader, 'detail', () => true)).toEqual({
      name: 'nobody',
      leases: [],
      waiters: [],
      leases_total: 0,
      waiters_total: 0,
      group: null,
    });
  });

  it('come with the group of the same moment, and before its change is told to all', async () => {
    const [name = ''] = await withGroups(1, 3);
    const reader = await snapshotOf(`?group=${name}`);
    await untilEvent(reader, 'detail', () => true);
    const calls = ['a', 'b', 'c'];
    const held = [];
    for (const call of calls) {
      held.push(await take(name, call));
      await untilInUse(reader, name, held.length);
    }
    for (const { lease } of held) await lease.release('success', 200);
    await untilInUse(reader, name, 0);
    let leases = 0;
    const agreed: { inUse: number | undefined; leases: number }[] = [];
    for (const { name: event, data } of reader.events) {
      if (event === 'detail') {
        leases = inUseOf(data.leases);
        agreed.push({ inUse: data.group.in_use, leases });
      }
      const reported =
        event === 'groups'
          ? data.groups.find((group: { name: string }) => group.name === name)
          : undefined;
      if (reported !== undefined) agreed.push({ inUse: reported.in_use, leases });
    }
    expect(new Set(agreed.map(({ inUse }) => inUse))).toEqual(new Set([0, 1, 2, 3]));
    expect(agreed.filter((one) => one.inUse !== one.leases)).toEqual([]);
  });
});

function inUseOf(leases: readonly { readonly state: string }[]): number {
  return leases.filter(({ state }) => state === 'held').length;
}

describe('nobody looks', () => {
  it('and a pool sends nothing, writes nothing and computes nothing', async () => {
    const [name = ''] = await withGroups(1);
    // Since the hub of the test before looked last.
    passTime(20_000);
    const push = vi.spyOn(FeedObject.prototype, 'push');
    const watch = vi.spyOn(GroupObject.prototype, 'watch');
    for (let index = 0; index < 3; index += 1) {
      const { lease } = await take(name, `call-${index}`);
      await lease.release('success', 200);
    }
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(push.mock.calls.filter(([key]) => key === keyOf(name))).toEqual([]);
    expect(watch).not.toHaveBeenCalled();
    expect(await watchRows(name)).toBe(0);
  });

  it('any more: the reader that left is forgotten, and the pool stops', async () => {
    const [name = ''] = await withGroups(1);
    const reader = await snapshotOf();
    expect(await wanted(name)).toBe('status');
    await reader.close();
    await until(async () => expect(await wanted(name)).toBe('nothing'));
    const push = vi.spyOn(FeedObject.prototype, 'push');
    const held = await take(name, 'a');
    const pushes = () => push.mock.calls.filter(([key]) => key === keyOf(name)).length;
    await until(() => expect(pushes()).toBe(1));
    await held.lease.release('success', 200);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(pushes()).toBe(1);
  });

  it('but one of two, and the other is told on', async () => {
    const [name = ''] = await withGroups(1);
    const [leaves, stays] = [await snapshotOf(), await snapshotOf()];
    await leaves.close();
    const held = await take(name, 'a');
    await untilInUse(stays, name, 1);
    await held.lease.release('success', 200);
    expect((await untilInUse(stays, name, 0)).gone).toEqual([]);
    expect(leaves.of('groups')).toEqual([]);
  });
});

describe('pools that rest', () => {
  /** Counts what an open dashboard asks of pools. */
  const watchPools = () => ({
    watch: vi.spyOn(GroupObject.prototype, 'watch'),
    status: vi.spyOn(GroupObject.prototype, 'status'),
  });

  async function rest(name: string): Promise<PresenceReport> {
    const held = await take(name, 'before');
    await held.lease.release('success', 200);
    let said: unknown;
    await until(async () => {
      passTime(400_000);
      await runDurableObjectAlarm(pool(name) as never);
      const known = await directoryOf(env).presence();
      ({ said } = known.find(({ group }) => group === name) ?? {});
      expect(said).toBeTypeOf('string');
    });
    return JSON.parse(said as string) as PresenceReport;
  }

  it('are shown, and not woken, also by later looks and after a change', async () => {
    const [name = '', never = ''] = await withGroups(2);
    const said = await rest(name);
    const asked = watchPools();
    const reader = await snapshotOf();
    const { groups, version } = reader.of('snapshot')[0];
    // The pool sent its last report to the dashboards a moment after the one to the directory.
    const last = { at: said.at + 35, configVersion: version, status: said.metrics.status };
    await feedOf(env).push(keyOf(name), { ...last, detail: null });
    expect(groups).toMatchObject([
      { name, granted_total: 1, as_of: expect.any(String) },
      { name: never, granted_total: 0 },
    ]);
    await change('PUT', `/groups/${name}`, {
      match: { models: [`${name}-*`] },
      limits: { max_concurrency: 7 },
    });
    await untilEvent(reader, 'groups', ({ groups: changed }: { groups: WatchingShown[] }) =>
      changed.some((group) => group.name === name && group.limit.effective === 7),
    );
    passTime(300_000);
    const directory = vi.spyOn(DirectoryObject.prototype, 'presence');
    await until(() => expect(directory).toHaveBeenCalled());
    expect(asked.watch).not.toHaveBeenCalled();
    expect(asked.status).not.toHaveBeenCalled();
  });

  it('are seen at once when they come into use, and asked then', async () => {
    const [name = ''] = await withGroups(1);
    await rest(name);
    const reader = await snapshotOf();
    const asked = watchPools();
    const held = await take(name, 'after');
    await untilInUse(reader, name, 1);
    expect(asked.watch).not.toHaveBeenCalled();
    await until(() => expect(asked.watch).toHaveBeenCalled());
    await held.lease.release('success', 200);
    await untilInUse(reader, name, 0);
  });
});

describe('after a reset', () => {
  it('of a pool, or its sleep, its next call is seen', async () => {
    const [name = ''] = await withGroups(1);
    const reader = await snapshotOf();
    await resetPool(name);
    const held = await take(name, 'a');
    await untilInUse(reader, name, 1);
    await held.lease.release('success', 200);
    expect((await untilInUse(reader, name, 0)).groups).toHaveLength(1);
  });

  it('of a pool, its details go on', async () => {
    const [name = ''] = await withGroups(1, 1);
    const reader = await snapshotOf(`?group=${name}`);
    await untilEvent(reader, 'detail', () => true);
    await resetPool(name);
    const held = await take(name, 'a');
    const detail = await untilEvent<{ leases: unknown[] }>(
      reader,
      'detail',
      ({ leases }) => leases.length > 0,
    );
    expect(detail.leases).toMatchObject([{ id: held.leaseId, state: 'held' }]);
    await held.lease.release('success', 200);
  });

  it('of the hub, the stream breaks off, and the next one is right', async () => {
    const [name = ''] = await withGroups(1);
    const reader = await snapshotOf();
    await resetHub();
    expect(await reader.end).not.toBe('closed');
    const held = await take(name, 'a');
    const again = await snapshotOf();
    expect(again.of('snapshot')[0].groups[0]).toMatchObject({ name, in_use: 1 });
    await held.lease.release('success', 200);
    await untilInUse(again, name, 0);
  });

  it('a watch is written down once, and not at every look', async () => {
    const [name = ''] = await withGroups(1);
    const held = await take(name, 'a');
    await snapshotOf();
    await held.lease.release('success', 200);
    expect(await watchRows(name)).toBe(1);
    const until1 = await watchedUntil(name);
    passTime(60_000);
    const asked = {
      key: keyOf(name),
      everyMs: 1_000,
      isDetailed: false,
      untilAt: Date.now() + 600_000,
    };
    await pool(name).watch(asked);
    expect(await watchedUntil(name)).toBe(until1);
    passTime(300_000);
    await pool(name).watch({ ...asked, untilAt: Date.now() + 600_000 });
    expect(await watchedUntil(name)).toBeGreaterThan(until1);
  });
});
