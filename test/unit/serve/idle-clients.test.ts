import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Forwarder } from '../../../scripts/serve/forwarder.ts';
import { startForwarder } from '../../../scripts/serve/forwarder.ts';

/** A server that answers when it is told to, and a forwarder before it. */
let server: Server;
let targets: Socket[];
let forwarder: Forwarder;

const GET = 'GET / HTTP/1.1\r\nHost: h\r\n\r\n';
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

beforeEach(async () => {
  targets = [];
  server = createServer({ allowHalfOpen: true }, (target) => {
    targets.push(target);
    target.on('error', () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});

afterEach(async () => {
  vi.restoreAllMocks();
  await forwarder.close();
  for (const target of targets) target.destroy();
  server.close();
});

const targetPort = (): number => (server.address() as AddressInfo).port;

async function open(idleMs?: number): Promise<Socket> {
  const timed = idleMs === undefined ? {} : { idleMs };
  forwarder = await startForwarder({
    host: '127.0.0.1',
    port: 0,
    targetPort: targetPort(),
    ...timed,
  });
  const client = connect({ port: forwarder.port, host: '127.0.0.1' });
  client.on('error', () => undefined);
  await expect.poll(() => targets.length).toBe(1);
  return client;
}

async function exchange(client: Socket, answer = OK): Promise<string> {
  const before = targets.map((target) => target.bytesRead);
  client.write(GET);
  const arrived = (): Socket | undefined =>
    targets.find((target, at) => target.bytesRead > (before[at] ?? 0));
  for (const target of targets) target.resume();
  server.once('connection', (target: Socket) => target.resume());
  await expect.poll(arrived).toBeDefined();
  arrived()?.write(answer);
  const [data] = (await once(client, 'data')) as [Buffer];
  return data.toString();
}

describe('a client that is idle', () => {
  it('outlives its connection to the server, and asks over a new one', async () => {
    const client = await open();
    expect(await exchange(client)).toBe(OK);
    targets[0]?.end();
    await expect.poll(() => targets[0]?.closed).toBe(true);
    expect(await exchange(client)).toBe(OK);
    expect(targets.map((target) => target.bytesRead)).toEqual([GET.length, GET.length]);
  });

  it('outlives a server that crashes, and asks the next one', async () => {
    const client = await open();
    expect(await exchange(client)).toBe(OK);
    forwarder.leadTo(null);
    targets[0]?.resetAndDestroy();
    client.write(GET);
    // Whatever happens to the client by the crash happens before the next one.
    const other = connect({ port: forwarder.port, host: '127.0.0.1' });
    await once(other, 'connect');
    other.destroy();
    server.on('connection', (target: Socket) => target.resume());
    forwarder.leadTo(targetPort());
    const sizes = (): number[] => targets.slice(1).map((target) => target.bytesRead);
    await expect.poll(sizes).toContain(GET.length);
  });

  it('asks over a new connection when the old one may be about to close', async () => {
    const client = await open();
    expect(await exchange(client)).toBe(OK);
    const now = performance.now();
    vi.spyOn(performance, 'now').mockReturnValue(now + 2_000);
    expect(await exchange(client)).toBe(OK);
    expect(targets.map((target) => target.bytesRead)).toEqual([GET.length, GET.length]);
  });

  it('is let go after a while, whether it has asked or not', async () => {
    const client = await open(200);
    const silent = connect({ port: forwarder.port, host: '127.0.0.1' });
    silent.resume();
    expect(await exchange(client)).toBe(OK);
    await Promise.all([once(client, 'end'), once(silent, 'end')]);
    await expect.poll(() => forwarder.connections()).toBe(0);
  });

  it('is let go at once where no more are taken, if it has no connection to the server', async () => {
    const client = await open();
    expect(await exchange(client)).toBe(OK);
    targets[0]?.end();
    await expect.poll(() => targets[0]?.closed).toBe(true);
    forwarder.stopAccepting();
    await once(client, 'end');
  });
});

describe('a client that is idle where no more are taken', () => {
  it('is let go, and not reset, with its connection to the server', async () => {
    const client = await open();
    expect(await exchange(client)).toBe(OK);
    forwarder.stopAccepting();
    const now = performance.now();
    vi.spyOn(performance, 'now').mockReturnValue(now + 2_000);
    await once(client, 'end');
  });
});

describe('a client that is not idle', () => {
  it('is kept while it waits, however long', async () => {
    const client = await open(100);
    client.write(GET);
    targets[0]?.resume();
    await expect.poll(() => targets[0]?.bytesRead).toBe(GET.length);
    const soon = connect({ port: forwarder.port, host: '127.0.0.1' });
    soon.resume();
    await once(soon, 'end');
    targets[0]?.write(OK);
    const [data] = (await once(client, 'data')) as [Buffer];
    expect(data.toString()).toBe(OK);
  });

  it.each([
    ['half an answer', OK.slice(0, -1)],
    ['an answer that ends the connection', OK.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')],
  ])('sees the connection end after %s', async (_, answer) => {
    const client = await open();
    expect(await exchange(client, answer)).toBe(answer);
    targets[0]?.end();
    await once(client, 'end');
  });
});
