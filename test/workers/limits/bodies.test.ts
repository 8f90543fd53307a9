// What is kept of a call's body for another try, and what is read of a refusal without taking it away.
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createBodyBudget, EXEMPT_BYTES_MAX } from '../../../src/upstream/body/body-budget.ts';
import { keepBody } from '../../../src/upstream/body/kept-body.ts';
import { readModel, unreadBody } from '../../../src/upstream/body/request-body.ts';
import { peekAnswer } from '../../../src/upstream/refusal/refused-answer.ts';
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
    ['nothing of what the runtime cannot unpack', 'br'],
    ['nothing of two compressions on each other', 'gzip, br'],
    ['nothing of what is not what it says', 'gzip'],
  ])('%s: %s', async (_, encoding) => {
    const { text, answer } = await peekAnswer(refusal(JSON_TEXT, { 'content-encoding': encoding }));
    expect(text).toBe('');
    expect(await bytesOf(answer.body)).toEqual(encode(JSON_TEXT));
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
    const body = await kept(posted(bytes), 5, createBodyBudget(ROOM), never);
    expect(body).toMatchObject({ bytes, contentLength: 5 });
    for (let at = 0; at < 3; at += 1) expect(await bytesOf(body.open())).toEqual(bytes);
    expect(await kept(body, 0, createBodyBudget(0), never)).toBe(body);
  });

  it('that does not exist is kept as none', async () => {
    const body = await kept(unreadBody(post(null, null)), 0, createBodyBudget(0), never);
    expect(body).toMatchObject({ bytes: null, contentLength: 0 });
    expect(body.open()).toBeNull();
  });

  it('that is larger takes its place in the budget, and gives it back once', async () => {
    const bytes = new Uint8Array(EXEMPT_BYTES_MAX + 1).fill(7);
    const budget = createBodyBudget(ROOM);
    const body = await kept(posted(bytes), ROOM, budget, never);
    expect(budget.bytesFree).toBe(ROOM - bytes.length);
    expect(areSame(await bytesOf(body.open()), bytes)).toBe(true);
    body.discard();
    body.discard();
    expect(budget.bytesFree).toBe(ROOM);
  });

  it('that is small asks nobody', async () => {
    const budget = createBodyBudget(0);
    const body = await kept(posted(new Uint8Array(EXEMPT_BYTES_MAX)), ROOM, budget, never);
    expect(body.contentLength).toBe(EXEMPT_BYTES_MAX);
  });

  it.each([
    ['is longer than its bound', 300_000, 299_999, ROOM],
    ['is longer than its bound, be it small', 100, 99, ROOM],
    ['has no room', 300_000, ROOM, 299_999],
  ])('that %s is not kept, and goes out as it is', async (_, length, bytesMax, room) => {
    const bytes = new Uint8Array(length).fill(7);
    const body = posted(bytes);
    const budget = createBodyBudget(room);
    expect(await keepBody(body, bytesMax, budget, never)).toBeNull();
    expect(budget.bytesFree).toBe(room);
    expect(areSame(await bytesOf(body.open()), bytes)).toBe(true);
  });

  it('whose length is not known is not kept, and goes out as it is', async () => {
    const body = unreadBody(post(streamOf([encode('he'), encode('llo')]), null));
    expect(await keepBody(body, ROOM, createBodyBudget(ROOM), never)).toBeNull();
    expect(await bytesOf(body.open())).toEqual(encode('hello'));
  });

  it('that stalls leaves nothing behind when its caller leaves', async () => {
    const budget = createBodyBudget(ROOM);
    const client = new AbortController();
    const request = post(streamOf([new Uint8Array(1_000)], 'stalls'), 300_000);
    const keeping = keepBody(unreadBody(request), ROOM, budget, client.signal);
    expect(budget.bytesFree).toBe(ROOM - 300_000);
    client.abort();
    expect(await keeping).toBe('aborted');
    expect(budget.bytesFree).toBe(ROOM);
  });

  it('that breaks off leaves nothing behind', async () => {
    const budget = createBodyBudget(ROOM);
    const request = post(streamOf([new Uint8Array(1_000)], 'breaks'), 300_000);
    expect(await keepBody(unreadBody(request), ROOM, budget, never)).toBe('aborted');
    expect(budget.bytesFree).toBe(ROOM);
  });

  it('of a caller who is gone already is not read', async () => {
    const budget = createBodyBudget(ROOM);
    const stalls = unreadBody(post(streamOf([], 'stalls'), 300_000));
    expect(await keepBody(stalls, ROOM, budget, AbortSignal.abort())).toBe('aborted');
    expect(budget.bytesFree).toBe(ROOM);
  });

  it('that was read for its model gives back what that took, when its caller is gone', async () => {
    const budget = createBodyBudget(2 * ROOM);
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
    const read = await readModel(new Request('https://headgate.test/', init), budget, never);
    if (read.kind !== 'found') throw new Error(read.kind);
    const keeping = keepBody(read.body, ROOM, budget, client.signal);
    client.abort();
    expect(await keeping).toBe('aborted');
    await until(() => expect(budget.bytesFree).toBe(2 * ROOM));
  });
});
