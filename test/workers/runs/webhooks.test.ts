// A provider says by a signed webhook that a run has ended; nobody else can.
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { nothingLeaks, untilStatus } from '../support/pool.ts';
import { call } from '../support/worker.ts';
import { runScene, started, storedRuns, type RunScene } from './scene.ts';

const SECRET = 'webhook-secret-4712';

let scene: RunScene;
let run = '';

beforeAll(async () => {
  scene = await runScene('hooked', 1, { upstream: { webhook_secret: 'WEBHOOK_TEST' } });
});

beforeEach(async () => {
  if ((await scene.strict.stats()).runs.inFlight === 0) run = await started(scene);
  await untilStatus(scene.group, { in_use: 1 });
});

afterAll(nothingLeaks);

async function hmac(secret: string, text: string): Promise<string> {
  const bytes = new TextEncoder();
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', bytes.encode(secret), algorithm, false, [
    'sign',
  ]);
  return new Uint8Array(await crypto.subtle.sign('HMAC', key, bytes.encode(text))).toBase64();
}

interface WebhooksReply {
  readonly secret?: string;
  readonly body?: string;
  readonly agoS?: number;
  readonly path?: string;
  readonly signed?: string;
  readonly type?: string;
}

async function reported(type: string, said: WebhooksReply = {}): Promise<number> {
  const { secret = SECRET, agoS = 0, path = '/webhooks/hooked' } = said;
  const body = said.body ?? JSON.stringify({ type, data: { id: run } });
  const timestamp = String(Math.floor(Date.now() / 1_000) - agoS);
  const signature = said.signed ?? `v1,${await hmac(secret, `msg_1.${timestamp}.${body}`)}`;
  const headers = {
    'content-type': said.type ?? 'application/json',
    'webhook-id': 'msg_1',
    'webhook-timestamp': timestamp,
    'webhook-signature': signature,
  };
  const answer = await call(path, { method: 'POST', body, headers });
  await answer.text();
  return answer.status;
}

it.each<[string, number, string, WebhooksReply]>([
  ['another secret', 401, 'response.completed', { secret: 'guessed' }],
  ['no signature', 401, 'response.completed', { signed: '' }],
  ['a signature that is none', 401, 'response.completed', { signed: 'v1,!!!' }],
  ['a message of an hour ago', 401, 'response.completed', { agoS: 3_600 }],
  ['an upstream without a secret', 404, 'response.completed', { path: '/webhooks/openai' }],
  ['a long message', 413, 'response.completed', { body: 'x'.repeat(70_000) }],
  ['a message of another type', 415, 'response.completed', { type: 'text/plain' }],
  ['a message that is no JSON', 400, 'response.completed', { body: 'run' }],
  ['another event', 204, 'response.created', {}],
  ['another run', 204, '', { body: '{"type":"response.completed","data":{"id":"run_999"}}' }],
])('%s is answered %i and ends nothing', async (_, status, type, said) => {
  expect(await reported(type, said)).toBe(status);
  expect(await storedRuns(scene)).toBe(1);
});

it.each(['completed', 'failed', 'cancelled', 'incomplete'])(
  'response.%s frees the slot',
  async (how) => {
    await scene.strict.endRun(how, run);
    expect(await reported(`response.${how}`)).toBe(204);
    await untilStatus(scene.group, { in_use: 0 });
    expect(await storedRuns(scene)).toBe(0);
  },
);

it('of several signatures one that fits is enough', async () => {
  const body = JSON.stringify({ type: 'response.completed', data: { id: run } });
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const right = await hmac(SECRET, `msg_1.${timestamp}.${body}`);
  await scene.strict.endRun('completed', run);
  expect(await reported('', { body, signed: `v1,${btoa('old')} v2,x v1,${right}` })).toBe(204);
  await untilStatus(scene.group, { in_use: 0 });
});
