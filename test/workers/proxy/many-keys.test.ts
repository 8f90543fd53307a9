// What becomes of calls while the bodies of those that wait fill what there is for them.
import { afterEach, beforeAll, expect, it } from 'vitest';
import { bodyBudget } from '../../../src/call/request/body.ts';
import { BODY_LIMITS } from '../../../src/upstream/body/body-budget.ts';
import type { Reservation } from '../../../src/upstream/body/body-budget.ts';
import { CHAT, hold, KEY, letGo, newScene, pathTo, type SpillScene } from '../spill/scene.ts';
import { untilStatus } from '../support/pool.ts';
import { call, until, type CallInit } from '../support/worker.ts';

const PROMPT = 'x'.repeat(200_000);
const MESSAGES = [{ role: 'user', content: PROMPT }];
const MODEL_LAST = JSON.stringify({ messages: MESSAGES, model: 'm' });
const MODEL_FIRST = JSON.stringify({ model: 'm', messages: MESSAGES });

let scene: SpillScene;
let waiting: Reservation | null = null;

/** As many bytes wait as may at the most. */
function callersAtOnce(): void {
  waiting = bodyBudget.count(BODY_LIMITS.restingBytes, 'rests');
}

/** Groups that go by the model, so that bodies are read for it. */
function sceneOf(
  at: number,
  limits: { readonly itpm?: number },
  by: { readonly models?: string[] } = { models: ['m'] },
): Promise<SpillScene> {
  const group = (letter: string) => ({
    match: { upstreams: [`${letter}-${at}`], ...by },
    limits: { max_concurrency: 1, ...limits },
  });
  return newScene({
    spill: { spill_to: ['b'], after_ms: 60_000 },
    settings: { chunks: 1 },
    groups: { a: group('a'), b: group('b'), c: group('c') },
  });
}

beforeAll(async () => {
  scene = await sceneOf(1, {});
});

afterEach(() => {
  waiting?.release();
  return untilFree();
});

/** Nothing of any call is left. */
function untilFree(): Promise<void> {
  return until(() => expect(bodyBudget.bytesHeld).toBe(0));
}

function send(letter: 'a' | 'b' | 'c', body: string, init: CallInit = {}): Promise<Response> {
  const headers = { 'content-type': 'application/json', ...KEY, ...init.headers };
  return call(pathTo(scene, letter, CHAT), { ...init, method: 'POST', body, headers });
}

async function reportedBy(
  answering: Promise<Response>,
): Promise<[status: number, reason: string | null]> {
  const answer = await answering;
  await answer.arrayBuffer();
  return [answer.status, answer.headers.get('headgate-reason')];
}

it.each([
  ['first', MODEL_FIRST],
  ['last', MODEL_LAST],
])('a call that finds its slot is served, its model %s', async (_, body) => {
  callersAtOnce();
  expect(await reportedBy(send('c', body))).toEqual([200, null]);
});

it('a call that would have to wait is refused in its dialect, and soon those after it', async () => {
  const holder = await hold(scene, 'c');
  callersAtOnce();
  const answer = await send('c', MODEL_LAST);
  expect(answer.status).toBe(503);
  expect(answer.headers.get('headgate-reason')).toBe('too_many_bytes_waiting');
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(2);
  expect(answer.headers.get('x-should-retry')).not.toBe('false');
  const message: unknown = expect.stringContaining('bodies of queued calls');
  expect(await answer.json()).toMatchObject({ error: { message } });
  await untilStatus(scene.name('c'), { queued: 0 });
  const reasons = await Promise.all(
    Array.from({ length: 30 }, () => reportedBy(send('c', MODEL_LAST))),
  );
  expect(new Set(reasons.map(String))).toEqual(new Set(['503,too_many_bytes_waiting']));
  await letGo(scene, holder);
});

it('a large body that was long in coming waits on where small ones are refused', async () => {
  const holder = await hold(scene, 'c');
  callersAtOnce();
  expect(await reportedBy(send('c', MODEL_LAST))).toEqual([503, 'too_many_bytes_waiting']);
  const large = MODEL_LAST.replace(PROMPT, PROMPT + PROMPT);
  const answering = reportedBy(send('c', large));
  await untilStatus(scene.name('c'), { queued: 1 });
  holder.leave();
  expect(await answering).toEqual([200, null]);
  await letGo(scene, holder);
});

it('a call that does not want to wait hears that there is no slot', async () => {
  const holder = await hold(scene, 'c');
  callersAtOnce();
  const headers = { 'headgate-max-wait': '0' };
  expect(await reportedBy(send('c', MODEL_LAST, { headers }))).toEqual([429, 'busy']);
  await letGo(scene, holder);
});

it('a body is not kept for another try, and its call is not sent again', async () => {
  callersAtOnce();
  await scene.a.failNext('quota');
  const answer = await send('a', MODEL_LAST);
  await answer.arrayBuffer();
  expect([answer.status, answer.headers.get('headgate-tries')]).toEqual([429, '1']);
});

it('a call waits on once there is room, in its place', async () => {
  const holder = await hold(scene, 'a');
  callersAtOnce();
  const headers = { 'headgate-max-wait': '240s' };
  const answering = reportedBy(send('a', MODEL_LAST, { headers }));
  await untilStatus(scene.name('a'), { queued: 1 });
  waiting?.release();
  // It is counted among those that wait from now on.
  await until(() => {
    const rest = BODY_LIMITS.freeBytes - MODEL_LAST.length + 1;
    const probe = bodyBudget.count(rest);
    const hasRoom = probe.rest('probe');
    probe.release();
    expect(hasRoom).toBe(false);
  });
  holder.leave();
  expect(await answering).toEqual([200, null]);
  await letGo(scene, holder);
});

it('a call goes where it need not wait', async () => {
  const holder = await hold(scene, 'a');
  callersAtOnce();
  const body = MODEL_LAST.replace(PROMPT, 'x'.repeat(20_000));
  const answer = await send('a', body);
  await answer.arrayBuffer();
  expect([answer.status, answer.headers.get('headgate-groups')]).toEqual([200, scene.name('b')]);
  await letGo(scene, holder);
});

/** Tells how much is held of the body of a call that waits at `c`. */
async function heldWaiting(headers: Readonly<Record<string, string>>): Promise<number> {
  const holder = await hold(scene, 'c');
  callersAtOnce();
  const before = bodyBudget.bytesHeld;
  const answering = reportedBy(send('c', MODEL_LAST, { headers }));
  await untilStatus(scene.name('c'), { queued: 1 });
  const held = bodyBudget.bytesHeld - before;
  holder.leave();
  expect(await answering).toEqual([200, null]);
  await letGo(scene, holder);
  return held;
}

it('a call on a key of its own whose header names the model waits with its body unread', async () => {
  const own = { authorization: 'Bearer own', 'headgate-model': 'm' };
  expect(await heldWaiting(own)).toBe(0);
});

it('a call is not rejected for good because its tokens could not be counted', async () => {
  scene = await sceneOf(2, { itpm: 20_000 });
  const body = MODEL_FIRST.replace(PROMPT, 'word '.repeat(40_000));
  expect(await reportedBy(send('c', body))).toEqual([413, 'never_fits']);
  callersAtOnce();
  expect(await reportedBy(send('c', body))).toEqual([200, null]);
});

it('a call whose group does not go by the model waits with the head of its body, or unread on a key of its own', async () => {
  scene = await sceneOf(3, {}, {});
  expect(await heldWaiting({})).toBe(BODY_LIMITS.headBytes);
  waiting?.release();
  expect(await heldWaiting({ authorization: 'Bearer own' })).toBe(0);
});
