// Calls that belong to several groups: where they wait, and what they hold meanwhile. The upstream counts.
import { beforeEach, expect, it, vi } from 'vitest';
import { LeaseHandle } from '../../../src/group/lease-handle.ts';
import { pool, untilStatus } from '../support/pool.ts';
import { admin, change, configure, until } from '../support/worker.ts';
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

/** A call that waits for the wide slot, and holds nothing. */
async function waitsForWide(label = 'waits', headers: Record<string, string> = {}) {
  const one = await queued(wide, label, { headers });
  await untilStatus(narrow, { in_use: 0, queued: 0 });
  return one;
}

const DIRECT = '/direct/v1/chat/completions';

/**
 * A call that has the wide slot and waits for the narrow one. That is held by `blocker`, through an upstream that needs no wide
 * slot, and calls there were quick until now.
 */
async function waitsForNarrow() {
  await configure({
    upstreams: ['up', 'direct'].map((id) => ({ id, base_url: scene.strict.url })),
    groups: [
      groupOf(narrow, 1, { match: { models: ['m'], upstreams: ['up', 'direct'] } }),
      groupOf(wide, 1),
    ],
  });
  const holder = await streaming(scene, 'holder', { model: 'other' });
  const waits = await queued(wide, 'waits');
  // A second each: a group counts as stalled once it has been silent for five times as long.
  await scene.strict.configure({ silentAfterChunks: null, firstByteDelayMs: 1_000 });
  for (let calls = 0; calls < 3; calls += 1) {
    expect(await ask('quick', { path: DIRECT }).end).toBe('done');
  }
  await scene.strict.configure({ silentAfterChunks: 1, firstByteDelayMs: 0 });
  const blocker = await streaming(scene, 'blocker', { path: DIRECT });
  holder.leave();
  await untilStatus(narrow, { in_use: 1, queued: 1 });
  return { waits, blocker };
}

/** Longest time until a call is told that its slot was revoked, in milliseconds. */
const REPORTED_WITHIN_MS = 5_000;

/**
 * The same, once the wide slot was revoked and the call was told so. It holds that slot for about a second: on a busy machine it
 * may give the slot back first, and then it keeps waiting. In that case the test tries again with another call.
 */
async function revokedWhileWaiting() {
  for (let attempts = 1; ; attempts += 1) {
    await scene.strict.configure({ silentAfterChunks: 1 });
    const { waits, blocker } = await waitsForNarrow();
    const [lease] = await pool(wide).leases();
    await admin('DELETE', `/groups/${wide}/leases/${lease?.id}`);
    const late = new Promise<null>((resolve) => void setTimeout(resolve, REPORTED_WITHIN_MS, null));
    const reported = await Promise.race([refusal(waits), late]);
    if (reported !== null) return { told: reported, blocker };
    expect(attempts).toBeLessThan(10);
    waits.leave();
    await finish(scene, [blocker]);
    await allFree(narrow, wide);
    // The blocker was no quick call, and the groups have learned that.
    narrow = scene.name(`narrow-${attempts}`);
    wide = scene.name(`wide-${attempts}`);
  }
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

it('a call that waits for a stalled group leaves the slots of its key to the other calls', async () => {
  const [stalled, free] = [scene.name('stalled'), scene.name('free')];
  const own = { limits: { max_concurrency: 1 } };
  await configureGroups(
    scene,
    [groupOf(stalled, 1, MODEL), groupOf(free, 4, { match: { models: ['other'] } })],
    [await keyOf('acme', own), await keyOf('else')],
  );
  const holder = await streaming(scene, 'holder', { headers: keyHeader('else') });
  const waits = await queued(stalled, 'waits', { headers: keyHeader('acme') });
  const other = await streaming(scene, 'other', { model: 'other', headers: keyHeader('acme') });
  await finish(scene, [holder, other, waits]);
  expect(await arrived(scene)).toEqual(['holder', 'other', 'waits']);
  await allFree(stalled, free, 'key:acme');
});

it('a call waits out a pause in the queue of the paused group, and holds nothing', async () => {
  const holder = await wideIsFull();
  const one = await waitsForWide();
  await change('POST', `/groups/${wide}/pause`);
  const others = ask('paused', { headers: { 'headgate-max-wait': '3s' } });
  expect(await refusal(others)).toMatchObject({ status: 503, reason: 'paused' });
  const late = await queued(wide, 'late');
  await untilStatus(narrow, { in_use: 0, queued: 0 });
  await change('POST', `/groups/${wide}/resume`);
  await finish(scene, [holder, one, late]);
  expect(await arrived(scene)).toEqual(['holder', 'waits', 'late']);
  expect((await scene.strict.stats()).peak).toBe(1);
  await allFree(narrow, wide);
});

it('a slot is kept for a short wait in another group, and is back once that has become a long one', async () => {
  const { waits, blocker } = await waitsForNarrow();
  await untilStatus(wide, { in_use: 0, queued: 0 });
  const { json } = await admin('GET', `/groups/${wide}/decisions`);
  const kept = json.decisions.find(({ ended }: { ended: string | null }) => ended === 'unused');
  // A second, as the clock of the call measures it.
  expect(kept.held_ms).toBeGreaterThan(900);
  const meanwhile = await streaming(scene, 'meanwhile', { model: 'other' });
  expect(await pool(narrow).status()).toMatchObject({ in_use: 1, queued: 1 });
  await finish(scene, [blocker, meanwhile, waits]);
  expect((await scene.strict.stats()).peak).toBe(2);
  expect((await arrived(scene)).slice(-3)).toEqual(['blocker', 'meanwhile', 'waits']);
  await allFree(narrow, wide);
});

it('a call that leaves while it has one slot and waits for the other gives it back', async () => {
  const { waits, blocker } = await waitsForNarrow();
  waits.leave();
  await untilStatus(narrow, { in_use: 1, queued: 0 });
  await allFree(wide);
  await finish(scene, [blocker]);
  expect((await arrived(scene)).at(-1)).toBe('blocker');
});

it('a call whose slot is taken away while it waits for another one is told so, and holds nothing', async () => {
  const { told: reported, blocker } = await revokedWhileWaiting();
  expect(reported).toMatchObject({ status: 503, reason: 'limiter_unavailable' });
  await untilStatus(narrow, { in_use: 1, queued: 0 });
  await allFree(wide);
  await finish(scene, [blocker]);
});

it('a caller that leaves while it waits leaves nothing behind', async () => {
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
  const moves = async () => {
    const { json } = await admin('GET', `/groups/${wide}/decisions?outcome=moved`);
    return json.decisions.length;
  };
  const other = { limits: { max_concurrency: 1 }, holds: {} };
  for (let move = 1; move <= 10; move += 1) {
    const match = { models: [`unused-${move}`] };
    await change('PUT', `/groups/${scene.name('unused')}`, { ...other, match });
    await until(async () => expect(await moves()).toBe(move));
    await untilStatus(wide, { in_use: 1, queued: 1 });
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

it('the slots of a call that waited are renewed by one loop each', async () => {
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
