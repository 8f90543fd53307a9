import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Forwarder } from '../../../scripts/serve/forwarder.ts';
import { startForwarder } from '../../../scripts/serve/forwarder.ts';
import { LateBytes } from '../../../scripts/serve/late-bytes.ts';

/**
 * Requests that are answered before their body ends, over real sockets. The server does as workerd does: it answers the head,
 * reads at most 64 KiB of the body, and then closes the connection with the rest of the bytes unread, which resets it.
 */
const READ_BYTES = 65_536;
const NO = 'HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno';
const GET = 'GET /next HTTP/1.1\r\nHost: h\r\n\r\n';

let server: Server;
let forwarder: Forwarder;
const clients: Socket[] = [];
const heads: string[] = [];

const post = (lines: string): string => `POST /large HTTP/1.1\r\nHost: h\r\n${lines}\r\n`;

function answerAtOnce(target: Socket): void {
  let left = READ_BYTES;
  target.on('error', () => undefined);
  target.on('data', (data: Buffer) => {
    for (const [, path = ''] of data.toString('latin1').matchAll(/(?:GET|POST) (\S+)/g)) {
      heads.push(path);
      target.write(NO);
    }
    left -= data.length;
    // What is left in the kernel turns the close into a reset.
    if (left <= 0) target.pause().destroy();
  });
}

async function start(): Promise<void> {
  heads.length = 0;
  server = createServer({ highWaterMark: 4_096 }, answerAtOnce);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const targetPort = (server.address() as AddressInfo).port;
  forwarder = await startForwarder({ host: '127.0.0.1', port: 0, targetPort });
}

afterEach(async () => {
  vi.restoreAllMocks();
  for (const socket of clients.splice(0)) socket.destroy();
  await forwarder.close();
  server.close();
});

interface EarlyAnswersClient {
  readonly socket: Socket;
  readonly text: () => string;
  readonly ends: () => string[];
}

function client(...pieces: readonly (string | Buffer)[]): EarlyAnswersClient {
  const socket = connect({ port: forwarder.port, host: '127.0.0.1', allowHalfOpen: true });
  let text = '';
  const ends: string[] = [];
  socket.on('error', (error: NodeJS.ErrnoException) => ends.push(error.code ?? error.message));
  socket.on('end', () => ends.push('end'));
  socket.on('data', (data: Buffer) => (text += data.toString('latin1')));
  for (const piece of pieces) socket.write(piece, 'latin1');
  clients.push(socket);
  return { socket, text: () => text, ends: () => ends };
}

describe('an answer before the end of its body', () => {
  it.each([60_000, 300_000, 5_000_000])(
    'reaches clients that send %i bytes first, and their connection serves the next request',
    async (size) => {
      await start();
      const all = Array.from({ length: 40 }, () =>
        client(post(`Content-Length: ${size}\r\n`), Buffer.alloc(size, 'x')),
      );
      for (const { socket, text, ends } of all) {
        await expect.poll(text).toBe(NO);
        socket.write(GET);
        await expect.poll(text).toBe(NO + NO);
        expect(ends()).toEqual([]);
      }
    },
  );

  it('reaches a client that sends the next request right behind its body', async () => {
    await start();
    const body = Buffer.alloc(300_000, 'x');
    const chunk = `${body.length.toString(16)}\r\n${body.toString()}\r\n0\r\n\r\n`;
    const pairs = [
      client(post(`Content-Length: ${body.length}\r\n`), body, GET),
      client(post('Transfer-Encoding: chunked\r\n'), chunk + GET),
      client(post(`Content-Length: ${body.length}\r\n`) + body.toString() + GET + GET),
    ];
    const answers = [NO + NO, NO + NO, NO + NO + NO];
    await expect.poll(() => pairs.map(({ text }) => text())).toEqual(answers);
    expect(heads.toSorted()).toEqual(
      ['/large', '/next']
        .flatMap((path) => [path, path, path])
        .concat('/next')
        .toSorted(),
    );
  });

  it('reaches a client that asked for the end of its connection, which then ends in order', async () => {
    await start();
    const lines = 'Content-Length: 5000000\r\nConnection: close\r\n';
    const { text, ends } = client(post(lines), Buffer.alloc(5_000_000, 'x'));
    await expect.poll(text).toBe(NO);
    await expect.poll(ends).toEqual(['end']);
  });

  it('ends the connection in order if the rest of the body is malformed', async () => {
    await start();
    const chunk = `${(200_000).toString(16)}\r\n${'x'.repeat(200_000)}`;
    const { socket, text, ends } = client(post('Transfer-Encoding: chunked\r\n'), chunk);
    await expect.poll(text).toBe(NO);
    socket.write(`no chunk ${GET}`);
    await expect.poll(ends).toEqual(['end']);
    socket.write(Buffer.alloc(300_000));
    socket.end();
    await expect.poll(() => forwarder.connections()).toBe(0);
    expect(ends()).toEqual(['end']);
    expect(heads).toEqual(['/large']);
  });
});

it('a client that is silent in its body after the answer is ended in order and then disconnected', async () => {
  await start();
  const { text, ends } = client(post('Content-Length: 5000000\r\n'), Buffer.alloc(300_000));
  await expect.poll(text).toBe(NO);
  expect(forwarder.connections()).toBe(1);
  let now = performance.now();
  vi.spyOn(performance, 'now').mockImplementation(() => (now += 2_500));
  await expect.poll(() => forwarder.connections()).toBe(0);
  expect(ends()[0]).toBe('end');
});

describe('what is discarded after an answer', () => {
  const startAt = (now: number): ((at: number) => LateBytes) => {
    const clock = vi.spyOn(performance, 'now').mockReturnValue(now);
    const late = new LateBytes();
    return (at) => {
      clock.mockReturnValue(at);
      return late;
    };
  };

  it('is bounded by 5 s of silence', () => {
    const at = startAt(0);
    expect(at(0).isOver(4_999)).toBe(false);
    at(4_000).note(1);
    expect(at(4_000).isOver(8_999)).toBe(false);
    expect(at(4_000).isOver(9_000)).toBe(true);
  });

  it('is bounded by 5 minutes, however little comes at a time', () => {
    const at = startAt(0);
    for (let ms = 0; ms < 300_000; ms += 4_000) {
      at(ms).note(1);
      expect(at(ms).isOver(ms)).toBe(false);
    }
    expect(at(299_999).isOver(300_000)).toBe(true);
  });

  it('is bounded by 128 MiB', () => {
    const late = startAt(0)(0);
    late.note(128 * 1_048_576);
    expect(late.isOver(0)).toBe(false);
    late.note(1);
    expect(late.isOver(0)).toBe(true);
  });
});
