// Addresses in upstreams' headers: those below the base URL become ours and work, and keys never follow any others.
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { GoogleGenAI as GoogleGenAI1 } from 'google-genai-1';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startServe } from '../../../scripts/serve/start-serve.ts';
import {
  startHandingUpstream,
  type HandingUpstreamRequest,
  type HandingUpstream,
} from '../support/handing-upstream.ts';
import { SocketClient } from '../support/socket-client.ts';

const KEY = `hg_${randomBytes(24).toString('hex')}`;
const OPERATOR_KEY = 'sk-of-the-operator';

let upstream: HandingUpstream;
let other: HandingUpstream;
let serve: Awaited<ReturnType<typeof startServe>>;
let dataDir: string;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'headgate-addresses-'));
  [upstream, other] = await Promise.all([startHandingUpstream(), startHandingUpstream()]);
  const hash = `sha256:${createHash('sha256').update(KEY).digest('hex')}`;
  const auth = { secret: 'UPSTREAM_OURS' };
  const limits = { max_concurrency: 4 };
  serve = await startServe({
    port: 0,
    dataDir,
    env: { UPSTREAM_OURS: OPERATOR_KEY },
    config: {
      upstreams: [
        { id: 'gemini', base_url: upstream.url, auth },
        { id: 'ours', base_url: `${upstream.url}/a`, auth },
        { id: 'beside', base_url: `${upstream.url}/b`, auth },
        { id: 'lax', base_url: `${upstream.url}/c`, auth, redirects: 'pass' },
        { id: 'claude', base_url: `${upstream.url}/d`, dialect: 'anthropic', auth },
        { id: 'own', base_url: `${upstream.url}/e` },
        { id: 'pooled', base_url: `${upstream.url}/f` },
        { id: 'full', base_url: `${upstream.url}/g`, auth },
      ],
      groups: [
        { name: 'ours', match: { upstreams: ['ours', 'lax', 'claude', 'own'] }, limits },
        {
          name: 'pooled',
          match: { upstreams: ['pooled'] },
          members: [{ name: 'only', upstream: 'beside' }],
        },
        {
          name: 'full',
          match: { upstreams: ['full'] },
          limits: { max_concurrency: 0 },
          on_saturated: { spill_to: ['beside'], after_ms: 0 },
        },
      ],
      keys: [{ id: 'team', hash, allow: ['*'] }],
    },
  });
});

beforeEach(() => {
  upstream.arrived.length = 0;
  other.arrived.length = 0;
});

afterAll(async () => {
  await Promise.all([serve.kill9(), upstream.stop(), other.stop()]);
  await rm(dataDir, { recursive: true, force: true });
});

const CHAT = '/v1/chat/completions';

function urlOf(path: string, asked: HandingUpstreamRequest): string {
  return `${serve.url}${path}?answer=${encodeURIComponent(JSON.stringify(asked))}`;
}

/** Calls with a body take a slot, others do not. */
async function ask(
  path: string,
  asked: HandingUpstreamRequest,
  headers: Record<string, string> = {},
) {
  const isChat = path.endsWith('/completions');
  const answer = await fetch(urlOf(path, asked), {
    method: isChat ? 'POST' : 'GET',
    redirect: 'manual',
    headers: { 'headgate-key': KEY, 'content-type': 'application/json', ...headers },
    ...(isChat && { body: '{"model":"m","messages":[]}' }),
  });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, text };
}

describe.each([
  ['with a slot', CHAT],
  ['without a slot', '/v1/models'],
])('of a call %s', (_what, route) => {
  it.each([
    ['location', '{base}/v1/x?page=2#top', '/v1/x?page=2#top'],
    ['location', '{base}', ''],
    ['content-location', '{base}/v1/x', '/v1/x'],
    [
      'operation-location',
      '{base}/openai/operations/7?api-version=1',
      '/openai/operations/7?api-version=1',
    ],
    ['azure-asyncoperation', '{base}/operations/7', '/operations/7'],
    ['x-goog-upload-url', '{base}/upload?upload_id=1', '/upload?upload_id=1'],
    ['x-goog-upload-control-url', '{base}/upload?upload_id=1', '/upload?upload_id=1'],
    ['location', '/a/v1/x', '/v1/x'],
    ['location', './x', `${route.slice(0, route.lastIndexOf('/'))}/x`],
    ['location', `{base}/v1/x?key=${OPERATOR_KEY}&page=2`, '/v1/x?page=2'],
    ['location', '{base}/v1/x?k=%73k-of-the-operator', '/v1/x'],
  ])('%s: %s is ours', async (name, value, own) => {
    const { status, headers } = await ask(`/ours${route}`, {
      status: 201,
      headers: { [name]: value },
    });
    expect(status).toBe(201);
    expect(headers.get(name)).toBe(`${serve.url}/ours${own}`);
  });

  it('each target of a Link below the base URL becomes ours, and others stay', async () => {
    const link =
      '<{base}/v1/x?after=1>; rel="next", <https://docs.test/>; rel="help"; title="<b>, \\"<c>\\""';
    const { headers } = await ask(`/ours${route}`, { headers: { link } });
    const next = `<${serve.url}/ours/v1/x?after=1>; rel="next"`;
    expect(headers.get('link')).toBe(
      `${next}, <https://docs.test/>; rel="help"; title="<b>, \\"<c>\\""`,
    );
  });

  it('a redirect below the base URL points to Headgate and can be followed', async () => {
    const asked = { status: 307, headers: { location: '{base}/v1/models' } };
    const { status, headers } = await ask(`/ours${route}`, asked);
    expect([status, headers.get('location')]).toEqual([307, `${serve.url}/ours/v1/models`]);
    const next = await fetch(headers.get('location') ?? '', { headers: { 'headgate-key': KEY } });
    expect(next.status).toBe(200);
    await next.text();
    expect(upstream.arrived.at(-1)?.url).toBe('/a/v1/models');
    expect(upstream.arrived.at(-1)?.headers.authorization).toBe(`Bearer ${OPERATOR_KEY}`);
  });

  it.each([
    [301, 'https://elsewhere.test/v1?token=1'],
    [302, '//elsewhere.test/v1'],
    [303, '{base}b/v1/x'],
    [307, '/b/v1/models'],
    [308, '{base}/../b/v1/models'],
    [300, '\\\\elsewhere.test/v1'],
    [307, 'ftp://elsewhere.test/'],
    [307, '{base}@elsewhere.test/'],
    [307, `{base}/v1/${OPERATOR_KEY}/x`],
    [307, 'http://['],
  ])('a redirect elsewhere is refused: %i %s', async (status, location) => {
    const seen = await ask(`/ours${route}`, { status, headers: { location } });
    expect(seen.status).toBe(502);
    expect(seen.headers.get('headgate-reason')).toBe('upstream_redirects');
    expect(seen.headers.get('x-should-retry')).toBe('false');
    expect(seen.headers.has('location')).toBe(false);
    expect(seen.text).toContain('redirects: pass');
    expect(seen.text).not.toContain(OPERATOR_KEY);
  });

  it.each(['location', 'operation-location', 'azure-asyncoperation', 'x-goog-upload-url'])(
    '%s elsewhere reaches no caller with a gateway key, unless redirects pass',
    async (name) => {
      const asked = { headers: { [name]: `${other.url}/x` } };
      expect((await ask(`/ours${route}`, asked)).headers.has(name)).toBe(false);
      const own = { authorization: 'Bearer sk-mine' };
      expect((await ask(`/own${route}`, asked, own)).headers.has(name)).toBe(false);
      expect((await ask(`/lax${route}`, asked)).headers.get(name)).toBe(`${other.url}/x`);
    },
  );

  it("redirects: pass passes redirects, except those with the operator's key", async () => {
    const to = (location: string) => ask(`/lax${route}`, { status: 302, headers: { location } });
    expect((await to('https://elsewhere.test/x')).headers.get('location')).toBe(
      'https://elsewhere.test/x',
    );
    expect((await to('{base}/v1/x')).headers.get('location')).toBe(`${serve.url}/lax/v1/x`);
    expect((await to(`https://elsewhere.test/?key=${OPERATOR_KEY}`)).status).toBe(502);
  });

  it('a 304 and a redirect without an address pass', async () => {
    expect((await ask(`/ours${route}`, { status: 304, headers: {} })).status).toBe(304);
    expect((await ask(`/ours${route}`, { status: 308, headers: {} })).status).toBe(308);
  });
});

it.each(['pooled', 'full'])(
  'addresses point to the upstream that answered a call to %s',
  async (id) => {
    const { status, headers } = await ask(`/${id}${CHAT}`, {
      headers: { location: '{base}/v1/x' },
    });
    expect([status, headers.get('location')]).toEqual([200, `${serve.url}/beside/v1/x`]);
  },
);

it('addresses of a unified call point to its upstream', async () => {
  const asked = { headers: { 'operation-location': '{base}/v1/x' } };
  const { headers } = await ask(CHAT, asked, { 'headgate-upstream': 'ours' });
  expect(headers.get('operation-location')).toBe(`${serve.url}/ours/v1/x`);
});

it.each([
  ['https', 'https'],
  ['HTTPS', 'https'],
  ['https, http', 'https'],
  ['http', 'http'],
  // Other schemes change nothing.
  ['ftp', 'http'],
  ['https://elsewhere.test', 'http'],
  ['httpsx, https', 'http'],
  ['', 'http'],
])('addresses have the scheme that a proxy reports: %j', async (reported, scheme) => {
  const asked = { headers: { location: '{base}/v1/x', link: '<{base}/v1/y>; rel="next"' } };
  const { host } = new URL(serve.url);
  await Promise.all(
    [CHAT, '/v1/models'].map(async (route) => {
      const { headers } = await ask(`/ours${route}`, asked, { 'x-forwarded-proto': reported });
      expect(headers.get('location')).toBe(`${scheme}://${host}/ours/v1/x`);
      expect(headers.get('link')).toBe(`<${scheme}://${host}/ours/v1/y>; rel="next"`);
    }),
  );
  expect(upstream.arrived.some(({ headers }) => 'x-forwarded-proto' in headers)).toBe(false);
});

it('an upgrade that is redirected to another host is refused', async () => {
  const asked = { status: 307, headers: { location: `${other.url}/x` } };
  const url = urlOf('/ours/v1/realtime', asked);
  const client = new SocketClient(`${url}&model=m`, { headers: { 'headgate-key': KEY } });
  const [status, body] = await client.end;
  expect(status).toBe(502);
  expect(body).toContain('upstream_redirects');
});

it('a client that follows redirects does not send its key elsewhere', async () => {
  const client = new Anthropic({
    apiKey: KEY,
    baseURL: `${serve.url}/claude`,
    maxRetries: 0,
    defaultQuery: {
      answer: JSON.stringify({ status: 307, headers: { location: `${other.url}/stolen` } }),
    },
  });
  const asking = client.messages.create({ model: 'm', max_tokens: 1, messages: [] });
  await expect(asking).rejects.toMatchObject({ status: 502 });
  expect(other.arrived).toEqual([]);
  expect(upstream.arrived).toHaveLength(1);
});

it('the host of a redirect is logged, without its path and query', async () => {
  await ask(`/ours${CHAT}`, {
    status: 302,
    headers: { location: 'https://logged.test/path?token=1' },
  });
  await expect
    .poll(() => serve.logs(), { timeout: 120_000 })
    .toMatch(/"event":"upstream_redirects".*"upstream":"ours".*"host":"logged\.test"/);
  expect(serve.logs()).not.toContain('token=1');
});

it.each([
  ['3', GoogleGenAI],
  ['1', GoogleGenAI1],
])('a file is uploaded by @google/genai %s, by the address handed out', async (_, Client) => {
  const ai = new Client({ apiKey: KEY, httpOptions: { baseUrl: `${serve.url}/gemini` } });
  const content = 'what is in the file';
  const file = await ai.files.upload({
    file: new Blob([content], { type: 'text/plain' }),
    config: { mimeType: 'text/plain' },
  });
  expect(file).toMatchObject({ name: 'files/one', sizeBytes: String(content.length) });
  const [start, bytes, ...more] = upstream.arrived;
  expect(more).toEqual([]);
  expect(start?.headers['x-goog-api-key']).toBe(OPERATOR_KEY);
  expect(bytes?.url).toMatch(
    /^\/upload\/v1(?:beta)?\/files\?upload_id=up-1&upload_protocol=resumable$/,
  );
  expect(bytes?.body).toBe(content);
  expect(bytes?.headers['x-goog-api-key']).toBe(OPERATOR_KEY);
  expect(JSON.stringify(upstream.arrived)).not.toContain('hg_');
});
