// An upstream that accepts calls without a key trusts the operator's network, so routes without a slot are closed there too.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { closeAll, connect } from '../sockets/client.ts';
import { nothingLeaks } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { admin, call, change, env } from '../support/worker.ts';

const PLAIN = 'hg_plain-key-4711';
const LORA = 'hg_lora-key-4711';

let strict: Strict;

const network = globalThis.fetch;

beforeAll(async () => {
  strict = await strictScope('keyless-routes', { echo: true });
  Object.assign(env, {
    HOUSE: {
      fetch: (url: string, init: RequestInit) =>
        network(url.replace('https://10.0.0.8', strict.url), init),
    },
  });
});

afterAll(nothingLeaks);

async function keyless(options: { readonly keys: boolean }): Promise<readonly string[]> {
  const hashOf = async (key: string): Promise<string> =>
    (await admin('POST', '/fingerprint', { key })).json.hash as string;
  const keys = [
    { id: 'plain', hash: await hashOf(PLAIN), groups: ['small', 'named'] },
    { id: 'lora', hash: await hashOf(LORA), allow: ['models', 'other'] },
  ];
  const base_url = strict.url;
  const config = {
    upstreams: [
      { id: 'box', base_url, dialect: 'ollama' as const, auth: 'none' as const },
      { id: 'vllm', base_url, auth: 'none' as const },
      { id: 'tuned', base_url, auth: 'none' as const, allow: ['files'] },
      { id: 'house', base_url: 'https://10.0.0.8', via: 'HOUSE' },
      { id: 'public', base_url },
    ],
    groups: [
      { name: 'small', match: { upstreams: ['box', 'vllm', 'tuned', 'house'], models: ['m'] } },
      { name: 'named', match: { upstreams: ['vllm'], paths: ['/v1/load_lora_adapter'] } },
    ],
    keys: options.keys ? keys : [],
  };
  const { json } = await change('PUT', '/config', config);
  return json.warnings as string[];
}

async function ask(method: string, path: string, headers: Record<string, string> = {}) {
  const body = method === 'POST' || method === 'PUT' ? { body: '{"model":"m"}' } : {};
  const answer = await call(path, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...body,
  });
  const reason = answer.headers.get('headgate-reason');
  return { status: answer.status, reason, text: await answer.text() };
}

const CLOSED = [
  ['DELETE', '/box/api/delete', 'allow: [models]'],
  ['POST', '/box/api/pull', 'allow: [models]'],
  ['POST', '/box/api//create', 'allow: [models]'],
  ['POST', '/box/api/pu%6cl', 'unknown to Headgate'],
  ['POST', '/box/api/blobs/sha256:0', 'unknown to Headgate'],
  ['POST', '/vllm/v1/load_lora_adapter', 'allow: [other]'],
  ['POST', '/vllm/v1/unload_lora_adapter', 'unknown to Headgate'],
  ['POST', '/vllm/shutdown', 'unknown to Headgate'],
  ['GET', '/vllm/metrics', 'unknown to Headgate'],
  ['POST', '/vllm/props', 'allow: [models]'],
  ['POST', '/vllm/api/v1/models/load', 'allow: [models]'],
  ['GET', '/vllm/v1/organization/admin_api_keys', 'administers the account'],
  ['GET', '/vllm/v1/files', 'allow: [files]'],
  ['POST', '/vllm/v1/realtime/client_secrets', 'realtime session'],
  ['POST', '/house/v1/files', 'allow: [files]'],
  ['POST', '/house/shutdown', 'unknown to Headgate'],
] as const;

const OPEN = [
  ['GET', '/box'],
  ['GET', '/box/api/tags'],
  ['GET', '/box/api/ps'],
  ['GET', '/box/api/version'],
  ['POST', '/box/api/show'],
  ['POST', '/box/api/chat'],
  ['POST', '/box/v1/chat/completions'],
  ['GET', '/vllm/health'],
  ['GET', '/vllm/readyz'],
  ['GET', '/vllm/load'],
  ['GET', '/vllm/props'],
  ['GET', '/vllm/get_model_info'],
  ['GET', '/vllm/v1/models'],
  ['GET', '/vllm/api/v0/models'],
  ['POST', '/vllm/tokenize'],
  ['GET', '/tuned/v1/files'],
  ['GET', '/house/v1/models'],
] as const;

describe.each([
  ['with a gateway key', true],
  ['without gateway keys', false],
])('%s', (_what, keys) => {
  const own: Record<string, string> = keys ? { 'headgate-key': PLAIN } : {};
  beforeAll(async () => {
    await keyless({ keys });
  });

  it.each(CLOSED)('%s %s is closed: %s', async (method, path, words) => {
    const before = (await strict.stats()).total;
    const seen = await ask(method, path, own);
    expect(seen).toMatchObject({ status: 403, reason: 'key_forbidden' });
    expect(seen.text).toContain(words);
    expect(seen.text).not.toContain("operator's key");
    const isListable = words.startsWith('allow');
    const where = keys ? 'of gateway key `plain` or of the upstream' : 'of upstream';
    expect(seen.text.includes(`${words}\` ${where}`)).toBe(isListable);
    expect(seen.text.includes('gateway key')).toBe(isListable && keys);
    // A key changes nothing at an upstream that never receives one.
    expect(seen.text.includes('your own provider key')).toBe(path.startsWith('/house'));
    expect((await strict.stats()).total).toBe(before);
  });

  it.each(OPEN)('%s %s is open', async (method, path) => {
    expect(await ask(method, path, own)).toMatchObject({ status: 200, reason: null });
  });

  it('a made-up key opens nothing at an upstream that receives no key', async () => {
    const seen = await ask('DELETE', '/box/api/delete', { ...own, authorization: 'Bearer x' });
    expect(seen).toMatchObject({ status: 403, reason: 'key_forbidden' });
  });

  it('a provider key opens an upstream behind a binding, which forwards it', async () => {
    const seen = await ask('GET', '/house/v1/files', { ...own, authorization: 'Bearer sk-mine' });
    expect(seen).toMatchObject({ status: 200, reason: null });
  });

  it('a method override is refused', async () => {
    const seen = await ask('GET', '/box/api/tags', { ...own, 'x-http-method-override': 'DELETE' });
    expect(seen).toMatchObject({ status: 403, reason: 'key_forbidden' });
  });

  it('an upstream that checks keys itself gets every call', async () => {
    expect(await ask('GET', '/public/v1/files', own)).toMatchObject({ status: keys ? 403 : 200 });
  });
});

it('a gateway key that lists an operation opens it, also on a named route', async () => {
  await keyless({ keys: true });
  const own = { 'headgate-key': LORA };
  expect(await ask('POST', '/box/api/pull', own)).toMatchObject({ status: 200 });
  expect(await ask('POST', '/vllm/v1/load_lora_adapter', own)).toMatchObject({ status: 200 });
  expect(await ask('POST', '/vllm/shutdown', own)).toMatchObject({ status: 403 });
});

describe('where every WebSocket is a session', () => {
  const anySession = (paths: string[], allow: string[]) =>
    change('PUT', '/config', {
      upstreams: [
        { id: 'any', base_url: strict.url, auth: 'none', websocket: 'session', allow },
        { id: 'house', base_url: 'https://10.0.0.8', via: 'HOUSE', websocket: 'session' },
        { id: 'public', base_url: strict.url, websocket: 'session' },
      ],
      groups: [{ name: 'named', match: { upstreams: ['any'], paths, methods: ['GET'] } }],
    });
  const refused = (path: string) => ask('GET', path, { upgrade: 'websocket' });

  afterEach(closeAll);

  it.each([
    ['/any/v1/organization/users', 'administers the account'],
    ['/any/api/kernels/1/channels', '`match.paths` of a group with `methods: [GET]`'],
    ['/any/queue/join', 'unknown to Headgate'],
    ['/any/v1/files', 'allow: [files]'],
    ['/any/api/pull', 'allow: [models]'],
    ['/any/v1/realtime/client_secrets', 'realtime session'],
    ['/any/api/kernels;/realtime', 'realtime session'],
    ['/any/api/kernels/x%3f/realtime', 'realtime session'],
    ['/house/api/kernels/1/channels', 'unknown to Headgate'],
  ])('one to %s is closed at an upstream without a key: %s', async (path, words) => {
    await anySession(['/none'], []);
    const before = (await strict.stats()).total;
    const seen = await refused(path);
    expect(seen).toMatchObject({ status: 403, reason: 'key_forbidden' });
    expect(seen.text).toContain(words);
    expect((await strict.stats()).total).toBe(before);
  });

  it.each([
    '/any/v1/realtime?model=m',
    '/any/v1//realtime',
    '/any/v1/responses',
    '/any/v1/audio/speech',
    '/public/api/kernels/1/channels',
  ])('one to %s goes on', async (path) => {
    await anySession(['/none'], []);
    expect((await connect(path)).response.status).toBe(101);
  });

  it('an operator opens a route by naming its path and listing it', async () => {
    const path = '/any/api/kernels/1/channels';
    const warnedAt = async (paths: string[], allow: string[]) => {
      const { json } = await anySession(paths, allow);
      const warned = (json.warnings as string[]).filter((text) => text.includes('every WebSocket'));
      return warned.map((text) => text.split(' ')[1]);
    };
    expect(await warnedAt(['/api/kernels/*'], [])).toEqual(['`any`', '`house`']);
    expect(await refused(path)).toMatchObject({ status: 403, reason: 'key_forbidden' });
    expect(await warnedAt(['/none'], ['other'])).toEqual(['`house`']);
    expect(await refused(path)).toMatchObject({ status: 403, reason: 'key_forbidden' });
    expect(await warnedAt(['/api/kernels/*'], ['other'])).toEqual(['`house`']);
    expect((await connect(path)).response.status).toBe(101);
  });
});

it('the tester reports it before a call is made', async () => {
  await keyless({ keys: true });
  const tested = async (path: string) => {
    const asked = { upstream: 'box', method: 'DELETE', path, key: 'plain' };
    return (await admin('POST', '/tester', asked)).json.refusal;
  };
  expect(await tested('/api/delete')).toMatchObject({ reason: 'key_forbidden' });
});

it('an import warns about such an upstream that opens nothing', async () => {
  const warnings = await keyless({ keys: true });
  const about = (id: string) => warnings.filter((text) => text.startsWith(`Upstream \`${id}\``));
  expect(about('box').join()).toContain('upstreams[0].allow');
  expect(about('house').join()).toContain('the binding HOUSE');
  expect(about('tuned')).toEqual([]);
  expect(about('public')).toEqual([]);
});
