// Every refusal of Headgate's own: status, reason, and the body that the caller's SDK expects. None of
// these calls may reach the upstream.
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { NO_COOLDOWN, nothingLeaks, pool, take, untilStatus } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { call, chat, configure, open, worker, type CallInit } from '../support/worker.ts';

const CHAT = { model: 'm', messages: [{ role: 'user', content: 'hello' }] };
const DIALECTS = ['openai', 'anthropic', 'gemini', 'azure', 'bedrock', 'ollama', 'opaque'] as const;

let strict: Strict;

function config(): ConfigInput {
  const group = { limits: { max_concurrency: 1 }, holds: NO_COOLDOWN };
  return {
    upstreams: [
      ...DIALECTS.map((dialect) => ({ id: `x-${dialect}`, base_url: strict.url, dialect })),
      { id: 'full', base_url: strict.url },
      { id: 'paused', base_url: strict.url },
      { id: 'by-model', base_url: strict.url },
      { id: 'dead', base_url: 'http://127.0.0.1:9' },
    ],
    groups: [
      { ...group, name: 'busy', match: { upstreams: ['x-*'] }, limits: { max_concurrency: 0 } },
      { ...group, name: 'full', match: { upstreams: ['full'] }, queue: { max_length: 1 } },
      { ...group, name: 'paused', match: { upstreams: ['paused'] }, paused: true },
      { ...group, name: 'model', match: { upstreams: ['by-model'], models: ['m'] } },
      { ...group, name: 'dead', match: { upstreams: ['dead'] } },
    ],
  };
}

beforeAll(async () => {
  strict = await strictScope('refusals');
  await configure(config());
});

afterEach(async () => {
  const { total } = await strict.stats();
  if (total > 0) throw new Error('a call that was refused reached the upstream');
});

afterAll(nothingLeaks);

const TEMPORARY = [429, 502, 503];

/** Picks the headers that mark a refusal as ours, and say when to try again or that it is no use. */
function refusalOf({ status, headers }: Response) {
  const retryAfterMs = Number(headers.get('retry-after-ms') ?? 'NaN');
  return {
    status,
    reason: headers.get('headgate-reason'),
    retry: headers.get('x-should-retry') ?? (retryAfterMs > 0 && retryAfterMs <= 60_000),
    retryAfter: headers.get('retry-after') === String(Math.ceil(retryAfterMs / 1_000)),
  };
}

function refusal(status: number, reason: string): ReturnType<typeof refusalOf> {
  const isTemporary = TEMPORARY.includes(status);
  return { status, reason, retry: isTemporary ? true : 'false', retryAfter: isTemporary };
}

const MESSAGE = expect.stringContaining(
  'group `busy` currently has no slots (a limit may be 0), and',
);

it.each<[string, string, unknown]>([
  [
    'openai',
    '/x-openai/v1/chat/completions',
    { error: { message: MESSAGE, type: 'rate_limit_error', param: null, code: 'busy' } },
  ],
  [
    'anthropic',
    '/x-anthropic/v1/messages',
    { type: 'error', error: { type: 'rate_limit_error', message: MESSAGE } },
  ],
  [
    'gemini',
    '/x-gemini/v1beta/models/gemini-2.5-flash:generateContent',
    {
      error: {
        code: 429,
        status: 'RESOURCE_EXHAUSTED',
        message: MESSAGE,
        details: [{ reason: 'busy' }, { retryDelay: expect.stringMatching(/^\d+\.\d{3}s$/) }],
      },
    },
  ],
  [
    'azure',
    '/x-azure/openai/deployments/d/chat/completions?api-version=2024-10-21',
    { error: { message: MESSAGE, type: 'rate_limit_error', code: 'busy' } },
  ],
  ['bedrock', '/x-bedrock/model/m/converse', { message: MESSAGE }],
  ['ollama', '/x-ollama/api/chat', { error: MESSAGE }],
  ['opaque', '/x-opaque/whatever', { title: 'busy', status: 429, detail: MESSAGE, reason: 'busy' }],
  ['openai', '/x-gemini/v1beta/openai/chat/completions', { error: { code: 'busy' } }],
])('headgate-max-wait 0 is busy in the dialect %s: %s', async (_, path, body) => {
  const response = await call(path, { json: CHAT, headers: { 'headgate-max-wait': '0' } });
  expect(refusalOf(response)).toEqual(refusal(429, 'busy'));
  expect(await response.json()).toMatchObject(body as object);
});

it.each(['soon', '-1', '30 s', '1h', ''])('a headgate-max-wait of %j is a 400', async (wait) => {
  const headers = { 'headgate-max-wait': wait };
  const response = await call('/x-openai/v1/chat/completions', { json: CHAT, headers });
  expect(refusalOf(response)).toEqual(refusal(400, 'header_invalid'));
  expect(await response.text()).toContain('headgate-max-wait: expected a duration');
});

it.each<[string, Record<string, string>]>([
  ['headgate-max-wait', { 'headgate-max-wait': '200ms' }],
  ["the client's own time-out", { 'x-stainless-timeout': '0.4' }],
  ['the read time-out of Python', { 'x-stainless-read-timeout': '0.4' }],
  ['the smaller of both', { 'headgate-max-wait': '300s', 'x-stainless-timeout': '0.4' }],
])('a call waits no longer than %s', async (_, headers) => {
  const startedAt = Date.now();
  const response = await call('/x-openai/v1/chat/completions', { json: CHAT, headers });
  expect(Date.now() - startedAt).toBeGreaterThanOrEqual(195);
  expect(refusalOf(response)).toEqual(refusal(429, 'queue_timeout'));
  expect(await response.text()).toMatch(/No slot of group `busy` became free within \d+ ms/);
});

it('a call finds the queue full', async () => {
  const configVersion = 1_000_000;
  const { lease } = await take('full', 'holder', { configVersion });
  const waiting = open('/full/v1/chat/completions', 'waiting');
  await untilStatus('full', { in_use: 1, queued: 1 });
  const response = await chat('/full/v1/chat/completions', 'refused');
  expect(refusalOf(response)).toEqual(refusal(429, 'queue_full'));
  await response.text();
  waiting.leave();
  await untilStatus('full', { queued: 0 });
  await lease.release('unused', null);
});

it.each(['0', '200ms'])('a paused group answers 503 to a max-wait of %s', async (wait) => {
  const headers = { 'headgate-max-wait': wait };
  const response = await call('/paused/v1/chat/completions', { json: CHAT, headers });
  expect(refusalOf(response)).toEqual(refusal(503, 'paused'));
  expect(await response.json()).toMatchObject({ error: { type: 'server_error', code: 'paused' } });
});

it.each(['/x-openai/v1/files', '/x-anthropic/v1/messages', '/x-gemini/ws/other'])(
  'a WebSocket call that nothing is served over is answered with 501: %s',
  async (path) => {
    const headers = { upgrade: 'websocket', connection: 'upgrade' };
    const response = await worker.fetch(`https://headgate.test${path}`, { headers });
    expect(refusalOf(response)).toEqual(refusal(501, 'websocket_unsupported'));
    await response.text();
  },
);

it.each(['/x-openai/v1/responses', '/v1/responses', '/x-openai/v1/responses/?model=m'])(
  'a WebSocket call for responses is answered with 426, and told to use HTTP: %s',
  async (path) => {
    const headers = { upgrade: 'websocket', connection: 'upgrade' };
    const response = await worker.fetch(`https://headgate.test${path}`, { headers });
    expect(refusalOf(response)).toEqual(refusal(426, 'http_required'));
    expect(await response.json()).toMatchObject({
      error: { message: expect.stringContaining('Use HTTP: `POST /') },
    });
  },
);

it('a call signed with SigV4 is refused with an explanation', async () => {
  const headers = {
    authorization:
      'AWS4-HMAC-SHA256 Credential=AKIA/20261120/us-east-1/bedrock/aws4_request, SignedHeaders=host, Signature=00',
  };
  const response = await call('/x-bedrock/model/m/converse', { json: CHAT, headers });
  expect(refusalOf(response)).toEqual(refusal(401, 'key_invalid'));
  expect(response.headers.get('x-amzn-errortype')).toBe('AccessDeniedException');
  expect(await response.json()).toMatchObject({
    message: expect.stringContaining('Bedrock API key as a bearer token'),
  });
});

it.each(['/nowhere/v1/chat/completions', '/constructor/v1', '/robots.txt'])(
  'an upstream that nobody configured is a 404: %s',
  async (path) => {
    const response = await call(path, { json: CHAT });
    expect(refusalOf(response)).toEqual(refusal(404, 'upstream_unknown'));
    await response.text();
  },
);

it('/v1 alone says that it is a base URL', async () => {
  const response = await call('/v1');
  expect(refusalOf(response)).toEqual(refusal(404, 'upstream_unknown'));
  expect(await response.text()).toContain('`/v1` is a base URL, not a route.');
});

it('an upstream that cannot be reached is a 502, and its slot is free again', async () => {
  const response = await chat('/dead/v1/chat/completions', 'dead');
  expect(refusalOf(response)).toEqual(refusal(502, 'upstream_unreachable'));
  expect(await response.text()).toContain('the connection failed');
  await untilStatus('dead', { in_use: 0, cooling: 0 });
  expect(await pool('dead').status()).toMatchObject({ granted_total: 1 });
});

it.each<[string, CallInit]>([
  ['broken JSON', { method: 'POST', body: '{"messages": [], "model": ' }],
  ['a body that ends before its model', { method: 'POST', body: '{"messages": [' }],
  [
    'a form without a boundary',
    { method: 'POST', body: 'x', headers: { 'content-type': 'multipart/form-data' } },
  ],
])('a model that cannot be read is a 400 that names headgate-model: %s', async (_, init) => {
  const response = await call('/by-model/v1/chat/completions', init);
  expect(refusalOf(response)).toEqual(refusal(400, 'body_unreadable'));
  expect(await response.text()).toContain('Name it in the `headgate-model` header.');
});
