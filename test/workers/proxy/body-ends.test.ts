// Whatever becomes of a call, the isolate's budget of bodies is free again afterwards.
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { bodyBudget } from '../../../src/call/request/body.ts';
import { keyOf } from '../order/scene.ts';
import { CHAT, hold, KEY, letGo, newScene, pathTo, type SpillScene } from '../spill/scene.ts';
import { untilStatus } from '../support/pool.ts';
import { call, configure, until, type CallInit } from '../support/worker.ts';

type BodyEndsSetup = Parameters<typeof newScene>[0];

/** Too much to be read without the budget, with the model behind it. */
const BIG = noise(400_000);

let scene: SpillScene;

/** Groups that go by the model, so that bodies are read for it. */
function sceneOf(at: number, upstreams: BodyEndsSetup['upstreams'] = {}): Promise<SpillScene> {
  const group = (letter: string) => ({
    match: { upstreams: [`${letter}-${at}`], models: ['m', 'there'] },
  });
  return newScene({
    spill: { spill_to: [{ upstream: 'b', model: 'there' }], after_ms: 0 },
    settings: { chunks: 1 },
    groups: { a: group('a'), b: group('b'), c: group('c') },
    upstreams,
  });
}

beforeAll(async () => {
  scene = await sceneOf(1);
});

beforeEach(untilFree);

/** Text that does not get much shorter when it is compressed. */
function noise(length: number): string {
  const bytes = new Uint8Array(65_536);
  let text = '';
  while (text.length < length) text += crypto.getRandomValues(bytes).toBase64();
  return text.slice(0, length);
}

function bodyOf(model: string): string {
  return JSON.stringify({ messages: [{ role: 'user', content: BIG }], model });
}

function send(path: string, body: string, init: CallInit = {}): Promise<Response> {
  const headers = { 'content-type': 'application/json', ...KEY, ...init.headers };
  return call(path, { ...init, method: 'POST', body, headers });
}

/** The answer of a caller, once it has all of it. */
async function reportedBy(
  answering: Promise<Response>,
): Promise<[status: number, reason: string | null]> {
  const answer = await answering;
  await answer.arrayBuffer();
  return [answer.status, answer.headers.get('headgate-reason')];
}

function untilFree(): Promise<void> {
  return until(() => expect(bodyBudget.bytesHeld).toBe(0));
}

function untilHeld(): Promise<void> {
  return until(() => expect(bodyBudget.bytesHeld).toBeGreaterThan(0));
}

it.each([
  ['nobody knows the key', 'a', CHAT, 'm', { 'headgate-key': 'hg_unknown' }, 401, 'key_invalid'],
  ['a header says another model', 'a', CHAT, 'm', { 'headgate-model': 'o' }, 400, 'header_invalid'],
  ['a header cannot be read', 'a', CHAT, 'm', { 'headgate-max-wait': 'x' }, 400, 'header_invalid'],
  ['its route is closed', 'a', '/v1/secrets', 'm', {}, 403, 'key_forbidden'],
] as const)('of a call that is rejected because %s', async (...row) => {
  const [, letter, path, model, headers, status, reason] = row;
  const answering = send(pathTo(scene, letter, path), bodyOf(model), { headers });
  expect(await reportedBy(answering)).toEqual([status, reason]);
  await untilFree();
});

it('of a call to an upstream that is not there', async () => {
  expect(await reportedBy(send(`/nowhere${CHAT}`, bodyOf('m')))).toEqual([404, 'upstream_unknown']);
  await untilFree();
});

it('of a call whose model was read, and nobody has', async () => {
  expect(await reportedBy(send(CHAT, bodyOf('nobody-has')))).toEqual([404, 'model_unknown']);
  await untilFree();
});

it('of a call whose body names two models', async () => {
  const body = bodyOf('m').replace('{', '{"model":"there",');
  expect(await reportedBy(send(pathTo(scene, 'c'), body))).toEqual([400, 'body_unreadable']);
  await untilFree();
});

it('of a call whose prefix cannot be taken off', async () => {
  const plain = new Blob([bodyOf(`${scene.name('c')}/m`)]).stream();
  // Without a length it is not unpacked.
  const packed = plain.pipeThrough(new CompressionStream('gzip'));
  const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip', ...KEY };
  const answering = call(CHAT, { method: 'POST', body: packed, headers });
  expect(await reportedBy(answering)).toEqual([400, 'body_unreadable']);
  await untilFree();
});

it('of a call whose prefix was taken off', async () => {
  expect(await reportedBy(send(CHAT, bodyOf(`${scene.name('c')}/m`)))).toEqual([200, null]);
  await untilFree();
});

it('of a call that finds no slot', async () => {
  const holder = await hold(scene, 'c');
  const headers = { 'headgate-max-wait': '0' };
  const answering = send(pathTo(scene, 'c'), bodyOf('m'), { headers });
  expect(await reportedBy(answering)).toEqual([429, 'busy']);
  await untilFree();
  await letGo(scene, holder);
});

it('of a call whose caller leaves the queue', async () => {
  const holder = await hold(scene, 'c');
  const client = new AbortController();
  const answering = send(pathTo(scene, 'c'), bodyOf('m'), { signal: client.signal });
  await untilHeld();
  client.abort();
  await expect(answering).rejects.toThrow(/abort/i);
  await untilFree();
  await letGo(scene, holder);
});

it('of a call whose caller leaves in the middle of its body', async () => {
  const body = new TextEncoder().encode(bodyOf('m'));
  const { readable, writable } = new FixedLengthStream(body.length);
  const client = new AbortController();
  const headers = { 'content-type': 'application/json', ...KEY };
  const init = { method: 'POST', body: readable, headers, signal: client.signal };
  const answering = call(pathTo(scene, 'c'), init);
  writable
    .getWriter()
    .write(body.slice(0, 300_000))
    .catch(() => {});
  await untilHeld();
  client.abort();
  await expect(answering).rejects.toThrow(/abort/i);
  await untilFree();
});

it('of a call that waited for its slot', async () => {
  const holder = await hold(scene, 'c');
  const answering = reportedBy(send(pathTo(scene, 'c'), bodyOf('m')));
  await untilHeld();
  holder.leave();
  expect(await answering).toEqual([200, null]);
  await untilFree();
  await letGo(scene);
});

it.each([
  ['refused', 'quota', 429],
  ['answered with an error', 'error', 500],
] as const)('of a call that its upstream has %s', async (_, failure, status) => {
  await scene.c.failNext(failure);
  expect((await reportedBy(send(pathTo(scene, 'c'), bodyOf('m'))))[0]).toBe(status);
  await untilFree();
});

it('of a call that another upstream serves under another model name', async () => {
  const holder = await hold(scene, 'a');
  const answer = await send(pathTo(scene, 'a'), bodyOf('m'));
  expect(answer.headers.get('headgate-groups')).toBe(scene.name('b'));
  await answer.arrayBuffer();
  await untilFree();
  await letGo(scene, holder);
});

it('of a call that every upstream refuses', async () => {
  await Promise.all([scene.a.failNext('quota'), scene.b.failNext('quota')]);
  const answer = await send(pathTo(scene, 'a'), bodyOf('m'));
  expect([answer.status, answer.headers.get('headgate-tries')]).toEqual([429, '2']);
  await answer.arrayBuffer();
  await untilFree();
});

it('of a call that finds no slot at any upstream', async () => {
  const holders = [await hold(scene, 'a'), await hold(scene, 'b')];
  const headers = { 'headgate-max-wait': '0' };
  const answering = send(pathTo(scene, 'a'), bodyOf('m'), { headers });
  expect(await reportedBy(answering)).toEqual([429, 'busy']);
  await untilFree();
  await letGo(scene, ...holders);
});

it('of a call that takes no slot, and brings its own key', async () => {
  const form = new FormData();
  form.append('file', new File([BIG], 'a'));
  const path = pathTo(scene, 'c', '/v1/files');
  const headers = { ...KEY, authorization: 'Bearer own' };
  expect(await reportedBy(call(path, { method: 'POST', body: form, headers }))).toEqual([
    200,
    null,
  ]);
  await untilFree();
});

it('of a call whose upstream cannot be reached', async () => {
  const dead = await sceneOf(2, { c: { base_url: 'http://127.0.0.1:9' } });
  const answering = send(pathTo(dead, 'c'), bodyOf('m'));
  expect(await reportedBy(answering)).toEqual([502, 'upstream_unreachable']);
  await untilFree();
});

it('of a call whose upstream is removed while it waits', async () => {
  const own = await sceneOf(3);
  const holder = await hold(own, 'c');
  const answering = reportedBy(send(pathTo(own, 'c'), bodyOf('m')));
  await untilStatus(own.name('c'), { queued: 1 });
  await untilHeld();
  await configure({
    upstreams: [{ id: 'another', base_url: own.c.url }],
    keys: [await keyOf('team')],
  });
  expect(await answering).toEqual([404, 'upstream_unknown']);
  await untilFree();
  await letGo(own, holder);
});
