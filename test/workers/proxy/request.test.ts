// What the upstream gets is what the caller sent, without what is Headgate's or the connection's. And the
// headers of answers that no honest upstream of ours gives: those come from a stand-in for `fetch`.
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { nothingLeaks } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { call, configure, type CallInit } from '../support/worker.ts';

let strict: Strict;

beforeAll(async () => {
  strict = await strictScope('request', { echo: true });
  await configure({
    upstreams: [{ id: 'up', base_url: `${strict.url}/below/` }],
    groups: [{ name: 'all', match: { upstreams: ['up'] }, limits: { max_concurrency: 8 } }],
    cors_origins: ['https://app.test'],
  });
});

afterEach(() => {
  vi.restoreAllMocks();
});

afterAll(nothingLeaks);

interface RequestEcho {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: Record<string, string>;
  readonly bodyBytes: number;
  readonly sha256: string;
}

async function echo(path: string, init: CallInit): Promise<RequestEcho> {
  const response = await call(path, init);
  expect(response.status).toBe(200);
  return response.json();
}

async function sha256(bytes: Uint8Array): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)).toHex();
}

it('path and query go on as they were written', async () => {
  const path = '/v1/%C3%BCber/chat/completions?b=2&a=%20x+y&b=1&key=sk-1&empty=';
  const seen = await echo(`/up${path}`, { json: { model: 'm' } });
  expect(`${seen.path}?${seen.query}`).toBe(`/below${path}`);
});

it.each(['POST', 'PUT', 'PATCH', 'DELETE'])('a body goes on byte for byte: %s', async (method) => {
  const body = new Uint8Array(300_000).map((_, at) => (at * 7) % 251);
  const headers = { 'content-type': 'application/octet-stream' };
  const seen = await echo('/up/v1/chat/completions', { method, body, headers });
  expect(seen).toMatchObject({ method, bodyBytes: body.length, sha256: await sha256(body) });
});

it('a streamed body of unknown length goes on whole', async () => {
  const part = new Uint8Array(50_000).fill(7);
  const { readable, writable } = new IdentityTransformStream();
  const writer = writable.getWriter();
  const sent = (async () => {
    for (let at = 0; at < 5; at += 1) await writer.write(part);
    await writer.close();
  })();
  const seen = await echo('/up/v1/chat/completions', { method: 'POST', body: readable });
  await sent;
  expect(seen.sha256).toBe(await sha256(new Uint8Array(250_000).fill(7)));
});

it('nothing comes out of a cache on the way', async () => {
  const fetched = vi.spyOn(globalThis, 'fetch');
  for (const path of ['/up/v1/chat/completions', '/up/v1/files']) {
    await echo(path, { json: { model: 'm' } });
    expect(fetched.mock.lastCall?.[1]).toMatchObject({ cache: 'no-store' });
  }
});

it("headers of Headgate's and of the connection stay here, all others go on", async () => {
  const { headers } = await echo('/up/v1/chat/completions', {
    json: { model: 'm' },
    headers: {
      authorization: 'Bearer sk-1',
      'openai-organization': 'org',
      'x-stainless-lang': 'js',
      'user-agent': 'client/1',
      'headgate-max-wait': '5s',
      'headgate-agent': 'run-1',
      'headgate-model': 'other',
      'cf-connecting-ip': '203.0.113.7',
      'x-forwarded-for': '203.0.113.7',
      'x-hop': 'dropped',
      connection: 'x-hop',
    },
  });
  expect(headers).toMatchObject({
    authorization: 'Bearer sk-1',
    'openai-organization': 'org',
    'x-stainless-lang': 'js',
    'user-agent': 'client/1',
    'content-type': 'application/json',
    host: new URL(strict.url).host,
  });
  // The runtime itself signs every request with `cf-worker`.
  const names = Object.keys(headers).filter((name) => name !== 'cf-worker');
  expect(names.filter((name) => /^(headgate-|cf-|x-forwarded-|x-hop)/.test(name))).toEqual([]);
});

it('answers keep each Set-Cookie and lose what is of the connection or speaks as Headgate', async () => {
  vi.spyOn(globalThis, 'fetch').mockImplementation(() => {
    const headers = new Headers({
      connection: 'x-hop',
      'x-hop': 'dropped',
      'keep-alive': 'timeout=5',
      'proxy-authenticate': 'Basic',
      'cf-ray': 'of the upstream',
      'headgate-reason': 'busy',
      'x-ratelimit-remaining-requests': '7',
    });
    headers.append('set-cookie', 'a=1; Path=/; Expires=Wed, 21 Oct 2026 07:28:00 GMT');
    headers.append('set-cookie', 'b=2');
    return Promise.resolve(new Response('{}', { headers }));
  });
  const { headers } = await call('/up/v1/chat/completions', { json: { model: 'm' } });
  expect(headers.getSetCookie()).toEqual([
    'a=1; Path=/; Expires=Wed, 21 Oct 2026 07:28:00 GMT',
    'b=2',
  ]);
  expect(headers.get('x-ratelimit-remaining-requests')).toBe('7');
  const gone = ['x-hop', 'keep-alive', 'proxy-authenticate', 'cf-ray', 'headgate-reason'];
  expect(gone.filter((name) => headers.has(name))).toEqual([]);
});

it('a call waits from its arrival, and not only once its body was read for its model', async () => {
  const uploadMs = 1_000;
  await configure({
    upstreams: [{ id: 'up', base_url: `${strict.url}/below/` }],
    groups: [{ name: 'of-m', match: { upstreams: ['up'], models: ['m'] } }],
    cors_origins: ['https://app.test'],
  });
  const body = new TextEncoder().encode('{"messages":[],"model":"m"}');
  const { readable, writable } = new FixedLengthStream(body.length);
  const headers = { 'content-type': 'application/json' };
  const answering = call('/up/v1/chat/completions', { method: 'POST', body: readable, headers });
  const writer = writable.getWriter();
  await writer.write(body.slice(0, 10));
  await new Promise((resolve) => setTimeout(resolve, uploadMs));
  await writer.write(body.slice(10));
  await writer.close();
  const answer = await answering;
  await answer.text();
  expect(Number(answer.headers.get('headgate-wait-ms'))).toBeGreaterThan(0.9 * uploadMs);
});

it('browsers of a configured origin may call, others learn nothing', async () => {
  const preflight = (origin: string) =>
    call('/up/v1/chat/completions', {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization, x-stainless-lang',
      },
    });
  const allowed = await preflight('https://app.test');
  expect(allowed.status).toBe(204);
  expect(allowed.headers.get('access-control-allow-origin')).toBe('https://app.test');
  expect(allowed.headers.get('access-control-allow-headers')).toContain('x-stainless-lang');
  const other = await preflight('https://evil.test');
  expect(other.headers.has('access-control-allow-origin')).toBe(false);
  await other.text();

  const headers = { origin: 'https://app.test' };
  const answer = await call('/up/v1/chat/completions', { json: { model: 'm' }, headers });
  expect(answer.headers.get('access-control-allow-origin')).toBe('https://app.test');
  expect(answer.headers.get('access-control-expose-headers')).toContain('headgate-wait-ms');
  await answer.text();
  const refused = await call('/nowhere/v1/chat/completions', { json: {}, headers });
  expect(refused.status).toBe(404);
  expect(refused.headers.get('access-control-allow-origin')).toBe('https://app.test');
});

it('a page of an upstream runs no script where the dashboard is, and programs get what it sent', async () => {
  const policyFor = async (mode: string): Promise<string | null> => {
    const headers = { 'sec-fetch-mode': mode };
    const answer = await call('/up/v1/chat/completions', { json: { model: 'm' }, headers });
    await answer.text();
    return answer.headers.get('content-security-policy');
  };
  expect(await policyFor('navigate')).toBe('sandbox');
  expect(await policyFor('cors')).toBeNull();
});

const OPEN_TO_ALL = {
  'access-control-allow-origin': '*',
  'access-control-allow-credentials': 'true',
  'access-control-expose-headers': '*',
};

it('what an upstream says of other origins is no part of what the operator says of them', async () => {
  vi.spyOn(globalThis, 'fetch').mockImplementation(() =>
    Promise.resolve(
      new Response('{}', { headers: { 'access-control-allow-credentials': 'true' } }),
    ),
  );
  const headers = { origin: 'https://app.test' };
  const answer = await call('/up/v1/chat/completions', { json: { model: 'm' }, headers });
  await answer.text();
  expect(answer.headers.get('access-control-allow-origin')).toBe('https://app.test');
  expect(answer.headers.has('access-control-allow-credentials')).toBe(false);
});

it('CORS is off until origins are configured', async () => {
  await configure({ upstreams: [{ id: 'up', base_url: strict.url }] });
  const headers = { origin: 'https://app.test' };
  const answer = await call('/up/v1/chat/completions', { json: { model: 'm' }, headers });
  expect(answer.headers.has('access-control-allow-origin')).toBe(false);
  await answer.text();
  vi.spyOn(globalThis, 'fetch').mockImplementation(() =>
    Promise.resolve(new Response('{}', { headers: OPEN_TO_ALL })),
  );
  for (const path of ['/up/v1/chat/completions', '/up/v1/files']) {
    const open = await call(path, { json: { model: 'm' }, headers });
    await open.text();
    expect([...open.headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual(
      [],
    );
  }
});
