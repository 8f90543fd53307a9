// What an operator does to several groups at once: stops them, the whole deployment too, and acts on the calls of a tenant or of an agent run.
import { describe, expect, it } from 'vitest';
import { pool } from '../support/pool.ts';
import { admin, change, configure, open, until } from '../support/worker.ts';
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
  useScenes,
} from './scene.ts';

useScenes('several');

const agent = (id: string, tenant = 'one') => ({
  headers: { ...keyHeader(tenant), 'headgate-agent': id },
});
const PAUSED = { status: 503, reason: 'paused' };
const AT_ONCE = { 'headgate-max-wait': '0' };

/** Two groups of one slot for a model each, and two gateway keys. */
async function twoGroups(): Promise<[string, string]> {
  const [a, b] = [`${group}-a`, `${group}-b`];
  const one = (name: string, model: string) =>
    groupOf(name, 1, { match: { upstreams: ['up'], models: [model] } });
  await configureGroups(
    scene,
    [one(a, 'm'), one(b, 'n')],
    [await keyOf('one', { allow: ['*'] }), await keyOf('two', { allow: ['*'] })],
  );
  return [a, b];
}

async function shown(name: string): Promise<unknown> {
  return (await admin('GET', `/groups/${name}/status`)).json;
}

describe('calls of several groups', () => {
  it('are listed, and those of a tenant leave all queues', async () => {
    const [a, b] = await twoGroups();
    const calls = [
      await streaming(scene, 'holds-a', agent('x')),
      await streaming(scene, 'holds-b', { ...agent('x'), model: 'n' }),
    ];
    const gone = [
      await queued(a, 'one-a', agent('x')),
      await queued(b, 'one-b', { ...agent('y'), model: 'n' }),
    ];
    const stays = await queued(a, 'two-a', agent('x', 'two'));
    const { json } = await admin('GET', `/waiters?group=${group}-*`);
    expect(json).toMatchObject({ total: 3, unreachable: [] });
    expect(json.waiters.map((each: { group: string }) => each.group).toSorted()).toEqual([a, a, b]);
    const leases = await admin('GET', `/leases?agent=x&group=${group}-*&limit=1`);
    expect(leases.json).toMatchObject({
      total: 2,
      leases: [{ group: a, agent: 'x', tenant: 'one' }],
    });

    const path = `/waiters?tenant=one&group=${group}-*`;
    const meant = { calls: 2, groups: { [a]: 1, [b]: 1 } };
    const dry = await admin('DELETE', `${path}&dry_run=true`);
    expect(dry.json).toMatchObject({ ...meant, dry_run: true });
    expect((await pool(a).status()).queued).toBe(2);
    expect((await admin('DELETE', path)).json).toMatchObject({ ...meant, dry_run: false });
    for (const call of gone) {
      expect(await refusal(call)).toMatchObject({ status: 409, reason: 'cancelled' });
    }
    const { entries } = (await admin('GET', '/audit?limit=1')).json;
    expect(entries).toMatchObject([
      { action: `cancel waiters of tenant one, group ${group}-*: 2` },
    ]);
    await finish(scene, [...calls, stays]);
    await allFree(a, b);
  });

  it('of an agent run are taken back, and nobody else is', async () => {
    const [a, b] = await twoGroups();
    const runaway = [
      await streaming(scene, 'run-a', agent('run')),
      await streaming(scene, 'run-b', { ...agent('run'), model: 'n' }),
    ];
    const next = await queued(a, 'next', agent('other'));
    const { json } = await admin('DELETE', `/leases?agent=run&group=${group}-*`);
    expect(json).toMatchObject({ calls: 2, groups: { [a]: 1, [b]: 1 } });
    for (const { end } of runaway) expect(await end).not.toBe('done');
    await until(async () => expect(await arrived(scene)).toContain('next'));
    await finish(scene, [next]);
    await allFree(a, b);
  });

  it('are counted once, also where the limits of their key give them a slot besides', async () => {
    const own = { allow: ['*'], limits: { max_concurrency: 9 } };
    await configureGroups(scene, [groupOf(group, 1)], [await keyOf('one', own)]);
    const runs = await streaming(scene, 'runs', agent('x'));
    const path = '/leases?agent=x';
    // The pool of a key is known from its first answer on.
    await until(async () => expect((await admin('GET', path)).json).toMatchObject({ total: 2 }));
    const meant = { calls: 1, groups: { [group]: 1, 'key:one': 1 } };
    expect((await admin('DELETE', `${path}&dry_run=true`)).json).toMatchObject(meant);
    // The call may have ended, and given its other slot back, before the other pool is asked.
    expect((await admin('DELETE', path)).json).toMatchObject({ calls: 1 });
    expect(await runs.end).not.toBe('done');
    // What is taken back is not taken back again.
    expect((await admin('DELETE', path)).json).toMatchObject({ calls: 0, groups: {} });
    await allFree(group, 'key:one');
  });

  it.each(['/leases', '/waiters', '/leases?group=a'])(
    'are not meant without a word: %s',
    async (path) => {
      const { status, json } = await admin('DELETE', path);
      expect(status).toBe(422);
      expect(json.errors).toMatchObject([{ path: 'tenant' }]);
    },
  );
});

describe('several groups', () => {
  it('are paused and resumed in one change, automatic ones too', async () => {
    const [a, b] = await twoGroups();
    const { json } = await change('POST', '/groups/switch', {
      groups: [`${group}-*`, 'auto:up'],
      to: 'pause',
    });
    expect(json.groups).toEqual(['auto:up', a, b]);
    for (const name of [a, b]) expect(await shown(name)).toMatchObject({ paused: true });
    expect(await refusal(ask('a', { headers: { ...keyHeader('one'), ...AT_ONCE } }))).toMatchObject(
      PAUSED,
    );
    const { auto_groups: automatic } = (await admin('GET', '/config')).json;
    expect(automatic).toMatchObject([{ name: 'auto:up', paused: true }]);
    await change('POST', '/groups/switch', { groups: ['*'], to: 'resume' });
    for (const name of [a, b]) expect(await shown(name)).toMatchObject({ paused: false });
    const { version } = (await admin('GET', '/status')).json;
    const wrong = await admin('POST', '/groups/switch', { groups: [a, 'nobody-*'], to: 'drain' });
    expect(wrong).toMatchObject({ status: 422, json: { errors: [{ path: 'groups[1]' }] } });
    expect((await admin('GET', '/status')).json.version).toBe(version);
  });
});

describe('the whole deployment', () => {
  it('without a configuration stops calls of any key until it is resumed, and what runs ends', async () => {
    await configure({ upstreams: [{ id: 'up', base_url: scene.strict.url }] });
    const keyed = (key: string) => ({ authorization: `Bearer sk-${group}-${key}` });
    const path = '/up/v1/chat/completions';
    const runs = open(path, 'runs', { headers: keyed('runs') });
    await until(async () => expect((await scene.strict.stats()).inFlight).toBe(1));
    const { json } = await change('POST', '/pause');
    expect(json.paused).toBe(true);
    expect((await admin('GET', '/status')).json.paused).toBe(true);
    // Of keys that were never seen too: their groups are yet to be made.
    for (const key of ['runs', 'new']) {
      const headers = { ...keyed(key), ...AT_ONCE };
      expect(await refusal(open(path, key, { headers }))).toMatchObject(PAUSED);
    }
    const waits = open(path, 'waits', { headers: keyed('waits') });
    await finish(scene, [runs]);
    expect(await arrived(scene)).toEqual(['runs']);
    await change('POST', '/resume');
    await until(async () => expect(await arrived(scene)).toEqual(['runs', 'waits']));
    await finish(scene, [waits]);
  });

  it('stops groups of which some let everything pass, and gives each back its own switches', async () => {
    const [a, b] = await twoGroups();
    await change('PATCH', `/groups/${a}`, { dry_run: true });
    await change('PATCH', `/groups/${b}`, { paused: true });
    await change('POST', '/pause');
    expect(await shown(a)).toMatchObject({ paused: true, dry_run: false });
    const headers = { ...keyHeader('one'), ...AT_ONCE };
    expect(await refusal(ask('a', { headers }))).toMatchObject(PAUSED);
    const { groups } = (await admin('GET', '/status')).json;
    expect(groups.every((each: { paused: boolean }) => each.paused)).toBe(true);
    await change('POST', '/resume');
    expect(await shown(a)).toMatchObject({ paused: false, dry_run: true });
    expect(await shown(b)).toMatchObject({ paused: true });
    await change('POST', `/groups/${b}/resume`);
  });
});
