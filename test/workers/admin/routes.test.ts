// What the admin API answers beyond its shapes: pages, upstreams, the tester, the audit log, the docs page.
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { configSchema, type ConfigInput } from '../../../src/contract/config/config.ts';
import { DirectoryObject } from '../../../src/directory/directory-object.ts';
import { directoryOf } from '../../../src/env.ts';
import { poolOf } from '../../../src/routing/pool.ts';
import { request } from '../support/pool.ts';
import { env, worker, noteVersion } from '../support/worker.ts';
import { asAdmin, bodyOf } from './ask.ts';

const API = 'https://headgate.test/admin/api';

async function put(config: ConfigInput): Promise<void> {
  const { version = 0 } = (await directoryOf(env).snapshot(null)) ?? {};
  noteVersion(await directoryOf(env).replace(configSchema.parse(config), version, 'test', 'reset'));
}

beforeEach(() => put({}));

describe('lists', () => {
  it('come in pages, sorted, with nothing left out or twice when they change meanwhile', async () => {
    await put({ groups: ['d', 'b', 'a', 'e', 'c'].map((name) => ({ name })) });
    const first = bodyOf(await asAdmin('GET /groups', { query: { limit: 2 } }));
    expect(first.groups.map(({ name }) => name)).toEqual(['a', 'b']);
    bodyOf(await asAdmin('DELETE /groups/{name}', { params: { name: 'b' } }));
    bodyOf(await asAdmin('PUT /groups/{name}', { params: { name: 'aa' }, body: {} }));
    const cursor = first.next_cursor ?? '';
    const second = bodyOf(await asAdmin('GET /groups', { query: { limit: 2, cursor } }));
    expect(second.groups.map(({ name }) => name)).toEqual(['c', 'd']);
    const last = await asAdmin('GET /groups', {
      query: { limit: 2, cursor: second.next_cursor ?? '' },
    });
    expect(bodyOf(last)).toMatchObject({ groups: [{ name: 'e' }], next_cursor: null });
  });

  it('of the audit log go back in time, by who, what and when', async () => {
    for (const name of ['x', 'y', 'z']) {
      await asAdmin('PUT /groups/{name}', { params: { name }, body: {} });
    }
    const first = bodyOf(
      await asAdmin('GET /audit', { query: { limit: 2, actor: 'admin-token' } }),
    );
    expect(first.entries.map(({ action }) => action)).toEqual(['group z: put', 'group y: put']);
    const cursor = first.next_cursor ?? '';
    const rest = await asAdmin('GET /audit', { query: { actor: 'admin-token', cursor } });
    expect(bodyOf(rest).entries[0]?.action).toBe('group x: put');
    const ofY = await asAdmin('GET /audit', { query: { action: 'group y' } });
    expect(bodyOf(ofY).entries.map(({ action }) => action)).toEqual(['group y: put']);
    const later = await asAdmin('GET /audit', { query: { since: '2999-01-01T00:00:00Z' } });
    expect(bodyOf(later)).toEqual({ entries: [], next_cursor: null });
    for (const query of [{ cursor: 'x' }, { cursor: '-1' }, { since: 'yesterday' }]) {
      expect((await asAdmin('GET /audit', { query })).status).toBe(422);
    }
  });
});

it('the audit log says what was before and what is now, and never a secret', async () => {
  const fields = { limits: { max_concurrency: 5 } };
  await asAdmin('PUT /groups/{name}', { params: { name: 'a' }, body: fields });
  await asAdmin('PATCH /groups/{name}', {
    params: { name: 'a' },
    body: { limits: { max_concurrency: 3 } },
  });
  await asAdmin('PATCH /groups/{name}', { params: { name: 'a' }, body: {} });
  const { entries } = bodyOf(await asAdmin('GET /audit', { query: { limit: 2 } }));
  expect(entries[0]).toMatchObject({
    actor: 'admin-token',
    action: 'group a: patch',
    changes: [{ path: 'groups[a].limits.max_concurrency', from: 5, to: 3 }],
    changes_omitted: 0,
  });
  expect(entries[1]?.action).toBe('group a: put');
  expect(entries[1]?.changes[0]).toMatchObject({ path: 'groups[a]', to: { name: 'a' } });
  expect(entries[1]?.changes[0]).not.toHaveProperty('from');
});

describe('an upstream', () => {
  it('that is built in is listed, changed and put back', async () => {
    const list = bodyOf(await asAdmin('GET /upstreams', { query: { limit: 1_000 } }));
    const openai = list.upstreams.find(({ id }) => id === 'openai');
    expect(openai).toMatchObject({
      is_built_in: true,
      enabled: true,
      base_url: 'https://api.openai.com',
      secret: null,
      configured: null,
      health: { state: 'unknown' },
    });
    const off = await asAdmin('PATCH /upstreams/{id}', {
      params: { id: 'openai' },
      body: { enabled: false },
    });
    expect(off.status).toBe(201);
    const shown = await asAdmin('GET /upstreams/{id}', { params: { id: 'openai' } });
    expect(bodyOf(shown)).toMatchObject({ enabled: false, configured: { id: 'openai' } });
    expect((await asAdmin('DELETE /upstreams/{id}', { params: { id: 'openai' } })).status).toBe(
      200,
    );
    expect((await asAdmin('DELETE /upstreams/{id}', { params: { id: 'openai' } })).status).toBe(
      404,
    );
    expect(bodyOf(await asAdmin('GET /upstreams/{id}', { params: { id: 'openai' } })).enabled).toBe(
      true,
    );
  });

  it('says whether its secret is there, and never what it is', async () => {
    const auth = (secret: string) => ({ body: { auth: { secret } } });
    await asAdmin('PUT /upstreams/{id}', {
      params: { id: 'openai' },
      ...auth('UPSTREAM_TEST_KEY'),
    });
    await asAdmin('PUT /upstreams/{id}', { params: { id: 'groq' }, ...auth('UPSTREAM_NOT_THERE') });
    const list = await asAdmin('GET /upstreams', { query: { limit: 1_000 } });
    const secretOf = (id: string) =>
      bodyOf(list).upstreams.find((upstream) => upstream.id === id)?.secret;
    expect(secretOf('openai')).toEqual({
      name: 'UPSTREAM_TEST_KEY',
      is_set: true,
      fault: null,
      set_with: 'npx wrangler secret put UPSTREAM_TEST_KEY',
      command: 'npx wrangler secret put UPSTREAM_TEST_KEY',
      afterwards: 'The command prompts for the value, which takes effect at once.',
    });
    expect(secretOf('groq')).toEqual({
      name: 'UPSTREAM_NOT_THERE',
      is_set: false,
      fault: 'is not set',
      set_with: 'npx wrangler secret put UPSTREAM_NOT_THERE',
      command: 'npx wrangler secret put UPSTREAM_NOT_THERE',
      afterwards: 'The command prompts for the value, which takes effect at once.',
    });
    expect(JSON.stringify(list)).not.toContain('operator-secret-4711');
  });

  it('suggests what its provider publishes, with source and date, wherever it has its address', async () => {
    await put({
      upstreams: [
        { id: 'mine', base_url: 'https://api.groq.com' },
        { id: 'own', base_url: 'https://llm.test' },
      ],
    });
    const suggested = async (id: string) =>
      bodyOf(await asAdmin('GET /upstreams/{id}', { params: { id } })).suggested_limits;
    const groq = await suggested('groq');
    expect(groq).toContainEqual({
      plan: 'Free',
      models: ['llama-3.1-8b-instant'],
      limits: { rpm: 30, rpd: 14_400, tpm: 6_000, tpd: 500_000 },
      source: 'https://console.groq.com/docs/rate-limits',
      date: '2026-06-04',
      note: null,
    });
    expect(await suggested('mine')).toEqual(groq);
    expect(await suggested('own')).toEqual([]);
    // Nobody has taken them over.
    expect(bodyOf(await asAdmin('GET /config')).groups).toEqual([]);
  });

  it('tells what its groups have seen of it', async () => {
    await put({
      groups: [
        { name: 'ours', match: { upstreams: ['groq'] }, limits: { max_concurrency: 4 } },
        { name: 'theirs', match: { upstreams: ['openai'] } },
        { name: 'all' },
      ],
    });
    const answer = await poolOf(env, 'ours', null, null).acquire(
      request('ours', 'refused', { upstream: 'groq' }),
    );
    if (answer.kind !== 'granted') throw new Error(answer.kind);
    const said = { retryAfterMs: 30_000, slotsMax: null, hints: [] };
    await answer.lease.report({ kind: 'requests', ...said }, false);
    await answer.lease.release('failed', 429);
    const groq = bodyOf(await asAdmin('GET /upstreams/{id}', { params: { id: 'groq' } }));
    expect(groq.groups).toEqual(['ours']);
    expect(groq.health).toMatchObject({
      state: 'waiting',
      refusals_total: { requests: 1 },
      limits: { ours: 4 },
    });
    expect(groq.health.paused_until).not.toBeNull();
  });

  it.each<[string, string, object, string]>([
    ['without an address', 'mine', {}, 'base_url'],
    ['with a field that nobody knows', 'mine', { url: 'https://a.example' }, 'url'],
    ['under an id that is taken', 'admin', { base_url: 'https://a.example' }, 'id'],
    ['under another id than its path', 'mine', { id: 'yours' }, 'id'],
    ['with a secret of another kind', 'openai', { auth: { secret: 'ADMIN_TOKEN' } }, 'auth.secret'],
  ])('is refused %s, with the path of the field', async (_what, id, body, path) => {
    const refused = await asAdmin('PUT /upstreams/{id}', { params: { id }, body: body as never });
    expect(refused).toMatchObject({ status: 422, problem: { errors: [{ path }] } });
  });
});

describe('the tester', () => {
  const config: ConfigInput = {
    upstreams: [{ id: 'openai', auth: { secret: 'UPSTREAM_TEST_KEY' } }],
    groups: [
      { name: 'four', match: { models: ['gpt-4o'] }, limits: { max_concurrency: 5, rpm: 50 } },
      {
        name: 'all',
        partition_by: ['caller'],
        queue: { lane_default: 'low' },
      },
    ],
    keys: [
      { id: 'team', hash: `sha256:${'1'.repeat(64)}`, limits: { max_concurrency: 2 } },
      { id: 'barred', hash: `sha256:${'2'.repeat(64)}`, groups: ['none'] },
      { id: 'gone', hash: `sha256:${'3'.repeat(64)}`, revoked_at: '2026-01-01T00:00:00Z' },
    ],
  };

  it('tells groups, limits, lanes and route of a call, narrow first', async () => {
    await put(config);
    const tested = bodyOf(
      await asAdmin('POST /tester', { body: { model: 'gpt-4o', key: 'team' } }),
    );
    expect(tested).toMatchObject({
      upstream: { id: 'openai', base_url: 'https://api.openai.com', dialect: 'openai' },
      model: 'gpt-4o',
      chosen_by: 'model',
      credential: 'operator',
      refusal: null,
      groups: [
        { group: 'key:team', kind: 'key', limits: { max_concurrency: 2 }, is_of_provider: false },
        {
          group: 'four',
          kind: 'configured',
          limits: { max_concurrency: 5, rpm: 50 },
          lane: 'normal',
        },
        { group: 'all', partition: 'team', lane: 'low' },
      ],
    });
  });

  it('tells what a path asks for, and whether it takes slots', async () => {
    await put({
      ...config,
      groups: [
        {
          name: 'custom',
          match: { upstreams: ['openai'], paths: ['/v1/custom/*', '/v1/responses/*/cancel'] },
        },
      ],
    });
    const of = async (path: string, more: object = {}) =>
      bodyOf(await asAdmin('POST /tester', { body: { upstream: 'openai', path, ...more } }));
    const custom = { operation: 'other', takes_slot: true, groups: [{ group: 'custom' }] };
    expect(await of('/v1/custom/run')).toMatchObject(custom);
    expect(await of('/v1/custom/run', { method: 'GET' })).toMatchObject({
      operation: 'other',
      takes_slot: false,
      groups: [],
    });
    expect(await of('/v1/custom/run', { key: 'team' })).toMatchObject({
      refusal: { reason: 'key_forbidden' },
    });
    expect(await of('/v1/chat/completions', { key: 'team' })).toMatchObject({
      operation: 'chat',
      takes_slot: true,
      refusal: null,
    });
    expect(await of('/v1/responses/resp_1/cancel')).toMatchObject({
      takes_slot: false,
      groups: [],
    });
    const wrong = await asAdmin('POST /tester', { body: { operation: 'chta' } });
    expect(wrong).toMatchObject({
      status: 422,
      problem: { errors: [{ path: 'operation', message: expect.stringContaining('`chat`') }] },
    });
  });

  it('tells of an upstream that takes no key, whose pool all callers share', async () => {
    await put({ upstreams: [{ id: 'house', base_url: 'https://llm.example.com', auth: 'none' }] });
    const body = { model: 'house/m', key: 'a1b2c3d4e5f60718' };
    expect(bodyOf(await asAdmin('POST /tester', { body }))).toMatchObject({
      credential: 'none',
      groups: [{ group: 'auto:house', partition: null }],
    });
  });

  it('tells of the automatic group and of the prefix that names an upstream', async () => {
    const body = { model: 'zai/glm-5.1', lane: 'high' as const };
    expect(bodyOf(await asAdmin('POST /tester', { body }))).toMatchObject({
      upstream: { id: 'zai' },
      model: 'glm-5.1',
      credential: 'caller',
      groups: [
        {
          group: 'auto:zai/glm-5.1',
          kind: 'automatic',
          limits: null,
          assumed: { source: 'built_in' },
          // Without a gateway key a call has lane normal at most.
          lane: 'normal',
        },
      ],
    });
  });

  it.each<[string, object, string, number]>([
    ['without a key', { model: 'gpt-4o' }, 'key_missing', 401],
    ['with a key that may not', { model: 'gpt-4o', key: 'barred' }, 'key_forbidden', 403],
    ['with a revoked key', { model: 'gpt-4o', key: 'gone' }, 'key_invalid', 401],
    ['for a model that nobody has', { model: 'nothing', key: 'team' }, 'model_unknown', 404],
    ['to an upstream that is none', { upstream: 'nowhere', key: 'team' }, 'upstream_unknown', 404],
  ])('says why a call would be refused %s', async (_what, body, reason, status) => {
    await put(config);
    const { refusal } = bodyOf(await asAdmin('POST /tester', { body }));
    expect(refusal).toMatchObject({ reason, status });
  });

  it('says that a call would belong to too many groups', async () => {
    await put({ groups: ['a', 'b', 'c', 'd'].map((name) => ({ name })) });
    const { refusal } = bodyOf(await asAdmin('POST /tester', { body: { upstream: 'openai' } }));
    expect(refusal?.reason).toBe('too_many_groups');
  });
});

describe('the page of the document', () => {
  it('names every route, and loads only its built script and style', async () => {
    const response = await worker.fetch(`${API}/docs`);
    const text = await response.text();
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    const policy = response.headers.get('content-security-policy');
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain('script-src headgate.test/admin/assets/;');
    const loaded = [...text.matchAll(/<(?:script|link)\b[^>]*>/g)].map(([tag]) => tag);
    expect(loaded).toHaveLength(2);
    for (const tag of loaded) expect(tag).toMatch(/(?:src|href)="\/admin\/assets\/api-[^"]+"/);
    expect(text).not.toMatch(/<style|style=|=["']?javascript:|(?:=["']?|url\()(?:https?:)?\/\//i);
    const document: { paths: object } = await (await worker.fetch(`${API}/openapi.json`)).json();
    for (const path of Object.keys(document.paths)) expect(text).toContain(`<code>${path}</code>`);
    const ids = new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    const links = [...text.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id);
    expect(links.filter((id) => !ids.has(id))).toEqual([]);
  });

  it('has a command for every route, and says in words what it takes', async () => {
    const text = await (await worker.fetch(`${API}/docs`)).text();
    const document: { paths: Record<string, object> } = await (
      await worker.fetch(`${API}/openapi.json`)
    ).json();
    const routes = Object.values(document.paths).flatMap((methods) => Object.keys(methods));
    expect([...text.matchAll(/<pre[^>]*>\s*curl/g)]).toHaveLength(routes.length);
    expect(text).toContain('"$HEADGATE/admin/api/groups/NAME/pause"'.replaceAll('"', '&quot;'));
    expect(text).toMatch(/<code>max_concurrency<\/code>\s+whole number/);
  });
});

describe('a change that the directory cannot store', () => {
  // The runtime hides the messages of its own errors from the Worker, as on a full disk.
  it.each(['internal error; reference = 0123456789', 'database or disk is full: SQLITE_FULL'])(
    'is answered with 503 and what to check: %s',
    async (message) => {
      const fails = vi.spyOn(DirectoryObject.prototype, 'replace');
      fails.mockRejectedValueOnce(new Error(message));
      const refused = await worker.fetch(`${API}/groups/full`, {
        method: 'PUT',
        headers: { authorization: 'Bearer test-admin-token', 'content-type': 'application/json' },
        body: '{}',
      });
      fails.mockRestore();
      expect(refused.status).toBe(503);
      expect(refused.headers.get('retry-after')).toBe('10');
      const { detail } = (await refused.json()) as { readonly detail: string };
      expect(detail).toContain('check the free space on the disk of its data folder');
      expect(detail).toContain('Check it before you retry');
      expect(detail).not.toContain(message);
    },
  );
});
