// How WebSockets end through `serve`, whoever ends them, and what it costs where one side does not read.
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { afterEach, expect, it } from 'vitest';
import type { StrictOptions } from '../../strict-upstream/strict-upstream.ts';
import {
  practiceConfig,
  STAGE_TOKEN,
  startStage,
  type LifecycleStage,
} from '../support/lifecycle-stage.ts';
import { PATIENT, SocketClient } from '../support/socket-client.ts';

const MIB = 1_048_576;

let stage: LifecycleStage;
const clients = new Set<SocketClient>();

afterEach(async () => {
  for (const client of clients) client.socket.terminate();
  clients.clear();
  await stage.close();
});

async function start(upstream: StrictOptions = {}, workers = 1): Promise<void> {
  stage = await startStage({
    upstream,
    workers,
    config: (strict) => {
      const config = practiceConfig(1)(strict) as { readonly upstreams: readonly object[] };
      return { ...config, upstreams: config.upstreams.map(withSessions) };
    },
  });
}

const withSessions = (upstream: object): object => ({ ...upstream, websocket: 'session' });

function connect(path: string, keeps = true, headers = {}): SocketClient {
  const made = new SocketClient(`${stage.url()}/practice${path}`, { headers }, keeps);
  clients.add(made);
  return made;
}

const sockets = () => stage.upstream.stats().sockets;
const inFlight = () => stage.upstream.stats().inFlight;

it.each([
  ['in a reset', (one: SocketClient) => one.socket.terminate()],
  ['in the middle of a frame', cutInMidFrame],
  ['with its own side alone', (one: SocketClient) => one.connection.end()],
])('a client that leaves %s gives its slot back at once', async (_name, leave) => {
  await start();
  const first = await connect('/echo').opened();
  expect(await first.ask('hello')).toBe('hello');
  const second = connect('/echo');
  leave(first);
  await second.opened();
  expect(await second.ask('next')).toBe('next');
  expect(stage.upstream.stats().sessions).toMatchObject({ peak: 1, total: 2 });
  expect(sockets()[0]).toMatchObject({ closeCode: 1001, messageCount: 1 });
});

function cutInMidFrame({ connection }: SocketClient): void {
  connection.write(Buffer.from([0x81, 0xfe, 1, 0, 0, 0, 0, 0, 0x61]), () => connection.destroy());
}

it('an upstream that is cut in the middle of a frame ends its client with 1011', async () => {
  await start();
  const one = await connect('/echo').opened();
  stage.upstream.act({ do: 'send-raw', base64: Buffer.from([0x81, 100, 0x61]).toString('base64') });
  stage.upstream.act({ do: 'cut' });
  expect(await one.end).toEqual([1011, 'headgate: the connection to the upstream broke']);
  expect(one.messages).toEqual([]);
  await connect('/echo').opened();
});

it('a client that leaves while it waits for its slot leaves the queue', async () => {
  await start();
  const first = await connect('/echo').opened();
  const waits = connect('/echo', true, { 'headgate-max-wait': '60' });
  await stage.admin.untilGroup('practice', { in_use: 1, queued: 1 });
  waits.socket.terminate();
  await stage.admin.untilGroup('practice', { in_use: 1, queued: 0 });
  first.socket.close();
  await connect('/echo').opened();
  expect(stage.upstream.stats().sessions).toMatchObject({ peak: 1, total: 2 });
});

/** MiB of workerd's memory that are resident. */
async function residentMib(): Promise<number> {
  const status = await readFile(`/proc/${stage.workerdPid()}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1_024;
}

/** How many calls were cut because one side did not read. */
async function slowReaders(): Promise<string | undefined> {
  const headers = { authorization: `Bearer ${STAGE_TOKEN}` };
  const text = await (await fetch(`${stage.url()}/metrics`, { headers })).text();
  return /^headgate_calls_cut_total\{[^}]*reason="slow_reader"[^}]*\} (\d+)$/m.exec(text)?.[1];
}

it('a client that does not read is closed, and costs little memory', async () => {
  await start({ floodBytes: 256 * MIB });
  const before = await residentMib();
  const one = connect('/echo', false);
  one.socket.once('open', () => one.socket.pause());
  await expect.poll(() => sockets()[0]?.state, PATIENT).toBe('closed');
  expect(sockets()[0]).toMatchObject({ closeCode: 1013, closedBy: 'client' });
  expect(sockets()[0]?.sentBytes).toBeLessThan(128 * MIB);
  expect((await residentMib()) - before).toBeLessThan(96);
  await expect.poll(slowReaders, PATIENT).toBe('1');
  stage.upstream.configure({ floodBytes: null });
  const next = await connect('/echo').opened();
  expect(await next.ask('next')).toBe('next');
});

it('an upstream that does not read is closed, and costs little memory', async () => {
  await start();
  const before = await residentMib();
  const one = await connect('/echo', false).opened();
  stage.upstream.act({ do: 'stall' });
  const piece = randomBytes(65_536);
  const flood = (): void => {
    if (!one.hasEnded) one.socket.send(piece, (error) => error ?? setImmediate(flood));
  };
  flood();
  expect(await one.end).toEqual([1013, 'headgate: slow_reader']);
  expect((await residentMib()) - before).toBeLessThan(96);
  const next = await connect('/echo').opened();
  expect(await next.ask('next')).toBe('next');
});

it('a session may carry far more than may be unsent at once', async () => {
  await start();
  const one = await connect('/echo').opened();
  const piece = randomBytes(MIB);
  for (let i = 0; i < 16; i += 1) expect((await one.ask(piece))?.length).toBe(MIB);
  expect(one.hasEnded).toBe(false);
});

it('sessions that are open at the end of the grace are told that it is a restart, at every Worker', async () => {
  await start({}, 2);
  const [, other = ''] = stage.urls();
  await stage.admin.setLimit('practice', 2);
  const one = await connect('/echo').opened();
  const second = new SocketClient(`${other}/practice/echo`);
  clients.add(second);
  await second.opened();
  let hasStopped = false;
  const stopping = stage.stop(1_000).then(() => (hasStopped = true));
  expect(await one.ask('during the grace')).toBe('during the grace');
  expect(hasStopped).toBe(false);
  for (const { end } of clients) expect(await end).toEqual([1012, 'headgate: restart']);
  await stopping;
  expect(sockets().map(({ closeCode }) => closeCode)).toEqual([1012, 1012]);
});

it('a session that ends during the grace is the last thing that is waited for', async () => {
  await start();
  const one = await connect('/echo').opened();
  const stopping = stage.stop(600_000);
  expect(await one.ask('still here')).toBe('still here');
  one.socket.close(1000, 'done');
  expect(await one.end).toEqual([1000, 'done']);
  await stopping;
  expect(inFlight()).toBe(0);
});

it('connections between two turns end at once, and others after their turn', async () => {
  await start();
  await stage.admin.request('PATCH', '/upstreams/practice', { websocket: 'turns' });
  const ask = JSON.stringify({ type: 'response.create', model: 'm', input: 'hold' });
  stage.upstream.configure({ silentAfterChunks: 1 });
  const idle = await connect('/v1/responses').opened();
  const busy = await connect('/v1/responses').opened();
  busy.socket.send(ask);
  await expect.poll(() => busy.messages.length, PATIENT).toBeGreaterThan(4);
  const stopping = stage.stop(600_000);
  expect(await idle.end).toEqual([1012, 'headgate: restart']);
  expect(busy.hasEnded).toBe(false);
  stage.upstream.resume();
  expect(await busy.end).toEqual([1012, 'headgate: restart']);
  expect(busy.messages.at(-1)).toContain('response.completed');
  await stopping;
});
