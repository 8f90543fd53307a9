import { once } from 'node:events';
import {
  createServer,
  request,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import {
  brotliCompressSync,
  constants as zlib,
  createGzip,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { startStage } from '../support/lifecycle-stage.ts';

/**
 * Usage that Headgate asks for on behalf of a caller, at an upstream behind a proxy that compresses streams although plain
 * bytes were asked for. The caller must not see it, however the stream is compressed and cut.
 */
const EVENTS = ['Hel', 'lo', ' there'].map(
  (content) => `data: {"id":"c","choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`,
);
const USAGE =
  'data: {"id":"c","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}\n\n';
const DONE = 'data: [DONE]\n\n';
const WITHOUT = EVENTS.join('') + DONE;
/** Beside the chunk with the usage, a call that asks for it gets the member in each other chunk. */
const WITH = EVENTS.join('').replaceAll('}]}', '}],"usage":null}') + USAGE + DONE;

type Pack = (text: Buffer) => Buffer;

/** Each coding as the header names it. Two or three on top of each other are undone in turn. */
const PACKINGS: Readonly<Record<string, Pack>> = {
  gzip: gzipSync,
  'x-gzip': gzipSync,
  GZIP: gzipSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
  deflate: deflateSync,
  'deflate ': deflateRawSync,
  'gzip, br': (text) => brotliCompressSync(gzipSync(text)),
  'identity, zstd': zstdCompressSync,
};

/** Codings that cannot be undone. The bytes are not looked at. */
const UNKNOWN = ['compress', 'gzip, compress', 'gzip, gzip, gzip, gzip'];

let stage: LifecycleStage;
let server: Server;
/** How the upstream answers: its headers, its bytes, and how many it writes at a time. */
interface InjectedUsageAnswer {
  readonly headers: Record<string, string>;
  readonly bytes: (text: Buffer) => Buffer;
  readonly piece: number;
  /** Resolves when the second piece may be written. */
  readonly goOn?: Promise<void>;
}
let answer: InjectedUsageAnswer;
/** Whether each request asked for usage. */
const asked: boolean[] = [];

async function writeInPieces(response: ServerResponse, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; at += answer.piece) {
    response.write(bytes.subarray(at, at + answer.piece));
    await (at === 0 ? answer.goOn : undefined);
    await turn();
  }
  response.end();
}

beforeAll(async () => {
  server = createServer((incoming, response) => {
    const parts: Buffer[] = [];
    incoming.on('data', (part: Buffer) => parts.push(part));
    incoming.on('end', () => {
      const body = JSON.parse(Buffer.concat(parts).toString()) as {
        stream_options?: { include_usage?: boolean };
      };
      const isAsked = body.stream_options?.include_usage === true;
      asked.push(isAsked);
      response.writeHead(200, answer.headers);
      const bytes = answer.bytes(Buffer.from(isAsked ? WITH : WITHOUT));
      writeInPieces(response, bytes).catch(() => response.destroy());
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const ids = ['known', ...UNKNOWN.map((_, at) => `unknown-${at}`)];
  stage = await startStage({
    config: () => ({
      upstreams: ids.map((id) => ({
        id,
        base_url: `http://127.0.0.1:${port}`,
        dialect: 'openai',
        inject_usage: true,
      })),
      groups: [{ name: 'counted', match: { upstreams: ids }, limits: { tpm: 1_000_000 } }],
    }),
  });
});

afterAll(async () => {
  await stage.close();
  server.close();
});

beforeEach(() => {
  asked.length = 0;
});

interface InjectedUsageReceived {
  readonly encoding: string | undefined;
  readonly bytes: Buffer;
}

/** Calls without undoing anything, so that the bytes are those that a caller gets. */
async function open(more: object = {}, upstream = 'known'): Promise<IncomingMessage> {
  const sent = request(`${stage.url()}/${upstream}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: 'Bearer sk-usage',
      'content-type': 'application/json',
      'accept-encoding': 'gzip, br, zstd',
    },
  });
  sent.end(JSON.stringify({ model: 'm', stream: true, messages: [], ...more }));
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return response;
}

async function call(more: object = {}, upstream = 'known'): Promise<InjectedUsageReceived> {
  const response = await open(more, upstream);
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  return { encoding: response.headers['content-encoding'], bytes: Buffer.concat(parts) };
}

const EVENT_STREAM = { 'content-type': 'text/event-stream' };

describe.each(Object.entries(PACKINGS))('a stream in %j', (encoding, pack) => {
  it.each([1, 7, 100_000])(
    'reaches the caller without the usage, in pieces of %i bytes',
    async (piece) => {
      answer = {
        headers: { ...EVENT_STREAM, 'content-encoding': encoding.trim() },
        bytes: pack,
        piece,
      };
      const { encoding: left, bytes } = await call();
      expect(asked).toEqual([true]);
      expect([left, bytes.toString()]).toEqual([undefined, WITHOUT]);
    },
  );

  it('stays as it is for a caller who asked for the usage', async () => {
    answer = {
      headers: { ...EVENT_STREAM, 'content-encoding': encoding.trim() },
      bytes: pack,
      piece: 100,
    };
    const { encoding: left, bytes } = await call({ stream_options: { include_usage: true } });
    expect(left).toBe(encoding.trim());
    expect(bytes).toEqual(pack(Buffer.from(WITH)));
  });
});

it('usage in the last chunk with choices does not reach the caller either', async () => {
  const usage = '"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}';
  const last = WITHOUT.lastIndexOf('}\n\ndata: [DONE]');
  const bytes = (text: Buffer): Buffer =>
    text.equals(Buffer.from(WITH))
      ? Buffer.from(`${WITHOUT.slice(0, last)},${usage}${WITHOUT.slice(last)}`)
      : text;
  answer = { headers: EVENT_STREAM, bytes, piece: 9 };
  expect((await call()).bytes.toString()).toBe(WITHOUT);
  expect(asked).toEqual([true]);
});

it.each([
  {},
  { 'content-type': 'text/plain' },
  { 'content-type': 'Text/Event-Stream; charset=utf-8' },
  { 'content-type': 'application/json' },
  { 'content-type': 'text/event-stream', 'content-length': String(WITH.length) },
  {
    'content-type': 'text/event-stream; x="application/json"',
    'content-length': String(WITH.length),
  },
  { 'content-type': 'application/octet-stream', 'content-encoding': 'gzip' },
])('a stream with the headers %j reaches the caller without the usage', async (headers) => {
  const isPacked = 'content-encoding' in headers;
  answer = {
    headers: headers as Record<string, string>,
    bytes: isPacked ? gzipSync : (text) => text,
    piece: 11,
  };
  expect((await call()).bytes.toString()).toBe(WITHOUT);
  expect(asked).toEqual([true]);
});

it('a compressed stream reaches the caller event by event', async () => {
  const packed = createGzip();
  const [first = '', ...rest] = EVENTS;
  const sent: Buffer[] = [];
  packed.on('data', (bytes: Buffer) => sent.push(bytes));
  packed.write(first);
  await new Promise<void>((flushed) => packed.flush(zlib.Z_SYNC_FLUSH, flushed));
  const begins = Buffer.concat(sent.splice(0));
  packed.end(rest.join('') + USAGE + DONE);
  await once(packed, 'end');
  const goOn = Promise.withResolvers<void>();
  answer = {
    headers: { ...EVENT_STREAM, 'content-encoding': 'gzip' },
    bytes: () => Buffer.concat([begins, ...sent]),
    piece: begins.length,
    goOn: goOn.promise,
  };
  const received = await open();
  let text = '';
  for await (const part of received) {
    text += String(part);
    if (text.includes(first)) goOn.resolve();
  }
  expect(text).toBe(WITHOUT);
});

it('text that is wrongly labelled as compressed is read as it is', async () => {
  answer = {
    headers: { ...EVENT_STREAM, 'content-encoding': 'gzip' },
    bytes: (text) => text,
    piece: 100_000,
  };
  expect((await call()).bytes.toString()).toBe(WITHOUT);
});

it.each(UNKNOWN.map((encoding, at) => [encoding, `unknown-${at}`] as const))(
  'after a stream in %j the upstream is not asked any more, which is logged once',
  async (encoding, upstream) => {
    answer = {
      headers: { ...EVENT_STREAM, 'content-encoding': encoding },
      bytes: (text) => text,
      piece: 100,
    };
    const first = await call({}, upstream);
    expect([first.encoding, first.bytes.toString()]).toEqual([encoding, WITH]);
    for (let i = 0; i < 3; i += 1) {
      expect((await call({}, upstream)).bytes.toString()).toBe(WITHOUT);
    }
    expect(asked).toEqual([true, false, false, false]);
    const lines = stage
      .logs()
      .split('\n')
      .filter((line) => line.includes('usage_not_removed'));
    expect(lines.filter((line) => line.includes(`"${upstream}"`))).toHaveLength(1);
  },
);
