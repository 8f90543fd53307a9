// Errors behind an early answer arrive as the last event of the stream, in the dialect of the caller.
import { afterAll, beforeEach, expect, it } from 'vitest';
import { nothingLeaks } from '../support/pool.ts';
import { call, change, configure } from '../support/worker.ts';
import {
  allFree,
  finish,
  groupOf,
  newScene,
  streaming,
  untilInFlight,
  type Scene,
} from './scene.ts';

let scene: Scene;
let group = '';

beforeEach(async () => {
  scene = await newScene();
  group = scene.name('frames');
});

afterAll(nothingLeaks);

const messages = [{ role: 'user', content: 'x' }];

interface Shape {
  readonly shape: string;
  readonly dialect: 'openai' | 'anthropic' | 'gemini';
  readonly path: string;
  readonly json: object;
  readonly event: string | null;
  /** What a refusal for want of time looks like, and an upstream's 500. */
  readonly refused: object;
  readonly failed: object;
}

const SHAPES: readonly Shape[] = [
  {
    shape: 'openai chat',
    dialect: 'openai',
    path: '/up/v1/chat/completions',
    json: { model: 'm', stream: true, messages },
    event: null,
    refused: { error: { code: 'queue_timeout', type: 'rate_limit_error' } },
    failed: { error: { message: expect.any(String) } },
  },
  {
    shape: 'openai responses',
    dialect: 'openai',
    path: '/up/v1/responses',
    json: { model: 'm', stream: true, input: 'x' },
    event: 'error',
    refused: { type: 'error', code: 'queue_timeout', error: { code: 'queue_timeout' } },
    failed: { type: 'error', error: { message: expect.any(String) } },
  },
  {
    shape: 'anthropic',
    dialect: 'anthropic',
    path: '/up/v1/messages',
    json: { model: 'm', max_tokens: 9, stream: true, messages },
    event: 'error',
    refused: { type: 'error', error: { type: 'rate_limit_error' } },
    failed: { type: 'error', error: { type: 'api_error' } },
  },
  {
    shape: 'gemini',
    dialect: 'gemini',
    path: '/up/v1beta/models/m:streamGenerateContent?alt=sse',
    json: { contents: [{ role: 'user', parts: [{ text: 'x' }] }] },
    event: null,
    refused: { error: { code: 429, status: 'RESOURCE_EXHAUSTED' } },
    failed: { error: { code: 500 } },
  },
];

async function configureShape({ dialect }: Shape): Promise<void> {
  const keepalive = { after_ms: 100, every_ms: 1_000 };
  await configure({
    upstreams: [{ id: 'up', base_url: scene.strict.url, dialect }],
    groups: [groupOf(group, 1, { queue: { keepalive } })],
  });
}

/** The one event behind the comments. */
function lastEvent(text: string): { event: string | null; data: unknown } {
  const events = text.split('\n\n').filter((one) => one !== '' && !one.startsWith(': headgate'));
  expect(events).toHaveLength(1);
  const lines = (events[0] ?? '').split('\n');
  const field = (name: string) =>
    lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? null;
  return { event: field('event'), data: JSON.parse(field('data') ?? 'null') };
}

it.each(SHAPES)('a refusal after the early answer is an error frame: $shape', async (shape) => {
  await configureShape(shape);
  const holder = await streaming(scene, 'holder');
  const headers = { 'headgate-max-wait': '700ms' };
  const response = await call(shape.path, { json: shape.json, headers });
  expect(response.status).toBe(200);
  const { event, data } = lastEvent(await response.text());
  expect(event).toBe(shape.event);
  expect(data).toMatchObject(shape.refused);
  await finish(scene, [holder]);
  await allFree(group);
});

it.each(SHAPES)('an upstream error after the early answer is one too: $shape', async (shape) => {
  await configureShape(shape);
  const holder = await streaming(scene, 'holder');
  const headers = { 'x-strict-status': '500' };
  const response = await call(shape.path, { json: shape.json, headers });
  expect(response.status).toBe(200);
  const text = response.text();
  await finish(scene, [holder]);
  const { event, data } = lastEvent(await text);
  expect(event).toBe(shape.event);
  expect(data).toMatchObject(shape.failed);
  await allFree(group);
});

it('a refusal before the early answer has its own status', async () => {
  const [chat] = SHAPES;
  if (chat === undefined) throw new Error('no shape');
  await configureShape(chat);
  await change('POST', `/groups/${group}/pause`);
  const headers = { 'headgate-max-wait': '0' };
  const response = await call(chat.path, { json: chat.json, headers });
  expect(response.status).toBe(503);
  expect(response.headers.get('headgate-reason')).toBe('paused');
});

it('a stream that the upstream breaks off behind the comments breaks off for the caller', async () => {
  const [chat] = SHAPES;
  if (chat === undefined) throw new Error('no shape');
  await configureShape(chat);
  const holder = await streaming(scene, 'holder');
  const headers = { 'x-strict-break-after-chunks': '2' };
  const response = await call(chat.path, { json: chat.json, headers });
  const end = response.text().then(
    () => 'done',
    () => 'cut',
  );
  await finish(scene, [holder]);
  expect(await end).toBe('cut');
  await untilInFlight(scene.strict, 0);
  await allFree(group);
});
