// The admin API over the whole Worker and a real directory: what a change answers, and what is refused.
import { env as bindings, exports } from 'cloudflare:workers';
import { beforeEach, describe, expect, it } from 'vitest';
import { directoryOf, type Env } from '../../src/env.ts';
import { createAdminRoutes } from '../../src/admin/routes.ts';
import { importForeign } from './support/worker.ts';

// The test pool types its bindings and exports by a generated file that this project does not keep.
const env = bindings as unknown as Env;
const worker = (exports as unknown as { default: Fetcher }).default;

const AUTH = { authorization: 'Bearer test-admin-token' };
const A_GROUP = { match: { models: ['gpt-4o'] }, limits: { max_concurrency: 5 } };

async function ask(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
) {
  const response = await worker.fetch(`https://headgate.test/admin/api${path}`, {
    method,
    headers: { ...AUTH, 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = new TextDecoder().decode(await response.arrayBuffer());
  const isJson = response.headers.get('content-type')?.includes('json') ?? false;
  // oxlint-disable-next-line typescript/no-explicit-any -- a test reads many shapes of answers
  const json: any = isJson ? JSON.parse(text) : null;
  return { status: response.status, headers: response.headers, text, json };
}

async function version(): Promise<number> {
  return (await directoryOf(env).snapshot(null))?.version ?? -1;
}

beforeEach(async () => {
  await ask('PUT', '/config', {});
});

describe('the token', () => {
  it.each([{}, { authorization: 'Bearer wrong' }, { authorization: 'test-admin-token' }])(
    'is asked for: %j',
    async (headers) => {
      const url = 'https://headgate.test/admin/api/groups';
      const response = await worker.fetch(url, { headers });
      expect(response.status).toBe(401);
      expect(response.headers.get('content-type')).toBe('application/problem+json');
      expect(response.headers.get('www-authenticate')).toContain('Bearer');
      expect(await response.json()).toMatchObject({ status: 401, type: 'about:blank' });
    },
  );

  it('is explained where none is set, whatever is sent', async () => {
    const request = new Request('https://headgate.test/groups', { headers: AUTH });
    const { ADMIN_TOKEN: _token, ...closed } = env;
    const response = await createAdminRoutes().fetch(request, closed);
    expect(response.status).toBe(403);
    expect(await response.text()).toContain('npx wrangler secret put ADMIN_TOKEN');
  });
});

describe('routes', () => {
  it('that are unknown answer 404, and methods that are not there 405', async () => {
    expect((await ask('GET', '/nothing')).json).toMatchObject({ status: 404 });
    const wrong = await ask('POST', '/config');
    expect(wrong.status).toBe(405);
    expect(wrong.headers.get('allow')).toBe('GET, PUT');
  });

  it('list the first 50 mistakes of a document, and say how many more there are', async () => {
    const mistakes = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`nonsense${index}`, 1]));
    const many = await ask('PUT', '/config', mistakes(1_234));
    expect(many.status).toBe(422);
    expect(many.json.errors).toHaveLength(50);
    expect(many.json.errors[49]).toMatchObject({ path: 'nonsense49' });
    expect(many.json).toMatchObject({ more: 1_184 });
    expect(many.json.detail).toMatch(/^nonsense0: .* \(and 1233 more\)$/);
    const groups = Array.from({ length: 51 }, (_, index) => ({
      name: `g${index}`,
      match: { operations: ['chta'] },
    }));
    expect((await ask('PUT', '/config', { groups })).json).toMatchObject({ status: 422, more: 1 });
    const few = await ask('PUT', '/config', mistakes(50));
    expect(few.json.errors).toHaveLength(50);
    expect(few.json).toMatchObject({ more: 0 });
  });

  it('refuse a body of more than 1 MiB', async () => {
    const answer = await ask('PUT', '/config', `# ${'x'.repeat(1_048_576)}`);
    expect(answer.json).toMatchObject({ status: 413 });
  });
});

describe('a group', () => {
  it('is created, read, replaced and deleted', async () => {
    const created = await ask('PUT', '/groups/shared', A_GROUP);
    expect(created.status).toBe(201);
    expect(created.json.group).toMatchObject({ name: 'shared', queue: { max_length: 1_000 } });
    expect((await ask('GET', '/groups/shared')).json).toEqual(created.json.group);
    const match = { models: ['o3'] };
    const replaced = await ask('PUT', '/groups/shared', { name: 'shared', match, paused: true });
    expect(replaced.status).toBe(200);
    expect(replaced.json.group).toMatchObject({ paused: true, match, limits: { max_weight: 1 } });
    expect((await ask('GET', '/groups')).json.groups).toEqual([replaced.json.group]);
    expect((await ask('DELETE', '/groups/shared')).status).toBe(200);
    expect((await ask('GET', '/groups/shared')).status).toBe(404);
  });

  it('that is put again unchanged makes no new version', async () => {
    const { json } = await ask('PUT', '/groups/shared', A_GROUP);
    expect((await ask('PUT', '/groups/shared', json.group)).json.version).toBe(json.version);
    expect(await version()).toBe(json.version);
  });

  it('is patched as RFC 7396 says', async () => {
    await ask('PUT', '/groups/shared', { ...A_GROUP, queue: { timeout_ms: 5 } });
    const patch = { limits: { max_concurrency: 2 }, queue: { timeout_ms: null, max_length: 7 } };
    const { json } = await ask('PATCH', '/groups/shared', patch, {
      'content-type': 'application/merge-patch+json',
    });
    expect(json.group).toMatchObject({
      match: { models: ['gpt-4o'] },
      limits: { max_concurrency: 2 },
      queue: { timeout_ms: 240_000, max_length: 7 },
    });
  });

  it('is drained and resumed', async () => {
    await ask('PUT', '/groups/shared', { ...A_GROUP, paused: true });
    const drained = { paused: true, draining: true };
    expect((await ask('POST', '/groups/shared/drain')).json.group).toMatchObject(drained);
    const open = { paused: false, draining: false };
    expect((await ask('POST', '/groups/shared/resume')).json.group).toMatchObject(open);
    const { json } = await ask('GET', '/audit?limit=2');
    expect(json.entries).toMatchObject([
      { action: 'group shared: resume' },
      { action: 'group shared: drain' },
    ]);
  });

  it('runs dry when it is patched to', async () => {
    await ask('PUT', '/groups/shared', A_GROUP);
    await ask('PATCH', '/groups/shared', { dry_run: true });
    expect((await ask('GET', '/groups/shared/status')).json.dry_run).toBe(true);
  });

  it('is paused and resumed', async () => {
    await ask('PUT', '/groups/shared', A_GROUP);
    expect((await ask('POST', '/groups/shared/pause')).json.group.paused).toBe(true);
    expect((await ask('POST', '/groups/shared/resume')).json.group.paused).toBe(false);
    const { json } = await ask('GET', '/audit?limit=2');
    expect(json.entries).toMatchObject([
      { action: 'group shared: resume', actor: 'admin-token' },
      { action: 'group shared: pause' },
    ]);
  });

  it.each<[string, string, unknown, number, string]>([
    ['PUT', '/groups/a', { limits: { max_concurrency: '5' } }, 422, 'limits.max_concurrency'],
    ['PUT', '/groups/a', { limit: {} }, 422, 'limit'],
    ['PUT', '/groups/a', { name: 'b' }, 422, 'name'],
    ['PUT', '/groups/A%20b', {}, 422, 'name'],
    ['PUT', '/groups/auto%3A', {}, 422, 'name'],
    ['PUT', '/groups/a', [], 422, ''],
    ['PUT', '/groups/a', { match: { upstreams: ['nowhere'] } }, 422, 'match.upstreams[0]'],
    ['PUT', '/groups/a', { match: { keys: ['sk-4711'] } }, 422, 'match.keys[0]'],
    ['PATCH', '/groups/there', { paused: 'yes' }, 422, 'paused'],
    ['PATCH', '/groups/there', { name: 'other' }, 422, 'name'],
  ])('is refused with the path of the field: %s %s %j', async (method, path, body, status, at) => {
    await ask('PUT', '/groups/there', A_GROUP);
    const before = await version();
    const answer = await ask(method, path, body);
    expect(answer.status).toBe(status);
    expect(answer.headers.get('content-type')).toBe('application/problem+json');
    expect(answer.json.errors[0].path).toBe(at);
    expect(answer.text).not.toContain('4711');
    expect(await version()).toBe(before);
  });

  it.each([
    ['PATCH', '/groups/none'],
    ['DELETE', '/groups/none'],
    ['POST', '/groups/none/pause'],
    ['POST', '/groups/none/drain'],
    ['PATCH', '/groups/auto%3Anowhere%2Fglm-5.1'],
    ['POST', '/groups/auto%3Azai%2Fglm-9/pause'],
  ])('that does not exist cannot be changed: %s %s', async (method, path) => {
    const answer = await ask(method, path, method === 'PATCH' ? {} : undefined);
    expect(answer.json).toMatchObject({ status: 404 });
  });

  it('that cannot be read is a 400', async () => {
    expect((await ask('PUT', '/groups/a', '{"limits": ')).json).toMatchObject({ status: 400 });
  });

  it('comes with the warnings of the whole configuration', async () => {
    const groups = ['a', 'b', 'c', 'd'].map((name) => ({ name, match: { models: ['gpt-*'] } }));
    await ask('PUT', '/config', { groups });
    const { json } = await ask('PUT', '/groups/e', A_GROUP);
    expect(json.warnings.join('\n')).toMatch(/One call may match `a`, `b`, `c`, `d`, `e`/);
  });

  it('that meets another one is nothing to warn of', async () => {
    await ask('PUT', '/groups/wide', { match: { upstreams: ['openai'] } });
    expect((await ask('PUT', '/groups/narrow', A_GROUP)).json.warnings).toEqual([]);
  });
});

describe('If-Match', () => {
  it.each([
    ['PUT', '/config', {}],
    ['PUT', '/groups/a', A_GROUP],
    ['PATCH', '/groups/there', {}],
    ['DELETE', '/groups/there', undefined],
    ['POST', '/groups/there/pause', undefined],
  ])('refuses a change of what was changed meanwhile: %s %s', async (method, path, body) => {
    const { json } = await ask('PUT', '/groups/there', A_GROUP);
    const stale = await ask(method, path, body, { 'if-match': `"${json.version - 1}"` });
    expect(stale.status).toBe(412);
    expect(stale.headers.get('etag')).toBe(`"${json.version}"`);
    const fresh = await ask(method, path, body, { 'if-match': `"${json.version}"` });
    expect(fresh.status).toBeLessThan(300);
  });

  it('that no version ever had matches none, and * matches any', async () => {
    expect((await ask('PUT', '/config', {}, { 'if-match': '"abc"' })).status).toBe(412);
    expect((await ask('PUT', '/config', {}, { 'if-match': '*' })).status).toBe(200);
  });

  it('takes a change if one of the versions that it lists is the current one', async () => {
    const { json } = await ask('PUT', '/groups/there', A_GROUP);
    const listed = `"${json.version - 1}", W/"${json.version}"`;
    expect((await ask('PUT', '/config', {}, { 'if-match': listed })).status).toBe(200);
    expect((await ask('PUT', '/config', {}, { 'if-match': listed })).status).toBe(412);
  });
});

it('changes at the same time are all made', async () => {
  const names = Array.from({ length: 4 }, (_, at) => `group-${at}`);
  const answers = await Promise.all(names.map((name) => ask('PUT', `/groups/${name}`, A_GROUP)));
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
  const { json } = await ask('GET', '/groups');
  expect(json.groups.map((group: { name: string }) => group.name).sort()).toEqual(names);
});

describe('the whole configuration', () => {
  it('is exported as JSON and YAML and imported again', async () => {
    await ask('PUT', '/groups/shared', A_GROUP);
    const json = await ask('GET', '/config');
    expect(json.headers.get('etag')).toBe(`"${await version()}"`);
    const yaml = await ask('GET', '/config', undefined, { accept: 'application/yaml' });
    expect(yaml.headers.get('content-type')).toBe('application/yaml');
    expect((await ask('GET', '/config?format=yaml')).text).toBe(yaml.text);
    const accept = 'application/json, application/yaml;q=0.5';
    const preferred = await ask('GET', '/config', undefined, { accept });
    expect(preferred.headers.get('content-type')).toBe('application/json');
    await ask('PUT', '/config', {});
    const back = await ask('PUT', '/config', yaml.text, { 'content-type': 'application/yaml' });
    expect(back.json).toMatchObject({ groups: ['shared'], version: await version() });
    expect((await ask('GET', '/config')).json).toEqual(json.json);
  });

  it('is refused as a whole with the paths of all errors', async () => {
    const { status, json } = await ask('PUT', '/config', {
      upstreams: [{ id: 'mine' }],
      groups: [{ name: 'a' }, { name: 'a' }],
    });
    expect(status).toBe(422);
    expect(json.errors.map((error: { path: string }) => error.path).sort()).toEqual([
      'groups[1].name',
      'upstreams[0].base_url',
    ]);
  });

  it('takes concurrency groups and leaves upstreams and keys as they were', async () => {
    await ask('PUT', '/config', {
      upstreams: [{ id: 'mine', base_url: 'https://llm.example.com' }],
      groups: [{ name: 'old' }],
      keys: [{ id: 'k', hash: `sha256:${'0'.repeat(64)}` }],
    });
    const { status, json } = await importForeign({
      concurrency_groups: [{ name: 'GLM', max_concurrency: 1, providers: ['z.ai', 'mine'] }],
    });
    expect(status).toBe(200);
    expect(json.groups).toEqual(['glm']);
    expect(json.warnings).toContain('Removed groups: `old`.');
    const { json: config } = await ask('GET', '/config');
    expect(config.groups[0]).toMatchObject({
      match: { upstreams: ['zai', 'mine'] },
      limits: { max_concurrency: 1 },
    });
    expect([config.upstreams.length, config.keys.length]).toEqual([1, 1]);
  });

  it('reads models and providers of one entry as its members, and says so', async () => {
    const { status, json } = await importForeign({
      concurrency_groups: [
        { name: 'shared', max_concurrency: 2, models: ['gpt-4o'], providers: ['z.ai'] },
      ],
    });
    expect(status).toBe(200);
    expect(json.warnings).toContain(
      '`shared` counts its models at every upstream, and every model at `zai`. To count its models there only, write them as `zai/gpt-4o`.',
    );
    const groupsOf = async (model: string, upstream: string) => {
      const { json: tested } = await ask('POST', '/tester', { model, upstream });
      return tested.groups.map(({ group }: { group: string }) => group);
    };
    expect(await groupsOf('gpt-4o', 'openai')).toEqual(['shared']);
    expect(await groupsOf('glm-4.6', 'zai')).toEqual(['shared']);
    expect(await groupsOf('gpt-4.1', 'openai')).not.toContain('shared');
  });

  it('takes rate limits per model', async () => {
    const limit = { model: 'gpt-4', rate_limit: { rpm: 50, tpm: 10_000 } };
    const { json } = await importForeign(limit);
    expect(json.groups).toEqual(['gpt-4']);
    expect(json.warnings).not.toContainEqual(expect.stringContaining('gpt-4'));
    const { json: config } = await ask('GET', '/config');
    expect(config.groups[0].limits).toMatchObject({ rpm: 50, tpm: 10_000 });
  });

  it('keeps the known concurrency of a model that comes with rates alone, and says so', async () => {
    const rate_limit = { rpm: 50, tpm: 10_000 };
    const models = ['glm-5.1', 'zai/glm-4.6', 'kimi-k2.6', 'gpt-4', 'glm-*'];
    const document = models.map((model) => ({ model, rate_limit }));
    const { json } = await importForeign(document);
    const { json: config } = await ask('GET', '/config');
    const caps = config.groups.map(({ limits }: { limits: { max_concurrency: number | null } }) => {
      return limits.max_concurrency;
    });
    expect(caps).toEqual([1, 10, 1, null, 1]);
    expect(json.warnings).toContain(
      'Group `glm-5.1` keeps the known concurrency of `glm-5.1` at zai, zai-coding, zhipu, and zhipu-coding: `max_concurrency` 1. Set `limits.max_concurrency` to change it.',
    );
  });

  it('names a provider that it does not know by its place in the foreign document', async () => {
    const { status, json } = await importForeign({
      concurrency_groups: [{ name: 'a', max_concurrency: 1, providers: ['openai', 'nowhere'] }],
    });
    expect(status).toBe(422);
    expect(json.errors[0].path).toBe('concurrency_groups[0].providers[1]');
  });
});

it('a key is turned into its fingerprint and hash, and is neither repeated nor kept', async () => {
  const answer = await ask('POST', '/fingerprint', { key: 'sk-live-4711' });
  expect(answer.json.fingerprint).toMatch(/^[\w-]+$/);
  expect(answer.json.hash).toMatch(/^sha256:[0-9a-f]{64}$/);
  expect(answer.text).not.toContain('4711');
  expect((await ask('POST', '/fingerprint', { key: 'sk-live-4711' })).json).toEqual(answer.json);
  const refused = await ask('POST', '/fingerprint', { key: '', keys: 'sk-live-4711' });
  expect(refused.status).toBe(422);
  expect(refused.text).not.toContain('4711');
  expect((await ask('GET', '/audit')).text).not.toContain('4711');
});

it.each(['0', '1001', 'ten'])('the audit log refuses a limit of %s', async (limit) => {
  expect((await ask('GET', `/audit?limit=${limit}`)).json).toMatchObject({ status: 422 });
});
