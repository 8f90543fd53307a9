// Calls that generate nothing take no slot, even where there is none; and the pages of Headgate's own.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { proxy } from '../../../src/call/handle.ts';
import { nothingLeaks, pool } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { call, configure, env, open, until } from '../support/worker.ts';

let strict: Strict;

beforeAll(async () => {
  strict = await strictScope('free');
  await configure({
    upstreams: [
      { id: 'up', base_url: strict.url },
      { id: 'claude', base_url: strict.url, dialect: 'anthropic' },
      { id: 'gemini', base_url: strict.url },
      { id: 'opaque', base_url: strict.url, dialect: 'opaque' },
    ],
    groups: [{ name: 'closed', limits: { max_concurrency: 0 } }],
  });
});

afterAll(nothingLeaks);

it.each([
  ['GET', '/up/v1/models'],
  ['GET', '/up/v1/models/gpt-4o'],
  ['POST', '/up/v1/files'],
  ['POST', '/up/v1/batches'],
  ['GET', '/up/v1/responses/resp_1'],
  ['GET', '/up/v1/chat/completions'],
  ['POST', '/claude/v1/messages/count_tokens'],
  ['POST', '/gemini/v1beta/models/gemini-2.5-flash:countTokens'],
  ['GET', '/gemini/v1beta/models'],
  ['GET', '/opaque/anything'],
])('%s %s passes without a slot', async (method, path) => {
  const body = method === 'GET' ? {} : { body: '{"model":"m"}' };
  const response = await call(path, { method, ...body });
  expect(response.status).toBe(200);
  for (const name of ['headgate-lease', 'headgate-groups', 'headgate-reason']) {
    expect(response.headers.has(name)).toBe(false);
  }
  await response.text();
  expect(await strict.stats()).toMatchObject({ total: 0 });
  expect(await pool('closed').status()).toMatchObject({ granted_total: 0, queued: 0 });
});

/** A request as it may come from the network: `fetch` would make none like it. */
function bodied(method: string, body: string): Request {
  const request = new Request('https://headgate.test/up/v1/models', { method: 'POST', body });
  return Object.defineProperty(request, 'method', { value: method });
}

it('a GET that says that it has a body, of no bytes, passes on without one', async () => {
  const response = await proxy(bodied('GET', ''), env, { waitUntil: () => {} });
  expect(response.status).toBe(200);
  await response.text();
});

it('a GET with a body is refused: it could not be passed on', async () => {
  const response = await proxy(bodied('GET', '{}'), env, { waitUntil: () => {} });
  expect(response.status).toBe(400);
  expect(response.headers.get('headgate-reason')).toBe('body_unreadable');
});

it.each([
  '/up/v1/chat/completions',
  '/up/v1/responses',
  '/up/v1/embeddings',
  '/up/v1/images/generations',
  '/up/v1/audio/speech',
  '/claude/v1/messages',
  '/gemini/v1beta/models/gemini-2.5-flash:streamGenerateContent',
  '/opaque/anything',
])('%s wants a slot, and there is none', async (path) => {
  const headers = { 'headgate-max-wait': '0' };
  const response = await call(path, { json: { model: 'm' }, headers });
  expect(response.headers.get('headgate-reason')).toBe('busy');
  await response.text();
  expect((await strict.stats()).total).toBe(0);
});

it('/healthz answers, and counts the calls that are queued', async () => {
  const before = await call('/healthz');
  expect(before.status).toBe(200);
  expect(await before.json()).toEqual({ ok: true, calls_in_flight: 0 });
  const waiting = open('/up/v1/chat/completions', 'waiting');
  await until(async () =>
    expect(await (await call('/healthz')).json()).toEqual({ ok: true, calls_in_flight: 1 }),
  );
  waiting.leave();
  await until(async () =>
    expect(await (await call('/healthz')).json()).toEqual({ ok: true, calls_in_flight: 0 }),
  );
});

it('/ says what this is, how to use it and what is set up', async () => {
  const text = await (await call('/')).text();
  expect(text).toContain('https://headgate.test/openai/v1');
  expect(text).toMatch(/Directory +ready/);
  expect(text).toMatch(/Admin routes +open/);
  expect(text).toMatch(/Groups +1 configured/);
  expect(text).toMatch(/Gateway keys +none configured/);
});
