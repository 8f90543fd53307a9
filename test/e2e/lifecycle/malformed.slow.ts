import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { RequestScanner } from '../../../scripts/serve/request-scanner.ts';
import { createRandom, type LifecycleRandom } from '../support/lifecycle-random.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { practiceConfig, startStage } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';
import { exchange } from '../support/wire.ts';

/** Requests that are no proper HTTP, before a real workerd. All of them carry a key that nobody may see. */
const KEY = 'sk-leak-4711';
const RUNS = 600;
const SIDE_BY_SIDE = 20;

let stage: LifecycleStage;

beforeAll(async () => {
  stage = await startStage({ config: practiceConfig(50), upstream: { chunks: 1 } });
});

afterAll(() => stage.close());

const port = (): number => Number(new URL(stage.url()).port);
const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');

const HEALTH = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n';
const withHost = (line: string, headers = ''): string =>
  `${line}\r\nHost: localhost\r\n${headers}\r\n`;
const post = (headers: string, body: string): string =>
  withHost('POST /practice/v1/chat/completions HTTP/1.1', headers) + body;

const HOSTILE: readonly (readonly [string, string])[] = [
  ['an absolute URL', withHost(`GET http://h/v1?key=${KEY} HTTP/1.1`)],
  ['*', withHost('OPTIONS * HTTP/1.1', `Authorization: Bearer ${KEY}\r\n`)],
  ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['no Host', `GET /v1?key=${KEY} HTTP/1.1\r\n\r\n`],
  ['a bad Host', `GET /v1 HTTP/1.1\r\nHost: a b ${KEY}\r\n\r\n`],
  ['a Host that is a key', `GET /v1 HTTP/1.1\r\nHost: ${KEY}/@#?\r\n\r\n`],
  ['two Hosts', withHost('GET /v1 HTTP/1.1', `Host: ${KEY}\r\n`)],
  ['a length with a sign', post('Content-Length: +4\r\n', 'abcd')],
  ['a length that is none', post(`Content-Length: ${KEY}\r\n`, 'abcd')],
  ['two lengths', post('Content-Length: 4\r\nContent-Length: 4\r\n', 'abcd')],
  ['an unknown coding', post(`Transfer-Encoding: ${KEY}\r\n`, 'abcd')],
  ['a length and chunks', post('Content-Length: 4\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n')],
  ['a folded line', withHost('GET /v1 HTTP/1.1', `X: a\r\n ${KEY}\r\n`)],
  ['a bare CR', withHost('GET /v1 HTTP/1.1', `X: a\r${KEY}\r\n`)],
  ['a bare LF', withHost('GET /v1 HTTP/1.1', `X: a\n${KEY}: b\r\n`)],
  ['NUL', withHost('GET /v1 HTTP/1.1', `X: a\0${KEY}\r\n`)],
  ['a head of 200 KB', withHost('GET /v1 HTTP/1.1', `X: ${KEY.repeat(16_000)}\r\n`)],
  ['a chunk of no size', post('Transfer-Encoding: chunked\r\n', `${KEY}\r\nabcd\r\n0\r\n\r\n`)],
  ['trailers', post('Transfer-Encoding: chunked\r\n', `0\r\nX: ${KEY}\r\n\r\n`)],
];

it.each(HOSTILE)(
  '%s is answered with 400 in its turn, and nothing behind it',
  async (_name, text) => {
    for (const before of [0, 1, 3]) {
      const sent = latin1(HEALTH.repeat(before) + text + HEALTH);
      const { answers, rest } = await exchange(port(), [sent], before + 2);
      const statuses = answers.map(({ status }) => status);
      expect({ statuses, rest }).toEqual({ statuses: [...Array(before).fill(200), 400], rest: '' });
      expect(answers.at(-1)?.head).toMatch(/^headgate-reason: (header_invalid|body_unreadable)$/m);
      expect(answers.at(-1)?.body).toContain('Expected');
    }
    expect(stage.logs()).not.toContain('leak');
  },
);

const METHODS = ['TRACE', 'TRACK', 'DEBUG', 'CONNECT', 'PROPFIND', 'FOO', 'M_1', 'get', 'trace'];

it.each(
  METHODS.flatMap((method) =>
    ['/practice/v1/chat/completions', '/healthz'].map((path) => [method, path]),
  ),
)('%s %s is answered with 405 in its turn, and nothing behind it', async (method, path) => {
  const before = stage.upstream.stats().total;
  const text = withHost(
    `${method} ${path}?key=${KEY} HTTP/1.1`,
    `Authorization: Bearer ${KEY}\r\n`,
  );
  const { answers } = await exchange(port(), [latin1(HEALTH + text + HEALTH)], 3);
  expect(answers.map(({ status }) => status).slice(0, 2)).toEqual([200, 405]);
  expect(answers[1]?.head).toMatch(/^allow: GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS$/im);
  expect(answers[1]?.head).toMatch(/^headgate-reason: method_unknown$/m);
  expect(stage.upstream.stats().total).toBe(before);
  expect(stage.logs()).not.toContain('leak');
});

it('a head that is incomplete after 10 s is answered with 408', async () => {
  const socket = connect({ host: '127.0.0.1', port: port() });
  socket.write(`GET /practice/v1/models?key=${KEY} HTTP/1.1\r\nHost: h\r\nX: `);
  let text = '';
  for await (const data of socket) text += String(data);
  expect(text).toMatch(/^HTTP\/1\.1 408 /);
  expect(text).toMatch(/^headgate-reason: request_timeout\r$/im);
  expect(text).toContain('did not arrive in time');
  expect(text).not.toContain(KEY);
});

/** Chunks that no reader may take for anything: all of a call before the third was proper. */
const BAD_CHUNKS: readonly (readonly [string, string])[] = [
  ['a size that is a key', `${KEY}\r\n`],
  ['no size', '\r\n'],
  ['a sign', '-5\r\n'],
  ['0x', '0x5\r\nabcde\r\n'],
  ['a space behind the size', '5 \r\nabcde\r\n'],
  ['an extension', `5;${KEY}\r\nabcde\r\n`],
  ['LF alone', '5\nabcde\r\n'],
  ['a size beyond every body', 'fffffffffffffffff\r\n'],
  ['more bytes than its size', '5\r\nabcdefgh\r\n'],
  ['a last one with a bare CR', '0\r\r\n'],
];

it.each(BAD_CHUNKS)(
  'a body whose third chunk has %s under way ends the call, and nothing behind it is a request',
  async (_name, bad) => {
    const { upstream, admin } = stage;
    upstream.reset();
    const before = await admin.group('practice');
    const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
    const headers = `Authorization: Bearer ${KEY}\r\nTransfer-Encoding: chunked\r\n`;
    const prompt = `{"model":"m","messages":[{"role":"user","content":"${KEY}`;
    const head = post(headers, chunk(prompt) + chunk('x'.repeat(1_000_000)));
    const behind = `0\r\n\r\n${withHost('GET /practice/v1/smuggled HTTP/1.1')}`;
    const { answers, rest } = await exchange(port(), [latin1(HEALTH + head)], 2, {
      last: async () => {
        await until('the upstream has the call', () => upstream.stats().inFlight === 1);
        expect((await admin.group('practice')).in_use).toBe(1);
        return latin1(bad + behind + HEALTH);
      },
    });
    expect([answers.map(({ status }) => status), rest]).toEqual([[200], '']);
    await admin.untilIdle();
    await until('the call is over upstream', () => upstream.stats().inFlight === 0);
    // Its model is known to the upstream once its body is whole.
    const { arrivals, uncounted } = upstream.stats();
    expect([arrivals, uncounted]).toMatchObject([[{ state: 'aborted', model: null }], 0]);
    const after = await admin.group('practice');
    expect(after.granted_total - before.granted_total).toBe(1);
    expect(stage.logs()).not.toContain('leak');
  },
);

const BODY = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: KEY }] });
const AUTH = `Authorization: Bearer ${KEY}\r\nX-Api-Key: ${KEY}\r\n`;
const SMUGGLED = withHost(`GET /smuggled/${KEY} HTTP/1.1`);
const GOOD: readonly string[] = [
  HEALTH,
  withHost(`GET /nowhere/v1?key=${KEY} HTTP/1.1`, AUTH),
  post(`${AUTH}Content-Length: ${BODY.length}\r\n`, BODY),
  post(
    `${AUTH}Transfer-Encoding: chunked\r\n`,
    `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`,
  ),
  post(`${AUTH}Content-Length: ${SMUGGLED.length}\r\n`, SMUGGLED),
  post(
    'Transfer-Encoding: chunked\r\n',
    `${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`,
  ),
];

/** Pieces that are put anywhere: ends of lines, controls, digits, and what changes how a request is read. */
const PIECES = [
  '\r|\n|\r\n|\r\n\r\n|\0|\t| |:|;|,|+|-|0|4|f|\x1b|\xff|\xe2\x80\xa8|*'.split('|'),
  'http://h| chunked|0\r\n\r\n| HTTP/1.1|GET |HEAD /'.split('|'),
  'Content-Length: 4|Content-Length: 0|Transfer-Encoding: chunked|Transfer-Encoding: identity|Host: x'
    .split('|')
    .map((header) => `${header}\r\n`),
  'Connection: close|Upgrade: websocket|Expect: 100-continue'
    .split('|')
    .map((header) => `${header}\r\n`),
].flat();

/** One to three insertions, deletions, repetitions or exchanges anywhere. */
function disturb(text: string, random: LifecycleRandom): string {
  let disturbed = text;
  for (let left = random.between(1, 3); left > 0; left -= 1) {
    const at = random.between(0, disturbed.length);
    const length = random.between(0, 12);
    const piece = PIECES[random.between(0, PIECES.length - 1)] ?? '';
    const [before, cut] = [disturbed.slice(0, at), disturbed.slice(at, at + length)];
    const behind = disturbed.slice(at + length);
    const made = [
      before + piece + cut + behind,
      before + behind,
      before + cut + cut + behind,
      before + piece + behind,
    ];
    disturbed = made[random.between(0, made.length - 1)] ?? '';
  }
  return disturbed;
}

/** Feeds the forwarder bytes in these pieces: gives those that it passes on, and whether it refuses the rest. */
function passedOf(pieces: readonly Buffer[]): { passed: Buffer; isRefused: boolean } {
  const scanner = new RequestScanner();
  const passed: Buffer[] = [];
  for (const piece of pieces) {
    const { bytes, malformed } = scanner.scan(piece);
    passed.push(bytes);
    if (malformed !== null) return { passed: Buffer.concat(passed), isRefused: true };
  }
  return { passed: Buffer.concat(passed), isRefused: false };
}

/**
 * Another reader of HTTP, which others wrote: the paths of the whole requests that it finds, and whether it
 * gave up, as at a byte above ASCII in a path.
 */
async function readByNode(bytes: Buffer): Promise<{ paths: string[]; gaveUp: boolean }> {
  const paths: string[] = [];
  let gaveUp = false;
  const server = createServer({ maxHeaderSize: 100_000 }, (request, response) => {
    request.resume().once('end', () => paths.push(request.url ?? ''));
    request.once('close', () => response.end());
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // The end of the bytes in mid-request is no mistake of theirs.
    gaveUp = error.code !== 'HPE_INVALID_EOF_STATE';
    socket.destroy();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => undefined).resume();
  socket.end(bytes);
  await once(socket, 'close');
  server.close();
  return { paths, gaveUp };
}

function inPieces(text: string, random: LifecycleRandom): Buffer[] {
  const bytes = latin1(text);
  const edges = Array.from({ length: random.between(0, 3) }, () => random.between(0, bytes.length));
  edges.push(0, bytes.length);
  edges.sort((a, b) => a - b);
  return edges.slice(1).map((edge, i) => bytes.subarray(edges[i], edge));
}

/** One connection; answers with what is wrong with what came of it, or null. */
async function tryOne(seed: number): Promise<string | null> {
  const random = createRandom(seed);
  const disturbed = disturb(GOOD[random.between(0, GOOD.length - 1)] ?? '', random);
  const last = `/last-${seed}/x`;
  const sent = HEALTH + disturbed + withHost(`GET ${last} HTTP/1.1`);
  const pieces = inPieces(sent, random);
  const { passed, isRefused } = passedOf(pieces);
  const { paths, gaveUp } = await readByNode(passed);
  const wanted = paths.length + (isRefused ? 1 : 0);
  const { answers, rest } = await exchange(port(), pieces, wanted);
  const statuses = answers.map(({ status }) => status);
  const seen = JSON.stringify({ seed, sent, paths, isRefused, statuses, rest });
  if (statuses.includes(500)) return `a 500: ${seen}`;
  if (statuses[0] !== 200) return `the first is not answered first: ${seen}`;
  if (gaveUp) return null;
  if (isRefused) {
    const isAnswered = [400, 405].includes(statuses.at(-1) ?? 0);
    return isAnswered || answers.length < wanted ? null : `no refusal: ${seen}`;
  }
  if (paths.at(-1) !== last) return null;
  // All of it was passed on whole: as many answers as requests, each to its own.
  const isInStep = answers.length === paths.length && answers.at(-1)?.body.includes(`last-${seed}`);
  return isInStep ? null : `out of step: ${seen}`;
}

it('hostile bytes lead to no 500, to no answer out of step, and never into the log', async () => {
  const wrong: string[] = [];
  for (let seed = 1; seed <= RUNS; seed += SIDE_BY_SIDE) {
    const seeds = Array.from({ length: SIDE_BY_SIDE }, (_, i) => seed + i);
    const found = await Promise.all(seeds.map(tryOne));
    wrong.push(...found.filter((problem) => problem !== null));
  }
  expect(wrong).toEqual([]);
  expect(stage.logs()).not.toContain('leak');
  await stage.admin.untilIdle();
});
