// Switching automatic groups over the admin API: what is stored, answered, refused and shown.
import { beforeEach, describe, expect, it } from 'vitest';
import { historySchema } from '../../../src/admin/resources/history.ts';
import { admin, importForeign } from '../support/worker.ts';

const GROUP = 'auto:zai/glm-5.1';
const PATH = `/groups/${encodeURIComponent(GROUP)}`;

beforeEach(async () => {
  await admin('PUT', '/config', {});
});

async function stored(): Promise<unknown> {
  return (await admin('GET', '/config')).json.auto_groups;
}

describe('an automatic group', () => {
  it('is paused, drained and resumed by its name, and needs no entry while it is open', async () => {
    const paused = { name: GROUP, paused: true, draining: false };
    const { status, json } = await admin('POST', `${PATH}/pause`);
    expect({ status, group: json.group }).toEqual({ status: 200, group: paused });
    expect(await stored()).toEqual([paused]);
    const drained = { ...paused, draining: true };
    expect((await admin('POST', `${PATH}/drain`)).json.group).toEqual(drained);
    const before = (await admin('POST', '/groups/auto%3Aopenai/pause')).json.version;
    expect((await admin('POST', `${PATH}/pause`)).json).toMatchObject({
      version: before,
      group: drained,
    });
    const open = { name: GROUP, paused: false, draining: false };
    expect((await admin('POST', `${PATH}/resume`)).json.group).toEqual(open);
    expect(await stored()).toEqual([{ ...paused, name: 'auto:openai' }]);
  });

  it('is in the audit log, and marks its history', async () => {
    // No other test's: the log outlives them.
    const name = 'auto:zai/glm-5.2';
    const path = `/groups/${encodeURIComponent(name)}`;
    await admin('POST', `${path}/pause`);
    await admin('POST', `${path}/drain`);
    await admin('POST', `${path}/pause`);
    const { markers } = historySchema.parse((await admin('GET', `${path}/history`)).json);
    expect(markers.map(({ kind, actor }) => [kind, actor])).toEqual([
      ['paused', 'admin-token'],
      ['draining', 'admin-token'],
    ]);
    await admin('POST', `${path}/resume`);
    const { json } = await admin('GET', '/audit?limit=3');
    expect(json.entries).toMatchObject([
      {
        action: `group ${name}: resume`,
        changes: [{ path: `auto_groups[${name}]`, from: { paused: true, draining: true } }],
      },
      {
        action: `group ${name}: drain`,
        changes: [{ path: `auto_groups[${name}].draining`, from: false, to: true }],
      },
      { action: `group ${name}: pause` },
    ]);
  });

  it('keeps what it says of calls that find no room, whatever is switched', async () => {
    // No other test's: the log outlives them.
    const name = 'auto:zai/glm-5';
    const path = `/groups/${encodeURIComponent(name)}`;
    const entry = { name, paused: true, draining: false, on_saturated: 'reject' as const };
    await admin('PUT', '/config', { auto_groups: [{ name, on_saturated: 'reject' }] });
    await admin('POST', `${path}/pause`);
    expect(await stored()).toEqual([entry]);
    const { markers } = historySchema.parse((await admin('GET', `${path}/history`)).json);
    expect(markers.map(({ kind, detail }) => [kind, detail])).toEqual([
      ['edited', 'on_saturated, by admin-token'],
      ['paused', 'Paused by admin-token'],
    ]);
    await admin('POST', `${path}/resume`);
    expect(await stored()).toEqual([{ ...entry, paused: false }]);
  });

  it('is shown while it is stopped, though nobody has called it', async () => {
    expect((await admin('GET', `${PATH}/status`)).status).toBe(404);
    await admin('POST', `${PATH}/pause`);
    const shown = {
      name: GROUP,
      kind: 'automatic',
      paused: true,
      draining: false,
      limit: { configured: null, source: 'built_in' },
    };
    const { json } = await admin('GET', `${PATH}/status`);
    expect(json).toMatchObject(shown);
    expect(json.limit.effective).toBeGreaterThan(0);
    expect((await admin('GET', '/status')).json.groups).toMatchObject([shown]);
    await admin('POST', `${PATH}/resume`);
    expect((await admin('GET', `${PATH}/status`)).status).toBe(404);
  });

  it.each(['auto:nowhere', 'auto:nowhere/glm-5.1', 'auto:openai/gpt-4o', 'auto:zai/none', 'auto:'])(
    'that no call can belong to is a 404: %s',
    async (name) => {
      const { status } = await admin('POST', `/groups/${encodeURIComponent(name)}/pause`);
      expect(status).toBe(404);
      expect(await stored()).toEqual([]);
    },
  );

  it('gets an entry of its own, with its switches and the limit that it has, and goes back without it', async () => {
    await admin('POST', `${PATH}/pause`);
    const built = (await admin('GET', `${PATH}/status`)).json.limit.effective as number;
    const { status, json } = await admin('POST', `${PATH}/configure`);
    expect({ status, group: json.group }).toMatchObject({
      status: 201,
      group: {
        name: GROUP,
        paused: true,
        limits: { max_concurrency: built },
        match: { upstreams: ['zai'], models: ['glm-5.1*'] },
        partition_by: ['api_key'],
      },
    });
    expect(await stored()).toEqual([]);
    expect((await admin('GET', `${PATH}/status`)).json).toMatchObject({
      kind: 'configured',
      paused: true,
      limit: { configured: built, effective: built, source: 'configured' },
    });
    expect((await admin('POST', `${PATH}/configure`)).status).toBe(409);
    expect((await admin('POST', `${PATH}/resume`)).json).toMatchObject({
      group: { paused: false },
    });
    expect((await admin('DELETE', PATH)).status).toBe(200);
    expect((await admin('GET', `${PATH}/status`)).status).toBe(404);
    await admin('POST', `${PATH}/drain`);
    expect((await admin('GET', `${PATH}/status`)).json.kind).toBe('automatic');
  });

  it('gets that entry by a change, too', async () => {
    await admin('POST', `${PATH}/drain`);
    const { status, json } = await admin('PATCH', PATH, { limits: { max_concurrency: 3 } });
    const group = { draining: true, limits: { max_concurrency: 3 } };
    expect({ status, group: json.group }).toMatchObject({ status: 200, group });
    expect(await stored()).toEqual([]);
    expect((await admin('PATCH', '/groups/auto%3Anowhere', {})).status).toBe(404);
    expect((await admin('POST', '/groups/auto%3Anowhere/configure')).status).toBe(404);
    expect((await admin('POST', '/groups/house/configure')).status).toBe(404);
  });

  it.each([
    ['match', { match: { models: ['o*'] } }],
    ['partition_by', { partition_by: ['caller'] }],
    ['members', { members: [{ upstream: 'zai', limits: { max_concurrency: 1 } }] }],
    ['jurisdiction', { jurisdiction: 'eu' }],
  ])('says nothing of its calls in its entry: %s', async (field, document) => {
    const { status, json } = await admin('PUT', PATH, document);
    expect(status).toBe(422);
    expect(json.errors).toMatchObject([
      { path: field, message: expect.stringMatching(/the name of/) },
    ]);
  });

  it('stands in one place of a configuration only', async () => {
    const both = { groups: [{ name: GROUP }], auto_groups: [{ name: GROUP }] };
    const { status, json } = await admin('PUT', '/config', both);
    expect({ status, paths: json.errors.map(({ path }: { path: string }) => path) }).toEqual({
      status: 422,
      paths: ['auto_groups[0].name'],
    });
    const unknown = await admin('PUT', '/config', { groups: [{ name: 'auto:nowhere' }] });
    expect(unknown.json.errors).toMatchObject([{ path: 'groups[0].name' }]);
  });

  it('is previewed, and set, by a whole configuration', async () => {
    const document = { auto_groups: [{ name: GROUP, draining: true }] };
    const entry = { name: GROUP, paused: false, draining: true };
    expect((await admin('POST', '/config/preview', document)).json.changes).toEqual([
      { path: `auto_groups[${GROUP}]`, to: entry },
    ]);
    await admin('PUT', '/config', document);
    expect(await stored()).toEqual([entry]);
    expect((await admin('GET', `${PATH}/status`)).json.draining).toBe(true);
    // A list of groups alone says nothing of it.
    await importForeign({ concurrency_groups: [] });
    expect(await stored()).toEqual([entry]);
  });
});
