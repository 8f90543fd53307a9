// Errors behind an early answer arrive as the last event of the stream, in the dialect of the caller.
import { expect, it } from 'vitest';
import { call, change, configure } from '../support/worker.ts';
import {
  allFree,
  finish,
  group,
  groupOf,
  scene,
  streaming,
  untilInFlight,
  useScenes,
} from './scene.ts';

useScenes('error-frames');

const messages = [{ role: 'user', content: 'x' }];

interface ErrorFramesShape {
  readonly shape: string;
  readonly dialect: 'openai' | 'anthropic' | 'gemini';
  readonly path: string;
  readonly json: object;
  readonly event: string | null;
  /** Events that go before the error. @default none */
  readonly before?: readonly string[];
  /** Looks of a refusal for want of time, and of an upstream's 500. */
  readonly refused: object;
  readonly failed: object;
}

const SHAPES: readonly ErrorFramesShape[] = [
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
    before: ['response.created', 'response.failed'],
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
  {
    shape: 'gemini interactions',
    dialect: 'gemini',
    path: '/up/v1beta/interactions',
    json: { model: 'm', input: 'x', stream: true },
    event: 'error',
    refused: { event_type: 'error', error: { code: 429, status: 'RESOURCE_EXHAUSTED' } },
    failed: { event_type: 'error', error: { message: expect.any(String) } },
  },
];

async function configureShape({ dialect }: ErrorFramesShape, after_ms = 100): Promise<void> {
  const keepalive = { after_ms, every_ms: 1_000 };
  await configure({
    upstreams: [{ id: 'up', base_url: scene.strict.url, dialect }],
    groups: [groupOf(group, 1, { queue: { keepalive } })],
  });
}

interface ErrorFramesEvent {
  readonly event: string | null;
  readonly data: unknown;
}

/** The events behind the comments. */
function eventsOf(text: string): ErrorFramesEvent[] {
  const events = text.split('\n\n').filter((one) => one !== '' && !one.startsWith(': headgate'));
  return events.map((one) => {
    const field = (name: string) =>
      one
        .split('\n')
        .find((line) => line.startsWith(`${name}: `))
        ?.slice(name.length + 2) ?? null;
    return { event: field('event'), data: JSON.parse(field('data') ?? 'null') };
  });
}

/** The error at the end, with nothing but what its shape wants before it. */
function lastEvent(text: string, { before = [] }: ErrorFramesShape): ErrorFramesEvent {
  const events = eventsOf(text);
  expect(events.slice(0, -1).map(({ event }) => event)).toEqual(before);
  return events.at(-1) ?? { event: null, data: null };
}

it.each(SHAPES)('a refusal after the early answer is an error frame: $shape', async (shape) => {
  await configureShape(shape);
  const holder = await streaming(scene, 'holder');
  const headers = { 'headgate-max-wait': '700ms' };
  const response = await call(shape.path, { json: shape.json, headers });
  expect(response.status).toBe(200);
  const { event, data } = lastEvent(await response.text(), shape);
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
  const { event, data } = lastEvent(await text, shape);
  expect(event).toBe(shape.event);
  expect(data).toMatchObject(shape.failed);
  await allFree(group);
});

it.each([
  ['that passes', 'queue_timeout', 'rate_limit_exceeded', / Please try again in \d+s\.$/],
  ['for good', 'upstream_unknown', 'invalid_prompt', /^(?!.*try again)/],
])(
  'a Responses stream fails in the words of the API for a refusal %s',
  async (_, reason, code, message) => {
    const [, responses] = SHAPES;
    if (responses === undefined) throw new Error('no shape');
    await configureShape(responses);
    const holder = await streaming(scene, 'holder');
    const isForGood = reason === 'upstream_unknown';
    const headers = { 'headgate-max-wait': isForGood ? '60s' : '700ms' };
    const response = await call(responses.path, { json: responses.json, headers });
    if (isForGood) {
      await configure({ upstreams: [{ id: 'another', base_url: scene.strict.url }] });
    }
    const events = eventsOf(await response.text()).map(({ data }) => data);
    const common = { id: expect.stringMatching(/^resp_/), object: 'response', model: 'm' };
    expect(events).toMatchObject([
      {
        type: 'response.created',
        sequence_number: 0,
        response: { ...common, status: 'in_progress', error: null, output: [] },
      },
      {
        type: 'response.failed',
        sequence_number: 1,
        response: {
          ...common,
          status: 'failed',
          error: { code, message: expect.stringMatching(message) },
        },
      },
      { type: 'error', sequence_number: 2, code: reason },
    ]);
    await finish(scene, [holder]);
    await allFree(group);
  },
);

it('a Responses stream says when its upstream wants to be asked again', async () => {
  const [, responses] = SHAPES;
  if (responses === undefined) throw new Error('no shape');
  await configureShape(responses);
  await scene.strict.configure({ retryAfterS: 7 });
  const holder = await streaming(scene, 'holder');
  const headers = { 'x-strict-status': '503' };
  const response = await call(responses.path, { json: responses.json, headers });
  const text = response.text();
  await finish(scene, [holder]);
  const [, failed] = eventsOf(await text).map(({ data }) => data);
  const message = expect.stringMatching(/ Please try again in 7s\.$/);
  expect(failed).toMatchObject({ type: 'response.failed', response: { error: { message } } });
  await allFree(group);
});

it('a refusal before the early answer has its own status', async () => {
  const [chat] = SHAPES;
  if (chat === undefined) throw new Error('no shape');
  await configureShape(chat, 60_000);
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
