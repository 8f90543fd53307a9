import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { afterEach, expect, it, vi } from 'vitest';
import type { Forwarder, ForwarderOptions } from '../../../scripts/serve/forwarder.ts';
import { startForwarder } from '../../../scripts/serve/forwarder.ts';

/** Connections without a complete request, over real sockets, to a server that answers every request at once. */
let server: Server;
let forwarder: Forwarder;
const clients: Socket[] = [];
const lines: string[] = [];
/** Everything that the server received. */
let arrived = '';

const HALF = 'GET /half HTTP/1.1\r\nHost: h\r\nX: ';
const GET = 'GET / HTTP/1.1\r\nHost: h\r\n\r\n';
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

async function start(more: Partial<ForwarderOptions>): Promise<void> {
  [arrived, lines.length] = ['', 0];
  server = createServer((target) => {
    target.on('error', () => undefined);
    target.on('data', (data: Buffer) => {
      arrived += data.toString();
      if (data.toString().includes('/silent')) return;
      const asked = data.toString().split('\r\n\r\n').length - 1;
      target.write(OK.repeat(asked));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const targetPort = (server.address() as AddressInfo).port;
  const onLog = (line: string): void => void lines.push(line);
  forwarder = await startForwarder({ host: '127.0.0.1', port: 0, targetPort, onLog, ...more });
}

afterEach(async () => {
  vi.restoreAllMocks();
  for (const socket of clients.splice(0)) socket.destroy();
  await forwarder.close();
  server.close();
});

interface ConnectionsClient {
  readonly socket: Socket;
  readonly text: () => string;
  readonly isClosed: () => boolean;
}

function client(first = ''): ConnectionsClient {
  const socket = connect({ port: forwarder.port, host: '127.0.0.1' });
  let text = '';
  socket.on('error', () => undefined);
  socket.on('data', (data: Buffer) => (text += data.toString()));
  socket.write(first);
  clients.push(socket);
  return { socket, text: () => text, isClosed: () => socket.closed };
}

const closed = (one: ConnectionsClient, meanwhile: () => void = () => undefined): boolean => {
  meanwhile();
  return one.isClosed();
};

const untilClosed = (one: ConnectionsClient, meanwhile?: () => void): Promise<void> =>
  expect.poll(() => closed(one, meanwhile)).toBe(true);

it('a partial or slow head ends its connection with an answer of the Worker', async () => {
  await start({ headMs: 200 });
  const [half, trickled] = [client(HALF), client(HALF)];
  const trickling = setInterval(() => trickled.socket.write('a'), 20);
  await expect.poll(() => arrived.split('/!malformed/late').length - 1).toBe(2);
  clearInterval(trickling);
  expect(arrived).not.toContain('/half');
  await expect.poll(() => [half.text(), trickled.text()]).toEqual([OK, OK]);
  expect(lines[0]).toMatch(/^Connections: 1 closed because no complete request head arrived/);
});

it('a client that never sends anything is disconnected without an answer', async () => {
  await start({ headMs: 200 });
  const silent = client();
  await untilClosed(silent);
  expect(silent.text()).toBe('');
  expect(arrived).toBe('');
});

it('the time of the next head on a connection begins with its first byte', async () => {
  await start({ headMs: 200 });
  const { socket, text, isClosed } = client(GET);
  await expect.poll(text).toBe(OK);
  // Longer than a head may take: a connection that has sent nothing is closed by now.
  await untilClosed(client());
  socket.write(GET);
  await expect.poll(text).toBe(OK + OK);
  expect(isClosed()).toBe(false);
  socket.write(HALF);
  await expect.poll(() => arrived).toContain('/!malformed/late');
});

it('a refusal is also answered on a connection that was idle for a long time', async () => {
  await start({});
  const resting = client(GET);
  await expect.poll(resting.text).toBe(OK);
  const now = performance.now();
  const clock = vi.spyOn(performance, 'now').mockReturnValue(now + 5_000);
  resting.socket.write('GET / HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n');
  await expect.poll(resting.text).toBe(OK + OK);
  clock.mockRestore();
});

it('the oldest idle connection makes room: a silent one, one with a partial head, or one without requests', async () => {
  // Three places for loopback, and one for other addresses.
  await start({ clientsMax: 4 });
  const done = client(GET);
  await expect.poll(done.text).toBe(OK);
  const [half, silent] = [client(HALF), client()];
  await expect.poll(() => forwarder.connections()).toBe(3);
  for (const before of [done, half, silent]) {
    const next = client(GET);
    await expect.poll(next.text).toBe(OK);
    await untilClosed(before);
  }
});

/** Fills the only place with a request whose body has sent so many bytes, and lets a minute pass. */
async function slowBody(bytes: number): Promise<ConnectionsClient> {
  await start({ clientsMax: 1 });
  const slow = client('POST /silent HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n');
  await expect.poll(() => arrived).toContain('/silent');
  slow.socket.write('a'.repeat(bytes));
  await expect.poll(() => arrived.split('a').length).toBeGreaterThan(bytes);
  await untilClosed(client(GET));
  const now = performance.now();
  vi.spyOn(performance, 'now').mockReturnValue(now + 61_000);
  return slow;
}

it.each([
  ['stops', 0],
  ['drips', 1_000],
])('a request whose body %s makes room', async (_how, bytes) => {
  const slow = await slowBody(bytes);
  await untilClosed(slow, () => client(GET));
  const next = client(GET);
  await expect.poll(next.text).toBe(OK);
});

it('a request whose body continues keeps its place', async () => {
  const slow = await slowBody(100_000);
  await untilClosed(client(GET));
  expect(slow.isClosed()).toBe(false);
});

it('a body that continues after its answer keeps no place', async () => {
  await start({ clientsMax: 1 });
  const slow = client('POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n');
  await expect.poll(slow.text).toBe(OK);
  const next = client(GET);
  await expect.poll(next.text).toBe(OK);
  await untilClosed(slow);
});
