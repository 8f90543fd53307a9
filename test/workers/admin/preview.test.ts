// What a change would do, told without making it: against the change itself, with calls that really wait.
import { beforeEach, describe, expect, it } from 'vitest';
import { groupPreviewSchema } from '../../../src/admin/resources/previews.ts';
import { directoryOf } from '../../../src/env.ts';
import { NO_COOLDOWN, pool, queueUp, request, take } from '../support/pool.ts';
import { planImport } from '../../../packages/import/src/plan-import.ts';
import { admin, adminClient, env, until } from '../support/worker.ts';

let groups = 0;

/** Makes a group under a name of its own: objects outlive the configuration. */
async function makeGroup(fields: object): Promise<string> {
  groups += 1;
  const name = `preview-${groups}`;
  await admin('PUT', `/groups/${name}`, { holds: NO_COOLDOWN, ...fields });
  return name;
}

async function preview(name: string, body: object, query = '?as=patch') {
  const { status, json } = await admin('POST', `/groups/${name}/preview${query}`, body);
  return { status, json, said: status === 200 ? groupPreviewSchema.parse(json) : null };
}

async function versionNow(): Promise<number | undefined> {
  return (await directoryOf(env).snapshot(null))?.version;
}

beforeEach(async () => {
  await admin('PUT', '/config', {});
});

describe('a group', () => {
  it('raised, would grant to those whom the change then grants to', async () => {
    const name = await makeGroup({ limits: { max_concurrency: 2, max_weight: 2 } });
    const holder = await take(name, 'holder', { slots: 2 });
    const parked = [
      await queueUp(name, 'wide', { slots: 2 }),
      await queueUp(name, 'second'),
      await queueUp(name, 'third'),
    ];
    const before = await versionNow();
    const { said } = await preview(name, { limits: { max_concurrency: 5 } });
    expect(said).toMatchObject({
      version: before,
      changes: [{ path: `groups[${name}].limits.max_concurrency`, from: 2, to: 5 }],
      group: { name, limits: { max_concurrency: 5 } },
      now: {
        slots: { from: 2, to: 5 },
        slots_gained: 3,
        in_use: 2,
        in_use_above: 0,
        queued: 3,
        granted_at_once: 2,
        refused_at_once: 0,
        is_rerouted: false,
      },
      last_hour: { in_use_max: 2, queued_max: 3, minutes_above: 0 },
    });
    // Nothing has changed by that.
    expect(await versionNow()).toBe(before);
    expect(await pool(name).status()).toMatchObject({ in_use: 2, queued: 3 });
    await admin('PATCH', `/groups/${name}`, { limits: { max_concurrency: 5 } });
    await until(async () => {
      expect(await pool(name).status()).toMatchObject({ in_use: 5, queued: 1 });
    });
    await holder.lease.release('unused', null);
    for (const { answer } of parked) {
      const granted = await answer;
      if (granted.kind === 'granted') await granted.lease.release('unused', null);
    }
  });

  it('lowered, says how many calls are above, and what the last hour would have met', async () => {
    const name = await makeGroup({ limits: { max_concurrency: 3 } });
    const held = [await take(name, 'a'), await take(name, 'b'), await take(name, 'c')];
    const { said } = await preview(name, { limits: { max_concurrency: 1 } });
    expect(said).toMatchObject({
      now: { slots: { from: 3, to: 1 }, slots_gained: -2, in_use: 3, in_use_above: 2 },
      last_hour: { in_use_max: 3, granted: 3, wait_p95_ms: expect.any(Number) },
    });
    expect(said?.last_hour?.minutes_above).toBeGreaterThan(0);
    for (const { lease } of held) await lease.release('unused', null);
  });

  it('says who would be refused, whom a resume lets in, and when all are routed again', async () => {
    const name = await makeGroup({ limits: { max_concurrency: 2, max_weight: 2 }, paused: true });
    const parked = [await queueUp(name, 'wide', { slots: 2 }), await queueUp(name, 'thin')];
    const refusing = await preview(name, { limits: { max_weight: 1 } });
    expect(refusing.said?.now).toMatchObject({ refused_at_once: 1, granted_at_once: 0 });
    const resuming = await preview(name, { paused: false });
    expect(resuming.said?.now).toMatchObject({ refused_at_once: 0, granted_at_once: 1 });
    const moving = await preview(name, { match: { operations: ['chat'] } });
    expect(moving.said?.now).toMatchObject({ is_rerouted: true, granted_at_once: null });
    await admin('DELETE', `/groups/${name}/waiters/wide`);
    await admin('DELETE', `/groups/${name}/waiters/thin`);
    await Promise.all(parked.map(({ answer }) => answer));
  });

  it('with members sends everybody back where their places change, not where their shares do', async () => {
    const [east, west] = [
      { upstream: 'openai', secret: 'UPSTREAM_EAST' },
      { upstream: 'openai', secret: 'UPSTREAM_WEST' },
    ];
    const name = await makeGroup({ members: [east] });
    const isRerouted = async (members: object[]) =>
      (await preview(name, { members })).said?.now?.is_rerouted;
    for (const same of [{ weight: 2 }, { tier: 2 }, { limits: { rpm: 5 } }, { enabled: false }]) {
      expect(await isRerouted([{ ...east, ...same }])).toBe(false);
    }
    for (const other of [[east, west], [west], [{ ...east, models: { a: 'b' } }], []]) {
      expect(await isRerouted(other)).toBe(true);
    }
    await admin('PATCH', `/groups/${name}`, { members: [{ ...east, tier: 2 }] });
    const routingVersion = async () => (await directoryOf(env).definition(name)).routingVersion;
    const before = await routingVersion();
    await admin('PATCH', `/groups/${name}`, { members: [{ ...east, tier: 3 }] });
    expect(await routingVersion()).toBe(before);
    await admin('PATCH', `/groups/${name}`, { members: [east, west] });
    expect(await routingVersion()).not.toBe(before);
  });

  it('with members tells of each what it has now, and what it would have', async () => {
    const member = (secret: string, limit: number) => ({
      upstream: 'openai',
      secret: `UPSTREAM_${secret}`,
      limits: { max_concurrency: limit },
    });
    const name = await makeGroup({ members: [member('A', 2), member('B', 3)] });
    const held = await take(name, 'a');
    const { said } = await preview(name, { members: [member('B', 1), member('C', 4)] });
    const at = held.member === 'openai:a' ? [1, 0] : [0, 1];
    expect(said?.now).toMatchObject({
      slots: { from: 5, to: 5 },
      in_use: 1,
      members: [
        { member: 'openai:a', slots: { from: 2, to: 0 }, in_use: at[0] },
        { member: 'openai:b', slots: { from: 3, to: 1 }, in_use: at[1] },
        { member: 'openai:c', slots: { from: 0, to: 4 }, in_use: 0 },
      ],
    });
    await held.lease.release('unused', null);
  });

  it('that nobody has called yet has the members that are configured', async () => {
    const name = await makeGroup({ members: [{ upstream: 'openai' }] });
    const limits = { max_concurrency: 2 };
    const { said } = await preview(name, { members: [{ upstream: 'openai', limits }] });
    expect(said?.now?.members).toEqual([
      { member: 'openai', slots: { from: null, to: 2 }, in_use: 0 },
    ]);
  });

  it('that is split adds up its pools', async () => {
    const name = await makeGroup({ partition_by: ['caller'], limits: { max_concurrency: 2 } });
    const held = [];
    for (const partition of ['one', 'two']) {
      await directoryOf(env).list({ group: name, partition });
      const asked = request(name, `held-${partition}`, { partition, caller: partition });
      const answer = await pool(`${name}#${partition}`).acquire(asked);
      if (answer.kind !== 'granted') throw new Error(answer.kind);
      held.push(answer.lease);
    }
    const { said } = await preview(name, { limits: { max_concurrency: 5 } });
    expect(said?.now).toMatchObject({ slots: { from: 2, to: 5 }, slots_gained: 6, in_use: 2 });
    for (const lease of held) await lease.release('unused', null);
  });

  it('that nobody has called yet has the slots that are configured', async () => {
    const name = await makeGroup({ limits: { max_concurrency: 3 } });
    const { said } = await preview(name, { limits: { max_concurrency: null } });
    expect(said?.now).toMatchObject({ slots: { from: 3, to: null }, slots_gained: null });
  });

  it('that is new says whose calls it would take', async () => {
    await admin('PUT', '/groups/wide', { match: { operations: ['chat'] } });
    await admin('PUT', '/groups/other', { match: { models: ['o3*'] } });
    for (const group of ['auto:openai', 'auto:zai/glm-5', 'auto:anthropic']) {
      await directoryOf(env).list({ group, partition: 'someone' });
    }
    const before = await versionNow();
    const { said } = await preview('fresh', { match: { models: ['gpt-4o*', 'zai/glm-5.1'] } }, '');
    expect(said).toMatchObject({
      version: before,
      changes: [{ path: 'groups[fresh]', to: { name: 'fresh' } }],
      now: null,
      last_hour: null,
      overlaps_with: { from: [], to: ['wide'] },
    });
    expect(said?.takes_from.toSorted()).toEqual(['auto:openai', 'auto:zai/glm-5']);
    const untargeted = await preview('fresh', { match: { keys: ['team'] } }, '');
    expect(untargeted.said?.takes_from).toEqual([]);
    expect(await versionNow()).toBe(before);
  });

  it('replaces or patches, as it is asked to', async () => {
    const name = await makeGroup({ limits: { max_concurrency: 3, rpm: 10 } });
    const body = { limits: { max_concurrency: 4 } };
    const paths = async (query: string) =>
      (await preview(name, body, query)).said?.changes.map(({ path }) => path.split('.').at(-1));
    expect(await paths('?as=patch')).toEqual(['max_concurrency']);
    expect(await paths('')).toEqual(expect.arrayContaining(['max_concurrency', 'rpm']));
  });

  it.each([
    [{ limits: { max_concurrency: -1 } }, 'limits.max_concurrency'],
    [{ match: { upstreams: ['nowhere'] } }, 'match.upstreams[0]'],
    [{ match: { keys: ['team'] } }, 'match'],
    [{ name: 'other' }, 'name'],
    [{ color: 'red' }, 'color'],
  ])('that is wrong is refused at the field: %j', async (body, path) => {
    const name = await makeGroup({ match: { models: ['gpt-4o'] } });
    const { status, json } = await preview(name, body);
    const changed = await admin('PATCH', `/groups/${name}`, body);
    expect([status, json.errors[0].path]).toEqual([422, path]);
    expect(json).toEqual(changed.json);
  });

  it('that is not there can be put, and not patched', async () => {
    expect((await preview('nobody', {}, '')).status).toBe(200);
    expect((await preview('nobody', {}, '?as=patch')).status).toBe(404);
    expect((await preview('nobody', {}, '?as=post')).status).toBe(422);
  });
});

describe('a configuration', () => {
  it('is compared with what is there, and stays out of it', async () => {
    await admin('PUT', '/groups/a', { limits: { max_concurrency: 5 } });
    await admin('PUT', '/groups/b', {});
    const before = await versionNow();
    const document = { groups: [{ name: 'a', limits: { max_concurrency: 3 } }, { name: 'c' }] };
    const { status, json } = await admin('POST', '/config/preview', document);
    expect([status, json.version, json.groups]).toEqual([200, before, ['a', 'c']]);
    const brief = json.changes.map(({ path, from, to }: Record<string, unknown>) => [
      path,
      typeof from,
      typeof to,
    ]);
    expect(brief).toEqual([
      ['groups[a].limits.max_concurrency', 'number', 'number'],
      ['groups[b]', 'object', 'undefined'],
      ['groups[c]', 'undefined', 'object'],
    ]);
    expect(await versionNow()).toBe(before);
    await admin('PUT', '/config', document);
    const { entries } = (await admin('GET', '/audit?limit=1')).json;
    expect(entries[0].changes).toEqual(json.changes);
  });

  it('shows no hash, and keeps the admin keys that it does not mention', async () => {
    await admin('POST', '/admin-keys', { id: 'looker', role: 'viewer' });
    await admin('POST', '/keys', { id: 'team' });
    const { json } = await admin('POST', '/config/preview', {});
    expect(json.changes.map(({ path }: { path: string }) => path)).toEqual(['keys[team]']);
    expect(json.changes[0].from.hash).toBe('(hidden)');
  });

  it('of another shape changes the groups only, and says what becomes of them', async () => {
    await admin('PUT', '/groups/gone', {});
    const document = { concurrency_groups: [{ name: 'new', max_concurrency: 2, models: ['x'] }] };
    const plan = await planImport(adminClient, document);
    expect(plan).toMatchObject({ ok: true, preview: { groups: ['new'] } });
    expect(JSON.stringify(plan)).toContain('Removed groups: `gone`.');
    expect((await admin('POST', '/config/preview', document)).status).toBe(422);
  });

  it('that is wrong is refused as when it is put', async () => {
    const document = { groups: [{ name: 'a', limits: { max_concurrency: 'five' } }] };
    const [reported, put] = [
      await admin('POST', '/config/preview', document),
      await admin('PUT', '/config', document),
    ];
    expect([reported.status, reported.json.errors[0].path]).toEqual([
      422,
      'groups[0].limits.max_concurrency',
    ]);
    expect(reported.json).toEqual(put.json);
  });
});
