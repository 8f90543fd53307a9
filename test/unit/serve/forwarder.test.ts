import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Forwarder, ForwarderOptions } from '../../../scripts/serve/forwarder.ts';
import { startForwarder } from '../../../scripts/serve/forwarder.ts';
import { MORE_THAN_BUFFERS, standstill } from './backpressure.ts';

/** Server behind the forwarder. It notices a client's leaving only by a reset: each case ends in one. */
let server: Server;
let forwarder: Forwarder;

interface ForwarderPair {
  readonly client: Socket;
  /** The server's end of the same connection. */
  readonly target: Socket;
}

async function join(more: Partial<ForwarderOptions> = {}): Promise<ForwarderPair> {
  server = createServer({ allowHalfOpen: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const targetPort = (server.address() as AddressInfo).port;
  forwarder = await startForwarder({ host: '127.0.0.1', port: 0, targetPort, ...more });
  const client = connect({ port: forwarder.port, host: '127.0.0.1', allowHalfOpen: true });
  const [target] = (await once(server, 'connection')) as [Socket];
  // At the end of every test what is left is reset.
  for (const socket of [client, target]) socket.on('error', () => undefined);
  return { client, target };
}

const GET = 'GET / HTTP/1.1\r\nHost: h\r\n\r\n';

/** Has each look at the clock see it five seconds later. */
function letTimePass(): void {
  let now = performance.now();
  vi.spyOn(performance, 'now').mockImplementation(() => (now += 5_000));
}

/** Writes so many bytes, each piece when the one before has left. Returns how many have. */
function writeInPieces(socket: Socket, size: number): () => number {
  const piece = Buffer.alloc(65_536);
  let written = 0;
  const write = (): void => {
    if (written < size) {
      socket.write(piece, () => {
        written += piece.length;
        write();
      });
    }
  };
  write();
  return () => written;
}

async function errorOf(socket: Socket): Promise<string | undefined> {
  const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException];
  return error.code;
}

afterEach(async () => {
  await forwarder.close();
  server.close();
});

describe('forwarder', () => {
  it('turns the FIN of a client into a reset', async () => {
    const { client, target } = await join();
    target.resume();
    client.write(GET);
    await once(target, 'data');
    client.end();
    expect(await errorOf(target)).toBe('ECONNRESET');
  });

  it('cuts off clients for whom there is no room, and serves the others', async () => {
    const { client, target } = await join({ clientsMax: 1 });
    client.write(GET);
    await once(target, 'data');
    const tooMany = connect({ port: forwarder.port, host: '127.0.0.1' });
    tooMany.on('error', () => undefined);
    await once(tooMany, 'close');
    target.end('served');
    const [data] = (await once(client, 'data')) as [Buffer];
    expect(data.toString()).toBe('served');
    client.destroy();
    await expect.poll(() => forwarder.connections()).toBe(0);
    const next = connect({ port: forwarder.port, host: '127.0.0.1' });
    const [served] = (await once(server, 'connection')) as [Socket];
    for (const socket of [next, served]) socket.on('error', () => undefined);
  });

  it('passes the reset of a client on', async () => {
    const { client, target } = await join();
    target.resume();
    client.resetAndDestroy();
    expect(await errorOf(target)).toBe('ECONNRESET');
  });

  it('passes the reset of the server on', async () => {
    const { client, target } = await join();
    client.write(GET);
    await once(target, 'data');
    client.resume();
    target.resetAndDestroy();
    expect(await errorOf(client)).toBe('ECONNRESET');
  });

  it('delivers all that the server wrote before its FIN', async () => {
    const { client, target } = await join();
    const size = 20_000_000;
    target.end(Buffer.alloc(size, 'x'));
    let received = 0;
    client.on('data', (data) => (received += data.length));
    await once(client, 'end');
    expect(received).toBe(size);
  });

  it('lets a server that does not read hold the client back', async () => {
    const { client, target } = await join();
    target.pause();
    const size = MORE_THAN_BUFFERS;
    const head = `POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ${size}\r\n\r\n`;
    client.write(head);
    const written = writeInPieces(client, size);
    await standstill(written);
    expect(written()).toBeLessThan(size);
    let received = 0;
    target.on('data', (data) => (received += data.length));
    target.resume();
    await expect.poll(() => received).toBe(size + head.length);
  });

  it('notices that a client leaves whose body the server has not read', async () => {
    const { client, target } = await join();
    target.pause();
    const size = 16_000_000;
    client.write(`POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ${size}\r\n\r\n`);
    client.end(Buffer.alloc(size));
    await expect.poll(() => forwarder.connections()).toBe(0);
  });

  describe('where the server answers before it has read a body, and closes the connection', () => {
    const answer = 'HTTP/1.1 404 No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno';

    async function refused(sent: number): Promise<Socket> {
      const { client, target } = await join();
      client.write('POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 64000000\r\n\r\n');
      await once(target, 'data');
      target.pause();
      client.write(Buffer.alloc(sent));
      target.write(answer);
      const [data] = (await once(client, 'data')) as [Buffer];
      expect(data.toString()).toBe(answer);
      target.resetAndDestroy();
      await once(client, 'end');
      return client;
    }

    it('lets the client go on until it has read the answer', async () => {
      const client = await refused(64_000_000);
      await expect.poll(() => client.writableLength).toBe(0);
      client.end();
      await expect.poll(() => forwarder.connections()).toBe(0);
    });

    it('cuts off a client that never ends its body', async () => {
      await refused(1_000);
      letTimePass();
      await expect.poll(() => forwarder.connections()).toBe(0);
      vi.restoreAllMocks();
    });
  });

  it('closes the connection of a client that never ends its side', async () => {
    const { client, target } = await join();
    client.write(GET.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
    await once(target, 'data');
    target.end('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n');
    client.resume();
    await once(client, 'end');
    letTimePass();
    await expect.poll(() => forwarder.connections()).toBe(0);
    vi.restoreAllMocks();
  });

  it('asks for a refusal in the place of a malformed request, and passes nothing on behind it', async () => {
    const { client, target } = await join();
    let received = '';
    target.on('data', (data) => (received += data.toString()));
    client.write(`${GET}GET http://h/?key=secret HTTP/1.1\r\nHost: h\r\n\r\n${GET}`);
    await once(target, 'end');
    expect(received).toBe(`${GET}GET /!malformed/request-line HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    client.write(GET);
    target.end('HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n');
    const [answer] = (await once(client, 'data')) as [Buffer];
    expect(answer.toString()).toContain('400');
    await once(client, 'end');
  });

  it('cuts a call off whose body turns out to be malformed', async () => {
    const { client, target } = await join();
    target.resume();
    client.write('POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n');
    await once(target, 'data');
    client.write('no size\r\n');
    expect(await Promise.all([errorOf(client), errorOf(target)])).toEqual([
      'ECONNRESET',
      'ECONNRESET',
    ]);
  });

  it('lets who comes while there is no server wait for the next one', async () => {
    const { client } = await join();
    client.resume();
    forwarder.leadTo(null);
    const waiting = connect({ port: forwarder.port, host: '127.0.0.1' });
    waiting.on('error', () => undefined);
    waiting.write(GET);
    await once(waiting, 'connect');
    const next = createServer().listen(0, '127.0.0.1');
    await once(next, 'listening');
    const arrives = once(next, 'connection') as Promise<[Socket]>;
    forwarder.leadTo((next.address() as AddressInfo).port);
    const [target] = await arrives;
    const [data] = (await once(target, 'data')) as [Buffer];
    expect(data.toString()).toBe(GET);
    target.on('error', () => undefined);
    next.close();
  });

  it('says in a header of each request who sends it, if it has one for that, and when who sent it has left', async () => {
    const { client } = await join();
    client.resetAndDestroy();
    const { port: targetPort } = server.address() as AddressInfo;
    const reporting = await startForwarder({
      host: '127.0.0.1',
      port: 0,
      targetPort,
      cfHeader: 'x-cf',
    });
    const arrives = once(server, 'connection') as Promise<[Socket]>;
    const local = { host: '127.0.0.1', localAddress: '127.0.0.2' };
    const caller = connect({ port: reporting.port, ...local });
    caller.on('error', () => undefined);
    caller.write(GET);
    const [target] = await arrives;
    target.on('error', () => undefined);
    const [data] = (await once(target, 'data')) as [Buffer];
    const reported = `x-cf: {"clientIp":"127.0.0.2","connection":1}`;
    expect(data.toString()).toBe(`${GET.slice(0, -2)}${reported}\r\n\r\n`);

    const noticeArrives = once(server, 'connection') as Promise<[Socket]>;
    caller.resetAndDestroy();
    const [notice] = await noticeArrives;
    const [said] = (await once(notice, 'data')) as [Buffer];
    expect(said.toString()).toMatch(/^GET \/!departed HTTP/);
    expect(said.toString()).toContain('x-cf: {"departed":[1]}');
    await reporting.close();
  });

  it('takes no more connections once it is told so, and keeps the open ones', async () => {
    const { client, target } = await join();
    forwarder.stopAccepting();
    const late = connect(forwarder.port, '127.0.0.1');
    expect(await errorOf(late)).toBe('ECONNREFUSED');
    client.write(GET);
    const [data] = (await once(target, 'data')) as [Buffer];
    expect(data.toString()).toBe(GET);
    expect(forwarder.connections()).toBe(1);
  });
});
