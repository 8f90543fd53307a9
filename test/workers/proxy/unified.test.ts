// The unified routes under /v1: which upstream a call goes to, and that nothing but the prefix is removed.
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { nothingLeaks } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { admin, call, configure, type CallInit } from '../support/worker.ts';

const GATEWAY_KEY = 'hg_unified-key';

let scopes: Record<'one' | 'two' | 'claude', Strict>;

async function configureUpstreams(more: object = {}): Promise<void> {
  await configure({
    upstreams: [
      { id: 'one', base_url: `${scopes.one.url}/v1`, models: ['alpha-*', 'both-*'] },
      { id: 'two', base_url: scopes.two.url, openai_at: '/v1', models: ['beta-*', 'both-*'] },
      { id: 'claude', base_url: scopes.claude.url, dialect: 'anthropic', models: ['c-*'] },
    ],
    groups: [{ name: 'none', match: { models: ['closed'] }, limits: { max_concurrency: 0 } }],
    ...more,
  });
}

beforeAll(async () => {
  const echo = { echo: true };
  scopes = {
    one: await strictScope('one', echo),
    two: await strictScope('two', echo),
    claude: await strictScope('claude', echo),
  };
  await configureUpstreams();
});

afterAll(nothingLeaks);

interface UnifiedEcho {
  readonly path: string;
  readonly bodyBytes: number;
  readonly sha256: string;
}

async function sha256(text: string): Promise<string> {
  const bytes = new TextEncoder().encode(text);
  return new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)).toHex();
}

/** Sends a body and tells which upstream got it, and what it got. */
async function sendTo(path: string, body: string, headers: Record<string, string> = {}) {
  const before = await totals();
  const init: CallInit = { method: 'POST', body, headers };
  const response = await call(path, {
    ...init,
    headers: { 'content-type': 'application/json', ...headers },
  });
  const after = await totals();
  const to = (Object.keys(after) as (keyof typeof after)[]).filter(
    (name) => after[name] > before[name],
  );
  return { response, to: to.join(), echo: await response.json<UnifiedEcho>() };
}

async function totals() {
  const { one, two, claude } = scopes;
  return {
    one: (await one.stats()).total,
    two: (await two.stats()).total,
    claude: (await claude.stats()).total,
  };
}

it.each([
  ['in front', '{"model":"two/x-1","messages":[]}'],
  ['behind, with odd spacing', '{ "messages" : [ ],\n\t"model"\r\n:   "two/x-1"  , "n":1.0e0 }'],
  [
    'with text that looks like it',
    '{"messages":[{"content":"\\"model\\":\\"two/x\\""}],"model":"two/x-1"}',
  ],
  ['of a model that has slashes', '{"model":"two/vendor/x-1","messages":[]}'],
  ['in a large body', `{"messages":["${'two/x-1 '.repeat(50_000)}"],"model":"two/x-1"}`],
])('a prefix that names an upstream is removed and nothing else: %s', async (_, body) => {
  const { to, echo } = await sendTo('/v1/chat/completions', body);
  const at = body.lastIndexOf('"two/') + 1;
  const expected = body.slice(0, at) + body.slice(at + 'two/'.length);
  expect(to).toBe('two');
  expect(echo).toMatchObject({ bodyBytes: expected.length, sha256: await sha256(expected) });
  expect(echo.path).toBe('/v1/chat/completions');
});

it('a form field loses its prefix too', async () => {
  const form = (model: string) =>
    `--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n\u0000two/\r\n--b\r\n` +
    `content-disposition: form-data; name="model"\r\n\r\n${model}\r\n--b--\r\n`;
  const { to, echo } = await sendTo('/v1/audio/transcriptions', form('two/whisper'), {
    'content-type': 'multipart/form-data; boundary=b',
  });
  expect(to).toBe('two');
  expect(echo.sha256).toBe(await sha256(form('whisper')));
});

it('the header goes before the model, whose name stays as it is', async () => {
  const body = '{"model":"two/beta-1"}';
  const { to, echo } = await sendTo('/v1/chat/completions', body, { 'headgate-upstream': 'one' });
  expect(to).toBe('one');
  expect(echo).toMatchObject({ path: '/v1/chat/completions', sha256: await sha256(body) });
});

it.each([
  ['alpha-1', 'one'],
  ['beta-1', 'two'],
  ['Beta-1', 'two'],
])('a model goes to the upstream whose patterns know it: %s', async (model, expected) => {
  const body = JSON.stringify({ model });
  const { to, echo } = await sendTo('/v1/embeddings', body);
  expect(to).toBe(expected);
  expect(echo).toMatchObject({ path: '/v1/embeddings', sha256: await sha256(body) });
});

it('the header headgate-model stands for a model that the body does not show', async () => {
  const { to } = await sendTo('/v1/chat/completions', 'opaque', { 'headgate-model': 'beta-9' });
  expect(to).toBe('two');
});

it('the messages route goes to an upstream of that shape', async () => {
  const { to, echo } = await sendTo('/v1/messages', '{"model":"claude/c-1"}');
  expect(to).toBe('claude');
  expect(echo).toMatchObject({ path: '/v1/messages', sha256: await sha256('{"model":"c-1"}') });
});

it.each<[string, string, object, number, RegExp]>([
  ['two patterns that match', 'both-1', {}, 400, /model_ambiguous.*`one`, `two`/],
  ['a model that nobody knows', 'gamma', {}, 404, /model_unknown.*model patterns for/],
  ['a header that names nobody', 'x', { 'headgate-upstream': 'nobody' }, 404, /upstream_unknown/],
  ['no routes of that shape', 'claude/c-1', {}, 404, /no routes of the `openai` dialect/],
])('%s is refused with what was tried', async (_, model, headers, status, expected) => {
  const init = { json: { model }, headers: headers as Record<string, string> };
  const response = await call('/v1/chat/completions', init);
  expect(response.status).toBe(status);
  expect(response.headers.get('x-should-retry')).toBe('false');
  expect(`${response.headers.get('headgate-reason')} ${await response.text()}`).toMatch(expected);
});

it('the configured default takes what nobody else does', async () => {
  await configureUpstreams({ default_upstream: 'one' });
  const { to } = await sendTo('/v1/chat/completions', '{"model":"gamma"}');
  expect(to).toBe('one');
  await configureUpstreams();
});

it('groups match the model without its prefix', async () => {
  const json = { model: 'two/closed' };
  const response = await call('/v1/chat/completions', {
    json,
    headers: { 'headgate-max-wait': '0' },
  });
  expect(response.headers.get('headgate-reason')).toBe('busy');
  expect(await response.text()).toContain('group `none`');
});

it('GET /v1/models lists the models of the default upstream and of those with a secret', async () => {
  for (const scope of Object.values(scopes)) await scope.configure({ echo: false });
  const { json } = await admin('POST', '/fingerprint', { key: GATEWAY_KEY });
  const base_url = `${scopes.two.url}/v1`;
  await configure({
    upstreams: [
      { id: 'one', base_url: scopes.one.url, auth: { secret: 'UPSTREAM_TEST_KEY' } },
      { id: 'two', base_url },
      { id: 'broken', base_url: 'http://127.0.0.1:9', auth: { secret: 'UPSTREAM_TEST_KEY' } },
    ],
    keys: [{ id: 'k', hash: json.hash as string }],
    default_upstream: 'two',
  });
  const headers = { authorization: `Bearer ${GATEWAY_KEY}` };
  const { data } = await (await call('/v1/models', { headers })).json<{ data: { id: string }[] }>();
  const ids = data.map(({ id }) => id);
  expect(ids).toContain('one/gpt-4o-mini');
  expect(ids).toContain('two/gpt-4o-mini');
  expect(ids.filter((id) => id.startsWith('broken/'))).toEqual([]);
  const before = (await scopes.one.stats()).uncounted;
  const named = await call('/v1/models', { headers: { ...headers, 'headgate-upstream': 'two' } });
  expect((await named.json<{ data: { id: string }[] }>()).data[0]?.id).toBe('gpt-4o-mini');
  expect((await scopes.one.stats()).uncounted).toBe(before);
});

it('GET /v1/models lists what a key may call that lists groups', async () => {
  for (const scope of Object.values(scopes)) await scope.configure({ echo: false });
  const { json } = await admin('POST', '/fingerprint', { key: GATEWAY_KEY });
  const auth = { secret: 'UPSTREAM_TEST_KEY' };
  const listed = async (groups: string[]): Promise<string[]> => {
    await configure({
      upstreams: [
        { id: 'one', base_url: scopes.one.url, auth, openai_at: '/v1' },
        { id: 'two', base_url: scopes.two.url, auth, openai_at: '/v1' },
      ],
      groups: [
        { name: 'mini', match: { models: ['gpt-4o-mini'], upstreams: ['one'] } },
        { name: 'vectors', match: { upstreams: ['two'], operations: ['embeddings'] } },
        { name: 'everything' },
      ],
      keys: [{ id: 'k', hash: json.hash as string, groups }],
    });
    const headers = { authorization: `Bearer ${GATEWAY_KEY}` };
    const answer = await call('/v1/models', { headers });
    return (await answer.json<{ data: { id: string }[] }>()).data.map(({ id }) => id).toSorted();
  };
  const all = await listed([]);
  expect(all.length).toBeGreaterThan(2);
  const before = (await scopes.two.stats()).uncounted;
  expect(await listed(['mini'])).toEqual(['one/gpt-4o-mini']);
  // The other upstream was not even asked.
  expect((await scopes.two.stats()).uncounted).toBe(before);
  expect(await listed(['auto:one'])).toEqual(
    all.filter((id) => id.startsWith('one/') && id !== 'one/gpt-4o-mini'),
  );
  // A group may be for some operations only: whatever can be embedded there can be called.
  expect(await listed(['vectors'])).toEqual(all.filter((id) => id.startsWith('two/')));
  expect(await listed(['elsewhere'])).toEqual([]);
});

it('GET /v1/models names what is configured where callers bring their own key', async () => {
  const { json } = await admin('POST', '/fingerprint', { key: GATEWAY_KEY });
  const upstreams = [
    { id: 'one', base_url: scopes.one.url, openai_at: '/v1', aliases: { mine: 'gpt-4o' } },
    { id: 'two', base_url: scopes.two.url, openai_at: '/v1', models: ['beta-*', 'beta-1'] },
    {
      id: 'stored',
      base_url: scopes.two.url,
      models: ['s'],
      auth: { secret: 'UPSTREAM_TEST_KEY' },
    },
  ];
  const groups = [{ name: 'beta', match: { models: ['beta-1', 'beta-2'] } }];
  const before = [await scopes.one.stats(), await scopes.two.stats()].map((one) => one.uncounted);
  const listed = async (headers: Record<string, string>): Promise<string[]> => {
    const answer = await call('/v1/models', { headers });
    return (await answer.json<{ data: { id: string }[] }>()).data.map(({ id }) => id);
  };
  await configure({ upstreams, groups });
  const all = ['one/mine', 'two/beta-1', 'two/beta-2'];
  expect(await listed({ authorization: 'Bearer sk-mine' })).toEqual(all);
  const keys = [{ id: 'k', hash: json.hash as string, groups: ['beta'] }];
  await configure({ upstreams, groups, keys });
  const both = { 'headgate-key': GATEWAY_KEY, authorization: 'Bearer sk-mine' };
  expect(await listed(both)).toEqual(['two/beta-1', 'two/beta-2']);
  // The key of one provider is shown to no other.
  const after = [await scopes.one.stats(), await scopes.two.stats()].map((one) => one.uncounted);
  expect(after).toEqual(before);
});

it('GET /v1/models is private to who asks, and an endless list of an upstream is let go', async () => {
  await configure({
    upstreams: [{ id: 'two', base_url: `${scopes.two.url}/v1`, aliases: { mine: 'gpt-4o' } }],
    default_upstream: 'two',
  });
  let pulled = 0;
  let isCancelled = false;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      pulled += 1;
      controller.enqueue(new TextEncoder().encode(' '.repeat(65_536)));
    },
    cancel() {
      isCancelled = true;
    },
  });
  vi.spyOn(globalThis, 'fetch').mockImplementation(() => Promise.resolve(new Response(endless)));
  const answer = await call('/v1/models', { headers: { authorization: 'Bearer sk-mine' } });
  vi.restoreAllMocks();
  expect(answer.headers.get('cache-control')).toBe('private');
  expect(answer.headers.get('vary')).toContain('authorization');
  expect((await answer.json<{ data: { id: string }[] }>()).data).toMatchObject([
    { id: 'two/mine', object: 'model' },
  ]);
  expect({ isCancelled, isBounded: pulled < 70 }).toEqual({ isCancelled: true, isBounded: true });
});

it('GET /v1/models asks Anthropic in the way that it answers', async () => {
  for (const scope of Object.values(scopes)) await scope.configure({ echo: false });
  await configure({
    upstreams: [{ id: 'anthropic', base_url: scopes.claude.url }],
    default_upstream: 'anthropic',
  });
  const answer = await call('/v1/models', { headers: { authorization: 'Bearer sk-ant-mine' } });
  const [model] = (await answer.json<{ data: { id: string }[] }>()).data;
  // The upstream shows its own shape only to whom says a version.
  expect(model).toMatchObject({ id: expect.stringMatching(/^anthropic\//), type: 'model' });
});

it('GET /v1/models follows no redirect, which would take a key along', async () => {
  const location = `${scopes.one.url}/v1/models`;
  await configure({
    upstreams: [{ id: 'two', base_url: `${scopes.two.url}/v1` }],
    default_upstream: 'two',
  });
  const before = (await scopes.one.stats()).uncounted;
  const headers = { authorization: 'Bearer sk-mine', 'x-strict-redirect': location };
  const answer = await call('/v1/models', { headers });
  expect((await answer.json<{ data: unknown[] }>()).data).toEqual([]);
  expect((await scopes.one.stats()).uncounted).toBe(before);
});
