// Who shares a group: tenants by their key or by a header, caps that block nobody else, and reserves.
import { afterAll, beforeEach, expect, it } from 'vitest';
import { nothingLeaks, pool, untilStatus } from '../support/pool.ts';
import {
  arrived,
  configureGroups,
  finish,
  groupOf,
  keyHeader,
  keyOf,
  newScene,
  queued,
  streaming,
  type OrderScene,
} from './scene.ts';

let scene: OrderScene;
let group = '';

beforeEach(async () => {
  scene = await newScene({ chunkDelayMs: 10 });
  group = scene.name('tenants');
});

afterAll(nothingLeaks);

const KEYS = ['else', 'acme', 'bolt'];

async function configureTenants(slots: number, fields: Parameters<typeof groupOf>[2] = {}) {
  const keys = await Promise.all(KEYS.map((id) => keyOf(id, { lane_max: 'high' })));
  await configureGroups(scene, [groupOf(group, slots, fields)], keys);
}

const by = (id: string) => ({ headers: keyHeader(id) });

it('a flood of one gateway key does not push another one back', async () => {
  await configureTenants(1);
  const calls = [await streaming(scene, 'holder', by('else'))];
  for (let at = 0; at < 6; at += 1) calls.push(await queued(group, `a${at}`, by('acme')));
  for (let at = 0; at < 2; at += 1) calls.push(await queued(group, `b${at}`, by('bolt')));
  const tenants = (await pool(group).waiters()).map(({ tenant }) => tenant);
  expect(new Set(tenants)).toEqual(new Set(['acme', 'bolt']));
  await finish(scene, calls);
  const order = await arrived(scene);
  expect(order.slice(0, 3)).toEqual(['holder', 'a0', 'b0']);
  expect(order.indexOf('b1')).toBeLessThanOrEqual(5);
});

it('without a gateway key the provider key says who it is', async () => {
  await configureGroups(scene, [groupOf(group, 1)]);
  const of = (key: string) => ({ headers: { authorization: `Bearer sk-${key}` } });
  const calls = [await streaming(scene, 'holder', of('holder'))];
  for (let at = 0; at < 4; at += 1) calls.push(await queued(group, `a${at}`, of('one')));
  calls.push(await queued(group, 'b0', of('two')));
  await finish(scene, calls);
  expect((await arrived(scene)).slice(0, 3)).toEqual(['holder', 'a0', 'b0']);
});

it('a header says who it is where the group trusts it, and nowhere else', async () => {
  const team = (id: string) => ({ headers: { 'x-team': id } });
  const orderWith = async (fields: Parameters<typeof groupOf>[2]) => {
    scene = await newScene({ chunkDelayMs: 10 });
    group = scene.name('teams');
    await configureGroups(scene, [groupOf(group, 1, fields)]);
    const calls = [await streaming(scene, 'holder')];
    for (let at = 0; at < 3; at += 1) calls.push(await queued(group, `a${at}`, team('a')));
    calls.push(await queued(group, 'b0', team('b')));
    await finish(scene, calls);
    return (await arrived(scene)).slice(1);
  };
  const trusting = await orderWith({ fairness: { by: ['header:x-team'] } });
  expect(trusting).toEqual(['a0', 'b0', 'a1', 'a2']);
  expect(await orderWith({})).toEqual(['a0', 'a1', 'a2', 'b0']);
});

it('max_concurrency_each holds a tenant back and blocks nobody else', async () => {
  await configureTenants(3, { fairness: { max_concurrency_each: 1 } });
  const calls = [await streaming(scene, 'a0', by('acme'))];
  calls.push(await queued(group, 'a1', by('acme')), await queued(group, 'a2', by('acme')));
  calls.push(await streaming(scene, 'b0', by('bolt')));
  expect(await pool(group).status()).toMatchObject({ in_use: 2, queued: 2 });
  await finish(scene, calls);
  const { arrivals } = await scene.strict.stats();
  const of = (label: string) => arrivals.find((arrival) => arrival.label === label);
  expect(of('a1')?.at).toBeGreaterThanOrEqual(of('a0')?.endedAt ?? Infinity);
  expect(of('a2')?.at).toBeGreaterThanOrEqual(of('a1')?.endedAt ?? Infinity);
});

it('reserved slots are lent while they are unused, and come back before anybody else is served', async () => {
  await configureTenants(2, { fairness: { reserved: { 'lane:low': 1 } } });
  const high = { headers: { ...keyHeader('acme'), 'headgate-lane': 'high' } };
  const low = { headers: { ...keyHeader('acme'), 'headgate-lane': 'low' } };
  const calls = [await streaming(scene, 'h0', high), await streaming(scene, 'h1', high)];
  expect(await pool(group).status()).toMatchObject({ in_use: 2 });
  for (const label of ['h2', 'h3']) calls.push(await queued(group, label, high));
  for (const label of ['l0', 'l1']) calls.push(await queued(group, label, low));
  calls[0]?.leave();
  await untilStatus(group, { in_use: 2, queued: 3 });
  await untilStatus(group, { queued_by_lane: { high: 2, normal: 0, low: 1 } });
  calls[1]?.leave();
  await untilStatus(group, { in_use: 2, queued_by_lane: { high: 1, normal: 0, low: 1 } });
  await finish(scene, calls.slice(2));
});

it('a tenant with a reserve gets it before those who have had less', async () => {
  await configureTenants(2, { fairness: { reserved: { acme: 1 } } });
  const used = await streaming(scene, 'used', by('acme'));
  await finish(scene, [used]);
  await scene.strict.configure({ silentAfterChunks: 1 });
  const calls = [
    await streaming(scene, 'e0', by('else')),
    await streaming(scene, 'e1', by('else')),
  ];
  calls.push(await queued(group, 'b0', by('bolt')), await queued(group, 'a0', by('acme')));
  calls[0]?.leave();
  await untilStatus(group, { in_use: 2, queued: 1 });
  expect((await pool(group).waiters()).map(({ tenant }) => tenant)).toEqual(['bolt']);
  await finish(scene, calls.slice(1));
});
