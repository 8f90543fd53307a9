// Seven methods are served, and a request that may be read as another method counts as the strictest reading.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import app from '../../../src/index.ts';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { nothingLeaks, pool } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { admin, call, configure, env, until } from '../support/worker.ts';

const KEY = 'hg_methods-key-0815';

let strict: Strict;

beforeAll(async () => {
  strict = await strictScope('methods', { echo: true });
  const base_url = strict.url;
  const auth = { secret: 'UPSTREAM_TEST_KEY' };
  const { json } = await admin('POST', '/fingerprint', { key: KEY });
  const config: ConfigInput = {
    upstreams: [
      { id: 'own', base_url },
      { id: 'claude', base_url, dialect: 'anthropic' },
      { id: 'theirs', base_url, auth },
      { id: 'local', base_url, auth, dialect: 'ollama' },
      { id: 'sockets', base_url, websocket: 'session' },
    ],
    groups: [
      { name: 'closed', match: { upstreams: ['own'] }, limits: { max_concurrency: 0 } },
      {
        name: 'named',
        match: { upstreams: ['own'], paths: ['/custom/*'], methods: ['DELETE'] },
        limits: { max_concurrency: 0 },
      },
    ],
    keys: [{ id: 'caller', hash: json.hash as string }],
    cors_origins: ['https://app.example'],
  };
  await configure(config);
});

afterAll(nothingLeaks);

const SERVED = 'GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS';
const OWN_KEY = { authorization: 'Bearer sk-own', 'headgate-key': KEY };

/** A request with a method that `fetch` would not send. */
function by(method: string, path: string, headers: Record<string, string> = {}): Promise<Response> {
  const request = new Request(`https://headgate.test${path}`, { headers });
  Object.defineProperty(request, 'method', { value: method });
  const ctx = { waitUntil: () => {}, passThroughOnException: () => {} };
  return Promise.resolve(app.fetch?.(request as never, env as never, ctx as never) as never);
}

describe('a method that is not served', () => {
  it.each(
    ['TRACE', 'TRACK', 'DEBUG', 'CONNECT', 'PROPFIND', 'QUERY', 'FOO', 'get', 'Post', ''].flatMap(
      (method) =>
        ['/own/v1/chat/completions', '/v1/models', '/', '/status', '/leases', '/no/such'].map(
          (path) => [method, path],
        ),
    ),
  )('%s %s is a 405 that lists those that are', async (method, path) => {
    const response = await by(method, path, OWN_KEY);
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe(SERVED);
    expect(response.headers.get('headgate-reason')).toBe('method_unknown');
    expect(await response.text()).toContain('Use one of GET, POST');
  });

  it('is refused in the dialect of its upstream, and for a WebSocket too', async () => {
    const headers = { ...OWN_KEY, upgrade: 'websocket' };
    const response = await by('TRACE', '/claude/v1/messages', headers);
    expect(response.status).toBe(405);
    expect(await response.json()).toMatchObject({
      type: 'error',
      error: { type: 'invalid_request_error' },
    });
  });

  it('never reaches an upstream', async () => {
    const before = (await strict.stats()).total;
    await (await by('TRACE', '/theirs/v1/models', { 'headgate-key': KEY })).text();
    expect((await strict.stats()).total).toBe(before);
  });
});

it.each([
  ['POST', '/', 'GET, HEAD'],
  ['DELETE', '/healthz', 'GET, HEAD'],
  ['POST', '/status', 'GET, HEAD'],
  ['PUT', '/metrics', 'GET, HEAD'],
  ['POST', '/admin', 'GET, HEAD'],
  ['GET', '/webhooks/own', 'POST'],
  ['GET', '/leases', 'POST'],
  ['POST', '/leases/x', 'PUT, PATCH, DELETE'],
  ['PUT', '/leases/openapi.json', 'GET, HEAD'],
  ['PUT', '/tickets/x', 'DELETE'],
])('%s %s is a 405 that allows %s', async (method, path, allow) => {
  const response = await call(path, { method, headers: { 'headgate-key': KEY } });
  expect(response.status).toBe(405);
  expect(response.headers.get('allow')).toBe(allow);
  await response.text();
});

it.each([
  '/tickets',
  '/tickets/',
  '/tickets/a/b',
  '/leases/a/b',
  '/leases/openapi.json/b',
  '/leases//a//b/',
  '/webhooks',
  '/webhooks/own/b',
  '/healthz/x',
  '/status/x',
  '/metrics/x',
])('%s is no route, whatever the method', async (path) => {
  for (const method of ['GET', 'POST', 'DELETE']) {
    const headers = { 'headgate-key': KEY, 'content-type': 'application/json' };
    const response = await call(path, { method, headers });
    expect([method, response.status]).toEqual([method, 404]);
    expect(response.headers.get('allow')).toBe(null);
    await response.text();
  }
});

describe("a route that is open with the operator's key", () => {
  const POSTED = '{"model":"m"}';

  it.each([
    ['POST', '/theirs/v1/responses/input_tokens'],
    ['GET', '/theirs/health'],
    ['HEAD', '/theirs/v1/models'],
    ['POST', '/local/api/show'],
    ['GET', '/local/api/tags'],
  ])('is open by its own methods: %s %s', async (method, path) => {
    const body = method === 'POST' ? { body: POSTED } : {};
    const response = await call(path, { method, headers: { 'headgate-key': KEY }, ...body });
    expect(response.headers.get('headgate-reason')).toBeNull();
    await response.text();
  });

  it.each([
    ['GET', '/theirs/v1/responses/input_tokens'],
    ['DELETE', '/theirs/v1/responses/input_tokens'],
    ['OPTIONS', '/theirs/v1/responses/input_tokens'],
    ['PUT', '/theirs/v1/messages/count_tokens'],
    ['POST', '/theirs/health'],
    ['DELETE', '/theirs/health'],
    ['OPTIONS', '/theirs/v1/models'],
    ['DELETE', '/local/api/tags'],
    ['GET', '/local/api/show'],
  ])('is closed by others: %s %s', async (method, path) => {
    const before = (await strict.stats()).total;
    const response = await call(path, { method, headers: { 'headgate-key': KEY } });
    expect(response.headers.get('headgate-reason')).toBe('key_forbidden');
    await response.text();
    expect((await strict.stats()).total).toBe(before);
  });
});

const OVERRIDES = [
  ['x-http-method-override: POST', { 'x-http-method-override': 'POST' }, ''],
  ['x-http-method-override: post, GET', { 'x-http-method-override': 'post, GET' }, ''],
  ['x-http-method-override: PUT', { 'x-http-method-override': 'PUT' }, ''],
  ['x-http-method: POST', { 'x-http-method': 'POST' }, ''],
  ['X-Method-Override: Post', { 'X-Method-Override': 'Post' }, ''],
  ['x-method: POST', { 'x-method': 'POST' }, ''],
  ['method-override: POST', { 'method-override': 'POST' }, ''],
  ['?_method=POST', {}, '?_method=POST'],
  ['?%5Fmethod=post', {}, '?a=b&%5Fmethod=post'],
  ['?.method=POST', {}, '?.method=POST'],
  ['?X-HTTP-Method-Override=POST', {}, '?X-HTTP-Method-Override=POST'],
  ['?$httpMethod=POST', {}, '?$httpMethod=POST'],
  ['?$httpHeaders=…', {}, '?%24httpHeaders=X-HTTP-Method-Override%3APOST%0D%0A'],
] as const;

describe('a call that may stand for another method', () => {
  it.each(
    OVERRIDES.flatMap(([name, headers, query]) =>
      ['GET', 'PUT', 'DELETE'].map((method) => [method, name, headers, query] as const),
    ),
  )('%s with %s takes a slot, with a key of its own', async (method, _name, headers, query) => {
    const before = (await strict.stats()).total;
    const response = await call(`/own/v1/chat/completions${query}`, {
      method,
      headers: {
        ...OWN_KEY,
        'content-type': 'application/json',
        'headgate-max-wait': '0',
        ...headers,
      },
      ...(method === 'PUT' ? { body: '{"model":"m"}' } : {}),
    });
    expect(response.status).toBe(429);
    expect(response.headers.get('headgate-reason')).toBe('busy');
    await response.text();
    expect((await strict.stats()).total).toBe(before);
  });

  it('takes a slot if a group lists its path with the other method', async () => {
    const ask = (headers: Record<string, string>) =>
      call('/own/custom/thing', { headers: { ...OWN_KEY, 'headgate-max-wait': '0', ...headers } });
    const plain = await ask({});
    expect(plain.headers.get('headgate-reason')).toBeNull();
    await plain.text();
    const response = await ask({ 'x-http-method-override': 'DELETE' });
    expect(response.headers.get('headgate-reason')).toBe('busy');
    await response.text();
    await until(async () => expect((await pool('named').status()).in_use).toBe(0));
  });

  it.each(OVERRIDES)("is refused with the operator's key: %s", async (_name, headers, query) => {
    const before = (await strict.stats()).total;
    for (const path of ['/theirs/v1/models', '/theirs/v1/chat/completions']) {
      const method = path.endsWith('models') ? 'GET' : 'POST';
      const response = await call(`${path}${query}`, {
        method,
        headers: { 'headgate-key': KEY, 'content-type': 'application/json', ...headers },
        ...(method === 'POST' ? { body: '{"model":"m"}' } : {}),
      });
      expect(response.headers.get('headgate-reason')).toBe('key_forbidden');
      expect(await response.text()).toContain('overrides its method');
    }
    expect((await strict.stats()).total).toBe(before);
  });

  it.each([
    ['application/x-www-form-urlencoded', 'a=b&_method=DELETE'],
    ['application/x-www-form-urlencoded', '%5fMethod=DELETE&a=b'],
    [
      'multipart/form-data; boundary=xyz',
      '--xyz\r\ncontent-disposition: form-data; name="_method"\r\n\r\nDELETE\r\n--xyz--\r\n',
    ],
  ])('is refused where a field of a form says so: %s', async (type, body) => {
    const before = (await strict.stats()).completed;
    const headers = { 'headgate-key': KEY, 'content-type': type };
    const response = await call('/theirs/v1/conversations/conv_1', {
      method: 'POST',
      headers,
      body,
    });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain('names another method');
    expect((await strict.stats()).completed).toBe(before);
  });

  it('is never forwarded under a name with an underscore', async () => {
    const headers = { ...OWN_KEY, x_http_method_override: 'POST', 'x-http_method': 'POST' };
    const response = await call('/own/v1/models', { headers });
    const text = await response.text();
    expect(response.status).toBe(200);
    expect(text).not.toMatch(/http_method/);
  });

  it('opens no WebSocket', async () => {
    const headers = { ...OWN_KEY, upgrade: 'websocket', 'x-http-method-override': 'POST' };
    const response = await call('/sockets/v1/realtime?model=m', { headers });
    expect(response.status).toBe(400);
    expect(response.headers.get('headgate-reason')).toBe('header_invalid');
    await response.text();
  });
});

it('a preflight allows the methods that are served', async () => {
  const response = await call('/own/v1/chat/completions', {
    method: 'OPTIONS',
    headers: { origin: 'https://app.example', 'access-control-request-method': 'FOO' },
  });
  expect(response.status).toBe(204);
  expect(response.headers.get('access-control-allow-methods')).not.toContain('FOO');
});
