// Pools that nobody uses: the directory knows how they are, and neither a reader nor a change of the configuration wakes
// them. Objects are counted from outside, by the calls that they get.
import { abortAllDurableObjects, listDurableObjectIds, runInDurableObject } from 'cloudflare:test';
import { afterEach, expect, it, vi } from 'vitest';
import { directoryOf } from '../../src/env.ts';
import { GroupObject } from '../../src/group/group-object.ts';
import { pool, request, type Granted } from './support/pool.ts';
import { passTime } from './support/time.ts';
import { admin, call, configure, env, newestVersion, until } from './support/worker.ts';

/** Longer than the directory tells a pool that rests of changes. */
const LONG_MS = 400_000;

const limits = (max_concurrency: number) => ({ limits: { max_concurrency } });

afterEach(() => {
  vi.restoreAllMocks();
});

/** Counts the calls that objects get from now on, but for those of tests. */
function watchObjects() {
  const of = (name: 'status' | 'metrics' | 'reconfigure') => vi.spyOn(GroupObject.prototype, name);
  return { status: of('status'), metrics: of('metrics'), reconfigure: of('reconfigure') };
}

/** Makes a call that its upstream serves. */
async function use(group: string, ticket: string, version = newestVersion()): Promise<void> {
  const answer = await pool(group).acquire(request(group, ticket, { configVersion: version }));
  await (answer as Granted).lease.release('success', 200);
}

async function untilResting(group: string): Promise<void> {
  await until(async () => {
    const known = await directoryOf(env).presence();
    expect(known.find((one) => one.group === group)?.said).toBeTypeOf('string');
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
  await untilResting('seen-used');
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
  await untilResting('woken');
  passTime(LONG_MS);
  await configure({ groups: [{ name: 'woken', ...limits(5), paused: true }] });
  expect(await statusOf('woken')).toMatchObject({
    limit: { configured: 5, effective: 5 },
    paused: true,
  });
  await configure({ groups: [{ name: 'woken', ...limits(5) }] });
  const held = (await pool('woken').acquire(request('woken', 'held'))) as Granted;
  await until(async () => {
    const group = await statusOf('woken');
    expect(group).toMatchObject({ in_use: 1 });
    expect(group.as_of).toBeUndefined();
  });
  await held.lease.release('success', 200);
});

it('are not told of a change, and decide by none of before', async () => {
  const groups = (most: number) => [{ name: 'slept', ...limits(most) }];
  await configure({ groups: groups(1) });
  await use('slept', 'first');
  await untilResting('slept');
  passTime(LONG_MS);
  const asked = watchObjects();
  const old = newestVersion();
  await configure({ groups: groups(0) });
  expect(asked.reconfigure).not.toHaveBeenCalled();
  // A Worker that has not heard of it either; and the object may be a new instance.
  const stale = request('slept', 'stale', { configVersion: old, sinceVersion: old, wait: false });
  expect((await pool('slept').acquire(stale)).kind).toBe('moved');
  await abortAllDurableObjects();
  const again = { ...stale, ticketId: 'stale-again' };
  expect((await pool('slept').acquire(again)).kind).toBe('moved');
});

it('are told of it as long as they may count on that', async () => {
  await configure({ groups: [{ name: 'dozing', ...limits(1) }] });
  await use('dozing', 'first');
  await untilResting('dozing');
  const asked = watchObjects();
  await configure({ groups: [{ name: 'dozing', ...limits(2) }] });
  await until(() => expect(asked.reconfigure).toHaveBeenCalledOnce());
});

it('leave the list without being woken once nobody used them for long', async () => {
  await configure({ groups: [{ name: 'parts', partition_by: ['caller'], ...limits(1) }] });
  const ask = request('parts#one', 'first', { group: 'parts', partition: 'one' });
  const answer = (await pool('parts#one').acquire(ask)) as Granted;
  await answer.lease.release('success', 200);
  await untilResting('parts');
  const forget = vi.spyOn(GroupObject.prototype, 'forget');
  passTime(700_000);
  await admin('GET', '/status');
  await until(async () => {
    const listed = await directoryOf(env).pools();
    expect(listed.some(({ group }) => group === 'parts')).toBe(false);
  });
  expect(forget).not.toHaveBeenCalled();
  // It comes back with its next success, though it believed to be listed.
  const next = (await pool('parts#one').acquire({ ...ask, ticketId: 'next' })) as Granted;
  await next.lease.release('success', 200);
  await until(async () => {
    const listed = await directoryOf(env).pools();
    expect(listed.some(({ group }) => group === 'parts')).toBe(true);
  });
});

it('that are in use hear of what concerns them alone, and of everything that concerns all', async () => {
  const names = ['told-a', 'told-b', 'told-c'];
  const groups = (most: number) =>
    names.map((name) => ({ name, ...limits(name === 'told-b' ? most : 1) }));
  await configure({ groups: groups(1) });
  for (const name of names) await use(name, 'first');
  await until(async () => {
    const listed = await directoryOf(env).pools();
    for (const name of names) expect(listed.some(({ group }) => group === name)).toBe(true);
  });
  const told: string[] = [];
  vi.spyOn(GroupObject.prototype, 'reconfigure').mockImplementation(function noted(
    this: GroupObject,
    { config },
  ) {
    told.push((JSON.parse(config ?? '{}') as { name: string }).name);
    return Promise.resolve();
  });
  await configure({ groups: groups(2) });
  await until(() => expect(told).toContain('told-b'));
  expect(told).toEqual(['told-b']);
  // A Worker with that version asks the others, and they need not read anything.
  const definition = vi.fn<() => void>();
  await runInDurableObject(directoryOf(env) as never, (instance: object) => {
    Object.defineProperty(instance, 'definition', { value: definition, configurable: true });
    Object.defineProperty(instance, 'wake', { value: definition, configurable: true });
  });
  const version = newestVersion();
  const seen = request('told-a', 'second', { configVersion: version, sinceVersion: version - 1 });
  const answer = (await pool('told-a').acquire(seen)) as Granted;
  expect(answer.kind).toBe('granted');
  expect(definition).not.toHaveBeenCalled();
  await answer.lease.release('success', 200);
  await abortAllDurableObjects();
  told.length = 0;
  await configure({ groups: groups(2), default_upstream: 'openai' });
  await until(() => expect(told.toSorted()).toEqual(names));
});
