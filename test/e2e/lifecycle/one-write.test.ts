import type { AddressInfo, Server, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Stage } from '../support/lifecycle-stage.ts';
import { practiceConfig, startStage } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

const BODY = JSON.stringify({ model: 'practice', messages: [{ role: 'user', content: 'Hi' }] });
const ANSWER = JSON.stringify({ choices: [{ message: { role: 'assistant', content: 'Hello' } }] });
const HEAD = [
  'POST /practice/v1/chat/completions HTTP/1.1',
  'host: headgate.test',
  'content-type: application/json',
  'authorization: Bearer practice-key',
  `content-length: ${BODY.length}\r\n\r\n`,
].join('\r\n');
const CALLS = 20;
const BETWEEN_MS = 10;

let stage: Stage;
let upstream: Server;
const sockets = new Set<Socket>();
/** Pieces in which calls came to the upstream. */
const asked: string[] = [];

beforeAll(async () => {
  upstream = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on('data', (data) => {
      asked.push(data.toString());
      if (!data.toString().endsWith(BODY)) return;
      const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${ANSWER.length}\r\n\r\n`;
      socket.write(head + ANSWER);
    });
    socket.on('error', () => socket.destroy());
  });
  upstream.listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  const { port } = upstream.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  stage = await startStage({
    // Its own list of pieces is wanted, not what a strict upstream counts.
    config: (strict) => practiceConfig(1)({ ...strict, url }),
    forwarder: false,
  });
});

afterAll(async () => {
  await stage.close();
  for (const socket of sockets) socket.destroy();
  upstream.close();
});

/** Sends a call on a connection, and gives the pieces in which its answer came. */
async function call(socket: Socket): Promise<string[]> {
  const pieces: string[] = [];
  const take = (data: Buffer): void => void pieces.push(data.toString());
  socket.on('data', take);
  socket.write(HEAD);
  // As several clients do: the runtime would send on each by itself.
  await delay(BETWEEN_MS);
  socket.write(BODY);
  await until('the answer is whole', () => pieces.join('').endsWith(ANSWER));
  socket.off('data', take);
  return pieces;
}

it('head and body of a small call go out in one write, to the upstream and to the caller', async () => {
  const { hostname, port } = new URL(stage.url());
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  const answers: string[][] = [];
  for (let at = 0; at < CALLS; at += 1) answers.push(await call(socket));
  socket.destroy();
  expect(answers.filter((pieces) => pieces.length > 1)).toEqual([]);
  expect(asked).toHaveLength(CALLS);
});
