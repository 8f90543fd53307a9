import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { LifecycleOpenCall } from '../support/lifecycle-call.ts';
import { openCall } from '../support/lifecycle-call.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { NO_HOLDS, STAGE_TOKEN, startStage } from '../support/lifecycle-stage.ts';

/**
 * Requests that Headgate answers before it has read their body. workerd then closes its connection, and every client must
 * read the whole answer in spite of that. Each row of the table below is sent by each client with each size.
 */
const SIZES = [60_000, 300_000, 2_000_000, 20_000_000];

const KEY = `hg_${'a'.repeat(40)}`;
const PATH = 'v1/chat/completions';

type EarlyAnswersHeaders = Readonly<Record<string, string>>;

interface EarlyAnswersRefused {
  readonly path: string;
  readonly headers: EarlyAnswersHeaders;
  readonly statuses: readonly number[];
}

const keyed = (key: string): EarlyAnswersHeaders => ({
  authorization: `Bearer ${key}`,
  'content-type': 'application/json',
});
const NO_WAIT = { ...keyed(KEY), 'headgate-max-wait': '0' };
const UPGRADE = {
  connection: 'upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

// An estimate by length alone refuses nothing, and the admin API takes 1 MB.
const REFUSED: readonly (readonly [string, EarlyAnswersRefused])[] = [
  ['an unknown key', { path: `open/${PATH}`, headers: keyed('hg_wrong'), statuses: [401] }],
  ['a forbidden group', { path: `closed/${PATH}`, headers: keyed(KEY), statuses: [403] }],
  ['an unknown upstream', { path: `nowhere/${PATH}`, headers: keyed(KEY), statuses: [404] }],
  ['a full group', { path: `full/${PATH}`, headers: NO_WAIT, statuses: [429] }],
  ['a paused group', { path: `paused/${PATH}`, headers: NO_WAIT, statuses: [503] }],
  [
    'a call that is too large',
    { path: `small/${PATH}`, headers: NO_WAIT, statuses: [413, 429, 200] },
  ],
  ['the admin API', { path: 'admin/api/keys', headers: keyed('nobody'), statuses: [401, 413] }],
  [
    'a change by a web page',
    {
      path: 'admin/api/keys',
      headers: { ...keyed(STAGE_TOKEN), origin: 'https://else.where' },
      statuses: [403, 413],
    },
  ],
  ['a lease', { path: 'leases', headers: keyed('hg_wrong'), statuses: [400] }],
];

let stage: LifecycleStage;
let folder: string;
let holder: LifecycleOpenCall;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-early-'));
  for (const size of SIZES) await writeFile(join(folder, String(size)), bodyOf(size));
  const group = (name: string, limits: object, more: object = {}): object => ({
    name,
    match: { upstreams: [name] },
    holds: NO_HOLDS,
    limits,
    ...more,
  });
  const ids = ['open', 'closed', 'full', 'paused', 'small'];
  stage = await startStage({
    config: ({ url }) => ({
      upstreams: ids.map((id) => ({ id, base_url: url, dialect: 'openai' })),
      keys: [
        {
          id: 'caller',
          hash: `sha256:${createHash('sha256').update(KEY).digest('hex')}`,
          groups: ids.filter((id) => id !== 'closed'),
        },
      ],
      groups: [
        group('open', {}),
        group('closed', {}),
        group('full', { max_concurrency: 1 }),
        group('paused', {}, { paused: true }),
        group('small', { itpm: 10 }),
      ],
    }),
  });
  holder = openCall(stage.url(), {
    path: `/full/${PATH}`,
    headers: { ...keyed(KEY), 'x-strict-silent-after-chunks': '1' },
    body: JSON.stringify({ model: 'practice', stream: true, messages: [] }),
  });
  await holder.answered;
});

afterAll(async () => {
  holder.leave('FIN');
  await stage.close();
  await rm(folder, { recursive: true });
});

function bodyOf(size: number): Buffer {
  const around = JSON.stringify({ model: 'practice', messages: [{ role: 'user', content: '' }] });
  return Buffer.from(
    around.replace('""', `"${'Words. '.repeat(size / 7 + 1).slice(0, size - around.length)}"`),
  );
}

/** An answer as a client has read it. */
interface EarlyAnswersRead {
  readonly status: number;
  readonly text: string;
}

type Send = (url: string, headers: EarlyAnswersHeaders, size: number) => Promise<EarlyAnswersRead>;

/** The real one. It asks `100-continue` before bodies of more than 1 MB, unless it is told not to. */
async function curl(
  url: string,
  headers: EarlyAnswersHeaders,
  size: number,
  more: readonly string[],
): Promise<EarlyAnswersRead> {
  const lines = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const body = `@${join(folder, String(size))}`;
  const args = ['-sS', '-w', '%{http_code}', '--data-binary', body, ...lines, ...more, url];
  const { stdout } = await promisify(execFile)('curl', args);
  return { status: Number(stdout.slice(-3)), text: stdout.slice(0, -3) };
}

async function fetched(
  url: string,
  headers: EarlyAnswersHeaders,
  init: RequestInit,
): Promise<EarlyAnswersRead> {
  const answer = await fetch(url, { method: 'POST', headers, ...init });
  return { status: answer.status, text: await answer.text() };
}

function inPieces(body: Buffer): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= body.length) controller.close();
      else controller.enqueue(body.subarray(at, (at += 16_384)));
    },
  });
}

/** One connection at a time, used again unless an answer says that it closes. */
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

function byNode(
  url: string,
  headers: EarlyAnswersHeaders,
  size: number,
): Promise<EarlyAnswersRead> {
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      agent,
      method: 'POST',
      headers: { ...headers, 'content-length': size },
    });
    sent.on('error', reject);
    sent.on('response', (answer) => {
      let text = '';
      answer.on('data', (data: Buffer) => (text += data.toString()));
      answer.on('error', reject);
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }));
    });
    sent.end(bodyOf(size));
  });
}

/**
 * A connection of its own. `first`: nothing is read before all is sent, as by Python's `http.client` and `requests`. Otherwise
 * sending and reading go on side by side, and the connection is closed with the answer, as by Go's `net/http`.
 */
function raw(first: 'send' | 'both'): Send {
  return (url, headers, size) => {
    const { hostname, port, pathname } = new URL(url);
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const head = `POST ${pathname} HTTP/1.1\r\nHost: ${hostname}\r\n${lines.join('')}Content-Length: ${size}\r\n\r\n`;
    return new Promise((resolve, reject) => {
      const socket = connect(Number(port), hostname);
      let got = '';
      if (first === 'send') socket.pause();
      socket.on('error', reject);
      socket.on('end', () => reject(new Error(`ended after ${got}`)));
      socket.on('data', (data: Buffer) => {
        got += data.toString();
        const read = /^HTTP\/1\.1 (\d+)[^]*?^content-length: (\d+)[^]*?\r\n\r\n([^]*)$/im.exec(got);
        if (read === null || Buffer.byteLength(read[3] ?? '') < Number(read[2])) return;
        socket.destroy();
        resolve({ status: Number(read[1]), text: read[3] ?? '' });
      });
      socket.write(head);
      socket.write(bodyOf(size), () => socket.resume());
    });
  };
}

const CLIENTS: readonly (readonly [string, Send])[] = [
  ['curl', (...call) => curl(...call, [])],
  ['curl without Expect', (...call) => curl(...call, ['-H', 'Expect:'])],
  ['curl in chunks', (...call) => curl(...call, ['-H', 'Transfer-Encoding: chunked'])],
  ['fetch', (url, headers, size) => fetched(url, headers, { body: bodyOf(size) })],
  [
    'fetch in chunks',
    (url, headers, size) =>
      fetched(url, headers, { body: inPieces(bodyOf(size)), duplex: 'half' } as RequestInit),
  ],
  ['node:http, with keep-alive', byNode],
  ['the shape of Python', raw('send')],
  ['the shape of Go', raw('both')],
];

it.each(CLIENTS)(
  '%s reads every answer that comes before the end of its body',
  async (_, send) => {
    const lost: unknown[] = [];
    for (const [what, { path, headers, statuses }] of REFUSED) {
      for (const size of SIZES) {
        const read = await send(`${stage.url()}/${path}`, headers, size).catch(String);
        const isWhole =
          typeof read === 'object' && statuses.includes(read.status) && /\}\s*$/.test(read.text);
        if (!isWhole) lost.push({ what, size, read });
      }
    }
    expect(lost).toEqual([]);
  },
  60_000,
);

it('a WebSocket whose request has a body is refused with an answer', async () => {
  const read = await raw('send')(
    `${stage.url()}/nowhere/${PATH}`,
    { ...keyed(KEY), ...UPGRADE },
    300_000,
  );
  expect(read.status).toBe(404);
});
