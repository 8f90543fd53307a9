// Streams that wait are kept alive by comments, and then get the upstream's bytes as they are.
import { tracing } from 'cloudflare:workers';
import { expect, it, vi } from 'vitest';
import { answerWaiting, LastPosition } from '../../../src/call/answer/keepalive.ts';
import { answered, rejected, type FinalResult } from '../../../src/call/results/result.ts';
import { nothingFound } from '../../../src/call/request/call.ts';
import { onTimer } from '../../../src/runtime/async.ts';
import { untilStatus } from '../support/pool.ts';
import { passTime } from '../support/time.ts';
import { call, chat, env, until } from '../support/worker.ts';
import {
  bytesFromUpstream,
  keptAlive,
  readerOf,
  readUntil,
  restOf,
  withoutSignsOfLife,
} from './event-stream.ts';
import {
  allFree,
  CHAT,
  configureGroups,
  finish,
  group,
  groupOf,
  queued,
  scene,
  streaming,
  useScenes,
} from './scene.ts';

useScenes('keepalive');

const KEEPALIVE = { keepalive: { after_ms: 100, every_ms: 1_000 } };

async function configureKeepalive(): Promise<void> {
  await configureGroups(scene, [groupOf(group, 1, { queue: KEEPALIVE })]);
}

const bodyOf = (label: string, more: object = {}, stream = true) => ({
  model: 'm',
  stream,
  messages: [{ role: 'user', content: label }],
  ...more,
});

it('a stream that waits gets comments with its place, then the upstream byte for byte', async () => {
  await configureKeepalive();
  const calls = [await streaming(scene, 'holder'), await queued(group, 'ahead')];
  const json = bodyOf('waits');
  const { reader, first } = await keptAlive(CHAT, { json });
  expect(first).toMatch(/^: headgate waiting for a slot/);
  const later = await readUntil(reader, /: 1 ahead, no estimate\n\n/);
  expect(withoutSignsOfLife(later)).toBe('');
  await finish(scene, calls);
  const rest = withoutSignsOfLife(await restOf(reader));
  expect(rest).toBe(await bytesFromUpstream(scene.strict, JSON.stringify(json)));
  expect(rest).toContain('data: [DONE]');
  await allFree(group);
});

it('headgate-keepalive: sse is enough where the group says nothing', async () => {
  await configureGroups(scene, [groupOf(group, 1)]);
  const holder = await streaming(scene, 'holder');
  const json = bodyOf('asked');
  const askedAt = Date.now();
  const answer = chat(CHAT, '', { json, headers: { 'headgate-keepalive': 'sse' } });
  const first = answer.then((response) => ({ response, afterMs: Date.now() - askedAt }));
  await untilStatus(group, { queued: 1 });
  // A call looks at the clock after its first second, when this has passed and a little is left.
  passTime(13_500);
  const { response, afterMs } = await first;
  // Nothing is sent before, so that an error can still have its status.
  expect(afterMs).toBeGreaterThanOrEqual(15_000);
  expect(response.status).toBe(200);
  const reader = readerOf(response);
  // The first comment may come before the group says how many are ahead.
  const comments = await readUntil(reader, /: 0 ahead[^\n]*\n\n/);
  expect(comments).toMatch(/^: headgate waiting for a slot/);
  await finish(scene, [holder]);
  expect(await restOf(reader)).toBe(await bytesFromUpstream(scene.strict, JSON.stringify(json)));
});

it('a stream that gets its slot in time is the upstream answer itself', async () => {
  const queue = { keepalive: { after_ms: 8_000 } };
  await configureGroups(scene, [groupOf(group, 1, { queue })]);
  await scene.strict.configure({ silentAfterChunks: null });
  const json = bodyOf('free');
  const response = await chat(CHAT, '', { json });
  expect(response.headers.get('headgate-groups')).toBe(group);
  expect(await response.text()).toBe(await bytesFromUpstream(scene.strict, JSON.stringify(json)));
});

it.each([
  ['stream: false', bodyOf('waits', {}, false)],
  ['no stream flag', { model: 'm', messages: [{ role: 'user', content: 'waits' }] }],
])('a call with %s gets no answer before its slot', async (_, json) => {
  await configureKeepalive();
  const holder = await streaming(scene, 'holder');
  const headers = { 'headgate-keepalive': 'sse', 'headgate-max-wait': '700ms' };
  const response = await chat(CHAT, '', { json, headers });
  expect(response.status).toBe(429);
  expect(response.headers.get('headgate-reason')).toBe('queue_timeout');
  await finish(scene, [holder]);
});

it.each([
  ['Python', { 'x-stainless-lang': 'python', 'x-stainless-read-timeout': '2.5' }],
  ['JavaScript', { 'x-stainless-lang': 'js', 'x-stainless-timeout': '2' }],
])('comments keep a client of %s waiting beyond its time-out', async (_, headers) => {
  await configureKeepalive();
  const calls = [await streaming(scene, 'holder')];
  const json = bodyOf('patient');
  const response = await chat(CHAT, '', { json, headers });
  expect(response.status).toBe(200);
  const reader = readerOf(response);
  await readUntil(reader, /\n\n/);
  passTime(10_000);
  await readUntil(reader, /\n\n/);
  await finish(scene, calls);
  const rest = withoutSignsOfLife(await restOf(reader));
  expect(rest).toBe(await bytesFromUpstream(scene.strict, JSON.stringify(json)));
});

it.each([
  ['a time-out of the whole call', { 'x-stainless-lang': 'go', 'x-stainless-timeout': '2' }],
  ['a time-out shorter than the comments', { 'x-stainless-read-timeout': '0.8' }],
])('comments do not extend %s', async (_, headers) => {
  await configureKeepalive();
  const calls = [await streaming(scene, 'holder')];
  const response = await chat(CHAT, '', { json: bodyOf('hurried'), headers });
  expect(await response.text()).toContain('queue_timeout');
  await finish(scene, calls);
});

const LONG = 'x'.repeat(300 * 1_024);

it.each([
  ['first', `{"stream":true,"model":"m","messages":[{"role":"user","content":"f"}]}`],
  ['last', `{"model":"m","messages":[{"role":"user","content":"l"}],"stream":true}`],
  [
    'first, of 300 KiB',
    `{"stream":true,"model":"m","messages":[{"role":"user","content":"${LONG}"}]}`,
  ],
  [
    'last, of 300 KiB',
    `{"model":"m","messages":[{"role":"user","content":"${LONG}"}],"stream":true}`,
  ],
  ['before a nested one', `{"stream":true,"model":"m","messages":[],"x":{"stream":false}}`],
])('the stream flag is found where it stands: %s', async (_, body) => {
  await configureKeepalive();
  const holder = await streaming(scene, 'holder');
  const headers = { 'content-type': 'application/json' };
  const response = await chat(CHAT, '', { json: undefined, method: 'POST', body, headers });
  expect(response.status).toBe(200);
  const reader = readerOf(response);
  expect(await readUntil(reader, /\n\n/)).toMatch(/^: headgate waiting/);
  await finish(scene, [holder]);
  const rest = withoutSignsOfLife(await restOf(reader));
  expect(rest).toBe(await bytesFromUpstream(scene.strict, body));
});

it('a client that leaves while it is kept alive leaves the queue', async () => {
  await configureKeepalive();
  const holder = await streaming(scene, 'holder');
  const client = new AbortController();
  const json = bodyOf('gone');
  const response = await chat(CHAT, '', { json, signal: client.signal });
  const reader = readerOf(response);
  await readUntil(reader, /\n\n/);
  await untilStatus(group, { queued: 1 });
  client.abort();
  await reader.read().catch(() => {});
  await untilStatus(group, { queued: 0 });
  await finish(scene, [holder]);
  expect((await scene.strict.stats()).total).toBe(1);
});

it('a client that cancels the body while it is kept alive leaves the queue', async () => {
  await configureKeepalive();
  const holder = await streaming(scene, 'holder');
  const { reader } = await keptAlive(CHAT, { json: bodyOf('gone') });
  await untilStatus(group, { queued: 1 });
  await reader.cancel();
  await untilStatus(group, { queued: 0 });
  await finish(scene, [holder]);
  expect((await scene.strict.stats()).total).toBe(1);
});

/** A call that waits, as far as its answer needs one. */
function waitingCall() {
  const request = new Request('https://h/');
  return { request, env, ctx: { waitUntil() {} }, after: onTimer, found: nothingFound() };
}

it('a comment that cannot be written tells that the caller has gone', async () => {
  // No request is aborted here, as where the runtime finds out by a write that fails.
  const answer = Promise.withResolvers<FinalResult>();
  const leave = vi.fn<() => void>();
  const waiting = waitingCall();
  const shape = 'openai';
  const keepalive = { shape, model: null, afterMs: 0, everyMs: 20 } as const;
  const response = answerWaiting(keepalive, new LastPosition(20), answer.promise, waiting, leave);
  const reader = readerOf(response);
  await readUntil(reader, /\n\n/);
  expect(leave).not.toHaveBeenCalled();
  await reader.cancel();
  await until(() => expect(leave).toHaveBeenCalled());
  answer.resolve(rejected({ reason: 'busy', message: '' }));
});

it.each([
  ['Text/Event-Stream ; charset="utf-8"', 'data: 1\n\n'],
  ['text/event-stream;x="application/json"', 'data: 1\n\n'],
  ['text/html; x="text/event-stream"', 'data: {"error":'],
  ['text/event-stream-like', 'data: {"error":'],
])(
  'a response follows the comments if its media type is an event stream: %s',
  async (type, rest) => {
    const headers = { 'content-type': type };
    const answer = Promise.resolve(answered(new Response('data: 1\n\n', { headers })));
    const waiting = waitingCall();
    const keepalive = { shape: 'openai', model: null, afterMs: 0, everyMs: 1_000 } as const;
    const response = answerWaiting(keepalive, new LastPosition(1_000), answer, waiting, () => {});
    const text = withoutSignsOfLife(await response.text());
    expect(text.slice(0, rest.length)).toBe(rest);
  },
);

it('a client that leaves the stream behind its comments frees the slot', async () => {
  await configureKeepalive();
  const holder = await streaming(scene, 'holder');
  const { reader } = await keptAlive(CHAT, { json: bodyOf('later') });
  await scene.strict.resume();
  expect(await holder.end).toBe('done');
  await readUntil(reader, /data: /);
  await untilStatus(group, { in_use: 1, queued: 0 });
  await reader.cancel();
  await allFree(group);
  await until(async () => expect(await scene.strict.stats()).toMatchObject({ aborted: 1 }));
});

it('a stream that waits with comments counts as in flight, once', async () => {
  await configureKeepalive();
  const calls = [await streaming(scene, 'holder'), await queued(group, 'ahead')];
  const { reader } = await keptAlive(CHAT, { json: bodyOf('waits') });
  expect(await (await call('/healthz')).json()).toEqual({ ok: true, calls_in_flight: 3 });
  await finish(scene, calls);
  await restOf(reader);
  await until(async () =>
    expect(await (await call('/healthz')).json()).toEqual({ ok: true, calls_in_flight: 0 }),
  );
});

it('what an upstream compresses unasked goes on as plain text behind the comments', async () => {
  await configureKeepalive();
  const holder = await streaming(scene, 'holder');
  await scene.strict.configure({ gzip: true });
  const json = bodyOf('waits');
  const { reader } = await keptAlive(CHAT, { json });
  await finish(scene, [holder]);
  const rest = withoutSignsOfLife(await restOf(reader));
  expect(rest).toBe(await bytesFromUpstream(scene.strict, JSON.stringify(json)));
  expect(rest).toContain('data: [DONE]');
  await allFree(group);
});

it('the trace of a stream that is refused behind its comments says why', async () => {
  await configureKeepalive();
  const holder = await streaming(scene, 'holder');
  const noted: unknown[] = [];
  const span = {
    isTraced: true,
    setAttribute: (...attribute: unknown[]) => noted.push(attribute),
    setAttributes: () => {},
  };
  const active = vi.spyOn(tracing, 'getActiveSpan').mockReturnValue(span as never);
  const headers = { 'headgate-max-wait': '700ms' };
  const { reader } = await keptAlive(CHAT, { json: bodyOf('waits'), headers });
  expect(await restOf(reader)).toContain('queue_timeout');
  active.mockRestore();
  expect(noted).toEqual([['error.type', 'queue_timeout']]);
  await finish(scene, [holder]);
});
