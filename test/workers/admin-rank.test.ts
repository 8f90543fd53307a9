// A group's rank decides when calls take its slots, so no edit over the admin API may change it.
import { beforeEach, describe, expect, it } from 'vitest';
import { admin, importForeign } from './support/worker.ts';

const A_GROUP = { match: { models: ['gpt-4o'] }, limits: { max_concurrency: 5 } };

beforeEach(async () => {
  await admin('PUT', '/config', {});
});

describe('the rank of a group', () => {
  const LIST = { match: { upstreams: ['openai', 'anthropic'] } };

  it.each<[string, string, unknown, string]>([
    ['PUT', '/groups/shared', { match: { upstreams: ['openai'] } }, 'match'],
    ['PATCH', '/groups/shared', { match: { keys: ['team-a'] } }, 'match'],
    ['PATCH', '/groups/shared', { match: null }, 'match'],
    ['PUT', '/config', { groups: [{ name: 'new' }, { name: 'shared' }] }, 'groups[1].match'],
  ])('is fixed when it is made: %s %s %j', async (method, path, body, at) => {
    await admin('PUT', '/groups/shared', A_GROUP);
    const before = (await admin('GET', '/groups')).json.version;
    const { status, json } = await admin(method, path, body);
    expect(status).toBe(422);
    expect(json.errors).toMatchObject([{ path: at }]);
    expect(json.errors[0].message).toMatch(/Create a group/);
    expect((await admin('GET', '/groups')).json.version).toBe(before);
  });

  it('is fixed for an import', async () => {
    await admin('PUT', '/groups/shared', A_GROUP);
    const { status, json } = await importForeign({
      concurrency_groups: [{ name: 'shared', max_concurrency: 1, providers: ['openai'] }],
    });
    expect([status, json.errors[0].path]).toEqual([422, 'concurrency_groups[0]']);
    expect(json.errors[0].message).toMatch(/Create a group/);
  });

  it.each([
    ['another model', A_GROUP, { match: { models: ['o3'], upstreams: ['openai'] } }],
    ['more upstreams', LIST, { match: { upstreams: ['open*'] } }],
  ])('stays the same with %s', async (_, before, patch) => {
    await admin('PUT', '/groups/shared', before);
    expect((await admin('PATCH', '/groups/shared', patch)).status).toBe(200);
  });

  it('is that of a new group once the old one was deleted', async () => {
    await admin('PUT', '/groups/shared', A_GROUP);
    await admin('DELETE', '/groups/shared');
    expect((await admin('PUT', '/groups/shared', LIST)).status).toBe(201);
  });
});
