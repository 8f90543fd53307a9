// Calls that belong to several groups: what they hold, and what they give back. The upstream counts.
import { beforeEach, expect, it, vi } from 'vitest';
import { LeaseHandle } from '../../../src/group/lease-handle.ts';
import { pool, untilStatus } from '../support/pool.ts';
import { admin, change, until } from '../support/worker.ts';
import {
  allFree,
  arrived,
  ask,
  configureGroups,
  finish,
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

let narrow = '';
let wide = '';

useScenes('several');
beforeEach(() => {
  narrow = scene.name('narrow');
  wide = scene.name('wide');
});

const MODEL = { match: { models: ['m'] } };

/** A narrow group for the model `m`, and a wide one for the whole upstream, which one call saturates. */
async function wideIsFull() {
  await configureGroups(scene, [groupOf(narrow, 4, MODEL), groupOf(wide, 1)]);
  return streaming(scene, 'holder', { model: 'other' });
}

/** A call that holds its narrow slot and waits for the wide one. */
async function waitsForWide(label = 'waits', headers: Record<string, string> = {}) {
  const one = await queued(wide, label, { headers });
  await untilStatus(narrow, { in_use: 1, queued: 0 });
  return one;
}

it('a call in two groups holds a slot in each, and headgate-groups names them narrow first', async () => {
  await configureGroups(scene, [groupOf(wide, 4), groupOf(narrow, 4, MODEL)]);
  const one = await streaming(scene, 'one');
  const response = await one.response;
  expect(response.headers.get('headgate-groups')).toBe(`${narrow}, ${wide}`);
  expect(response.headers.get('headgate-lease')?.split(', ')).toHaveLength(2);
  for (const group of [narrow, wide]) {
    expect(await pool(group).status()).toMatchObject({ in_use: 1 });
  }
  await finish(scene, [one]);
  await allFree(narrow, wide);
});

it('a call in three groups holds a slot in each: caller-only and catch-all ones come on top of the automatic one', async () => {
  const all = scene.name('all');
  const own = scene.name('own');
  await configureGroups(
    scene,
    [groupOf(all, 4, { match: {} }), groupOf(own, 4, { match: { keys: ['acme'] } })],
    [await keyOf('acme')],
  );
  const one = await streaming(scene, 'one', { headers: keyHeader('acme') });
  const names = (await one.response).headers.get('headgate-groups');
  expect(names).toBe(`${own}, auto:up, ${all}`);
  for (const group of [own, all]) {
    expect(await pool(group).status()).toMatchObject({ in_use: 1 });
  }
  const { json } = await admin('GET', `/groups/${all}/leases`);
  expect(json.leases).toMatchObject([{ caller: 'acme', upstream: 'up', slots: 1 }]);
  await finish(scene, [one]);
  await allFree(all, own);
});

it('the same model in two explicit groups takes a slot in each', async () => {
  const second = scene.name('second');
  await configureGroups(scene, [groupOf(second, 2, MODEL), groupOf(narrow, 2, MODEL)]);
  const one = await streaming(scene, 'one');
  expect((await one.response).headers.get('headgate-groups')).toBe(`${narrow}, ${second}`);
  await finish(scene, [one]);
  await allFree(narrow, second);
});

it('a call in more than four groups is refused, and one in four is not', async () => {
  const names = ['a', 'b', 'c', 'd', 'e'].map((base) => scene.name(base));
  const groups = names.map((name) => groupOf(name, 1));
  await configureGroups(scene, groups);
  const five = ask('five');
  expect(await refusal(five)).toMatchObject({ status: 400, reason: 'too_many_groups' });
  await configureGroups(scene, groups.slice(1));
  const four = await streaming(scene, 'four');
  expect((await four.response).headers.get('headgate-groups')).toBe(names.slice(1).join(', '));
  await finish(scene, [four]);
  await allFree(...names);
});

it('a deadline in the middle gives everything back', async () => {
  const holder = await wideIsFull();
  const late = await waitsForWide('late', { 'headgate-max-wait': '5s' });
  expect(await refusal(late)).toMatchObject({ status: 429, reason: 'queue_timeout' });
  await allFree(narrow);
  expect(await pool(wide).status()).toMatchObject({ in_use: 1, queued: 0 });
  await finish(scene, [holder]);
  expect(await arrived(scene)).toEqual(['holder']);
});

it('what was only tried or held while waiting costs no cool-down and counts as no rejection', async () => {
  const holds = {
    release_cooldown_ms: 20_000,
    cancel_cooldown_ms: 20_000,
    failure_hold_ms: 20_000,
  };
  await configureGroups(scene, [groupOf(narrow, 1, { ...MODEL, holds }), groupOf(wide, 1)]);
  const holder = await streaming(scene, 'holder', { model: 'other' });
  const left = await waitsForWide('left');
  left.leave();
  await untilStatus(wide, { queued: 0 });
  await allFree(narrow);
  const late = await waitsForWide('late', { 'headgate-max-wait': '5s' });
  expect(await refusal(late)).toMatchObject({ reason: 'queue_timeout' });
  await allFree(narrow);
  expect(await pool(narrow).status()).toMatchObject({ cooling: 0, rejected_total: {} });
  await finish(scene, [holder]);
});

it('a tenant is not charged for what its call only tried', async () => {
  const keys = [await keyOf('acme'), await keyOf('bolt'), await keyOf('else')];
  await configureGroups(scene, [groupOf(narrow, 1, MODEL), groupOf(wide, 1)], keys);
  const blocker = await streaming(scene, 'blocker', { model: 'other', headers: keyHeader('else') });
  const tried = await waitsForWide('tried', keyHeader('acme'));
  tried.leave();
  await allFree(narrow);
  await change('PATCH', `/groups/${wide}`, { limits: { max_concurrency: 4 } });
  const holder = await streaming(scene, 'holder', { headers: keyHeader('else') });
  const bolt = await queued(narrow, 'bolt', { headers: keyHeader('bolt') });
  // At the same service the older run goes first; whoever was charged would go last.
  const started = {
    'headgate-agent': 'run',
    'headgate-agent-started-at': String(Date.now() - 60_000),
  };
  const acme = await queued(narrow, 'acme', { headers: { ...keyHeader('acme'), ...started } });
  await finish(scene, [blocker, holder, bolt, acme]);
  expect(await arrived(scene)).toEqual(['blocker', 'holder', 'acme', 'bolt']);
});

it('a pause of the wider group gives the narrower slot back, and the call goes on when it ends', async () => {
  const holder = await wideIsFull();
  const one = await waitsForWide();
  await change('POST', `/groups/${wide}/pause`);
  await untilStatus(narrow, { in_use: 0, queued: 0 });
  await untilStatus(wide, { in_use: 1, queued: 0 });
  const others = ask('paused', { headers: { 'headgate-max-wait': '300ms' } });
  expect(await refusal(others)).toMatchObject({ status: 503, reason: 'paused' });
  await change('POST', `/groups/${wide}/resume`);
  await untilStatus(wide, { in_use: 1, queued: 1 });
  await finish(scene, [holder, one]);
  expect(await arrived(scene)).toEqual(['holder', 'waits']);
  expect((await scene.strict.stats()).peak).toBe(1);
  await allFree(narrow, wide);
});

it('a slot that is taken away from a call that holds it while it waits is back, and the call is told', async () => {
  const holder = await wideIsFull();
  const one = await waitsForWide();
  const { json } = await admin('GET', `/groups/${narrow}/leases`);
  expect(json.leases).toHaveLength(1);
  await admin('DELETE', `/groups/${narrow}/leases/${json.leases[0].id}`);
  expect(await refusal(one)).toMatchObject({ status: 503, reason: 'limiter_unavailable' });
  await allFree(narrow);
  await untilStatus(wide, { in_use: 1, queued: 0 });
  await finish(scene, [holder]);
  expect(await arrived(scene)).toEqual(['holder']);
});

it('a caller that leaves while it holds the narrow slot and waits for the wide one frees both', async () => {
  const holder = await wideIsFull();
  const one = await waitsForWide();
  one.leave();
  await untilStatus(wide, { in_use: 1, queued: 0 });
  await allFree(narrow);
  await finish(scene, [holder]);
  expect(await arrived(scene)).toEqual(['holder']);
});

it('a call that is routed anew again and again still gets its slots', async () => {
  const holder = await wideIsFull();
  const one = await waitsForWide();
  const held = async () => (await pool(narrow).leases()).map(({ id }) => id);
  const other = { limits: { max_concurrency: 1 }, holds: {} };
  for (let move = 0; move < 10; move += 1) {
    const before = await held();
    const match = { models: [`unused-${move}`] };
    await change('PUT', `/groups/${scene.name('unused')}`, { ...other, match });
    await until(async () => {
      expect(await held()).not.toEqual(before);
      expect(await pool(narrow).status()).toMatchObject({ in_use: 1 });
      expect(await pool(wide).status()).toMatchObject({ in_use: 1, queued: 1 });
    });
  }
  await finish(scene, [holder, one]);
  expect(await arrived(scene)).toEqual(['holder', 'waits']);
  await allFree(narrow, wide);
});

it('a call that does not want to wait is told busy by the full group, and holds nothing', async () => {
  const holder = await wideIsFull();
  const none = { headers: { 'headgate-max-wait': '0' } };
  expect(await refusal(ask('none', none))).toMatchObject({ status: 429, reason: 'busy' });
  await allFree(narrow);
  expect(await pool(wide).status()).toMatchObject({ in_use: 1, queued: 0 });
  await finish(scene, [holder]);
  await allFree(wide);
  await scene.strict.configure({ silentAfterChunks: null });
  expect((await ask('free', none).response).status).toBe(200);
});

it('a slot that was held while waiting is renewed by one loop afterwards', async () => {
  const holder = await wideIsFull();
  const one = await waitsForWide();
  await scene.strict.resume();
  expect(await holder.end).toBe('done');
  await untilInFlight(scene.strict, 1);
  const renewals = vi.spyOn(LeaseHandle.prototype, 'renew');
  await new Promise((resolve) => void setTimeout(resolve, 2_500));
  // One for each of its two slots; a second loop would make them answer one another without end.
  expect(renewals.mock.calls.length).toBeLessThanOrEqual(2);
  renewals.mockRestore();
  await finish(scene, [one]);
});

it('a lease in either group that is taken away ends the stream of a call that had waited', async () => {
  for (const taken of [narrow, wide]) {
    const holder = await wideIsFull();
    const one = await waitsForWide();
    await scene.strict.resume();
    expect(await holder.end).toBe('done');
    await untilInFlight(scene.strict, 1);
    const { json } = await admin('GET', `/groups/${taken}/leases`);
    await until(async () => {
      await admin('DELETE', `/groups/${taken}/leases/${json.leases[0].id}`);
      expect((await scene.strict.stats()).inFlight).toBe(0);
    });
    expect(await one.end).toBe('cut');
    await allFree(narrow, wide);
  }
});
