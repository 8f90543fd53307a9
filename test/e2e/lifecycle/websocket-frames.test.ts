// Frames as the Autobahn test suite sends them, through `serve` to an upstream that sends back what comes.
import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { practiceConfig, startStage, type LifecycleStage } from '../support/lifecycle-stage.ts';
import { PATIENT, SocketClient } from '../support/socket-client.ts';

let stage: LifecycleStage;

beforeAll(async () => {
  stage = await startStage({
    config: (upstream) => {
      const config = practiceConfig(1)(upstream) as { upstreams: readonly object[] };
      return { ...config, upstreams: config.upstreams.map(withSessions) };
    },
  });
});

const withSessions = (upstream: object): object => ({ ...upstream, websocket: 'session' });

afterAll(() => stage.close());

beforeEach(() => {
  stage.upstream.configure({
    fragments: 1,
    closeCode: null,
    closeAfterChunks: null,
    deflate: false,
  });
  stage.upstream.reset();
});

const clients = new Set<SocketClient>();

afterEach(() => {
  for (const client of clients) client.socket.terminate();
  clients.clear();
});

/** There is one slot: it opens once the session before it is over. */
function open(options = {}): Promise<SocketClient> {
  const client = new SocketClient(`${stage.url()}/practice/echo`, options);
  clients.add(client);
  return client.opened();
}

const seen = () => stage.upstream.stats().sockets.at(-1);

const utf8 = (length: number): string => 'häß€😀'.repeat(Math.ceil(length / 13)).slice(0, length);

describe('messages', () => {
  it.each([0, 1, 125, 126, 127, 65_535, 65_536, 1_048_576])(
    'of %i bytes or characters come back as they were, text as text and bytes as bytes',
    async (length) => {
      const client = await open();
      const bytes = Buffer.from(Uint8Array.from({ length }, (_, i) => (i * 7) % 256));
      expect((await client.ask(bytes))?.toString('base64')).toBe(bytes.toString('base64'));
      expect(await client.ask(utf8(length))).toBe(utf8(length));
      client.socket.close();
      await client.end;
    },
  );

  it('in fragments come whole, from either side', async () => {
    stage.upstream.configure({ fragments: 7, keepsRequests: true });
    const client = await open();
    const text = utf8(20_000);
    const bytes = Buffer.from(text);
    for (const [at, cut] of [0, 1, 1, 5, 10_001].entries()) {
      const from = [0, 1, 1, 5, 10_001].slice(0, at).reduce((sum, size) => sum + size, 0);
      client.socket.send(bytes.subarray(from, from + cut), { fin: false, binary: false });
    }
    client.socket.ping();
    client.socket.send(bytes.subarray(10_008), { fin: true, binary: false });
    await once(client.socket, 'pong');
    await expect.poll(() => client.messages.length, PATIENT).toBe(1);
    expect(client.messages[0]).toBe(text);
    expect(seen()?.messages).toEqual([{ text }]);
    client.socket.close();
    await client.end;
  });

  it('keep their order, however many there are', async () => {
    const client = await open();
    const sent = Array.from({ length: 2_000 }, (_, i) => `${i} ${'x'.repeat(i % 300)}`);
    for (const message of sent) client.socket.send(message);
    await expect.poll(() => client.messages.length, PATIENT).toBe(sent.length);
    expect(client.messages).toEqual(sent);
    client.socket.close();
    await client.end;
  });

  it.each([
    ['both sides', true, true],
    ['the client', true, false],
    ['the upstream', false, true],
    ['nobody', false, false],
  ])('pass whole where %s would have them compressed', async (_name, byClient, deflate) => {
    stage.upstream.configure({ deflate });
    const client = await open({ perMessageDeflate: byClient });
    for (const message of ['', 'a', utf8(100_000), Buffer.alloc(100_000, 'b')]) {
      expect(await client.ask(message)).toEqual(message);
    }
    client.socket.close(1000, 'done');
    expect(await client.end).toEqual([1000, 'done']);
  });
});

describe('pings', () => {
  it('of the client are answered by Headgate, with what they carry', async () => {
    const client = await open();
    for (const payload of ['', 'ping', 'p'.repeat(125)]) {
      client.socket.ping(payload);
      const [back] = (await once(client.socket, 'pong')) as [Buffer];
      expect(back.toString()).toBe(payload);
    }
    client.socket.pong('nobody asked');
    expect(await client.ask('still here')).toBe('still here');
    expect(seen()).toMatchObject({ pings: 0, pongs: 0 });
    client.socket.close();
    await client.end;
  });

  it('of the upstream are answered by Headgate', async () => {
    const client = await open();
    let pings = 0;
    client.socket.on('ping', () => (pings += 1));
    stage.upstream.act({ do: 'ping' });
    await expect.poll(() => seen()?.pongs, PATIENT).toBe(1);
    expect(await client.ask('still here')).toBe('still here');
    expect(pings).toBe(0);
    client.socket.close();
    await client.end;
  });
});

const CLOSES = [
  [1000, 'done'],
  [1001, 'going'],
  [1003, ''],
  [1007, 'no UTF-8'],
  [1011, 'broken ß €'],
  [1013, 'later'],
  [3000, 'r'.repeat(123)],
  [4999, 'mine'],
] as const;

describe('a close', () => {
  it.each(CLOSES)('of the client with %i reaches the upstream', async (code, reason) => {
    const client = await open();
    client.socket.close(code, reason);
    expect(await client.end).toEqual([code, reason]);
    await expect.poll(() => seen()?.state, PATIENT).toBe('closed');
    expect(seen()).toMatchObject({ closeCode: code, closeReason: reason, closedBy: 'client' });
  });

  it.each(CLOSES)('of the upstream with %i reaches the client', async (code, reason) => {
    const client = await open();
    stage.upstream.act({ do: 'close', code, reason });
    expect(await client.end).toEqual([code, reason]);
    await expect.poll(() => seen()?.state, PATIENT).toBe('closed');
  });

  it('without a code stays one, from either side', async () => {
    const client = await open();
    client.socket.close();
    expect((await client.end)[0]).toBe(1005);
    await expect.poll(() => seen()?.closeCode, PATIENT).toBe(1005);
    const other = await open();
    stage.upstream.act({ do: 'close' });
    expect((await other.end)[0]).toBe(1005);
  });

  it('comes behind all that was sent before it', async () => {
    stage.upstream.configure({ closeCode: 4000, closeReason: 'enough', closeAfterChunks: 500 });
    const client = await open();
    for (let i = 0; i < 500; i += 1) client.socket.send('x'.repeat(5_000));
    expect(await client.end).toEqual([4000, 'enough']);
    expect(client.messages).toHaveLength(500);
  });
});

/** A frame with a mask of zeros, by its first byte. */
function frame(first: number, payload: Buffer): Buffer {
  return Buffer.concat([Buffer.from([first, 0x80 | payload.length]), Buffer.alloc(4), payload]);
}

/** The head of a text of that length. */
function announced(length: bigint): Buffer {
  const head = Buffer.from([FIN | TEXT, 0xff, ...Buffer.alloc(12)]);
  head.writeBigUInt64BE(length, 2);
  return head;
}

const [TEXT, CONTINUED, FIN, PING, CLOSE] = [1, 0, 0x80, 9, 8];
const hello = Buffer.from('hello');

describe('a client that breaks the rules is cut off, and nobody else', () => {
  it.each([
    ['the first reserved bit', frame(FIN | 0x40 | TEXT, hello)],
    ['another reserved bit', frame(FIN | 0x20 | TEXT, hello)],
    ['an opcode that is none', frame(FIN | 3, hello)],
    ['a control opcode that is none', frame(FIN | 11, hello)],
    ['a continuation of nothing', frame(FIN | CONTINUED, hello)],
    ['a text within a text', Buffer.concat([frame(TEXT, hello), frame(FIN | TEXT, hello)])],
    ['a ping in fragments', frame(PING, hello)],
    ['a length beyond all', announced(0xffff_ffff_ffff_ffffn)],
    ['a message of more than 32 MiB', announced(33_554_433n)],
    ['a close of one byte', frame(FIN | CLOSE, Buffer.alloc(1))],
  ])('%s', async (_name, bytes) => {
    stage.upstream.configure({ keepsRequests: true });
    const client = await open();
    client.connection.write(bytes);
    await expect.poll(() => seen()?.state, PATIENT).toBe('closed');
    expect(seen()?.messages).toEqual([]);
    const next = await open();
    expect(await next.ask('next')).toBe('next');
    next.socket.close();
    await next.end;
  });

  it('text that is no UTF-8 reaches the upstream as text that is', async () => {
    stage.upstream.configure({ keepsRequests: true });
    const client = await open();
    client.connection.write(frame(FIN | TEXT, Buffer.from([0x61, 0xff, 0x62])));
    await expect.poll(() => seen()?.messageCount, PATIENT).toBe(1);
    expect(seen()?.messages).toEqual([{ text: 'a\u{FFFD}b' }]);
    client.socket.close();
    await client.end;
  });
});
