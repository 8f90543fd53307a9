import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { Forwarder } from '../../scripts/serve/forwarder.ts';
import { startForwarder } from '../../scripts/serve/forwarder.ts';

/** What stands behind the forwarder notices a client's leaving only by a reset: each case ends in one. */
let server: Server;
let forwarder: Forwarder;

interface Pair {
  readonly client: Socket;
  /** The server's end of the same connection. */
  readonly target: Socket;
}

async function join(): Promise<Pair> {
  server = createServer({ allowHalfOpen: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const targetPort = (server.address() as AddressInfo).port;
  forwarder = await startForwarder({ host: '127.0.0.1', port: 0, targetPort });
  const client = connect({ port: forwarder.port, host: '127.0.0.1', allowHalfOpen: true });
  const [target] = (await once(server, 'connection')) as [Socket];
  // At the end of every test what is left is reset.
  for (const socket of [client, target]) socket.on('error', () => undefined);
  return { client, target };
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
    client.write('GET / HTTP/1.1\r\n\r\n');
    await once(target, 'data');
    client.end();
    expect(await errorOf(target)).toBe('ECONNRESET');
  });

  it('passes the reset of a client on', async () => {
    const { client, target } = await join();
    target.resume();
    client.resetAndDestroy();
    expect(await errorOf(target)).toBe('ECONNRESET');
  });

  it('passes the reset of the server on', async () => {
    const { client, target } = await join();
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
    const size = 64_000_000;
    client.write(Buffer.alloc(size));
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(client.bytesWritten - client.writableLength).toBeLessThan(size);
    let received = 0;
    const whole = new Promise<void>((resolve) => {
      target.on('data', (data) => {
        received += data.length;
        if (received === size) resolve();
      });
    });
    target.resume();
    await whole;
    expect(received).toBe(size);
  });

  it('takes no more connections once it is told so, and keeps the open ones', async () => {
    const { client, target } = await join();
    forwarder.stopAccepting();
    const late = connect(forwarder.port, '127.0.0.1');
    expect(await errorOf(late)).toBe('ECONNREFUSED');
    client.write('still here');
    const [data] = (await once(target, 'data')) as [Buffer];
    expect(data.toString()).toBe('still here');
    expect(forwarder.connections()).toBe(1);
  });
});
