// Compressed bodies and answers. Each supported encoding is read like the plain body, in every spelling, and a bomb is
// refused or not read. The upstream and the caller receive the bytes that the other side sent.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { packingsOf, unpacked } from '../../../src/upstream/body/packing.ts';
import { peekAnswer } from '../../../src/upstream/transfer/fetch-answer.ts';
import { createUsageMeter } from '../../../src/upstream/usage/usage-meter.ts';
import { CHAT, COUNTING, newScene, untilCounted } from '../metering/scene.ts';
import { arrived, newStage, send, reportedBy, untilGroup } from '../limits/stage.ts';
import { pack } from '../support/packing.ts';
import { NO_COOLDOWN, nothingLeaks } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { admin, call, configure, until, type CallInit } from '../support/worker.ts';

afterAll(nothingLeaks);

const PACKINGS = ['gzip', 'deflate', 'br', 'zstd'];
const SPELLINGS = [...PACKINGS, 'x-gzip', 'BR', ' Zstd ', 'identity, br', 'gzip, br', 'zstd,gzip'];
const OWN = { authorization: 'Bearer sk-mine' };

const TEXT = '{"error":{"code":"rate_limit_exceeded","message":"Zu viel für heute."}}';

const RAW = { encodeResponseBody: 'manual' } as CallInit;

describe('a refusal', () => {
  it.each(['gzip', 'brotli', 'zstd'])('in %s is recognized like a plain one', async (packing) => {
    const stage = await newStage();
    const packed = { [`x-strict-${packing}`]: '1', 'accept-encoding': 'gzip, br, zstd' };
    const final = { ...packed, 'x-strict-fail': 'quota' };
    expect(await reportedBy(send(stage, 'spent', { headers: final }))).toMatchObject({
      status: 429,
      tries: '1',
      shouldRetry: 'false',
    });
    await stage.strict.failNext('concurrency');
    const waiting = send(stage, 'busy', { headers: packed });
    expect(await reportedBy(waiting)).toMatchObject({ status: 200, tries: '2' });
    await untilGroup(stage, { refusals_total: { quota: 1, concurrency: 1 } });
    expect(await arrived(stage)).toEqual(['spent', 'busy', 'busy']);
  });

  const answer = (bytes: Uint8Array, encoding: string): Response =>
    new Response(bytes, {
      status: 429,
      headers: { 'content-encoding': encoding },
      encodeBody: 'manual',
    });

  it.each(SPELLINGS)('is passed on unchanged: %j', async (encoding) => {
    const bytes = pack(TEXT, encoding);
    const peeked = await peekAnswer(answer(bytes, encoding));
    expect(peeked.text).toBe(TEXT);
    expect(new Uint8Array(await peeked.answer.arrayBuffer())).toEqual(bytes);
  });

  it('is read if deflate has no zlib header', async () => {
    expect((await peekAnswer(answer(pack(TEXT, 'raw'), 'deflate'))).text).toBe(TEXT);
  });

  it.each(PACKINGS)('is read if it is plain despite its header: %s', async (packing) => {
    const plain = new TextEncoder().encode(TEXT);
    const peeked = await peekAnswer(answer(plain, packing));
    expect(peeked.text).toBe(TEXT);
    expect(new Uint8Array(await peeked.answer.arrayBuffer())).toEqual(plain);
  });

  it.each(PACKINGS)('that is a bomb is read only up to the usual bound: %s', async (packing) => {
    const bomb = pack(new Uint8Array(20_000_000).fill(0x20), packing);
    const peeked = await peekAnswer(answer(bomb, packing), 5_000);
    expect(peeked.text).toBe(' '.repeat(5_000));
    expect(new Uint8Array(await peeked.answer.arrayBuffer())).toEqual(bomb);
  });
});

describe('text that is wrongly labelled as compressed', () => {
  const decoded = (chunks: readonly string[], encoding: string): Promise<string> => {
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk));
        controller.close();
      },
    });
    return new Response(unpacked(stream, packingsOf(encoding) ?? [])).text();
  };
  const EVENT = `data: ${TEXT}\n\n`;

  it.each(PACKINGS)('is read as it is: %s', async (packing) => {
    expect(await decoded([TEXT], packing)).toBe(TEXT);
    expect(await decoded([EVENT, EVENT], packing)).toBe(EVENT + EVENT);
    expect(await decoded([`: working\n\n${EVENT}`, EVENT], packing)).toContain(EVENT + EVENT);
  });

  it.each(PACKINGS)('is not any other body that cannot be decoded: %s', async (packing) => {
    expect(await decoded(['<html>'], packing).catch(() => 'failed')).toBe('failed');
    expect(await decoded([''], packing).catch(() => 'failed')).toBe('failed');
  });
});

describe('a served answer', () => {
  const USAGE = { inputTokens: 1_234, outputTokens: 567 };
  const asked = (stream: boolean) => ({
    model: 'm',
    stream,
    stream_options: stream ? { include_usage: true } : undefined,
    messages: [{ role: 'user', content: 'one two three' }],
  });

  it.each([
    ['gzip', false],
    ['brotli', false],
    ['zstd', false],
    ['gzip', true],
    ['brotli', true],
    ['zstd', true],
  ])(
    'in %s is metered, although plain bytes were asked for (stream: %s)',
    async (packing, stream) => {
      const { group } = await newScene(USAGE, COUNTING);
      const headers = { ...OWN, [`x-strict-${packing}`]: '1' };
      const response = await call(`/up${CHAT}`, { json: asked(stream), headers, ...RAW });
      expect(response.headers.get('content-encoding')).toBe({ brotli: 'br' }[packing] ?? packing);
      await response.arrayBuffer();
      await untilCounted(group, { ...USAGE, reservedUsd: 0 });
    },
  );

  it.each(['br', 'gzip, gzip'])('that is a bomb is not read: %s', async (encoding) => {
    const meter = createUsageMeter('openai', 'application/json', encoding);
    meter?.push(pack(new Uint8Array(30_000_000).fill(0x20), encoding));
    await meter?.caughtUp?.();
    expect(meter?.isLost).toBe(true);
  });
});

describe('a request', () => {
  let strict: Strict;
  let keys: NonNullable<ConfigInput['keys']> = [];
  const KEY = 'hg_held-to-groups';
  const HELD = { 'headgate-key': KEY };

  beforeAll(async () => {
    strict = await strictScope('packings');
    const { hash } = (await admin('POST', '/fingerprint', { key: KEY })).json;
    keys = [{ id: 'held', hash: hash as string, groups: ['cheap'] }];
  });

  beforeEach(() =>
    configure({
      upstreams: [
        {
          id: 'ours',
          base_url: strict.url,
          auth: { secret: 'UPSTREAM_TEST_KEY' },
          openai_at: '/v1',
        },
      ],
      groups: [
        {
          name: 'cheap',
          match: { models: ['cheap'] },
          limits: { max_concurrency: 8, itpm: 1_000_000 },
          holds: NO_COOLDOWN,
        },
      ],
      keys,
    }),
  );

  const naming = (model: string, more: object = {}) =>
    JSON.stringify({ model, messages: [{ role: 'user', content: 'x '.repeat(2_000) }], ...more });

  async function post(path: string, body: Uint8Array, encoding: string) {
    const before = (await strict.stats()).arrivals.length;
    const headers = { 'content-type': 'application/json', 'content-encoding': encoding, ...HELD };
    const response = await call(path, { method: 'POST', body, headers });
    const text = await response.text();
    await until(async () => expect((await strict.stats()).inFlight).toBe(0));
    const models = (await strict.stats()).arrivals.slice(before).map(({ model }) => model);
    const { status, headers: reported } = response;
    return {
      status,
      reason: reported.get('headgate-reason'),
      groups: reported.get('headgate-groups'),
      models,
      text,
    };
  }

  it.each(SPELLINGS)(
    'runs in the group of its model, and is passed on unchanged: %j',
    async (encoding) => {
      const packed = pack(naming('cheap'), encoding);
      const seen = await post(`/ours${CHAT}`, packed, encoding);
      expect(seen).toMatchObject({ status: 200, groups: 'cheap' });
      const { echo } = await echoed(`/ours${CHAT}`, packed, encoding);
      expect(echo.bodyBytes).toBe(packed.length);
      expect(echo.headers['content-encoding']?.trim()).toBe(encoding.trim());
    },
  );

  async function echoed(path: string, body: Uint8Array, encoding: string) {
    const headers = { 'content-encoding': encoding, 'x-strict-echo': '1', ...HELD };
    const response = await call(path, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json', ...headers },
    });
    const echo = await response.json<{ headers: Record<string, string>; bodyBytes: number }>();
    return { echo, status: response.status };
  }

  it.each(SPELLINGS)('hides no other model: %j', async (encoding) => {
    const dear = await post(`/ours${CHAT}`, pack(naming('dear'), encoding), encoding);
    expect(dear).toMatchObject({ status: 403, reason: 'key_forbidden', models: [] });
    const two = pack(`${naming('cheap').slice(0, -1)},"model":"dear"}`, encoding);
    expect(await post(`/ours${CHAT}`, two, encoding)).toMatchObject({
      status: 400,
      reason: 'body_unreadable',
      models: [],
    });
  });

  it('hides no other model after the end of the first compressed part', async () => {
    const [start, end] = [naming('cheap').slice(0, -1), ',"model":"dear"}'];
    for (const packing of PACKINGS) {
      const parts = [pack(start, packing), pack(end, packing)];
      const joined = new Uint8Array(await new Blob(parts).arrayBuffer());
      expect(await post(`/ours${CHAT}`, joined, packing)).toMatchObject({
        status: 400,
        reason: 'body_unreadable',
        models: [],
      });
    }
  });

  it.each(PACKINGS)(
    'that is cut off or followed by other bytes is refused: %s',
    async (packing) => {
      const whole = pack(naming('cheap'), packing);
      const behind = new Uint8Array(await new Blob([whole, 'junk']).arrayBuffer());
      for (const body of [whole.subarray(0, -3), behind]) {
        const seen = await post(`/ours${CHAT}`, body, packing);
        expect(seen).toMatchObject({ status: 400, reason: 'body_unreadable', models: [] });
      }
    },
  );

  it('of several zstd frames is one body', async () => {
    const [start, end] = [naming('cheap').slice(0, 9), naming('cheap').slice(9)];
    const frames = [pack(start, 'zstd'), pack(end, 'zstd')];
    const body = new Uint8Array(await new Blob(frames).arrayBuffer());
    const seen = await post(`/ours${CHAT}`, body, 'zstd');
    expect(seen).toMatchObject({ status: 200, groups: 'cheap' });
  });

  it('in zstd with a window above 8 MiB is refused, and says so', async () => {
    const text = new TextEncoder().encode(naming('cheap'));
    const framed = async (window: number): Promise<Uint8Array> => {
      const head = [0x28, 0xb5, 0x2f, 0xfd, 0, window];
      const block = [1 + ((text.length & 31) << 3), text.length >> 5, 0];
      return new Uint8Array(
        await new Blob([Uint8Array.from([...head, ...block]), text]).arrayBuffer(),
      );
    };
    const seen = await post(`/ours${CHAT}`, await framed(13 << 3), 'zstd');
    expect(seen).toMatchObject({ status: 200, groups: 'cheap' });
    const large = await post(`/ours${CHAT}`, await framed(14 << 3), 'zstd');
    expect(large).toMatchObject({ status: 400, reason: 'body_unreadable', models: [] });
    expect(large.text).toContain('a window above 8 MiB');
  });

  it('of thousands of tiny zstd frames is refused: each costs time, even an empty one', async () => {
    const framesOf = (text: string, count: number) =>
      Array<Uint8Array>(count).fill(pack(text, 'zstd'));
    const [start, end] = [pack('{"x":"', 'zstd'), pack('","model":"cheap"}', 'zstd')];
    const bodyOf = async (frames: readonly Uint8Array[]) =>
      new Uint8Array(await new Blob([start, ...frames, end]).arrayBuffer());
    const tiny = await post(`/ours${CHAT}`, await bodyOf(framesOf('', 2_000)), 'zstd');
    expect(tiny).toMatchObject({ status: 400, reason: 'body_unreadable', models: [] });
    expect(tiny.text).toContain('more than 1000 frames of less than 4096 bytes');
    const few = await post(`/ours${CHAT}`, await bodyOf(framesOf('', 900)), 'zstd');
    expect(few).toMatchObject({ status: 200, groups: 'cheap' });
    const large = await bodyOf(framesOf('x'.repeat(5_000), 1_100));
    expect(await post(`/ours${CHAT}`, large, 'zstd')).toMatchObject({
      status: 200,
      groups: 'cheap',
    });
  });

  it.each(['br', 'zstd', 'br, br', 'zstd, br'])(
    'that is a bomb is refused: %s',
    async (encoding) => {
      const padded = `{"x":"${' '.repeat(30_000_000)}","model":"cheap"}`;
      const seen = await post(`/ours${CHAT}`, pack(padded, encoding), encoding);
      expect(seen).toMatchObject({ status: 400, reason: 'body_unreadable', models: [] });
      expect(seen.text).toContain('decompresses to more than');
    },
  );

  it('in an unknown encoding is refused if a group depends on the model', async () => {
    for (const encoding of ['compress', 'dcb', 'gzip, gzip, gzip, gzip']) {
      const seen = await post(`/ours${CHAT}`, pack(naming('cheap'), 'gzip'), encoding);
      expect(seen).toMatchObject({ status: 400, reason: 'body_unreadable', models: [] });
      expect(seen.text).toContain('its content-encoding is not gzip, deflate, br or zstd');
    }
  });

  it.each(PACKINGS)('that is empty, or holds something else, says so: %s', async (packing) => {
    const empty = await post(`/ours${CHAT}`, new Uint8Array(), packing);
    expect(empty).toMatchObject({ status: 400, reason: 'body_unreadable', models: [] });
    expect(empty.text).toContain('it is empty, but has a content-encoding');
    const plain = new TextEncoder().encode(naming('cheap'));
    const other = await post(`/ours${CHAT}`, plain, packing);
    expect(other).toMatchObject({ status: 400, reason: 'body_unreadable', models: [] });
    expect(other.text).toMatch(/do not match its content-encoding|bytes follow the end/);
  });

  it('in zstd may have skippable frames before, between and after its own', async () => {
    const skipped = Uint8Array.of(0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4);
    const [start, end] = [naming('cheap').slice(0, 9), naming('cheap').slice(9)];
    const parts = [skipped, pack(start, 'zstd'), skipped, pack(end, 'zstd'), skipped];
    const body = new Uint8Array(await new Blob(parts).arrayBuffer());
    const seen = await post(`/ours${CHAT}`, body, 'zstd');
    expect(seen).toMatchObject({ status: 200, groups: 'cheap' });
  });

  it.each(SPELLINGS)(
    'under /v1 loses its prefix, and is sent uncompressed: %j',
    async (encoding) => {
      const seen = await post(CHAT, pack(naming('ours/cheap'), encoding), encoding);
      expect(seen).toMatchObject({ status: 200, groups: 'cheap', models: ['cheap'] });
      const { echo } = await echoed(CHAT, pack(naming('ours/cheap'), encoding), encoding);
      expect(echo.headers['content-encoding']).toBeUndefined();
      expect(echo.bodyBytes).toBe(naming('cheap').length);
    },
  );

  it('under /v1 stays compressed if a header names the upstream', async () => {
    const packed = pack(naming('cheap'), 'zstd');
    const headers = { ...HELD, 'headgate-upstream': 'ours', 'x-strict-echo': '1' };
    const response = await call(CHAT, {
      method: 'POST',
      body: packed,
      headers: { 'content-type': 'application/json', 'content-encoding': 'zstd', ...headers },
    });
    expect(await response.json()).toMatchObject({ bodyBytes: packed.length });
  });
});

it.each<[string | null, string[] | null]>([
  [null, []],
  ['', []],
  ['identity', []],
  [' X-GZIP ', ['gzip']],
  ['deflate, BR', ['deflate', 'br']],
  ['identity,,zstd', ['zstd']],
  ['UTF-8', []],
  ['none, gzip', ['gzip']],
  ['compress', null],
  ['constructor', null],
  ['gzip, dcz', null],
  ['gzip, gzip, gzip, gzip', null],
])('reads the content-encoding %j as %j', (text, packings) => {
  expect(packingsOf(text)).toEqual(packings);
});
