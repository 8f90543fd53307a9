// What the upstream answers is what the caller gets: status, headers and bytes. Each answer is compared
// with the one that the same call gets straight from the upstream.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nothingLeaks } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { call, configure, until, type CallInit } from '../support/worker.ts';

let strict: Strict;

beforeAll(async () => {
  strict = await strictScope('bytes');
  await configure({
    upstreams: [
      { id: 'up', base_url: strict.url, redirects: 'pass' },
      { id: 'claude', base_url: strict.url, dialect: 'anthropic' },
    ],
    groups: [
      { name: 'bytes', match: { upstreams: ['up', 'claude'] }, limits: { max_concurrency: 8 } },
    ],
  });
});

afterAll(nothingLeaks);

// The bytes as they came over the wire, not decoded.
const RAW = { encodeResponseBody: 'manual', redirect: 'manual' } as const;

const CHAT = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'one two three' }] };

interface BytesSeen {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly bytes: string;
}

async function seen(response: Response): Promise<BytesSeen> {
  const headers = Object.fromEntries(response.headers);
  for (const name of Object.keys(headers)) {
    const isOurs = name.startsWith('headgate-');
    // Of the connection, or of the moment.
    if (isOurs || ['connection', 'keep-alive', 'transfer-encoding', 'date'].includes(name)) {
      delete headers[name];
    }
  }
  const bytes = new Uint8Array(await response.arrayBuffer());
  return { status: response.status, headers, bytes: bytes.toBase64() };
}

function initOf(init: CallInit): RequestInit {
  const { json, headers = {}, ...rest } = init;
  if (json === undefined) return { ...rest, ...RAW, headers };
  const body = JSON.stringify(json);
  const typed = { 'content-type': 'application/json', ...headers };
  return { method: 'POST', body, ...rest, ...RAW, headers: typed };
}

async function expectSame(id: string, path: string, init: CallInit): Promise<Response> {
  const straight = await seen(await fetch(`${strict.url}${path}`, initOf(init)));
  const answer = await call(`/${id}${path}`, initOf(init) as CallInit);
  expect(await seen(answer)).toEqual(straight);
  return answer;
}

const STREAM = { ...CHAT, stream: true };

describe('equal to the upstream, byte for byte:', () => {
  it.each<[string, CallInit]>([
    ['a JSON answer', { json: CHAT }],
    ['a stream', { json: STREAM }],
    ['a gzip answer', { json: CHAT, headers: { 'x-strict-gzip': '1' } }],
    ['a gzip stream', { json: STREAM, headers: { 'x-strict-gzip': '1' } }],
    ['a brotli stream', { json: STREAM, headers: { 'x-strict-brotli': '1' } }],
    [
      'a gzip stream of known length',
      { json: STREAM, headers: { 'x-strict-gzip': '1', 'x-strict-content-length': '1' } },
    ],
    ['a stream of known length', { json: STREAM, headers: { 'x-strict-content-length': '1' } }],
    ['a megabyte', { json: CHAT, headers: { 'x-strict-bytes': '1000000' } }],
    ['204', { json: CHAT, headers: { 'x-strict-no-content': '1' } }],
    ['304', { json: CHAT, headers: { 'x-strict-status': '304' } }],
    ['400', { json: CHAT, headers: { 'x-strict-status': '400' } }],
    ['404', { json: CHAT, headers: { 'x-strict-status': '404' } }],
    ['500', { json: CHAT, headers: { 'x-strict-status': '500' } }],
    ['529', { json: CHAT, headers: { 'x-strict-status': '529' } }],
    [
      '429 with its Retry-After, to a call that does not wait',
      {
        json: CHAT,
        headers: {
          'x-strict-status': '429',
          'x-strict-retry-after-s': '7',
          'headgate-max-wait': '0',
        },
      },
    ],
    [
      'a redirect, which is not followed',
      { json: CHAT, headers: { 'x-strict-redirect': 'https://elsewhere.test/v1' } },
    ],
  ])('%s', async (_, init) => {
    const { headers } = await expectSame('up', '/v1/chat/completions', init);
    expect(headers.has('headgate-reason')).toBe(false);
    expect(headers.get('headgate-groups')).toBe('bytes');
    expect(headers.get('headgate-lease')).toMatch(/^[0-9a-f-]{36}\.1$/);
    expect(headers.get('headgate-wait-ms')).toMatch(/^\d+$/);
    expect(headers.get('headgate-tries')).toBe('1');
  });

  it.each([
    ['a HEAD', '/v1/chat/completions', { method: 'HEAD' }],
    ['a list of models', '/v1/models', { method: 'GET' }],
    ['an error of a call without a slot', '/v1/models', { headers: { 'x-strict-status': '403' } }],
  ])('%s', async (_, path, init) => {
    const { headers } = await expectSame('up', path, init);
    expect(headers.has('headgate-lease')).toBe(false);
  });

  it("an error in the upstream's own dialect", async () => {
    const init = { json: CHAT, headers: { 'x-strict-status': '529' } };
    const { headers } = await expectSame('claude', '/v1/messages', init);
    expect(headers.has('headgate-reason')).toBe(false);
  });
});

it('a gzip stream arrives on time', async () => {
  const pausing = await strictScope('gzip', { gzip: true, silentAfterChunks: 2 });
  await configure({ upstreams: [{ id: 'up', base_url: pausing.url }] });
  const response = await call('/up/v1/chat/completions', initOf({ json: STREAM }) as CallInit);
  expect(response.headers.get('content-encoding')).toBe('gzip');
  const unpacked = response.body?.pipeThrough(new DecompressionStream('gzip'));
  const reader = unpacked?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  // Both pieces are there while the upstream is silent.
  while (!text.includes(' one')) text += (await reader?.read())?.value ?? '';
  expect((await pausing.stats()).inFlight).toBe(1);
  expect(text).not.toContain('[DONE]');
  await pausing.resume();
  for (;;) {
    const next = await reader?.read();
    if (next === undefined || next.done) break;
    text += next.value;
  }
  expect(text).toContain('[DONE]');
  await until(async () => expect((await pausing.stats()).completed).toBe(1));
});
