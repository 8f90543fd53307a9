import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { openChat } from '../support/lifecycle-call.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { NO_HOLDS, startStage } from '../support/lifecycle-stage.ts';

/** Callers that stop sending their bodies, or send them byte by byte, over real sockets to a real workerd. */
const STALLED_MS = 1_500;
/** The upstream does not count as silent while the caller is waited for: one upload below takes longer than `idle_ms`. */
const HOLDS = {
  ...NO_HOLDS,
  stalled_ms: STALLED_MS,
  idle_ms: 1_000,
  // A busy upstream notices a cut call late.
  cancel_cooldown_ms: 500,
};

let stage: LifecycleStage;
const sockets: Socket[] = [];

beforeAll(async () => {
  stage = await startStage({
    config: ({ url }) => ({
      upstreams: [
        { id: 'practice', base_url: url, dialect: 'openai' },
        { id: 'gem', base_url: url, dialect: 'gemini' },
        { id: 'claude', base_url: url, dialect: 'anthropic' },
        { id: 'metered', base_url: url, dialect: 'openai' },
      ],
      groups: [
        {
          name: 'practice',
          match: { upstreams: ['practice', 'gem', 'claude'] },
          limits: { max_concurrency: 1 },
          holds: HOLDS,
        },
        {
          name: 'metered',
          match: { upstreams: ['metered'] },
          limits: { max_concurrency: 1, tpm: 10_000_000 },
          holds: HOLDS,
        },
      ],
    }),
    upstream: { chunks: 1 },
  });
});

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await stage.admin.untilIdle();
});

afterAll(() => stage.close());

interface SlowUpload {
  readonly socket: Socket;
  readonly answer: Promise<string>;
}

const MODEL_FIRST = '{"model":"m","messages":[{"role":"user","content":"';
const CHAT = 'practice/v1/chat/completions';
const GENERATE = 'gem/v1beta/models/g:generateContent';

/** Sends a head and the beginning of a body, and collects the answer until the connection ends. */
function upload(path: string, headers: readonly string[], begin: string): SlowUpload {
  const { hostname: host, port } = new URL(stage.url());
  const socket = connect({ host, port: Number(port), noDelay: true });
  sockets.push(socket);
  const all = [
    'Host: localhost',
    'Authorization: Bearer sk-slow',
    'Content-Type: application/json',
  ];
  const head = [`POST /${path} HTTP/1.1`, ...all, ...headers].join('\r\n');
  socket.write(`${head}\r\n\r\n${begin}`);
  let text = '';
  const answer = new Promise<string>((resolve) => {
    socket.on('error', () => undefined);
    socket.on('data', (data: Buffer) => (text += data.toString()));
    socket.on('close', () => resolve(text));
    socket.on('end', () => socket.end());
  });
  return { socket, answer };
}

const length = (bytes: number): string => `Content-Length: ${bytes}`;
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;

/** All kinds of bodies that are forwarded while their call holds the slot. */
const HELD = [
  ['that is too large to keep', CHAT, [length(5_000_000)], MODEL_FIRST.padEnd(100_000, 'a')],
  ['that is kept for another try', CHAT, [length(1_000_000)], MODEL_FIRST.padEnd(60_000, 'a')],
  [
    'of unknown length',
    CHAT,
    ['Transfer-Encoding: chunked'],
    chunk(MODEL_FIRST.padEnd(60_000, 'a')),
  ],
  ['that is not looked into', GENERATE, [length(5_000_000)], '{'],
  ['that is not looked into, and kept', GENERATE, [length(100_000)], '{'],
  ['of which a header names the model', CHAT, [length(5_000_000), 'headgate-model: m'], '{'],
] as const;

for (const [how, everyMs] of [
  ['stops', null],
  ['drips', 50],
] as const) {
  it.each(HELD)(
    `a caller that ${how} in a body %s loses its slot`,
    async (_what, path, headers, begin) => {
      const slow = upload(path, headers, begin);
      const isChunked = headers[0]?.startsWith('Transfer') === true;
      const dripping =
        everyMs === null
          ? null
          : setInterval(() => slow.socket.write(isChunked ? chunk('a') : 'a'), everyMs);
      await stage.admin.untilGroup('practice', { in_use: 1 });
      const next = openChat(stage.url(), { label: 'next' });
      expect(await next.answered).toBe(200);
      expect(await next.ended).toBe('complete');
      const answer = await slow.answer;
      clearInterval(dripping ?? undefined);
      expect(answer).toMatch(/^HTTP\/1\.1 408 /);
      expect(answer).toMatch(/^headgate-reason: request_timeout\r$/m);
      expect(answer).toContain('holds.upload_min_bytes_per_s');
      const { peak, rejected429 } = stage.upstream.stats();
      expect({ peak, rejected429 }).toEqual({ peak: 1, rejected429: 0 });
    },
  );
}

it('the error is in the dialect of the caller, and the cut is counted', async () => {
  const claude = upload('claude/v1/messages', [length(5_000_000)], MODEL_FIRST.padEnd(60_000, 'a'));
  expect(await claude.answer).toContain('{"type":"error","error":{"type":"timeout_error"');
  const gem = upload(GENERATE, [length(5_000_000)], '{');
  expect(await gem.answer).toContain('"status":"DEADLINE_EXCEEDED"');
  const metrics = await fetch(`${stage.url()}/metrics`, {
    headers: { authorization: `Bearer stage-admin-token` },
  });
  const text = await metrics.text();
  expect(text).toMatch(/^headgate_calls_cut_total\{.*reason="request_timeout".*\} [1-9]/m);
});

it('a large body takes its slot once it is complete if tokens are counted', async () => {
  const path = 'metered/v1/chat/completions';
  const slow = upload(path, [length(1_000_000)], MODEL_FIRST.padEnd(60_000, 'a'));
  const next = openChat(stage.url(), { label: 'next', path: `/${path}` });
  expect(await next.answered).toBe(200);
  expect(await slow.answer).toMatch(/^headgate-reason: request_timeout\r$/m);
});

it('a small body takes its slot once it is complete', async () => {
  const slow = [
    upload(GENERATE, [length(10_000)], '{'),
    upload(CHAT, [length(10_000), 'headgate-model: m'], '{'),
    upload(CHAT, [length(10_000)], '{'),
  ];
  const others = Array.from({ length: 3 }, (_, at) => openChat(stage.url(), { label: `${at}` }));
  for (const other of others) expect(await other.answered).toBe(200);
  const [gem = ''] = await Promise.all(slow.slice(0, 2).map(({ answer }) => answer));
  expect(gem).toMatch(/^headgate-reason: request_timeout\r$/m);
});

it('a slow upload with pauses is served, even if it takes longer than idle_ms and stalled_ms', async () => {
  const body = JSON.stringify({
    model: 'm',
    messages: [{ role: 'user', content: 'a'.repeat(300_000) }],
  });
  const piece = 60_000;
  const slow = upload(CHAT, [length(body.length), 'Connection: close'], body.slice(0, piece));
  const before = stage.upstream.stats().total;
  for (let at = piece; at < body.length; at += piece) {
    await delay(STALLED_MS / 2);
    slow.socket.write(body.slice(at, at + piece));
  }
  expect(await slow.answer).toMatch(/^HTTP\/1\.1 200 /);
  expect(stage.upstream.stats().total).toBe(before + 1);
});
