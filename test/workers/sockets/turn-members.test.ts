// Turns of a group with members: each goes to the member that has room, over a connection that Headgate opens there. The
// upstreams count their turns themselves, and accept one at a time.
import { afterAll, afterEach, expect, it, vi } from 'vitest';
import { KEY, newScene, SECRETS, type MembersScene } from '../proxy/members-scene.ts';
import { NO_COOLDOWN, nothingLeaks, pool, untilStatus } from '../support/pool.ts';
import { admin, until } from '../support/worker.ts';
import { connect, create, endOf, untilEvent, upgrade, type TestSocketClient } from './client.ts';
import { endTurns, HELD } from './scene.ts';

const TURNS = { websocket: 'turns' } as const;
const ONE_TURN = { turnLimit: 1, keepsRequests: true } as const;

/** Members at two upstreams. A turn goes to `b` only while `a` has no room. */
const A = { name: 'a', secret: 'UPSTREAM_A', limits: { max_concurrency: 1 } } as const;
const B = { ...A, name: 'b', secret: 'UPSTREAM_B', at: 'there', tier: 2 } as const;

let scene: MembersScene;

async function begin(setup: Partial<Parameters<typeof newScene>[0]> = {}): Promise<void> {
  scene = await newScene({
    members: [A, B],
    settings: { here: ONE_TURN, there: ONE_TURN },
    upstreams: { here: TURNS, there: TURNS },
    ...setup,
  });
}

afterEach(async () => {
  await endTurns([scene.here, scene.there]);
  await untilStatus(scene.group, { in_use: 0, queued: 0 });
});
afterAll(nothingLeaks);

function open(): Promise<TestSocketClient> {
  return connect(scene.path('here', '/v1/responses'), KEY);
}

function ask(text: string, fields: object = {}): object {
  return create(text, { model: 'm', ...fields });
}

/** The texts of the turns that reached each upstream. */
async function heard(): Promise<readonly [here: readonly unknown[], there: readonly unknown[]]> {
  const [here, there] = await Promise.all([scene.here.stats(), scene.there.stats()]);
  const texts = ({ sockets }: typeof here): readonly unknown[] =>
    sockets.flatMap(({ messages }) =>
      messages.map((one) => ('text' in one ? JSON.parse(one.text) : {}).input),
    );
  return [texts(here), texts(there)];
}

/** Lets a client have a response from `b`, and returns its id. */
async function servedByB(client: TestSocketClient, fields: object = {}): Promise<unknown> {
  const other = await open();
  other.send(ask(HELD));
  await untilEvent(other, 'response.created');
  client.send(ask('at b', fields));
  const { response } = (await untilEvent(client, 'response.completed')) ?? {};
  await scene.here.resume();
  await untilEvent(other, 'response.completed');
  await untilStatus(scene.group, { in_use: 0 });
  expect(await heard()).toEqual([[HELD], ['at b']]);
  return (response as { id?: unknown }).id;
}

const SHORT = { holds: { ...NO_COOLDOWN, max_hold_ms: 1_000 } };

it.each([
  ['revoked', {}],
  ['max_hold', SHORT],
])(
  'a turn whose lease ends while a member is being connected is never sent, and closes its connection: %s',
  async (reason, group) => {
    await begin({ group });
    const upstreamFetch = globalThis.fetch;
    const silent = vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
      if (new Headers(init?.headers).get('upgrade') !== 'websocket') {
        return upstreamFetch(input, init);
      }
      // As a server that accepts the connection and does not respond.
      return new Promise((_, reject) => {
        init?.signal?.addEventListener('abort', () => reject(new Error('aborted')));
      });
    });
    const client = await open();
    client.send(ask(reason));
    await untilStatus(scene.group, { in_use: 1 });
    const [lease] = await pool(scene.group).leases();
    if (reason === 'revoked') await admin('DELETE', `/groups/${scene.group}/leases/${lease?.id}`);
    expect(await endOf(client)).toMatchObject({ code: 1008, reason: `headgate: ${reason}` });
    await untilStatus(scene.group, { in_use: 0 });
    silent.mockRestore();
    expect(await heard()).toEqual([[], []]);
  },
);

it('turns of one connection run at two members at once, each with its key and one turn', async () => {
  await begin();
  const client = await open();
  expect((await scene.here.stats()).sockets).toHaveLength(0);
  client.send(ask(HELD, { stream_id: 'one' }));
  client.send(ask(HELD, { stream_id: 'two' }));
  client.send(ask('third', { stream_id: 'three' }));
  await untilEvent(client, 'response.created', 2);
  await untilStatus(scene.group, { in_use: 2, queued: 1 });
  const [here, there] = await Promise.all([scene.here.stats(), scene.there.stats()]);
  expect([here.turns.inFlight, there.turns.inFlight]).toEqual([1, 1]);
  expect([here.sockets[0]?.key, there.sockets[0]?.key]).toEqual([
    SECRETS.UPSTREAM_A,
    SECRETS.UPSTREAM_B,
  ]);
  await Promise.all([scene.here.resume(), scene.there.resume()]);
  await untilEvent(client, 'response.completed', 3);
  const ends = client.events().filter(({ type }) => type === 'response.completed');
  const streams = new Set(ends.map((event) => event['stream_id']));
  expect(streams).toEqual(new Set(['one', 'two', 'three']));
});

it('a member gets each turn on the connection that it has', async () => {
  await begin();
  const client = await open();
  for (const times of [1, 2]) {
    client.send(ask('hello'));
    await untilEvent(client, 'response.completed', times);
  }
  expect((await scene.here.stats()).sockets).toHaveLength(1);
});

it.each(['concurrency', 'quota', 'overload', 'reset'])(
  'a turn that a member refuses or cuts goes to the next one, and its client sees nothing of it: %s',
  async (failure) => {
    await begin();
    const client = await open();
    await scene.here.failNext(failure);
    client.send(ask('moved'));
    await untilEvent(client, 'response.completed');
    expect(client.events().map(({ type }) => type)).not.toContain('error');
    expect(client.events().filter(({ type }) => type === 'response.created')).toHaveLength(1);
    expect(client.closed()).toBeNull();
    expect(await heard()).toEqual([['moved'], ['moved']]);
  },
);

it('what a member says of a turn that went elsewhere does not reach its client', async () => {
  await begin();
  const client = await open();
  await scene.here.failNext('quota');
  client.send(ask(HELD));
  await untilEvent(client, 'response.created');
  await scene.here.act({ do: 'send', text: '{"type":"response.failed"}' });
  await scene.here.act({ do: 'send', text: '{"type":"x.news"}' });
  await untilEvent(client, 'x.news');
  await scene.there.resume();
  await untilEvent(client, 'response.completed');
  expect(client.events().map(({ type }) => type)).not.toContain('response.failed');
});

it('a queued turn outlives the last connection to a member', async () => {
  await begin({ members: [A] });
  const client = await open();
  client.send(ask('hello'));
  await untilEvent(client, 'response.completed');
  const other = await open();
  other.send(ask(HELD));
  await untilEvent(other, 'response.created');
  client.send(ask('queued'));
  await untilStatus(scene.group, { in_use: 1, queued: 1 });
  await scene.here.act({ do: 'close', code: 1000, index: 0 });
  await until(async () => expect((await scene.here.stats()).sockets[0]?.state).toBe('closed'));
  await scene.here.resume();
  await untilEvent(client, 'response.completed', 2);
  expect(client.closed()).toBeNull();
});

it.each([503, 429, 404])(
  'a member that refuses the connection with %d has refused the turn',
  async (status) => {
    await begin();
    await scene.here.configure({ status });
    const client = await open();
    client.send(ask('moved'));
    await untilEvent(client, 'response.completed');
    expect(client.events().map(({ type }) => type)).not.toContain('error');
    expect(await heard()).toEqual([[], ['moved']]);
  },
);

it('a member that cannot be reached has refused the turn', async () => {
  await begin({ upstreams: { here: { ...TURNS, base_url: 'http://127.0.0.1:9' }, there: TURNS } });
  const client = await open();
  client.send(ask('moved'));
  await untilEvent(client, 'response.completed');
  expect(client.events().map(({ type }) => type)).not.toContain('error');
});

it('a turn that no member serves gets the error of the last one, and the connection stays', async () => {
  await begin();
  await Promise.all([
    scene.here.configure({ status: 503 }),
    scene.there.configure({ status: 503 }),
  ]);
  const client = await open();
  client.send(ask('refused', { stream_id: 's' }));
  expect(await untilEvent(client, 'error')).toMatchObject({ status: 503, stream_id: 's' });
  await Promise.all([
    scene.here.configure({ status: null }),
    scene.there.configure({ status: null }),
  ]);
  client.send(ask('served'));
  await untilEvent(client, 'response.completed');
  expect(client.events().filter(({ type }) => type === 'error')).toHaveLength(1);
});

it('a turn that continues a response goes to the member that created it, and waits for it', async () => {
  await begin();
  const client = await open();
  const id = await servedByB(client);
  client.send(ask('free'));
  await untilEvent(client, 'response.completed', 2);
  client.send(ask('bound', { previous_response_id: id }));
  await untilEvent(client, 'response.completed', 3);
  expect(await heard()).toEqual([
    [HELD, 'free'],
    ['at b', 'bound'],
  ]);
  const [busy, holder] = await Promise.all([open(), open()]);
  for (const each of [busy, holder]) {
    each.send(ask(HELD));
    await untilEvent(each, 'response.created');
  }
  await scene.here.resume();
  await untilEvent(busy, 'response.completed');
  client.send(ask('waits', { previous_response_id: id }));
  await untilStatus(scene.group, { in_use: 1, queued: 1 });
  expect((await heard()).flat()).not.toContain('waits');
  await scene.there.resume();
  await untilEvent(client, 'response.completed', 4);
  expect((await heard())[1]).toContain('waits');
});

it('what goes on from the last response, or steers it, goes to its member', async () => {
  await begin();
  const client = await open();
  await servedByB(client, { stream_id: 's' });
  client.send({ type: 'response.append', stream_id: 's', input: 'append' });
  await untilEvent(client, 'error');
  client.send({ type: 'x.other', stream_id: 's', input: 'other' });
  await untilEvent(client, 'error', 2);
  expect(await heard()).toEqual([[HELD], ['at b', 'append', 'other']]);
});

it('a turn whose response was created by a removed member is refused', async () => {
  await begin();
  const client = await open();
  const id = await servedByB(client);
  await scene.change([A]);
  client.send(ask('lost', { previous_response_id: id }));
  expect(await untilEvent(client, 'error')).toMatchObject({ code: 'upstream_unknown' });
  expect((await heard())[0]).toEqual([HELD]);
});

it('the model is renamed for each member', async () => {
  await begin({ members: [{ ...A, models: { m: 'm-a' } }, B] });
  const client = await open();
  await scene.here.failNext('quota');
  client.send(ask('moved'));
  await untilEvent(client, 'response.completed');
  const [here, there] = await Promise.all([scene.here.stats(), scene.there.stats()]);
  expect(here.arrivals.map(({ model }) => model)).toEqual(['m-a']);
  expect(there.arrivals.map(({ model }) => model)).toEqual(['m']);
});

it('a member whose key has changed gets a new connection, and the old one closes', async () => {
  await begin();
  const client = await open();
  client.send(ask('before'));
  await untilEvent(client, 'response.completed');
  await scene.change([{ ...A, secret: 'UPSTREAM_C' }, B]);
  client.send(ask('after'));
  await untilEvent(client, 'response.completed', 2);
  await until(async () => {
    const { sockets } = await scene.here.stats();
    expect(sockets.map(({ key, state }) => [key, state])).toEqual([
      [SECRETS.UPSTREAM_A, 'closed'],
      [SECRETS.UPSTREAM_C, 'open'],
    ]);
  });
  expect(client.closed()).toBeNull();
});

it('a client that leaves frees the slots of its turns at all members', async () => {
  await begin();
  const client = await open();
  client.send(ask(HELD, { stream_id: 'one' }));
  client.send(ask(HELD, { stream_id: 'two' }));
  await untilEvent(client, 'response.created', 2);
  client.close(1001, 'bye');
  await untilStatus(scene.group, { in_use: 0 });
  const all = await Promise.all([scene.here.stats(), scene.there.stats()]);
  expect(all.map(({ sockets }) => sockets[0]?.closeReason)).toEqual(['bye', 'bye']);
});

it.each([
  ['idle', 'free'],
  ['running', HELD],
])(
  'a member that closes an idle connection does not end one that is %s at another member',
  async (_, text) => {
    await begin();
    const client = await open();
    const id = await servedByB(client);
    client.send(ask(text));
    await untilEvent(client, text === HELD ? 'response.created' : 'response.completed', 2);
    await scene.there.act({ do: 'close', code: 1000 });
    await until(async () => expect((await scene.there.stats()).sockets[0]?.state).toBe('closed'));
    await scene.here.resume();
    await untilEvent(client, 'response.completed', 2);
    client.send(ask('again', { previous_response_id: id }));
    await untilEvent(client, 'response.completed', 3);
    expect(client.closed()).toBeNull();
    expect((await heard())[1]).toEqual(['at b', 'again']);
  },
);

it('a turn that breaks off beside another one gets an error, and the other one goes on', async () => {
  await begin();
  const client = await open();
  client.send(ask(HELD, { stream_id: 'one' }));
  client.send(ask(HELD, { stream_id: 'two' }));
  await untilEvent(client, 'response.created', 2);
  await scene.there.act({ do: 'cut' });
  const error = await untilEvent(client, 'error');
  expect(error).toMatchObject({ code: 'upstream_unreachable' });
  await untilStatus(scene.group, { in_use: 1 });
  await scene.here.resume();
  const end = await untilEvent(client, 'response.completed');
  expect(new Set([error?.['stream_id'], end?.['stream_id']])).toEqual(new Set(['one', 'two']));
});

it('a connection ends with its last member, or with that of its only turn', async () => {
  await begin();
  const idle = await open();
  idle.send(ask('hello'));
  await untilEvent(idle, 'response.completed');
  await scene.here.act({ do: 'close', code: 1000, reason: 'done' });
  expect(await endOf(idle)).toMatchObject({ code: 1000, reason: 'done' });
  const client = await open();
  client.send(ask(HELD));
  await untilEvent(client, 'response.created');
  await scene.here.act({ do: 'cut' });
  expect(await endOf(client)).toMatchObject({ code: 1011 });
});

it('a message before the first turn reaches no member', async () => {
  await begin();
  const client = await open();
  client.send({ type: 'x.early' });
  expect(await untilEvent(client, 'error')).toMatchObject({ status: 400 });
  client.send(ask('hello'));
  await untilEvent(client, 'response.completed');
  expect(await heard()).toEqual([['hello'], []]);
});

it('an upgrade is a 426 if no member serves turns, and a subprotocol is accepted if one does', async () => {
  const off = { websocket: 'off' } as const;
  await begin({ members: [B], upstreams: { here: TURNS, there: off } });
  const refused = await upgrade(scene.path('here', '/v1/responses'), KEY);
  expect([refused.status, refused.headers.get('headgate-reason')]).toEqual([426, 'http_required']);
  await refused.text();
  await begin({ upstreams: { here: TURNS, there: off } });
  const { response } = await connect(scene.path('here', '/v1/responses'), {
    'sec-websocket-protocol': `openai-insecure-api-key.${KEY['headgate-key']}, realtime`,
  });
  expect(response.headers.get('sec-websocket-protocol')).toBe('realtime');
});
