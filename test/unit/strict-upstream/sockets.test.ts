import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ClientOptions, RawData } from 'ws';
import { WebSocket } from 'ws';
import type { StrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { startStrictUpstream } from '../../strict-upstream/strict-upstream.ts';

/** Tests of the WebSocket side of the upstream that the other tests believe. */
let upstream: StrictUpstream;

beforeAll(async () => {
  upstream = await startStrictUpstream();
});

afterAll(() => upstream.close());

const REALTIME = '/v1/realtime?model=gpt-realtime';
const LIVE = '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent';

// oxlint-disable-next-line typescript/no-explicit-any -- a test reads many shapes of events
type SocketsEvent = any;

const textOf = (data: RawData): string => (data as Buffer).toString('utf8');

/** A client that keeps what comes. */
class SocketsClient {
  readonly socket: WebSocket;
  readonly events: SocketsEvent[] = [];
  /** Code and reason of the close, or the status of an upgrade that was refused. */
  readonly end: Promise<readonly [number, string]>;

  constructor(scope: string, path: string, options: ClientOptions = {}, protocols: string[] = []) {
    const url = upstream.scopeUrl(scope).replace('http', 'ws') + path;
    this.socket = new WebSocket(url, protocols, options);
    this.socket.on('message', (data) => this.events.push(JSON.parse(textOf(data))));
    this.socket.on('error', () => {});
    this.end = new Promise((resolve) => {
      this.socket.once('unexpected-response', (request, { statusCode }) => {
        resolve([statusCode ?? 0, 'refused']);
        request.destroy();
      });
      this.socket.once('close', (code, reason) => resolve([code, reason.toString()]));
    });
  }

  async opened(): Promise<this> {
    await once(this.socket, 'open');
    return this;
  }

  send(message: object): void {
    this.socket.send(JSON.stringify(message));
  }

  ask(text: string, fields: object = {}): void {
    this.send({ type: 'response.create', model: 'gpt-5', input: text, ...fields });
  }

  /** The types of the events of one lane, but for the deltas between them. */
  types(lane?: string): string[] {
    const ofLane = this.events.filter(({ stream_id }) => stream_id === lane);
    return ofLane.map(({ type }: SocketsEvent) => type as string);
  }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await delay(2);
}

const counts = (scope: string, kind: 'sessions' | 'turns'): unknown => {
  const { inFlight, peak, total, rejected429 } = upstream.stats(scope)[kind];
  return { inFlight, peak, total, rejected429 };
};

describe('sessions', () => {
  it('are refused at the upgrade above their limit, and counted until their close', async () => {
    upstream.configure({ sessionLimit: 1 }, 'sessions');
    const first = await new SocketsClient('sessions', REALTIME).opened();
    expect(await new SocketsClient('sessions', REALTIME).end).toEqual([429, 'refused']);
    expect(counts('sessions', 'sessions')).toEqual({
      inFlight: 1,
      peak: 2,
      total: 2,
      rejected429: 1,
    });
    first.socket.close(3000, 'bye');
    expect(await first.end).toEqual([3000, 'bye']);
    // Who has the answer to its close is right to take the session for over.
    expect(upstream.stats('sessions').sessions.inFlight).toBe(0);
    await until(() => upstream.stats('sessions').sockets[0]?.state === 'closed');
    expect(upstream.stats('sessions').sockets).toMatchObject([
      { kind: 'realtime', closeCode: 3000, closeReason: 'bye', closedBy: 'client' },
    ]);
    await new SocketsClient('sessions', REALTIME).opened();
  });

  it('count as calls, also with those over HTTP', async () => {
    upstream.configure({ limit: 1 }, 'mixed');
    const session = await new SocketsClient('mixed', REALTIME, {
      headers: { 'x-label': 'mine' },
    }).opened();
    const url = `${upstream.scopeUrl('mixed')}/v1/chat/completions`;
    expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(429);
    expect(upstream.stats('mixed').arrivals[0]).toMatchObject({
      label: 'mine',
      model: 'gpt-realtime',
      state: 'open',
    });
    session.socket.terminate();
    await until(() => upstream.stats('mixed').inFlight === 0);
    expect(upstream.stats('mixed')).toMatchObject({ aborted: 1, sockets: [{ closedBy: 'cut' }] });
  });

  it('run one response at a time, which may be cancelled', async () => {
    upstream.configure({ silentAfterChunks: 1 }, 'realtime');
    const client = await new SocketsClient('realtime', REALTIME).opened();
    client.send({ type: 'response.create' });
    client.send({ type: 'response.create' });
    await until(() => client.types().includes('response.output_text.delta'));
    client.send({ type: 'response.cancel' });
    await until(() => client.types().includes('response.done'));
    const refused = client.events.find(({ type }) => type === 'error');
    expect(refused.error.code).toBe('conversation_already_has_active_response');
    expect(client.events.at(-1).response.status).toBe('cancelled');
  });

  it('of Gemini name their model in their setup, which has a limit of its own', async () => {
    upstream.configure({ limits: { live: 1 } }, 'live');
    const setup = { setup: { model: 'models/live' } };
    const client = await new SocketsClient('live', LIVE).opened();
    client.send(setup);
    client.send({ realtimeInput: { text: 'one two' } });
    await until(() => client.events.at(-1)?.serverContent?.turnComplete === true);
    expect(client.events[0]).toEqual({ setupComplete: {} });
    expect(client.events.at(-1).usageMetadata.totalTokenCount).toBe(7);
    const second = await new SocketsClient('live', LIVE).opened();
    second.send(setup);
    expect((await second.end)[0]).toBe(1011);
    expect(upstream.stats('live')).toMatchObject({ rejected429: 1, admitted: 1 });
    const third = await new SocketsClient('live', LIVE).opened();
    third.send({ realtimeInput: { text: 'too early' } });
    expect((await third.end)[0]).toBe(1007);
  });
});

describe('turns', () => {
  it('are refused by an event above their limit, and the connection stays', async () => {
    upstream.configure({ turnLimit: 1, silentAfterChunks: 1 }, 'turns');
    const [first, second] = await Promise.all([
      new SocketsClient('turns', '/v1/responses').opened(),
      new SocketsClient('turns', '/v1/responses').opened(),
    ]);
    first.ask('first');
    await until(() => first.types().includes('response.output_text.delta'));
    second.ask('second');
    await until(() => second.events.length === 1);
    expect(second.events[0]).toMatchObject({
      type: 'error',
      status: 429,
      error: { code: 'rate_limit_exceeded' },
    });
    upstream.resume('turns');
    await until(() => first.types().at(-1) === 'response.completed');
    expect(counts('turns', 'turns')).toEqual({ inFlight: 0, peak: 2, total: 2, rejected429: 1 });
    upstream.configure({ silentAfterChunks: null }, 'turns');
    second.ask('third');
    await until(() => second.types().at(-1) === 'response.completed');
    expect(second.events.at(-1).response.usage).toMatchObject({ output_tokens: 5 });
    expect(upstream.stats('turns').arrivals.map(({ label, state }) => [label, state])).toEqual([
      ['first', 'done'],
      ['second', 'refused'],
      ['third', 'done'],
    ]);
    expect(upstream.stats('turns').sessions.total).toBe(0);
  });

  it('of one lane run one after the other, lanes side by side', async () => {
    const client = await new SocketsClient('lanes', '/v1/responses').opened();
    client.ask('held [[strict silent-after-chunks=1]]', { stream_id: 'a' });
    client.ask('behind', { stream_id: 'a' });
    client.ask('beside', { stream_id: 'b' });
    await until(() => client.types('b').at(-1) === 'response.completed');
    expect(client.types('a')).not.toContain('response.completed');
    expect(upstream.stats('lanes').turns.inFlight).toBe(2);
    upstream.resume('lanes');
    const completed = (type: string): boolean => type === 'response.completed';
    await until(() => client.types('a').filter(completed).length === 2);
    expect(upstream.stats('lanes').turns).toMatchObject({ inFlight: 0, peak: 3, completed: 3 });
  });

  it('end as they are told to, or with their connection', async () => {
    const client = await new SocketsClient('ends', '/v1/responses').opened();
    const ends: string[] = [];
    for (const knob of ['error-after-chunks=1', 'incomplete', 'status=500', 'chunks=1']) {
      client.ask(`[[strict ${knob}]]`);
      const before = ends.length;
      const last = /^(?:error|response\.(?:completed|failed|incomplete))$/;
      await until(() => client.types().filter((type) => last.test(type)).length > before);
      ends.push(client.types().at(-1) ?? '');
    }
    expect(ends).toEqual(['response.failed', 'response.incomplete', 'error', 'response.completed']);
    client.ask('[[strict close-code=4001 close-reason=gone close-after-chunks=2]]');
    expect(await client.end).toEqual([4001, 'gone']);
    const leaver = await new SocketsClient('ends', '/v1/responses').opened();
    leaver.ask('[[strict silent-after-chunks=0]]');
    await until(() => upstream.stats('ends').turns.inFlight === 1);
    leaver.socket.close();
    await until(() => upstream.stats('ends').turns.inFlight === 0);
    expect(upstream.stats('ends').arrivals.map(({ state }) => state)).toEqual(
      'done done done done broken aborted'.split(' '),
    );
  });
});

describe('an upgrade', () => {
  it('needs a key that is known, where its provider looks for one', async () => {
    upstream.configure({ accounts: { k: 'mine' } }, 'keys');
    const bearer = { headers: { authorization: 'Bearer k' } };
    const azure = '/openai/realtime?api-version=1&deployment=d';
    const inProtocol = ['realtime', 'openai-insecure-api-key.k'];
    const opens = async (path: string, options = {}, protocols: string[] = []): Promise<number> => {
      const client = new SocketsClient('keys', path, options, protocols);
      const opened = once(client.socket, 'open').then(() => 101);
      return Promise.race([opened, client.end.then(([status]) => status)]);
    };
    expect([
      await opens(REALTIME, bearer),
      await opens(REALTIME, {}, inProtocol),
      await opens(`${REALTIME}&key=k`),
      await opens(`${azure}&api-key=k`),
      await opens(azure, { headers: { 'x-goog-api-key': 'k' } }),
      await opens(`${LIVE}?key=k`),
      await opens(LIVE, { headers: { 'api-key': 'k' } }),
    ]).toEqual([101, 101, 401, 101, 401, 101, 401]);
    expect(upstream.stats('keys').sockets.map(({ protocol }) => protocol)).toEqual([
      '',
      'realtime',
      '',
      '',
    ]);
  });

  it('is refused with any status, by a scope or by itself', async () => {
    upstream.configure({ status: 426 }, 'status');
    expect((await new SocketsClient('status', '/v1/responses').end)[0]).toBe(426);
    upstream.configure({ status: null }, 'status');
    const asked = { headers: { 'x-strict-status': '503' } };
    expect((await new SocketsClient('status', '/v1/responses', asked).end)[0]).toBe(503);
    expect(upstream.stats('status').sockets).toEqual([]);
  });
});

describe('an echo', () => {
  it('sends back what comes, and tells what it saw', async () => {
    upstream.configure({ keepsRequests: true, fragments: 3 }, 'echo');
    const url = `${upstream.scopeUrl('echo').replace('http', 'ws')}/any/path?q=1`;
    const socket = new WebSocket(url, ['one', 'two']);
    const got: [string, boolean][] = [];
    socket.on('message', (data, isBinary) => got.push([textOf(data), isBinary]));
    await once(socket, 'open');
    expect(socket.protocol).toBe('one');
    socket.send('text');
    socket.send(Buffer.from('bytes'));
    socket.send('');
    socket.ping();
    await until(() => got.length === 3);
    expect(got).toEqual([
      ['text', false],
      ['bytes', true],
      ['', false],
    ]);
    upstream.act({ do: 'ping' }, 'echo');
    await until(() => upstream.stats('echo').sockets[0]?.pongs === 1);
    upstream.act({ do: 'close', code: 1012, reason: 'restart', index: 0 }, 'echo');
    expect((await once(socket, 'close'))[0]).toBe(1012);
    expect(upstream.stats('echo').sockets[0]).toMatchObject({
      query: 'q=1',
      pings: 1,
      closedBy: 'upstream',
      messages: [{ text: 'text' }, { base64: 'Ynl0ZXM=' }, { text: '' }],
      messageBytes: 9,
    });
  });

  it('sends a flood no faster than it is taken', async () => {
    const floodBytes = 64 * 1_048_576;
    upstream.configure({ floodBytes }, 'flood');
    const socket = new WebSocket(upstream.scopeUrl('flood').replace('http', 'ws'));
    let bytes = 0;
    socket.on('message', (data) => (bytes += (data as Buffer).length));
    socket.once('open', () => socket.pause());
    const sent = (): number => upstream.stats('flood').sockets[0]?.sentBytes ?? 0;
    let before = -1;
    await until(() => {
      const stands = sent() > 0 && sent() === before;
      before = sent();
      return stands;
    });
    expect(sent()).toBeLessThan(floodBytes);
    socket.resume();
    await until(() => bytes === floodBytes);
    socket.terminate();
  });
});

it('can be told over HTTP what to do', async () => {
  const client = await new SocketsClient('http', REALTIME).opened();
  const body = JSON.stringify({ do: 'send', text: '{"type":"hello"}' });
  await fetch(`${upstream.scopeUrl('http')}/__strict/act`, { method: 'POST', body });
  await until(() => client.types().includes('hello'));
  const stats = await fetch(`${upstream.scopeUrl('http')}/__strict/stats`);
  expect(await stats.json()).toMatchObject({ sockets: [{ kind: 'realtime', state: 'open' }] });
});
