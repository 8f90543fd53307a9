/**
 * Reads bodies in workerd and sends them to an upstream over the network, which echoes their size,
 * hash and headers.
 */
import { afterEach, describe, expect, inject, it } from 'vitest';
import { BODY_LIMITS, BodyBudget } from '../../src/upstream/body/body-budget.ts';
import { readModel, unreadBody } from '../../src/upstream/body/request-body.ts';
import type { ModelRead, OutgoingBody, ReadingRoom } from '../../src/upstream/body/request-body.ts';
import '../support/provided-context.ts';
import { until } from './support/worker.ts';

const MB = 1_000_000;
const never = new AbortController().signal;

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const IMAGE = 'A'.repeat(20 * MB);
const MODEL_LAST = encode(`{"messages":[{"model":"decoy","url":"${IMAGE}"}],"model":"gpt-4o"}`);
const MODEL_FIRST = encode(`{"model":"gpt-4o","messages":[{"url":"${IMAGE}"}]}`);

const FORM_TYPE = 'multipart/form-data; boundary=xyz';
function form(fileBytes: number): Uint8Array {
  const head = encode('--xyz\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n');
  const tail = encode(
    '\r\n--xyz\r\nContent-Disposition: form-data; name="model"\r\n\r\nanthropic/whisper\r\n--xyz--\r\n',
  );
  const whole = new Uint8Array(head.length + fileBytes + tail.length);
  whole.set(head);
  whole.fill(0x0d, head.length, head.length + fileBytes);
  whole.set(tail, head.length + fileBytes);
  return whole;
}

/** A call whose body has a Content-Length, as clients send it. */
function post(body: Uint8Array, headers: Record<string, string> = {}): Request {
  return new Request('https://headgate.test/v1/x', {
    method: 'POST',
    headers: { 'content-length': String(body.length), ...headers },
    body,
  });
}

/** A call whose body comes in pieces. `pulled` counts the pieces asked for. */
function postPieces(
  pieces: readonly Uint8Array[],
  headers: Record<string, string> = {},
): { request: Request; pulled: () => number } {
  let pulled = 0;
  const source: UnderlyingByteSource = {
    type: 'bytes',
    pull(controller) {
      const piece = pieces[pulled];
      pulled += 1;
      // Beyond the last piece the body stays open, as that of a client that fell silent.
      if (piece !== undefined) controller.enqueue(piece.slice());
    },
  };
  const body = new ReadableStream(source);
  const request = new Request('https://headgate.test/v1/x', { method: 'POST', headers, body });
  return { request, pulled: () => pulled };
}

interface RequestBodyEcho {
  readonly headers: Readonly<Record<string, string>>;
  readonly bodyBytes: number;
  readonly sha256: string;
}

async function send(
  body: OutgoingBody,
  headers: Record<string, string> = {},
): Promise<RequestBodyEcho> {
  const url = `${inject('strictUpstreamUrl')}/scope/request-body/echo`;
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...headers, 'x-strict-echo': 'true' },
    body: body.open(),
  });
  const echo = await response.json<RequestBodyEcho>();
  await body.sent;
  body.answered();
  return echo;
}

async function sha256(bytes: Uint8Array): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)).toHex();
}

async function gzip(bytes: Uint8Array): Promise<Uint8Array> {
  return new Response(
    new Blob([bytes]).stream().pipeThrough(new CompressionStream('gzip')),
  ).bytes();
}

/** The body of a read that must have ended so. */
function bodyOf(read: ModelRead, model: string | null): OutgoingBody {
  expect(read).toMatchObject({ model });
  if (read.kind !== 'found' && read.kind !== 'absent') throw new Error('There is no body.');
  return read.body;
}

/** Sends exactly these bytes, with their length, and gives what arrives. */
async function exactly(bytes: Uint8Array): Promise<object> {
  return {
    bodyBytes: bytes.length,
    sha256: await sha256(bytes),
    headers: { 'content-length': String(bytes.length) },
  };
}

describe('a body whose model is looked for', () => {
  let budget = new BodyBudget();
  afterEach(() => {
    const { bytesHeld } = budget;
    budget = new BodyBudget();
    if (bytesHeld !== 0) throw new Error(`${bytesHeld} bytes leaked`);
  });

  function room(signal: AbortSignal = never, maxWaitMs = Infinity): ReadingRoom {
    return { budget, maxWaitMs, signal };
  }

  /** Leaves not a byte free, and room for so many bytes of large bodies on their way. */
  function fill(bytesLeft = 0) {
    return budget.count(BODY_LIMITS.allBytes - bytesLeft);
  }

  it('passes unchanged at 20 MB with the model first, and holds its first bytes', async () => {
    const body = bodyOf(await readModel(post(MODEL_FIRST), room()), 'gpt-4o');
    expect(budget.bytesHeld).toBe(16 * 1_024);
    expect(await send(body)).toMatchObject(await exactly(MODEL_FIRST));
  });

  it('passes unchanged at 20 MB with the model last, and holds it until it is sent', async () => {
    const body = bodyOf(await readModel(post(MODEL_LAST), room()), 'gpt-4o');
    expect(budget.bytesHeld).toBe(MODEL_LAST.length);
    expect(await send(body)).toMatchObject(await exactly(MODEL_LAST));
  });

  it('passes unchanged at 20 MB with the model behind a file', async () => {
    const bytes = form(20 * MB);
    const request = post(bytes, { 'content-type': FORM_TYPE });
    expect(await send(bodyOf(await readModel(request, room()), 'anthropic/whisper'))).toMatchObject(
      await exactly(bytes),
    );
  });

  it('passes a small body unchanged, and as one piece', async () => {
    const bytes = encode('{"messages":[],"model":"gpt-4o"}');
    const body = bodyOf(await readModel(post(bytes), room()), 'gpt-4o');
    expect(await send(body)).toMatchObject(await exactly(bytes));
  });

  it('passes a body of unknown length', async () => {
    const bytes = encode(`{"messages":"${'x'.repeat(300_000)}","model":"gpt-4o"}`);
    const request = new Request('https://headgate.test/', {
      method: 'POST',
      body: new Blob([bytes]).stream(),
    });
    expect(request.headers.get('content-length')).toBeNull();
    const echo = await send(bodyOf(await readModel(request, room()), 'gpt-4o'));
    expect(echo.sha256).toBe(await sha256(bytes));
  });

  it('loses the prefix of its model and nothing else', async () => {
    const cases: [Uint8Array, Uint8Array, string?][] = [
      [encode('{"model":"anthropic/whisper"}'), encode('{"model":"whisper"}')],
      [encode('{"a":1,"model":"anthropic\\/whisper"}'), encode('{"a":1,"model":"whisper"}')],
      [encode('{"model":"\\u0061nthropic/whisper"}'), encode('{"model":"whisper"}')],
      [
        encode(`{"x":"${'x'.repeat(MB)}","model":"anthropic/whisper","y":"${'y'.repeat(MB)}"}`),
        encode(`{"x":"${'x'.repeat(MB)}","model":"whisper","y":"${'y'.repeat(MB)}"}`),
      ],
      [form(100), encode(new TextDecoder().decode(form(100)).replace('anthropic/', '')), FORM_TYPE],
    ];
    for (const [bytes, expected, type] of cases) {
      const request = post(bytes, type === undefined ? {} : { 'content-type': type });
      const whole: OutgoingBody = bodyOf(await readModel(request, room()), 'anthropic/whisper');
      const body = whole.withoutModelPrefix('anthropic/'.length);
      if (body === null) throw new Error('The prefix stayed.');
      expect(body.contentLength).toBe(expected.length);
      expect(await send(body)).toMatchObject(await exactly(expected));
    }
  });

  it('is looked into when compressed, and passes as it was', async () => {
    const bytes = await gzip(MODEL_LAST);
    for (const encoding of ['gzip', 'X-GZIP']) {
      const request = post(bytes, { 'content-encoding': encoding });
      const body = bodyOf(await readModel(request, room()), 'gpt-4o');
      expect(body.withoutModelPrefix(1)).toBeNull();
      expect(await send(body)).toMatchObject(await exactly(bytes));
    }
  });

  it('may have no model, or no body', async () => {
    const bytes = encode('{"input":"x"}');
    const body = bodyOf(await readModel(post(bytes), room()), null);
    expect(await send(body)).toMatchObject(await exactly(bytes));
    const empty = new Request('https://headgate.test/');
    expect(bodyOf(await readModel(empty, room()), null).open()).toBeNull();
  });

  it('is unreadable when broken, too long or packed in an unknown way', async () => {
    const bomb = await gzip(encode(`{"x":"${' '.repeat(40 * MB)}","model":"gpt-4o"}`));
    const cases: [Uint8Array, Record<string, string>][] = [
      [encode('{"a":'), {}],
      [encode('{}'), { 'content-encoding': 'br' }],
      [encode('{}'), { 'content-encoding': 'compress' }],
      [encode('{}'), { 'content-encoding': 'constructor' }],
      [encode('{"not":"gzip"}'), { 'content-encoding': 'gzip' }],
      [bomb, { 'content-encoding': 'gzip' }],
      [encode('--'), { 'content-type': 'multipart/form-data' }],
      [encode(`{"x":"${' '.repeat(40 * MB)}","model":"gpt-4o"}`), {}],
    ];
    for (const [bytes, headers] of cases) {
      const read = await readModel(post(bytes, headers), room());
      const message: unknown = expect.stringContaining('headgate-model');
      expect(read).toEqual({ kind: 'unreadable', message });
      expect(budget.bytesHeld).toBe(0);
    }
  });

  it('is read no further than its model', async () => {
    const piece = encode('x'.repeat(1_000));
    const { request, pulled } = postPieces([encode('{"model":"gpt-4o","x":"'), piece, piece]);
    const body = bodyOf(await readModel(request, room()), 'gpt-4o');
    expect(pulled()).toBeLessThanOrEqual(2);
    body.discard();
    await body.sent;
  });

  it('is read no further than its head where nothing is free, if it names its model there', async () => {
    const held = fill();
    const pieces = [encode('{"model":"gpt-4o","x":"'), encode('x'.repeat(200_000))];
    const { request } = postPieces(pieces, { 'content-length': '200025' });
    const body = bodyOf(await readModel(request, room(never, 0)), 'gpt-4o');
    expect(budget.bytesHeld - held.bytes).toBe(BODY_LIMITS.headBytes);
    body.discard();
    held.release();
  });

  it('that is no longer than a head is read whole at any time', async () => {
    const held = fill();
    const bytes = encode(`{"x":"${'x'.repeat(4_000)}","model":"gpt-4o"}`);
    const body = bodyOf(await readModel(post(bytes), room(never, 0)), 'gpt-4o');
    expect(await send(body)).toMatchObject(await exactly(bytes));
    held.release();
  });

  it.each([
    ['small', 200_000],
    ['large', 300_000],
  ])(
    'that names it last is read while others wait, if there is room to pass: %s',
    async (_, length) => {
      const held = fill(310_000);
      const bytes = encode(`{"x":"${'x'.repeat(length)}","model":"gpt-4o"}`);
      const body = bodyOf(await readModel(post(bytes), room(never, 0)), 'gpt-4o');
      expect(await send(body)).toMatchObject(await exactly(bytes));
      held.release();
    },
  );

  it('of unknown length asks for more in steps', async () => {
    const held = fill();
    const bytes = encode(`{"x":"${'x'.repeat(200_000)}","model":"gpt-4o"}`);
    const { request } = postPieces([bytes]);
    const body = bodyOf(await readModel(request, room()), 'gpt-4o');
    expect(budget.bytesHeld - held.bytes).toBeLessThan(300_000);
    body.discard();
    const longer = postPieces([bytes, encode(' '.repeat(200_000))].toReversed());
    expect(await readModel(longer.request, room(never, 0))).toEqual({ kind: 'crowded' });
    held.release();
  });

  it.each([
    ['while little is free', BODY_LIMITS.freeBytes, 120],
    ['beside each other', 0, 70],
  ])('of unknown length is read within bounds %s', async (_, others, count) => {
    const held = budget.count(others, 'rests');
    const pieces = Array.from({ length: 6 }, () => encode(' '.repeat(60_000)));
    const all = [encode('{"x":"'), ...pieces, encode('","model":"gpt-4o"}')];
    let most = 0;
    const look = setInterval(() => (most = Math.max(most, budget.bytesHeld)), 5);
    const kinds = await Promise.all(
      Array.from({ length: count }, async () => {
        const read = await readModel(postPieces(all).request, room(never, 20_000));
        most = Math.max(most, budget.bytesHeld);
        if ('body' in read) read.body.discard();
        return read.kind;
      }),
    );
    clearInterval(look);
    expect(most).toBeLessThanOrEqual(BODY_LIMITS.allBytes + BODY_LIMITS.passingBytes);
    expect(kinds.filter((kind) => kind === 'found').length).toBeGreaterThanOrEqual(70);
    held.release();
  });

  it('waits for room with no more than its head read', async () => {
    const held = fill();
    const leaving = new AbortController();
    const pieces = Array.from({ length: 100 }, () => encode(' '.repeat(8 * 1_024)));
    const { request, pulled } = postPieces(pieces, { 'content-length': String(MB) });
    const reading = readModel(request, room(leaving.signal));
    await until(() => expect(budget.isLargeWaiting).toBe(true));
    expect(pulled()).toBeLessThanOrEqual(2);
    leaving.abort();
    expect((await reading).kind).toBe('aborted');
    held.release();
  });

  it('waits no longer than its call may, and leaves nothing behind', async () => {
    const held = fill();
    expect(await readModel(post(MODEL_LAST), room(never, 30))).toEqual({ kind: 'crowded' });
    expect(budget.bytesHeld).toBe(held.bytes);
    held.release();
  });

  it('waits for room in order of arrival', async () => {
    const held = fill();
    const order: number[] = [];
    const reads = [1, 2, 3].map(async (id) => {
      const body = bodyOf(await readModel(post(MODEL_LAST), room()), 'gpt-4o');
      order.push(id);
      body.discard();
    });
    await until(() => expect(budget.isLargeWaiting).toBe(true));
    held.release();
    await Promise.all(reads);
    expect(order).toEqual([1, 2, 3]);
  });

  it('is given up at once when the caller leaves, while it waits or is read', async () => {
    for (const isWaiting of [true, false]) {
      const held = isWaiting ? fill() : null;
      const leaving = new AbortController();
      const pieces = [encode(`{"x":"${'x'.repeat(600_000)}`)];
      const { request, pulled } = postPieces(pieces, { 'content-length': String(MB) });
      const reading = readModel(request, room(leaving.signal));
      await until(() =>
        expect([budget.isLargeWaiting, pulled()]).toEqual([isWaiting, isWaiting ? 1 : 2]),
      );
      leaving.abort();
      expect((await reading).kind).toBe('aborted');
      held?.release();
      expect(budget.bytesHeld).toBe(0);
    }
  });

  it('gives its bytes back when the call is cut short in the middle of it', async () => {
    const body = bodyOf(await readModel(post(MODEL_LAST), room()), 'gpt-4o');
    const leaving = new AbortController();
    const sending = fetch(inject('strictUpstreamUrl'), {
      method: 'POST',
      body: body.open(),
      signal: leaving.signal,
    });
    leaving.abort();
    await sending.then(
      () => expect.unreachable(),
      () => body.discard(),
    );
    await body.sent;
  });
});

describe('a body that is not read', () => {
  it('passes natively, with its length', async () => {
    expect(await send(unreadBody(post(MODEL_LAST)))).toMatchObject(await exactly(MODEL_LAST));
    expect(unreadBody(new Request('https://headgate.test/')).open()).toBeNull();
  });

  it('may be given up', async () => {
    const request = post(MODEL_FIRST);
    const body = unreadBody(request);
    body.discard();
    await body.sent;
    await expect(request.text()).rejects.toThrow(/./);
  });
});
