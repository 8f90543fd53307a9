// Repeated and trailing slashes never change the meaning of a request, at any door, and lead around no rule.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { closeAll, connect } from '../sockets/client.ts';
import { nothingLeaks } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { admin, call, configure } from '../support/worker.ts';

const KEY = 'hg_slashes-0815';
const NARROW = 'hg_slashes-narrow-0815';
const OWN = { authorization: 'Bearer sk-mine', 'headgate-key': KEY };

let strict: Strict;

beforeAll(async () => {
  strict = await strictScope('slashes', { echo: true });
  const base_url = strict.url;
  const auth = { secret: 'UPSTREAM_TEST_KEY' };
  const hashOf = async (key: string): Promise<string> =>
    (await admin('POST', '/fingerprint', { key })).json.hash;
  await configure({
    upstreams: [
      { id: 'sim', base_url, openai_at: '/v1', models: ['sim-*'] },
      { id: 'claude', base_url, dialect: 'anthropic', models: ['cl-*'] },
      { id: 'google', base_url, dialect: 'gemini' },
      { id: 'versioned', base_url: `${base_url}//mount///v1//` },
      { id: 'stored', base_url, auth },
      { id: 'blind', base_url, dialect: 'opaque' },
      { id: 'turns', base_url, websocket: 'turns' },
    ],
    groups: [
      { name: 'custom', match: { upstreams: ['sim'], paths: ['/v1/custom/*'] } },
      {
        name: 'all',
        match: { upstreams: ['sim', 'claude', 'google', 'versioned'] },
        limits: { max_concurrency: 4 },
      },
    ],
    keys: [
      { id: 'k', hash: await hashOf(KEY) },
      { id: 'narrow', hash: await hashOf(NARROW), groups: ['custom'] },
    ],
    cors_origins: ['https://app.example'],
  });
});

afterAll(nothingLeaks);

async function post(path: string, model: string, headers: Record<string, string> = {}) {
  const answer = await call(path, { json: { model }, headers: { ...OWN, ...headers } });
  const text = await answer.text();
  const arrived: { path?: string } = answer.status === 200 ? JSON.parse(text) : {};
  return {
    status: answer.status,
    reason: answer.headers.get('headgate-reason'),
    groups: answer.headers.get('headgate-groups'),
    path: arrived.path ?? null,
  };
}

describe('a call takes its slot, and its upstream gets the clean path', () => {
  it.each([
    ['//v1/chat/completions', 'sim-1', '/v1/chat/completions'],
    ['/v1//chat/completions', 'sim-1', '/v1/chat/completions'],
    ['/v1/chat/completions/', 'sim-1', '/v1/chat/completions'],
    ['/v1/v1/chat/completions', 'sim-1', '/v1/chat/completions'],
    ['//v1//messages', 'cl-1', '/v1/messages'],
    ['/v1/v1/messages/', 'cl-1', '/v1/messages'],
    ['//sim/v1/chat/completions', 'sim-1', '/v1/chat/completions'],
    ['/sim//v1/chat/completions', 'sim-1', '/v1/chat/completions'],
    ['/sim/v1//chat//completions//', 'sim-1', '/v1/chat/completions'],
    ['/sim/v1/v1/chat/completions', 'sim-1', '/v1/chat/completions'],
    ['//claude//v1/messages?beta=true', 'cl-1', '/v1/messages'],
    ['/google//v1beta//models/m:generateContent', 'm', '/v1beta/models/m:generateContent'],
    ['/google/v1beta/v1beta/models/m:generateContent', 'm', '/v1beta/models/m:generateContent'],
    ['/versioned/chat/completions', 'm', '/mount/v1/chat/completions'],
    ['/versioned/v1/chat/completions/', 'm', '/mount/v1/chat/completions'],
  ])('%s', async (path, model, expected) => {
    const seen = await post(path, model);
    expect(seen).toMatchObject({ status: 200, groups: 'all' });
    expect(seen.path).toContain(expected);
    expect(seen.path).not.toMatch(/\/\/(?!127)|\/v1\/v1|completions\//);
  });
});

describe('slashes behind the route stay, whatever they mean there', () => {
  it.each([
    '/v1/fetch/https://example.com//a/',
    '/v1/fetch/https%3A%2F%2Fexample.com//a',
    '/v1/files/a//b/',
    '/v2/kv//key//',
  ])('%s', async (path) => {
    const seen = await post(`/sim${path}`, 'm', { 'x-strict-count': 'true' });
    expect(seen.path).toContain(path);
  });

  it('an opaque upstream gets its path as it came, except where the base URL ends', async () => {
    expect(await post('/blind//v1//chat//completions/', 'm')).toMatchObject({
      path: '/v1/chat//completions/',
    });
  });
});

describe('no rule is passed', () => {
  it.each([
    '/sim/v1/custom/run',
    '/sim//v1/custom/run/',
    '/sim/v1//custom//run',
    '//sim/v1/custom//run',
  ])('a named path takes its slot: %s', async (path) => {
    expect((await post(path, 'm')).groups).toContain('custom');
  });

  it.each([
    '/stored/v1/files',
    '/stored//v1/files',
    '/stored/v1//files/',
    '//stored/v1/files//',
    '/stored/v1/files//x',
  ])("a route that is closed with the operator's key stays closed: %s", async (path) => {
    const answer = await call(path, { headers: { 'headgate-key': KEY } });
    expect(answer.status).toBe(403);
    await answer.text();
  });

  it.each(['/claude/v1/messages', '//claude//v1/messages/', '/v1//messages'])(
    'a key without access to a group has none: %s',
    async (path) => {
      const seen = await post(path, 'cl-1', { 'headgate-key': NARROW });
      expect(seen).toMatchObject({ status: 403, reason: 'key_forbidden' });
    },
  );

  it.each(['/admin/api/config', '//admin/api/config', '/admin//api/config', '/admin/api/config/'])(
    'the admin API wants its token: %s',
    async (path) => {
      const answer = await call(path);
      expect(answer.status).toBe(401);
      await answer.text();
      const opened = await call(path, { headers: { authorization: 'Bearer test-admin-token' } });
      expect(opened.status).toBe(200);
      await opened.text();
    },
  );
});

describe('a WebSocket takes its slot, and its upstream gets the clean path', () => {
  it.each([
    ['//sim//v1//realtime/?model=sim-1', 'all', '/v1/realtime'],
    ['/sim/v1/v1/realtime?model=sim-1', 'all', '/v1/realtime'],
    ['/versioned/v1//realtime?model=m', 'all', '/mount/v1/realtime'],
  ])('%s', async (path, groups, expected) => {
    const client = await connect(path, OWN);
    expect(client.response.headers.get('headgate-groups')).toBe(groups);
    expect((await strict.stats()).sockets.at(-1)?.path).toContain(expected);
    client.close(1000);
  });

  it('turns too', async () => {
    await connect('//turns//v1//responses/', OWN);
    expect((await strict.stats()).sockets.at(-1)).toMatchObject({ kind: 'responses' });
    closeAll();
  });

  it.each(['/claude/v1/realtime?model=m', '//claude//v1//realtime/?model=m'])(
    'a key without access to a group has none: %s',
    async (path) => {
      const headers = { ...OWN, 'headgate-key': NARROW, upgrade: 'websocket' };
      const answer = await call(path, { headers });
      expect([answer.status, answer.headers.get('headgate-reason')]).toEqual([
        403,
        'key_forbidden',
      ]);
      await answer.text();
    },
  );
});

it.each(['/v1/models', '//v1//models/', '/v1beta/models'])('HEAD %s is 200', async (path) => {
  const answer = await call(path, { method: 'HEAD', headers: { 'headgate-key': KEY } });
  expect([answer.status, await answer.text()]).toEqual([200, '']);
});

describe('routes of our own', () => {
  it.each([
    ['/v1/models/', 200],
    ['//v1//models', 200],
    ['/status/', 200],
    ['//status', 200],
    ['/healthz//', 200],
    ['//', 200],
    ['//metrics/', 401],
    ['/admin/', 200],
    ['/!departed/', 204],
  ])('GET %s is %i', async (path, status) => {
    const answer = await call(path, { headers: { 'headgate-key': KEY } });
    expect([status, path.startsWith('/admin') ? 503 : status]).toContain(answer.status);
    await answer.text();
  });

  it.each(['/leases/', '//leases', '/leases//'])('POST %s asks for a lease', async (path) => {
    const answer = await call(path, { json: {}, headers: { 'headgate-key': KEY } });
    expect([answer.status, answer.headers.get('headgate-reason')]).toEqual([400, 'field_invalid']);
    await answer.text();
  });

  it.each(['/webhooks/sim/', '//webhooks//sim'])('POST %s reaches the webhook', async (path) => {
    const straight = await call('/webhooks/sim', { json: {} });
    const answer = await call(path, { json: {} });
    expect(answer.status).toBe(straight.status);
    expect(await answer.text()).toBe(await straight.text());
  });

  it.each(['//v1//chat/completions/', '//status/', '/admin//api/config/', '//leases/'])(
    'a preflight is answered: %s',
    async (path) => {
      const headers = { origin: 'https://app.example', 'access-control-request-method': 'POST' };
      const answer = await call(path, { method: 'OPTIONS', headers });
      expect(answer.headers.get('access-control-allow-origin')).toBe('https://app.example');
    },
  );
});
