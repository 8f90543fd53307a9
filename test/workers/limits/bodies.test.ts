// What is kept of a call's body for another try, and what is read of a refusal without taking it away.
import { afterEach, describe, expect, it, vi } from 'vitest';
import { BODY_LIMITS, BodyBudget } from '../../../src/upstream/body/body-budget.ts';
import { keepBody } from '../../../src/upstream/body/kept-body.ts';
import { readModel, unreadBody } from '../../../src/upstream/body/request-body.ts';
import { CallClock } from '../../../src/runtime/async.ts';
import { RuntimeTimers } from '../../support/runtime-timers.ts';
import { peekAnswer } from '../../../src/upstream/transfer/fetch-answer.ts';
import { REFUSAL_BYTES_MAX } from '../../../src/upstream/refusal/error-fields.ts';
import { until } from '../support/worker.ts';

afterEach(() => {
  vi.useRealTimers();
});

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

async function bytesOf(body: BodyInit | null): Promise<Uint8Array> {
  return new Uint8Array(await new Response(body).arrayBuffer());
}

/** Compares many bytes, which `toEqual` takes seconds for. */
function areSame(some: Uint8Array, others: Uint8Array): boolean {
  return some.length === others.length && some.every((byte, at) => byte === others[at]);
}

/** A stream of these pieces, which then stays open, ends or breaks. */
function streamOf(
  pieces: readonly Uint8Array[],
  then: 'ends' | 'stalls' | 'breaks' = 'ends',
): ReadableStream<Uint8Array> {
  let next = 0;
  return new ReadableStream({
    pull(controller) {
      const piece = pieces[next];
      next += 1;
      if (piece !== undefined) controller.enqueue(piece);
      else if (then === 'ends') controller.close();
      else if (then === 'breaks') controller.error(new Error('broken'));
      else return new Promise(() => {});
      return undefined;
    },
  });
}

describe('the beginning of a refusal is read', () => {
  const JSON_TEXT = '{"error":{"code":"rate_limit_exceeded","message":"Zu viel für heute."}}';

  function compressed(bytes: Uint8Array, format: 'gzip' | 'deflate'): Promise<Uint8Array> {
    return bytesOf(new Response(bytes).body?.pipeThrough(new CompressionStream(format)) ?? null);
  }

  function refusal(body: BodyInit, headers: Record<string, string> = {}): Response {
    const init = { status: 429, statusText: 'Slow Down', headers: { 'x-a': 'b', ...headers } };
    return new Response(body, { ...init, encodeBody: 'manual' });
  }

  it('and the answer stays as it was', async () => {
    const { text, answer } = await peekAnswer(refusal(JSON_TEXT));
    expect(text).toBe(JSON_TEXT);
    expect(answer.status).toBe(429);
    expect(answer.statusText).toBe('Slow Down');
    expect(answer.headers.get('x-a')).toBe('b');
    expect(await answer.text()).toBe(JSON_TEXT);
  });

  it('and one without a body is the same answer', async () => {
    const bodiless = new Response(null, { status: 503 });
    expect(await peekAnswer(bodiless)).toEqual({ text: '', answer: bodiless });
  });

  it.each([
    ['gzip', 'gzip'],
    ['X-GZip', 'gzip'],
    [' deflate ', 'deflate'],
  ] as const)('unpacked, and passed on packed: %j', async (encoding, format) => {
    const packed = await compressed(encode(JSON_TEXT), format);
    const { text, answer } = await peekAnswer(refusal(packed, { 'content-encoding': encoding }));
    expect(text).toBe(JSON_TEXT);
    expect(await bytesOf(answer.body)).toEqual(packed);
  });

  it.each([
    ['nothing of what cannot be unpacked', 'compress'],
    ['nothing of too many packings on each other', 'gzip, br, zstd, gzip'],
  ])('%s: %s', async (_, encoding) => {
    const { text, answer } = await peekAnswer(refusal(JSON_TEXT, { 'content-encoding': encoding }));
    expect(text).toBe('');
    expect(await bytesOf(answer.body)).toEqual(encode(JSON_TEXT));
  });

  it.each([
    ['JSON that is only labelled as packed', JSON_TEXT, JSON_TEXT],
    ['nothing of other text that is only labelled as packed', 'Too many', ''],
  ])('%s', async (_, sent, read) => {
    const { text, answer } = await peekAnswer(refusal(sent, { 'content-encoding': 'gzip' }));
    expect(text).toBe(read);
    expect(await bytesOf(answer.body)).toEqual(encode(sent));
  });

  it('no further than its bound, be it long or a bomb', async () => {
    const long = encode('x'.repeat(1_000_000));
    const plain = await peekAnswer(refusal(long));
    expect(plain.text).toBe('x'.repeat(REFUSAL_BYTES_MAX));
    expect((await bytesOf(plain.answer.body)).length).toBe(long.length);
    const bomb = await compressed(long, 'gzip');
    const packed = await peekAnswer(refusal(bomb, { 'content-encoding': 'gzip' }));
    expect(packed.text).toBe('x'.repeat(REFUSAL_BYTES_MAX));
    expect(await bytesOf(packed.answer.body)).toEqual(bomb);
  });

  it('whole characters, wherever its pieces end', async () => {
    const bytes = encode('für');
    const pieces = [bytes.slice(0, 2), bytes.slice(2)];
    expect((await peekAnswer(refusal(streamOf(pieces)))).text).toBe('für');
  });

  it('as far as it comes within two seconds, and the rest is passed on', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    const written = writer.write(encode('{"error":'));
    const peeking = peekAnswer(refusal(readable));
    await written;
    await vi.advanceTimersByTimeAsync(2_000);
    const { text, answer } = await peeking;
    expect(text).toBe('{"error":');
    const rest = answer.text();
    await writer.write(encode('{}}'));
    await writer.close();
    expect(await rest).toBe('{"error":{}}');
  });

  it('as far as it comes where it breaks off, and it breaks off for the caller too', async () => {
    const broken = refusal(streamOf([encode('{"error":')], 'breaks'));
    const { text, answer } = await peekAnswer(broken);
    expect(text).toBe('{"error":');
    await expect(answer.text()).rejects.toThrow('broken');
  });
});

describe('the body of a call', () => {
  const never = new AbortController().signal;
  const ROOM = 1_000_000;
  const { headBytes } = BODY_LIMITS;

  function budgetOf(freeBytes: number): BodyBudget {
    return new BodyBudget({ ...BODY_LIMITS, freeBytes });
  }

  function post(body: BodyInit | null, contentLength: number | null): Request {
    const headers = contentLength === null ? {} : { 'content-length': String(contentLength) };
    return new Request('https://headgate.test/', { method: 'POST', body, headers });
  }

  function posted(bytes: Uint8Array) {
    return unreadBody(post(bytes, bytes.length));
  }

  async function kept(...of: Parameters<typeof keepBody>) {
    const body = await keepBody(...of);
    if (body === null || body === 'aborted') throw new Error(`not kept: ${String(body)}`);
    return body;
  }

  it('is kept whole and goes out as often as it is wanted', async () => {
    const bytes = encode('hello');
    const body = await kept(posted(bytes), 5, budgetOf(ROOM), never);
    expect(body).toMatchObject({ bytes, contentLength: 5 });
    for (let at = 0; at < 3; at += 1) expect(await bytesOf(body.open())).toEqual(bytes);
    expect(await kept(body, 0, budgetOf(0), never)).toBe(body);
  });

  it('that does not exist is kept as none', async () => {
    const body = await kept(unreadBody(post(null, null)), 0, budgetOf(0), never);
    expect(body).toMatchObject({ bytes: null, contentLength: 0 });
    expect(body.open()).toBeNull();
    body.answered();
    expect(body.isGone).toBe(false);
  });

  it.each([
    ['small', 100],
    ['large', 300_000],
  ])('takes its place in the budget, and gives it back once: %s', async (_, length) => {
    const bytes = new Uint8Array(length).fill(7);
    const budget = budgetOf(ROOM);
    const body = await kept(posted(bytes), ROOM, budget, never);
    expect(budget.bytesHeld).toBe(bytes.length);
    expect(areSame(await bytesOf(body.open()), bytes)).toBe(true);
    body.answered();
    body.discard();
    expect(budget.bytesHeld).toBe(0);
  });

  it('that is no longer than a head is kept at any time', async () => {
    const body = await kept(posted(new Uint8Array(headBytes)), ROOM, budgetOf(0), never);
    expect(body.contentLength).toBe(headBytes);
  });

  it('that can be spared is not sent once more when others have its room', async () => {
    const budget = budgetOf(ROOM);
    const body = await kept(posted(new Uint8Array(300_000)), ROOM, budget, never);
    body.spare();
    expect(body).toMatchObject({ isGone: false, contentLength: 300_000 });
    const others = await budget.take(BODY_LIMITS.allBytes, 0, never);
    expect(others).not.toBe('crowded');
    expect(body).toMatchObject({ isGone: true, bytes: null });
    expect(() => body.open()).toThrow('the memory of the body was released');
  });

  it.each([
    ['is longer than its bound', 300_000, 299_999, ROOM],
    ['is longer than its bound, be it small', 100, 99, ROOM],
    ['has no room', 300_000, ROOM, 299_999],
    ['has no room, be it small', 5_000, ROOM, 4_999],
  ])('that %s is not kept, and goes out as it is', async (_, length, bytesMax, room) => {
    const bytes = new Uint8Array(length).fill(7);
    const body = posted(bytes);
    const budget = budgetOf(room);
    expect(await keepBody(body, bytesMax, budget, never)).toBeNull();
    expect(budget.bytesHeld).toBe(0);
    expect(areSame(await bytesOf(body.open()), bytes)).toBe(true);
  });

  it('whose length is not known is not kept, and goes out as it is', async () => {
    const body = unreadBody(post(streamOf([encode('he'), encode('llo')]), null));
    expect(await keepBody(body, ROOM, budgetOf(ROOM), never)).toBeNull();
    expect(await bytesOf(body.open())).toEqual(encode('hello'));
  });

  it('that stalls leaves nothing behind when its caller leaves', async () => {
    const budget = budgetOf(ROOM);
    const client = new AbortController();
    const request = post(streamOf([new Uint8Array(1_000)], 'stalls'), 300_000);
    const keeping = keepBody(unreadBody(request), ROOM, budget, client.signal);
    expect(budget.bytesHeld).toBe(300_000);
    client.abort();
    expect(await keeping).toBe('aborted');
    expect(budget.bytesHeld).toBe(0);
  });

  it('that breaks off leaves nothing behind', async () => {
    const budget = budgetOf(ROOM);
    const request = post(streamOf([new Uint8Array(1_000)], 'breaks'), 300_000);
    expect(await keepBody(unreadBody(request), ROOM, budget, never)).toBe('aborted');
    expect(budget.bytesHeld).toBe(0);
  });

  it('of a caller who is gone already is not read', async () => {
    const budget = budgetOf(ROOM);
    const stalls = unreadBody(post(streamOf([], 'stalls'), 300_000));
    expect(await keepBody(stalls, ROOM, budget, AbortSignal.abort())).toBe('aborted');
    expect(budget.bytesHeld).toBe(0);
  });

  it('that was read whole for its model is kept in the room that it has, whatever is free', async () => {
    const text = JSON.stringify({ x: 'x'.repeat(300_000), model: 'm' });
    const budget = new BodyBudget();
    const room = { budget, maxWaitMs: Infinity, signal: never };
    const read = await readModel(post(text, text.length), room);
    if (read.kind !== 'found') throw new Error(read.kind);
    const free = budget.tryTake(BODY_LIMITS.freeBytes - budget.bytesHeld);
    const body = await kept(read.body, ROOM, budget, never);
    free?.release();
    expect(budget.bytesHeld).toBe(text.length);
    expect(new TextDecoder().decode(await bytesOf(body.open()))).toBe(text);
    body.discard();
    expect(budget.bytesHeld).toBe(0);
  });

  it('that was read for its model gives back what that took, when its caller is gone', async () => {
    const budget = budgetOf(2 * ROOM);
    const client = new AbortController();
    const head = encode(`{"pad":"${'x'.repeat(400_000)}","model":"m","messages":[`);
    const headers = { 'content-type': 'application/json' };
    // Beyond its first piece the body stays open, as that of a client that fell silent.
    const pieces = [head];
    const source: UnderlyingByteSource = {
      type: 'bytes',
      pull: (controller) => pieces.splice(0).forEach((piece) => controller.enqueue(piece)),
    };
    const init = {
      method: 'POST',
      body: new ReadableStream(source),
      headers: { ...headers, 'content-length': '600000' },
    };
    const room = { budget, maxWaitMs: Infinity, signal: never };
    const read = await readModel(new Request('https://headgate.test/', init), room);
    if (read.kind !== 'found') throw new Error(read.kind);
    const keeping = keepBody(read.body, ROOM, budget, client.signal);
    client.abort();
    expect(await keeping).toBe('aborted');
    await until(() => expect(budget.bytesHeld).toBe(0));
  });
});

it('what a call watches comes in its time where the wall clock was set back before the read', async () => {
  const runtime = new RuntimeTimers();
  runtime.install();
  try {
    let firedAt = 0;
    const { after } = new CallClock();
    after(20_000, () => {
      firedAt = runtime.passedMs;
    });
    runtime.pass(1_500);
    runtime.setBack(600_000);
    expect(await peekAnswer(new Response('{}'), undefined, after)).toMatchObject({ text: '{}' });
    runtime.pass(30_000);
    expect(firedAt).toBeGreaterThanOrEqual(20_000);
    expect(firedAt).toBeLessThanOrEqual(21_000);
  } finally {
    vi.restoreAllMocks();
  }
});
