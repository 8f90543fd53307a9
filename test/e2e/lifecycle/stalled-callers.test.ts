import { request, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openChat } from '../support/lifecycle-call.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { NO_HOLDS, practiceConfig, startStage } from '../support/lifecycle-stage.ts';

/** Callers that stay connected and read nothing, over real sockets: what is between takes some megabytes first. */
let stage: LifecycleStage;

beforeAll(async () => {
  stage = await startStage({
    config: practiceConfig(1, { holds: { ...NO_HOLDS, stalled_ms: 1_000 } }),
    upstream: { chunks: 1 },
  });
});

afterAll(() => stage.close());

/** Sends a call whose answer is longer than what any buffer holds, and reads nothing of it. */
function callAndStall(headers: Readonly<Record<string, string>>): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = request(`${stage.url()}/practice/v1/chat/completions`, {
      method: 'POST',
      agent: false,
      headers: { 'x-label': 'stalled', 'content-type': 'application/json', ...headers },
    });
    outgoing.on('error', reject);
    outgoing.on('response', (answer) => {
      answer.on('error', () => undefined);
      resolve(answer);
    });
    outgoing.end(JSON.stringify({ model: 'practice', stream: true, messages: [] }));
  });
}

it('a caller that stops reading is cut after stalled_ms, and the next one gets its slot', async () => {
  const stalled = await callAndStall({ 'x-strict-bytes': '100000000' });
  const next = openChat(stage.url(), { label: 'next' });
  expect(await next.answered).toBe(200);
  expect(await next.ended).toBe('complete');
  await stage.admin.untilIdle();
  const { arrivals, peak, rejected429 } = stage.upstream.stats();
  expect(arrivals.map(({ label, state }) => [label, state])).toEqual([
    ['stalled', 'aborted'],
    ['next', 'done'],
  ]);
  expect({ peak, rejected429 }).toEqual({ peak: 1, rejected429: 0 });
  stalled.destroy();
});

it('a caller that closes its side of the connection has left, and the next one gets its slot', async () => {
  stage.upstream.reset();
  const content = '[[strict silent-after-chunks=1]]';
  const messages = [{ role: 'user', content }];
  const body = JSON.stringify({ model: 'practice', stream: true, messages });
  const { hostname: host, port, host: name } = new URL(stage.url());
  const socket = connect({ host, port: Number(port), allowHalfOpen: true });
  socket.on('error', () => undefined);
  const begun = new Promise((resolve) => socket.once('data', resolve));
  socket.write(
    `POST /practice/v1/chat/completions HTTP/1.1\r\nHost: ${name}\r\nX-Label: half\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  await begun;
  socket.end();
  const next = openChat(stage.url(), { label: 'next' });
  expect(await next.answered).toBe(200);
  expect(await next.ended).toBe('complete');
  await stage.admin.untilIdle();
  expect(stage.upstream.stats().arrivals.map(({ state }) => state)).toEqual(['aborted', 'done']);
  socket.destroy();
});
