import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import type { Forwarder, ForwarderOptions } from '../../../scripts/serve/forwarder.ts';
import { startForwarder } from '../../../scripts/serve/forwarder.ts';
import type { StrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { startStrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { MORE_THAN_BUFFERS, standstill } from './backpressure.ts';

/** WebSockets through the forwarder of `serve`, with a server behind it that answers as a test wants. */
let server: Server;
let forwarder: Forwarder;
let upstream: StrictUpstream | null = null;

const UPGRADE = 'GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
const GET = 'GET / HTTP/1.1\r\nHost: h\r\n\r\n';
const SWITCHED = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n';
const REFUSED = 'HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\n\r\nno';
/** Bytes that are no request, as frames are. */
const FRAME = '\x81\x05hello';

async function lead(targetPort: number, more: Partial<ForwarderOptions> = {}): Promise<void> {
  forwarder = await startForwarder({ host: '127.0.0.1', port: 0, targetPort, ...more });
}

/** Bytes that a socket has received so far. */
function heard(socket: Socket): () => string {
  let text = '';
  socket.on('data', (data) => (text += data.toString('latin1')));
  return () => text;
}

interface WebsocketsPair {
  readonly client: Socket;
  readonly target: Socket;
  readonly byClient: () => string;
  readonly byTarget: () => string;
}

/** A client that asked for a WebSocket, and the server's end of the same connection. */
async function asked(behind = ''): Promise<WebsocketsPair> {
  server = createServer({ allowHalfOpen: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  await lead((server.address() as AddressInfo).port);
  const client = connect({ port: forwarder.port, host: '127.0.0.1', allowHalfOpen: true });
  const [target] = (await once(server, 'connection')) as [Socket];
  for (const socket of [client, target]) socket.on('error', () => undefined);
  const [byClient, byTarget] = [heard(client), heard(target)];
  client.write(UPGRADE + behind, 'latin1');
  await expect.poll(byTarget).toContain('\r\n\r\n');
  return { client, target, byClient, byTarget };
}

async function opened(): Promise<WebsocketsPair> {
  const pair = await asked();
  pair.target.write(SWITCHED);
  await expect.poll(pair.byClient).toBe(SWITCHED);
  return pair;
}

/** A client of a real WebSocket server, which sends back what it gets, or floods. */
async function connected(
  settings: Parameters<typeof startStrictUpstream>[0] = {},
  more: Partial<ForwarderOptions> = {},
): Promise<WebSocket> {
  upstream = await startStrictUpstream(settings);
  await lead(upstream.port, more);
  const socket = new WebSocket(`ws://127.0.0.1:${forwarder.port}/echo`);
  await once(socket, 'open');
  return socket;
}

afterEach(async () => {
  vi.restoreAllMocks();
  await forwarder.close();
  await upstream?.close();
  upstream = null;
  server?.close();
});

it('pass messages of any size both ways', async () => {
  const socket = await connected();
  for (const size of [0, 1, 125, 126, 65_535, 65_536, 1_048_576]) {
    const message = Buffer.alloc(size, 'm');
    socket.send(message);
    const [back] = (await once(socket, 'message')) as [Buffer];
    expect(back.equals(message)).toBe(true);
  }
  socket.close(4000, 'bye');
  const [code, reason] = (await once(socket, 'close')) as [number, Buffer];
  expect([code, reason.toString()]).toEqual([4000, 'bye']);
  await expect.poll(() => forwarder.connections()).toBe(0);
});

it('are never idle', async () => {
  const socket = await connected({}, { idleMs: 20 });
  let now = performance.now() + 3_600_000;
  vi.spyOn(performance, 'now').mockImplementation(() => (now += 10));
  // A connection without a request, which opens later, is swept away: so this one was looked at.
  const idle = connect({ port: forwarder.port, host: '127.0.0.1' });
  idle.resume();
  await once(idle, 'close');
  socket.send('still here');
  const [back] = (await once(socket, 'message')) as [Buffer];
  expect(back.toString()).toBe('still here');
  socket.terminate();
});

it('whose client does not read hold the server back', async () => {
  const floodBytes = MORE_THAN_BUFFERS;
  const socket = await connected({ floodBytes });
  socket.pause();
  const sent = (): number => upstream?.stats().sockets[0]?.sentBytes ?? 0;
  await standstill(sent);
  expect(sent()).toBeLessThan(floodBytes);
  let bytes = 0;
  socket.on('message', (data) => (bytes += (data as Buffer).length));
  socket.resume();
  await expect.poll(() => bytes).toBe(floodBytes);
  socket.terminate();
});

it('whose server does not read hold the client back', async () => {
  const { client, target, byTarget } = await opened();
  target.pause();
  const size = MORE_THAN_BUFFERS;
  const piece = Buffer.alloc(65_536, 'x');
  let written = 0;
  const write = (): void => {
    if (written === size) return;
    client.write(piece, () => {
      written += piece.length;
      write();
    });
  };
  write();
  await standstill(() => written);
  expect(written).toBeLessThan(size);
  target.resume();
  await expect.poll(() => byTarget().length).toBe(UPGRADE.length + size);
});

describe('what comes behind the request', () => {
  it('passes once it is known that these are frames', async () => {
    const { client, target, byClient, byTarget } = await asked(FRAME);
    client.write(FRAME, 'latin1');
    target.write(SWITCHED.slice(0, 20));
    await expect.poll(byClient).toBe(SWITCHED.slice(0, 20));
    expect(byTarget()).toBe(UPGRADE);
    target.write(`${SWITCHED.slice(20)}${FRAME}`, 'latin1');
    await expect.poll(byTarget).toBe(UPGRADE + FRAME + FRAME);
    expect(byClient()).toBe(SWITCHED + FRAME);
  });

  it('is a request where that was refused', async () => {
    const { client, target, byClient, byTarget } = await asked(GET);
    target.write(REFUSED);
    await expect.poll(byTarget).toBe(UPGRADE + GET);
    target.write(REFUSED);
    await expect.poll(byClient).toBe(REFUSED + REFUSED);
    client.write(FRAME, 'latin1');
    await expect.poll(byTarget).toContain('/!malformed/header');
  });

  it('is not kept without end', async () => {
    const { client } = await asked();
    client.write(Buffer.alloc(65_537));
    await once(client, 'error');
    await expect.poll(() => forwarder.connections()).toBe(0);
  });
});

describe('an end', () => {
  it('of the client, an orderly one, passes behind all that it sent', async () => {
    const { client, target, byTarget } = await opened();
    const size = 5_000_000;
    client.end(Buffer.alloc(size, 'x'));
    await once(target, 'end');
    expect(byTarget().length).toBe(UPGRADE.length + size);
    target.end(FRAME);
    await once(client, 'end');
    await expect.poll(() => forwarder.connections()).toBe(0);
  });

  it('of the client that the server does not answer is over after a while', async () => {
    const { client, target } = await opened();
    client.end();
    await once(target, 'end');
    const now = performance.now();
    vi.spyOn(performance, 'now').mockReturnValue(now + 5_000);
    await expect.poll(() => forwarder.connections()).toBe(0);
  });

  it('of the server passes behind all that it sent', async () => {
    const { client, target, byClient } = await opened();
    const size = 5_000_000;
    target.end(Buffer.alloc(size, 'x'));
    await once(client, 'end');
    expect(byClient().length).toBe(SWITCHED.length + size);
    client.end();
    await expect.poll(() => forwarder.connections()).toBe(0);
  });

  it.each(['client', 'target'] as const)(
    'of the %s passes as the reset that it is',
    async (who) => {
      const pair = await opened();
      const other = who === 'client' ? pair.target : pair.client;
      const fails = once(other, 'error');
      pair[who].resetAndDestroy();
      const [error] = (await fails) as [NodeJS.ErrnoException];
      expect(error.code).toBe('ECONNRESET');
      await expect.poll(() => forwarder.connections()).toBe(0);
    },
  );

  it('of the forwarder ends them, and not before', async () => {
    const { client, byTarget } = await opened();
    forwarder.stopAccepting();
    client.write(FRAME, 'latin1');
    await expect.poll(byTarget).toBe(UPGRADE + FRAME);
    const fails = once(client, 'error');
    await forwarder.close();
    await fails;
  });
});
