// Members of a group, as the admin API takes and refuses them: written, read, exported, changed, told of.
import { beforeEach, describe, expect, it } from 'vitest';
import { admin, call, configure, importForeign } from '../support/worker.ts';

const upstream = (id: string, more: object = {}) => ({
  id,
  base_url: `https://${id}.example.com`,
  ...more,
});
const UPSTREAMS = [
  upstream('east'),
  upstream('west'),
  upstream('off', { enabled: false }),
  upstream('claude', { dialect: 'anthropic' }),
];
const HASH = `sha256:${'0'.repeat(64)}`;
const DOCUMENT = { upstreams: UPSTREAMS, keys: [{ id: 'team', hash: HASH }] };

const A = { upstream: 'east', secret: 'UPSTREAM_TEST_KEY' };
const B = { upstream: 'west', secret: 'UPSTREAM_NOT_SET' };

beforeEach(async () => {
  await admin('PUT', '/config', DOCUMENT);
});

describe('a group is refused at the field, alone and in a document', () => {
  it.each<[string, object, string]>([
    [
      'a member without an upstream',
      { members: [A, { secret: 'UPSTREAM_X' }] },
      'members[1].upstream',
    ],
    [
      'an upstream that there is none of',
      { members: [{ upstream: 'eats' }] },
      'members[0].upstream',
    ],
    ['an upstream that is off', { members: [A, { upstream: 'off' }] }, 'members[1].upstream'],
    ['two dialects', { members: [A, B, { upstream: 'claude' }] }, 'members[2].upstream'],
    ['one secret at one upstream', { members: [A, { ...A, name: 'b' }] }, 'members[1].secret'],
    [
      'one name',
      {
        members: [
          { ...A, name: 'a' },
          { ...B, name: 'a' },
        ],
      },
      'members[1].name',
    ],
    ['a weight of 0', { members: [{ ...A, weight: 0 }] }, 'members[0].weight'],
    ['a key for a secret', { members: [{ ...A, secret: 'sk-proj-1234' }] }, 'members[0].secret'],
    [
      'a model that it does not match',
      { match: { models: ['gpt-*'] }, members: [{ ...A, models: { 'claude-4': 'c' } }] },
      'members[0].models.claude-4',
    ],
    [
      'an upstream of another dialect to match',
      { match: { upstreams: ['claude'] }, members: [A] },
      'match.upstreams[0]',
    ],
    ['a split by place', { members: [A], partition_by: ['upstream'] }, 'partition_by[0]'],
    ['an affinity to nobody', { affinity: { by: 'caller' } }, 'affinity'],
    ['a duration that is none', { members: [A], affinity: { for: '5 min' } }, 'affinity.for'],
  ])('%s', async (_what, group, path) => {
    const one = await admin('PUT', '/groups/g', group);
    const all = await admin('PUT', '/config', { ...DOCUMENT, groups: [{ name: 'g', ...group }] });
    expect([one.status, one.json.errors]).toEqual([422, [expect.objectContaining({ path })]]);
    expect([all.status, all.json.errors]).toEqual([
      422,
      [{ path: `groups[0].${path}`, message: one.json.errors[0].message }],
    ]);
  });

  it('an upstream that a member has cannot be removed', async () => {
    await admin('PUT', '/groups/g', { members: [A, B] });
    const { status, json } = await admin('DELETE', '/upstreams/west');
    expect([status, json.errors[0].path]).toEqual([422, 'groups[0].members[1].upstream']);
  });
});

describe('members that are taken', () => {
  const group = {
    name: 'g',
    match: { models: ['gpt-4o*'] },
    members: [
      {
        ...A,
        name: 'first',
        models: { 'gpt-4o': 'eu-1' },
        limits: { max_concurrency: 4, rpm: 50 },
      },
      { ...B, weight: 2.5, tier: 2, enabled: false },
    ],
    affinity: { by: 'caller', for: '90s' },
  };

  it('are written out as they were read in, in JSON and in YAML', async () => {
    const put = await admin('PUT', '/config', { ...DOCUMENT, groups: [group] });
    expect(put.status).toBe(200);
    const read = (await admin('GET', '/groups/g')).json;
    expect(read).toMatchObject({ ...group, affinity: { by: 'caller', for: '90s', wait: '2s' } });
    expect(read.members[1]).not.toHaveProperty('name');
    for (const format of ['json', 'yaml']) {
      const headers = { authorization: 'Bearer test-admin-token' };
      const text = await (await call(`/admin/api/config?format=${format}`, { headers })).text();
      await admin('PUT', '/config', {});
      const imported = await call('/admin/api/config', {
        method: 'PUT',
        headers: { ...headers, 'content-type': `application/${format}` },
        body: text,
      });
      expect(imported.status).toBe(200);
      expect((await admin('GET', '/groups/g')).json).toEqual(read);
    }
  });

  it('are replaced as a whole by a patch, and left alone by one of something else', async () => {
    await admin('PUT', '/groups/g', group);
    const left = await admin('PATCH', '/groups/g', { limits: { max_concurrency: 9 } });
    expect(left.json.group.members).toHaveLength(2);
    const replaced = await admin('PATCH', '/groups/g', { members: [A], affinity: null });
    expect(replaced.json.group).toMatchObject({ members: [A], affinity: null });
  });

  it('are told apart by their ids in the audit log and in a preview', async () => {
    await admin('PUT', '/groups/g', { members: [A, B] });
    const raised = { members: [A, { ...B, limits: { max_concurrency: 6 } }] };
    const changes = [
      { path: 'groups[g].members[west:not-set].limits.max_concurrency', from: null, to: 6 },
    ];
    const preview = await admin('POST', '/groups/g/preview?as=patch', raised);
    expect(preview.json.changes).toEqual(changes);
    await admin('PATCH', '/groups/g', raised);
    const { entries } = (await admin('GET', '/audit?limit=1')).json;
    expect(entries[0]).toMatchObject({ action: 'group g: patch', changes });
  });

  it('are warned of while their secrets are not set, at every place that tells of secrets', async () => {
    const { json } = await admin('PUT', '/groups/g', { members: [A, B] });
    expect(json.warnings).toEqual([
      'Group `g`: the secret `UPSTREAM_NOT_SET` of its member `west:not-set` is not set. Until it is set, no calls run there.',
    ]);
    const west = (await admin('GET', '/upstreams/west')).json;
    expect(west.member_secrets).toMatchObject([{ name: 'UPSTREAM_NOT_SET', is_set: false }]);
    const east = (await admin('GET', '/upstreams/east')).json;
    expect(east.member_secrets).toMatchObject([{ name: 'UPSTREAM_TEST_KEY', is_set: true }]);
    const groups = [{ name: 'g', members: [A, B] }];
    await configure({ ...DOCUMENT, groups });
    expect(await (await call('/')).text()).toContain(
      'MISSING: the secret UPSTREAM_NOT_SET is not set, so no calls of g run at west:not-set',
    );
    const off = await admin('PUT', '/groups/g', { members: [A, { ...B, enabled: false }] });
    expect(off.json.warnings).toEqual([]);
  });
});

describe("LiteLLM's list of deployments", () => {
  const deployment = (model: string, more: object = {}) => ({
    model_name: 'gpt-4o',
    litellm_params: { model, api_key: 'os.environ/TEST_KEY', ...more },
  });

  it('is imported beside what is there, keys and upstreams', async () => {
    const api_base = 'https://new.example.com/v1';
    const model_list = [deployment('openai/gpt-4o'), deployment('openai/other', { api_base })];
    const { status, json } = await importForeign({ model_list });
    expect(status).toBe(200);
    expect(json.warnings.join(' ')).toContain('Set the secret UPSTREAM_TEST_KEY');
    const config = (await admin('GET', '/config')).json;
    expect(config.keys).toHaveLength(1);
    expect(config.upstreams.map(({ id }: { id: string }) => id)).toEqual([
      ...UPSTREAMS.map(({ id }) => id),
      'new-example-com',
    ]);
    expect(config.groups).toMatchObject([
      { name: 'gpt-4o', members: [{ upstream: 'openai' }, { upstream: 'new-example-com' }] },
    ]);
  });

  it('leaves out the entry that is wrong, with its path, and imports the rest', async () => {
    const model_list = [deployment('openai/gpt-4o'), deployment('anthropic/claude-4')];
    const two = await importForeign({ model_list });
    const speaks =
      'Not imported: model_list[1]: speaks anthropic, but its calls have another dialect';
    expect(two.status).toBe(200);
    expect(two.json.warnings).toContainEqual(expect.stringContaining(speaks));
    const same = await importForeign({ model_list: [model_list[0], model_list[0]] });
    expect(same.status).toBe(200);
    expect(same.json.warnings).toContainEqual(
      expect.stringContaining('Not imported: model_list[1]: is the same as model_list[0]'),
    );
    const config = (await admin('GET', '/config')).json;
    expect(config.groups.map(({ members }: { members: unknown[] }) => members.length)).toEqual([1]);
  });

  it('does not lead to another upstream that is configured by the same id', async () => {
    const host = 'https://llm.example.com';
    const entry = (api_base: string) => [
      { model_name: 'm', litellm_params: { model: 'openai/m', api_base } },
    ];
    await importForeign({ model_list: entry(`${host}/v1`) });
    const again = await importForeign({ model_list: entry(`${host}/v1/`) });
    expect(again.status).toBe(200);
    const other = await importForeign({ model_list: entry(`${host}/v2`) });
    expect([other.status, other.json.errors]).toEqual([
      422,
      [
        {
          path: 'model_list[0].litellm_params.model',
          message: expect.stringContaining('needs the upstream `llm-example-com`'),
        },
      ],
    ]);
  });
});
