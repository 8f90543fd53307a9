// The body of a call that is kept for another try counts for as long as the runtime may hold it.
import { afterEach, beforeAll, expect, it, vi } from 'vitest';
import { bodyBudget } from '../../../src/call/request/body.ts';
import { BODY_LIMITS } from '../../../src/upstream/body/body-budget.ts';
import type { Reservation } from '../../../src/upstream/body/body-budget.ts';
import { KEY, newScene, pathTo, type SpillScene } from '../spill/scene.ts';
import { call, until, type CallInit } from '../support/worker.ts';

/**
 * A try of a call at an upstream that reads and answers when it is told to. It looks for that by itself: what belongs
 * to one request cannot be touched by another.
 */
class SentBodiesUpstream {
  mayRead = false;
  answer: (() => Response) | null = null;
  text: string | null = null;
  readonly isWhole: boolean;
  readonly #init: RequestInit;

  constructor(init: RequestInit) {
    this.#init = init;
    const { body, signal } = init;
    // As the runtime does, also after an answer.
    signal?.addEventListener('abort', () => {
      if (body instanceof ReadableStream) body.cancel().catch(() => {});
    });
    this.isWhole = init.body instanceof Uint8Array;
  }

  async serve(): Promise<Response> {
    const { body, signal } = this.#init;
    for (;;) {
      signal?.throwIfAborted();
      if (this.mayRead) this.text ??= await new Response(body ?? null).text();
      if (this.answer !== null) return this.answer();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}

function read(upstream: SentBodiesUpstream): Promise<void> {
  upstream.mayRead = true;
  return until(() => expect(upstream.text).not.toBeNull());
}

const SMALL = bodyOf(20_000);
const MIDDLE = bodyOf(200_000);
const LARGE = bodyOf(400_000);

let scene: SpillScene;
let others: Reservation | null = null;
const asked: SentBodiesUpstream[] = [];

function bodyOf(length: number, model = 'm'): string {
  return JSON.stringify({ messages: [{ role: 'user', content: 'x'.repeat(length) }], model });
}

/** Nothing is free: what can be spared is given away at once. */
function callersAtOnce(): void {
  others = bodyBudget.count(BODY_LIMITS.freeBytes, 'rests');
}

/** Bytes that are held of the call. */
function held(): number {
  return bodyBudget.bytesHeld - (others?.bytes ?? 0);
}

async function send(letter: 'a' | 'c', body: string, init: CallInit = {}): Promise<Response> {
  const headers = { 'content-type': 'application/json', ...KEY, ...init.headers };
  return call(pathTo(scene, letter), { ...init, method: 'POST', body, headers });
}

function untilFree(): Promise<void> {
  return until(() => expect(held()).toBe(0));
}

/** Waits for a try, the first one being 0. */
async function askedAt(index: number): Promise<SentBodiesUpstream> {
  await until(() => expect(asked.length).toBeGreaterThan(index));
  const found = asked[index];
  if (found === undefined) throw new Error('not asked');
  return found;
}

async function statusOf(answering: Promise<Response>): Promise<number> {
  const answer = await answering;
  await answer.arrayBuffer();
  return answer.status;
}

beforeAll(async () => {
  const group = (letter: string) => ({
    match: { upstreams: [`${letter}-1`], models: ['m', 'there'] },
  });
  scene = await newScene({
    spill: { spill_to: [{ upstream: 'b', model: 'there' }], after_ms: 0 },
    settings: { chunks: 1 },
    groups: { a: group('a'), b: group('b'), c: group('c') },
  });
  vi.spyOn(globalThis, 'fetch').mockImplementation((_, init) => {
    const upstream = new SentBodiesUpstream(init ?? {});
    asked.push(upstream);
    return upstream.serve();
  });
});

afterEach(async () => {
  asked.length = 0;
  await untilFree();
  others?.release();
  others = null;
});

it.each([
  ['small', SMALL],
  ['middle', MIDDLE],
  ['large', LARGE],
])('until the upstream has read it, and no longer where nothing is free: %s', async (_, body) => {
  callersAtOnce();
  const answering = send('c', body);
  const upstream = await askedAt(0);
  expect(held()).toBe(body.length);
  await read(upstream);
  expect(upstream.text).toBe(body);
  await until(() => expect(held()).toBe(0));
  upstream.answer = () => new Response('{}');
  expect(await statusOf(answering)).toBe(200);
});

it('until the upstream has read it, also of a call that does not want to wait', async () => {
  callersAtOnce();
  const answering = send('c', MIDDLE, { headers: { 'headgate-max-wait': '0' } });
  const upstream = await askedAt(0);
  expect(held()).toBe(MIDDLE.length);
  await read(upstream);
  await until(() => expect(held()).toBe(0));
  upstream.answer = () => new Response('{}');
  expect(await statusOf(answering)).toBe(200);
});

it.each([
  ['middle', MIDDLE],
  ['large', LARGE],
])('and is spared for who needs the room once it was read: %s', async (_, body) => {
  const answering = send('c', body);
  const upstream = await askedAt(0);
  const { signal } = new AbortController();
  const takeAll = () => bodyBudget.take(BODY_LIMITS.allBytes, 0, signal);
  expect(await takeAll()).toBe('crowded');
  await read(upstream);
  await until(async () => {
    const all = await takeAll();
    expect(all).not.toBe('crowded');
    if (typeof all !== 'string') all.release();
  });
  upstream.answer = () => new Response('{}');
  expect(await statusOf(answering)).toBe(200);
});

it('in one piece until the upstream answers, where that is cheap', async () => {
  const answering = send('c', SMALL);
  const upstream = await askedAt(0);
  expect(upstream.isWhole).toBe(true);
  await read(upstream);
  expect(held()).toBe(SMALL.length);
  upstream.answer = () => new Response('{}');
  expect(await statusOf(answering)).toBe(200);
});

it('through a refusal that comes before it was read, and then as its copy', async () => {
  callersAtOnce();
  const answering = send('a', LARGE);
  const first = await askedAt(0);
  const error = { error: { code: 'insufficient_quota', message: 'none left' } };
  first.answer = () => Response.json(error, { status: 429 });
  const second = await askedAt(1);
  const copy = bodyOf(400_000, 'there');
  expect(held()).toBe(copy.length);
  await read(second);
  expect(second.text).toBe(copy);
  await until(() => expect(held()).toBe(0));
  second.answer = () => new Response('{}');
  expect(await statusOf(answering)).toBe(200);
});

it('until the caller leaves', async () => {
  const client = new AbortController();
  const answering = send('c', LARGE, { signal: client.signal });
  await askedAt(0);
  expect(held()).toBe(LARGE.length);
  client.abort();
  await expect(answering).rejects.toThrow(/abort/i);
  await until(() => expect(held()).toBe(0));
});
