// Pools that nobody uses: the directory knows how they are, and neither a reader nor a change of the configuration wakes
// them. Objects are counted from outside, by the calls that they get; their windows end when a test says so.
import {
  abortAllDurableObjects,
  listDurableObjectIds,
  runDurableObjectAlarm,
  runInDurableObject,
} from 'cloudflare:test';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { directoryOf } from '../../src/env.ts';
import { DirectoryObject } from '../../src/directory/directory-object.ts';
import { PresenceList } from '../../src/directory/pool-reports.ts';
import { GroupObject } from '../../src/group/group-object.ts';
import {
  inside,
  nameOf,
  pool,
  request,
  untilWrittenEmpty,
  type PoolGranted,
} from './support/pool.ts';
import { passTime } from './support/time.ts';
import { admin, call, configure, env, newestVersion, until } from './support/worker.ts';

/** Longer than a pool must be idle at the end of its window to rest. */
const LONG_MS = 400_000;

/** Longer than a window. */
const WINDOW_MS = 650_000;

const limits = (max_concurrency: number) => ({ limits: { max_concurrency } });

beforeEach(() => {
  // The clock of the test before goes on.
  passTime(0);
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** Counts the calls that objects get from now on, but for those of tests. */
function watchObjects() {
  const of = (name: 'status' | 'metrics' | 'reconfigure') => vi.spyOn(GroupObject.prototype, name);
  return { status: of('status'), metrics: of('metrics'), reconfigure: of('reconfigure') };
}

/** Lists the pools that were told of a change. */
function reportedBy({ reconfigure }: ReturnType<typeof watchObjects>): readonly unknown[] {
  return reconfigure.mock.contexts.map(nameOf);
}

/** Makes a call that its upstream serves. */
async function use(group: string, ticket: string, version = newestVersion()): Promise<void> {
  const answer = await pool(group).acquire(request(group, ticket, { configVersion: version }));
  await (answer as PoolGranted).lease.release('success', 200);
}

/** Lets the window of a pool end. False: it has none. */
function endWindow(name: string): Promise<boolean> {
  return runDurableObjectAlarm(pool(name) as never);
}

async function rest(name: string): Promise<void> {
  await untilReported(name);
  passTime(LONG_MS);
  expect(await endWindow(name)).toBe(true);
  expect(await recordOf(name)).toBeTypeOf('string');
}

/** Reads what the directory shows of a pool without asking it. */
async function recordOf(name: string) {
  const known = await directoryOf(env).presence();
  return known.find(({ group }) => group === name.split('#')[0])?.said;
}

/** Counts what pools tell the directory of their use. */
function watchWords() {
  return {
    wake: vi.spyOn(DirectoryObject.prototype, 'wake'),
    rest: vi.spyOn(DirectoryObject.prototype, 'rest'),
    definition: vi.spyOn(DirectoryObject.prototype, 'definition'),
  };
}

/** Waits until a pool counts on being told of changes. */
function untilReported(name: string): Promise<void> {
  return until(async () => {
    const reported = await inside(name, (_instance, { storage }) =>
      storage.sql.exec(`SELECT value FROM memory WHERE key = 'listed'`).toArray(),
    );
    expect(reported).toEqual([{ value: 'told' }]);
  });
}

async function statusOf(name: string) {
  const { json } = await admin('GET', '/status');
  return json.groups.find((group: { name: string }) => group.name === name);
}

it('are shown by the status and the metrics, and stay asleep', async () => {
  await configure({
    groups: [
      { name: 'seen-used', ...limits(3) },
      { name: 'seen-never', limits: { max_concurrency: 2, rpm: 60 } },
    ],
  });
  await use('seen-used', 'first');
  await rest('seen-used');
  await abortAllDurableObjects();
  const before = await listDurableObjectIds(env.GROUPS as never);
  const asked = watchObjects();

  const used = await statusOf('seen-used');
  expect(used).toMatchObject({ in_use: 0, granted_total: 1, limit: { effective: 3 } });
  expect(Date.parse(used.as_of)).toBeLessThan(Date.now());
  expect(used.idle_ms).toBeGreaterThan(4_000);
  const never = await statusOf('seen-never');
  expect(never).toMatchObject({ in_use: 0, granted_total: 0, limit: { effective: 2 } });
  expect(never.rates.rpm.limit).toBe(60);
  expect(never.as_of).toBeUndefined();
  const scraped = await call('/metrics', { headers: { authorization: 'Bearer test-admin-token' } });
  const text = await scraped.text();
  expect(text).toContain('headgate_grants_total{group="seen-used",partition=""} 1');
  expect(text).toContain('headgate_slots_limit{group="seen-never",partition=""} 2');

  expect(asked.status).not.toHaveBeenCalled();
  expect(asked.metrics).not.toHaveBeenCalled();
  expect(await listDurableObjectIds(env.GROUPS as never)).toHaveLength(before.length);
});

it('are shown with the configuration of now, and asked again once they are used', async () => {
  await configure({ groups: [{ name: 'woken', ...limits(3) }] });
  await use('woken', 'first');
  await rest('woken');
  await configure({ groups: [{ name: 'woken', ...limits(5), paused: true }] });
  expect(await statusOf('woken')).toMatchObject({
    limit: { configured: 5, effective: 5 },
    paused: true,
  });
  await configure({ groups: [{ name: 'woken', ...limits(5) }] });
  const held = (await pool('woken').acquire(request('woken', 'held'))) as PoolGranted;
  await until(async () => {
    const group = await statusOf('woken');
    expect(group).toMatchObject({ in_use: 1 });
    expect(group.as_of).toBeUndefined();
  });
  await held.lease.release('success', 200);
});

it('are found again where their group was deleted and comes back', async () => {
  const group = { name: 'returned', limits: { max_concurrency: 3, budget_usd: { per_month: 9 } } };
  await configure({ groups: [group] });
  await use('returned', 'first');
  await rest('returned');
  await configure({ groups: [] });
  await configure({ groups: [group] });
  const asked = watchObjects();
  // The object goes on with what it has counted.
  expect(await statusOf('returned')).toMatchObject({ granted_total: 1 });
  expect(asked.status.mock.contexts.map(nameOf)).not.toContain('returned');
});

it('of a process that has ended rest since their window was over at the latest', async () => {
  await configure({ groups: [{ name: 'sql', ...limits(1) }] });
  const reported = await inside('sql', (_instance, { storage: { sql } }) => {
    const known = { group: 'g', partition: 'p', jurisdiction: null };
    const before = new PresenceList(sql, 'before', 60_000);
    before.wake({ ...known, window: 5_000_060_000, idleMs: 0, said: '{}' });
    before.flush();
    const after = new PresenceList(sql, 'after', 60_000);
    const [shown] = after.all(5_000_000_000);
    return { inUse: before.idleSince(known), since: after.idleSince(known), said: shown?.said };
  });
  expect(reported).toEqual({ inUse: null, since: 5_000_060_000, said: '{}' });
});

it('are not told of a change, and decide by none of before', async () => {
  const groups = (most: number) => [{ name: 'slept', ...limits(most) }];
  await configure({ groups: groups(1) });
  await use('slept', 'first');
  await rest('slept');
  const asked = watchObjects();
  const old = newestVersion();
  await configure({ groups: groups(0) });
  expect(reportedBy(asked)).not.toContain('slept');
  // A Worker that has not heard of it either; and the object may be a new instance.
  const stale = request('slept', 'stale', { configVersion: old, sinceVersion: old, wait: false });
  expect((await pool('slept').acquire(stale)).kind).toBe('moved');
  await abortAllDurableObjects();
  const again = { ...stale, ticketId: 'stale-again' };
  expect((await pool('slept').acquire(again)).kind).toBe('moved');
});

it('are told of it as long as their window is open, also where another instance comes', async () => {
  await configure({ groups: [{ name: 'dozing', ...limits(1) }] });
  await use('dozing', 'first');
  await untilReported('dozing');
  await abortAllDurableObjects();
  const asked = watchObjects();
  await configure({ groups: [{ name: 'dozing', ...limits(2) }] });
  await until(() => expect(reportedBy(asked)).toContain('dozing'));
  await abortAllDurableObjects();
  // A call there waits for no message to the directory, and sends none.
  const words = watchWords();
  await use('dozing', 'second');
  expect(words.wake).not.toHaveBeenCalled();
  expect(words.definition).not.toHaveBeenCalled();
});

it('say nothing in a window, however often they are used and begin anew, and set no row for it', async () => {
  await configure({ groups: [{ name: 'sparse', ...limits(1) }] });
  await use('sparse', 'first');
  await untilReported('sparse');
  const words = watchWords();
  for (let calls = 0; calls < 4; calls += 1) {
    passTime(10_000);
    await use('sparse', `call-${calls}`);
    await untilWrittenEmpty('sparse');
    await abortAllDurableObjects();
  }
  expect(words.wake).not.toHaveBeenCalled();
  expect(words.rest).not.toHaveBeenCalled();
  // Used lately: the next window begins, and nobody waits for that.
  passTime(100_000);
  expect(await endWindow('sparse')).toBe(true);
  expect(words.wake).toHaveBeenCalledOnce();
  expect(await recordOf('sparse')).toBeNull();
  // Not used since.
  await abortAllDurableObjects();
  passTime(WINDOW_MS);
  expect(await endWindow('sparse')).toBe(true);
  expect(words.rest).toHaveBeenCalledOnce();
  expect(await recordOf('sparse')).toBeTypeOf('string');
  expect(await endWindow('sparse')).toBe(false);
});

it('do not rest while a slot is held', async () => {
  await configure({ groups: [{ name: 'held-long', ...limits(1) }] });
  const held = (await pool('held-long').acquire(request('held-long', 'held'))) as PoolGranted;
  passTime(LONG_MS);
  expect(await endWindow('held-long')).toBe(true);
  expect(await recordOf('held-long')).toBeNull();
  await held.lease.release('success', 200);
});

it('are told in vain, and not asked for ever, where nobody heard that they rest', async () => {
  await configure({ groups: [{ name: 'unheard', ...limits(1) }] });
  await use('unheard', 'first');
  await untilReported('unheard');
  const words = watchWords();
  words.rest.mockRejectedValue(new Error('lost'));
  passTime(LONG_MS);
  await endWindow('unheard');
  expect(words.rest).toHaveBeenCalledTimes(3);
  expect(await recordOf('unheard')).toBeNull();
  passTime(2 * WINDOW_MS);
  expect(await recordOf('unheard')).toBeTypeOf('string');
  const asked = watchObjects();
  await configure({ groups: [{ name: 'unheard', ...limits(2) }] });
  await until(() => expect(reportedBy(asked)).toContain('unheard'));
  // Its next use begins a window nevertheless.
  await use('unheard', 'second');
  await until(() => expect(words.wake).toHaveBeenCalledOnce());
});

it('are in use where the word that they rest comes after that of their next window', async () => {
  await configure({ groups: [{ name: 'overtaken', ...limits(1) }] });
  await use('overtaken', 'first');
  await untilReported('overtaken');
  const words = watchWords();
  words.rest.mockImplementation(async (present) => {
    words.rest.mockRestore();
    await use('overtaken', 'second', newestVersion());
    await directoryOf(env).rest(present);
  });
  passTime(LONG_MS);
  await endWindow('overtaken');
  expect(words.wake).toHaveBeenCalledOnce();
  expect(await recordOf('overtaken')).toBeNull();
});

it('go on by what they know where the directory is out of reach', async () => {
  await configure({ groups: [{ name: 'alone', ...limits(1) }] });
  await use('alone', 'first');
  await rest('alone');
  const words = watchWords();
  words.wake.mockRejectedValue(new Error('out of reach'));
  await use('alone', 'second');
  expect(words.wake).toHaveBeenCalled();
  words.wake.mockRestore();
  passTime(10_000);
  await use('alone', 'third');
  await until(async () => expect(await recordOf('alone')).toBeNull());
});

it('leave the list without being woken once nobody used them for long', async () => {
  await configure({ groups: [{ name: 'parts', partition_by: ['caller'], ...limits(1) }] });
  const ask = (ticket: string) =>
    request('parts#one', ticket, { group: 'parts', partition: 'one' });
  const answer = (await pool('parts#one').acquire(ask('first'))) as PoolGranted;
  await answer.lease.release('success', 200);
  await until(async () => expect(await recordOf('parts')).toBeNull());
  await rest('parts#one');
  const forget = vi.spyOn(GroupObject.prototype, 'forget');
  passTime(700_000);
  await admin('GET', '/status');
  await until(async () => {
    const listed = await directoryOf(env).pools();
    expect(listed.some(({ group }) => group === 'parts')).toBe(false);
  });
  expect(forget).not.toHaveBeenCalled();
  // It comes back with its next success, though it believed to be listed.
  const next = (await pool('parts#one').acquire(ask('next'))) as PoolGranted;
  await next.lease.release('success', 200);
  await until(async () => {
    const listed = await directoryOf(env).pools();
    expect(listed.some(({ group }) => group === 'parts')).toBe(true);
  });
});

it('that are in use hear of changes whatever their group is called', async () => {
  const groups = (most: number) => [{ name: 'constructor', ...limits(most) }];
  await configure({ groups: groups(1) });
  await use('constructor', 'first');
  await untilReported('constructor');
  const listed = await directoryOf(env).pools();
  expect(listed.map(({ group }) => group)).toContain('constructor');
  const asked = watchObjects();
  await configure({ groups: groups(2) });
  await until(() => expect(reportedBy(asked)).toContain('constructor'));
});

it('that are in use hear of what concerns them alone, and of everything that concerns all', async () => {
  const names = ['told-a', 'told-b', 'told-c'];
  const groups = (most: number) =>
    names.map((name) => ({ name, ...limits(name === 'told-b' ? most : 1) }));
  await configure({ groups: groups(1) });
  for (const name of names) await use(name, 'first');
  for (const name of names) await untilReported(name);
  const reported: string[] = [];
  vi.spyOn(GroupObject.prototype, 'reconfigure').mockImplementation(function noted(
    this: GroupObject,
    { config },
  ) {
    const { name } = JSON.parse(config ?? '{}') as { name: string };
    // Those of other tests are told that their groups are no more.
    if (names.includes(name)) reported.push(name);
    return Promise.resolve();
  });
  await configure({ groups: groups(2) });
  await until(() => expect(reported).toContain('told-b'));
  expect(reported).toEqual(['told-b']);
  // A Worker with that version asks the others, and they need not read anything.
  const definition = vi.fn<() => void>();
  await runInDurableObject(directoryOf(env) as never, (instance: object) => {
    Object.defineProperty(instance, 'definition', { value: definition, configurable: true });
    Object.defineProperty(instance, 'wake', { value: definition, configurable: true });
  });
  const version = newestVersion();
  const seen = request('told-a', 'second', { configVersion: version, sinceVersion: version - 1 });
  const answer = (await pool('told-a').acquire(seen)) as PoolGranted;
  expect(answer.kind).toBe('granted');
  expect(definition).not.toHaveBeenCalled();
  await answer.lease.release('success', 200);
  await abortAllDurableObjects();
  reported.length = 0;
  await configure({ groups: groups(2), default_upstream: 'openai' });
  await until(() => expect(reported.toSorted()).toEqual(names));
});
