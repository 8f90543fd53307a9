// Calls of an agent from within its own call, which would wait for themselves.
import { expect, it } from 'vitest';
import { pool, resetPool, untilStatus } from '../support/pool.ts';
import { until, type WorkerOpenCall } from '../support/worker.ts';
import {
  allFree,
  arrived,
  ask,
  configureGroups,
  finish,
  group,
  groupOf,
  keyHeader,
  keyOf,
  queued,
  refusal,
  scene,
  streaming,
  untilInFlight,
  useScenes,
} from './scene.ts';

const PASS = { queue: { nested: 'pass' } } as const;

useScenes('nested');

async function childOf(parent: WorkerOpenCall): Promise<{ headers: Record<string, string> }> {
  const lease = (await parent.response).headers.get('headgate-lease') ?? '';
  expect(lease).not.toBe('');
  return { headers: { 'headgate-parent': lease } };
}

/** The calls that are at the upstream. */
async function runningNow(): Promise<(string | null)[]> {
  const { arrivals } = await scene.strict.stats();
  return arrivals.filter(({ state }) => state === 'open').map(({ label }) => label);
}

it('a call that would wait for its own parent is refused as nested', async () => {
  await configureGroups(scene, [groupOf(group, 1)]);
  const parent = await streaming(scene, 'parent');
  const child = ask('child', await childOf(parent));
  const response = await child.response;
  expect(await refusal(child)).toMatchObject({ status: 409, reason: 'nested' });
  expect(response.headers.get('x-should-retry')).toBe('false');
  expect(await pool(group).status()).toMatchObject({ rejected_total: { nested: 1 }, queued: 0 });
  await finish(scene, [parent]);
  await allFree(group);
});

it('a nested call that need not wait takes a slot like any other', async () => {
  await configureGroups(scene, [groupOf(group, 2)]);
  const parent = await streaming(scene, 'parent');
  const child = await streaming(scene, 'child', await childOf(parent));
  expect(await pool(group).status()).toMatchObject({ in_use: 2 });
  await finish(scene, [parent, child]);
});

it('a nested call passes without a slot of its own where the group says so', async () => {
  await configureGroups(scene, [groupOf(group, 1, PASS)]);
  const parent = await streaming(scene, 'parent');
  const other = await queued(group, 'other');
  const child = await streaming(scene, 'child', await childOf(parent));
  expect(await pool(group).status()).toMatchObject({ in_use: 1, queued: 1 });
  expect(await refusal(ask('grandchild', await childOf(child)))).toMatchObject({
    reason: 'nested',
  });
  child.leave();
  await untilInFlight(scene.strict, 1);
  const next = await streaming(scene, 'next', await childOf(parent));
  expect(await pool(group).status()).toMatchObject({ in_use: 1, queued: 1 });
  await finish(scene, [parent, next, other]);
  await allFree(group);
});

it('of 31 nested calls one at a time passes on a lease of one slot, over a reset too', async () => {
  await configureGroups(scene, [groupOf(group, 1, PASS)]);
  const parent = await streaming(scene, 'parent');
  const child = await childOf(parent);
  const children = Array.from({ length: 31 }, (_, index) => ask(`child-${index}`, child));
  await untilStatus(group, { in_use: 1, queued: 30 });
  await untilInFlight(scene.strict, 2);
  await resetPool(group);
  await untilStatus(group, { in_use: 1, queued: 30 });
  await untilInFlight(scene.strict, 2);
  for (let ended = 1; ended <= children.length; ended += 1) {
    const running = (await runningNow()).find((label) => label !== 'parent');
    children.find(({ label }) => label === running)?.leave();
    const left = children.length - ended;
    await until(async () => expect(await runningNow()).not.toContain(running));
    await untilInFlight(scene.strict, left === 0 ? 1 : 2);
    await untilStatus(group, { in_use: 1, queued: Math.max(0, left - 1) });
  }
  expect(await scene.strict.stats()).toMatchObject({ peak: 2, rejected429: 0 });
  await finish(scene, [parent]);
  await allFree(group);
});

it("another caller's nested call waits like any other", async () => {
  const keys = [await keyOf('acme'), await keyOf('bolt')];
  await configureGroups(scene, [groupOf(group, 1, PASS)], keys);
  const parent = await streaming(scene, 'parent', { headers: keyHeader('acme') });
  const { headers } = await childOf(parent);
  const stranger = await queued(group, 'stranger', {
    headers: { ...headers, ...keyHeader('bolt') },
  });
  const child = await streaming(scene, 'child', { headers: { ...headers, ...keyHeader('acme') } });
  expect(await pool(group).status()).toMatchObject({ in_use: 1, queued: 1 });
  await finish(scene, [parent, child, stranger]);
  expect(await arrived(scene)).toEqual(['parent', 'child', 'stranger']);
  expect(await scene.strict.stats()).toMatchObject({ peak: 2, rejected429: 0 });
  await allFree(group);
});

it('a parent that holds nothing here makes a call wait like any other', async () => {
  await configureGroups(scene, [groupOf(group, 1)]);
  const holder = await streaming(scene, 'holder');
  const lease = `${crypto.randomUUID()}.1`;
  const waits = await queued(group, 'waits', { headers: { 'headgate-parent': lease } });
  await finish(scene, [holder, waits]);
  const over = await childOf(holder);
  await scene.strict.configure({ silentAfterChunks: 1 });
  const next = await streaming(scene, 'next');
  const late = await queued(group, 'late', over);
  await finish(scene, [next, late]);
  expect(await pool(group).status()).toMatchObject({ rejected_total: {} });
});

it('of several groups it is the one that the parent fills that refuses, and nothing stays held', async () => {
  const wide = scene.name('wide');
  await configureGroups(scene, [groupOf(group, 4, { match: { models: ['m'] } }), groupOf(wide, 1)]);
  const parent = await streaming(scene, 'parent');
  expect(await refusal(ask('child', await childOf(parent)))).toMatchObject({ reason: 'nested' });
  await untilStatus(group, { in_use: 1, queued: 0 });
  await untilStatus(wide, { in_use: 1, queued: 0 });
  await finish(scene, [parent]);
  await allFree(group, wide);
});
