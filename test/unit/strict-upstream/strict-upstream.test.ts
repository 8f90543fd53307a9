import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { StrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { startStrictUpstream } from '../../strict-upstream/strict-upstream.ts';

/**
 * The strict upstream is what the other tests believe, so it is tested itself: what it counts, what it
 * refuses, and what it does to a stream. Each test takes a scope of its own.
 */
let upstream: StrictUpstream;

beforeAll(async () => {
  upstream = await startStrictUpstream();
});

afterAll(() => upstream.close());

type Headers = Readonly<Record<string, string>>;

function chat(scope: string, headers: Headers = {}, model = 'gpt-4o'): Promise<Response> {
  return fetch(`${upstream.scopeUrl(scope)}/v1/chat/completions`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'one two' }] }),
  });
}

async function until(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 25_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error('It did not come about in 25 s.');
    await delay(2);
  }
}

describe('what it counts', () => {
  it('admits exactly its limit for as long as the streams last', async () => {
    upstream.configure({ limit: 3, silentAfterChunks: 2 }, 'limit');
    const held = await Promise.all([chat('limit'), chat('limit'), chat('limit')]);
    const refused = await chat('limit');
    expect(held.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(refused.status).toBe(429);
    expect(JSON.stringify(await refused.json())).toContain('concurrent');
    expect(upstream.stats('limit')).toMatchObject({ inFlight: 3, admitted: 3, rejected429: 1 });
    upstream.resume('limit');
    await Promise.all(held.map((response) => response.text()));
    await until(() => upstream.stats('limit').inFlight === 0);
    expect(upstream.stats('limit')).toMatchObject({ peak: 4, completed: 3, admitted: 0, total: 4 });
  });

  it('holds each model to its own limit', async () => {
    upstream.configure({ limits: { 'glm-5.1': 1, 'glm-4.6': 2 }, silentAfterChunks: 0 }, 'models');
    const models = ['glm-5.1', 'glm-5.1', 'glm-4.6', 'glm-4.6', 'glm-4.6', 'glm-9'];
    const statuses: number[] = [];
    for (const model of models) statuses.push((await chat('models', {}, model)).status);
    expect(statuses).toEqual([200, 429, 200, 200, 429, 200]);
    const stats = upstream.stats('models');
    expect(stats.models['glm-5.1']).toMatchObject({ admitted: 1, rejected429: 1 });
    expect(stats.models['glm-4.6']).toMatchObject({ admitted: 2, rejected429: 1 });
    expect(stats).toMatchObject({ admitted: 4, rejected429: 2 });
    upstream.resume('models');
  });

  it('sees a client that leaves a silent stream, and lags when it is told to', async () => {
    upstream.configure({ silentAfterChunks: 1, accountingLagMs: 150 }, 'leave');
    const leaver = new AbortController();
    const url = `${upstream.scopeUrl('leave')}/v1/messages`;
    const body = JSON.stringify({ model: 'c', stream: true, messages: [] });
    await fetch(url, { method: 'POST', body, signal: leaver.signal });
    leaver.abort();
    await until(() => upstream.stats('leave').aborted === 1);
    expect(upstream.stats('leave')).toMatchObject({ inFlight: 0, admitted: 1, completed: 0 });
    await until(() => upstream.stats('leave').admitted === 0);
  });

  it('lists arrivals in order, with model and label', async () => {
    await (await chat('arrivals', { 'x-label': 'first' }, 'a')).text();
    await (await chat('arrivals', {}, 'b')).text();
    const seen = upstream.stats('arrivals').arrivals.map(({ model, label }) => [model, label]);
    expect(seen).toEqual([
      ['a', 'first'],
      ['b', 'one two'],
    ]);
  });

  it('does not count model lists, token counts and HEAD', async () => {
    const url = upstream.scopeUrl('free');
    const list = await fetch(`${url}/v1/models`);
    const head = await fetch(`${url}/v1/models`, { method: 'HEAD' });
    const count = await fetch(`${url}/v1/messages/count_tokens`, { method: 'POST', body: '{}' });
    expect([list.status, head.status, count.status]).toEqual([200, 200, 200]);
    expect(head.headers.get('content-length')).toBe(list.headers.get('content-length'));
    expect(upstream.stats('free')).toMatchObject({ total: 0, uncounted: 3 });
  });

  it('is controlled over HTTP, scope by scope', async () => {
    const url = upstream.scopeUrl('remote');
    const post = (verb: string, body: string): Promise<Response> =>
      fetch(`${url}/__strict/${verb}`, { method: 'POST', body });
    expect((await post('configure', '{"limit":0,"refusal":"kimi"}')).status).toBe(200);
    expect((await post('configure', '{"limits_":1}')).status).toBe(400);
    const refused = await chat('remote');
    expect(await refused.text()).toContain('max organization concurrency: 0');
    const stats = await fetch(`${url}/__strict/stats`);
    expect(await stats.json()).toMatchObject({ rejected429: 1, total: 1 });
    expect(await (await post('reset', '')).json()).toMatchObject({ rejected429: 0, total: 0 });
    expect(upstream.stats()).toMatchObject({ total: 0 });
  });

  it('copes with a thousand calls at once', async () => {
    upstream.configure({ silentAfterChunks: 1 }, 'thousand');
    const calls = Array.from({ length: 1_000 }, () => chat('thousand').then((r) => r.text()));
    await until(() => upstream.stats('thousand').inFlight === 1_000);
    upstream.resume('thousand');
    expect(new Set(await Promise.all(calls)).size).toBe(1);
    expect(upstream.stats('thousand')).toMatchObject({ peak: 1_000, completed: 1_000 });
  });
});

describe('what it does to an answer', () => {
  it('gives equal bytes for equal requests, also compressed, each chunk at its time', async () => {
    const plain = await (await chat('bytes')).text();
    const raw = async (header: string): Promise<Buffer> => {
      const { port } = upstream;
      const socket = connect(port, '127.0.0.1');
      const body =
        '{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"one two"}]}';
      socket.write(
        `POST /scope/bytes/v1/chat/completions HTTP/1.0\r\n${header}: 1\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
      const parts: Buffer[] = [];
      socket.on('data', (data) => parts.push(data));
      await once(socket, 'close');
      const all = Buffer.concat(parts);
      return all.subarray(all.indexOf('\r\n\r\n') + 4);
    };
    expect(gunzipSync(await raw('x-strict-gzip')).toString()).toBe(plain);
    expect(brotliDecompressSync(await raw('x-strict-brotli')).toString()).toBe(plain);
    expect(await (await chat('bytes')).text()).toBe(plain);
    const paced = { 'x-strict-chunk-delay-ms': '30', 'x-strict-gzip': '1' };
    const response = await chat('bytes', paced);
    const reader = response.body?.getReader();
    const gaps: number[] = [];
    for (let last = performance.now(); reader && !(await reader.read()).done;) {
      gaps.push(performance.now() - last);
      last = performance.now();
    }
    expect(gaps.filter((gap) => gap > 20).length).toBeGreaterThanOrEqual(4);
  });

  it('breaks off, resets, redirects, answers errors, and says what arrived', async () => {
    const broken = await chat('faults', { 'x-strict-break-after-chunks': '2' });
    await expect(broken.text()).rejects.toThrow('terminated');
    await expect(chat('faults', { 'x-strict-reset-before-headers': '1' })).rejects.toThrow(
      'fetch failed',
    );
    expect(upstream.stats('faults')).toMatchObject({ inFlight: 0, aborted: 0, total: 2 });
    const url = `${upstream.scopeUrl('faults')}/v1/files?a=%2F`;
    const ask = (headers: Headers): Promise<Response> =>
      fetch(url, { method: 'POST', headers, body: 'abc', redirect: 'manual' });
    const redirect = await ask({ 'x-strict-redirect': '/elsewhere' });
    expect([redirect.status, redirect.headers.get('location')]).toEqual([302, '/elsewhere']);
    expect((await ask({ 'x-strict-no-content': '1' })).status).toBe(204);
    const error = await ask({ 'x-strict-status': '503', 'x-strict-retry-after-s': '7' });
    expect([error.status, error.headers.get('retry-after')]).toEqual([503, '7']);
    expect(await (await ask({ 'x-strict-echo': '1' })).json()).toMatchObject({
      method: 'POST',
      path: '/v1/files',
      query: 'a=%2F',
      bodyBytes: 3,
      sha256: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    });
  });

  it('sends seeded bytes with their hash', async () => {
    const headers = { 'x-strict-bytes': '200001', 'x-strict-content-length': '1' };
    const response = await chat('seeded', headers);
    const bytes = await response.arrayBuffer();
    const hash = Buffer.from(await crypto.subtle.digest('SHA-256', bytes)).toString('hex');
    expect(response.headers.get('content-length')).toBe('200001');
    expect(response.headers.get('x-strict-sha256')).toBe(hash);
  });

  it('frames Gemini as SSE and as a JSON array, and Ollama as lines', async () => {
    const post = (path: string): Promise<Response> =>
      fetch(`${upstream.scopeUrl('shapes')}${path}`, { method: 'POST', body: '{}' });
    const model = '/v1beta/models/gemini-2.5-flash:streamGenerateContent';
    const array: unknown = await (await post(model)).json();
    const sse = await (await post(`${model}?alt=sse`)).text();
    const lines = (await (await post('/api/chat')).text()).trim().split('\n');
    expect(array).toHaveLength(5);
    expect(sse.match(/^data: /gm)).toHaveLength(5);
    expect(lines.map((line) => (JSON.parse(line) as { done: boolean }).done)).toEqual([
      ...Array<boolean>(5).fill(false),
      true,
    ]);
    expect(upstream.stats('shapes').models).toHaveProperty(['gemini-2.5-flash']);
  });
});
