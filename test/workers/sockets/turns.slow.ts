// Responses over WebSocket: each response.create is a call of its own, with a slot from its message to the event that ends
// its answer. The upstream counts turns by itself, and refuses one too many.
import { expect, it } from 'vitest';
import { COUNTING, untilCounted } from '../metering/scene.ts';
import { NO_COOLDOWN, pool, resetPool, untilStatus } from '../support/pool.ts';
import { admin, change, configure, env, until } from '../support/worker.ts';
import { connect, create, endOf, untilEvent, upgrade, keyHash } from './client.ts';
import { HELD, RESPONSES, checkSocketsOften, turnConfig, strict, useTurns } from './scene.ts';

useTurns();

/** Told at the end of the time, or before it where it would not do. */
const LATE = expect.stringMatching(/^(?:queue_timeout|infeasible)$/) as string;

it('a connection takes no slot, a turn has one until its answer ends', async () => {
  const client = await connect(RESPONSES);
  await untilStatus('turns', { in_use: 0 });
  client.send(create(HELD));
  await untilEvent(client, 'response.created');
  await untilStatus('turns', { in_use: 1 });
  expect(await pool('turns').leases()).toEqual([expect.objectContaining({ kind: 'turn' })]);
  await strict.resume();
  await untilEvent(client, 'response.completed');
  await untilStatus('turns', { in_use: 0 });
  client.send(create('again'));
  await untilEvent(client, 'response.completed', 2);
  const { turns, sockets } = await strict.stats();
  expect(turns).toMatchObject({ total: 2, peak: 1, rejected429: 0 });
  expect(sockets[0]?.messages).toEqual([
    { text: JSON.stringify(create(HELD)) },
    { text: JSON.stringify(create('again')) },
  ]);
});

it('turns of many connections wait for one another', async () => {
  const clients = await Promise.all(Array.from({ length: 5 }, () => connect(RESPONSES)));
  for (const client of clients) client.send(create('hello'));
  await Promise.all(clients.map((client) => untilEvent(client, 'response.completed')));
  expect((await strict.stats()).turns).toMatchObject({ total: 5, peak: 1, rejected429: 0 });
});

it('messages behind a turn that waits keep their order, those of another stream pass', async () => {
  const other = await connect(RESPONSES);
  other.send(create(HELD));
  await untilEvent(other, 'response.created');
  const client = await connect(RESPONSES);
  client.send(create('first'));
  await untilStatus('turns', { queued: 1 });
  client.send({ type: 'x.behind' });
  client.send({ type: 'x.beside', stream_id: 's' });
  await until(async () => {
    const [, socket] = (await strict.stats()).sockets;
    expect(socket?.messages).toEqual([{ text: '{"type":"x.beside","stream_id":"s"}' }]);
  });
  await strict.resume();
  await untilEvent(client, 'response.completed');
  await until(async () => {
    const [, socket] = (await strict.stats()).sockets;
    expect(socket?.messages.map((message) => JSON.stringify(message))).toEqual([
      expect.stringContaining('x.beside'),
      expect.stringContaining('first'),
      expect.stringContaining('x.behind'),
    ]);
  });
});

it.each([
  ['large ones', 5, `{"x":"${'x'.repeat(262_144)}"}`],
  ['empty ones', 10_000, '{}'],
])(
  'more than 1 MiB behind a turn that waits closes its connection with 1009: %s',
  async (_, count, message) => {
    const other = await connect(RESPONSES);
    other.send(create(HELD));
    await untilEvent(other, 'response.created');
    const client = await connect(RESPONSES);
    client.send(create('first'));
    for (let sent = 0; sent < count; sent += 1) client.send(message);
    expect(await endOf(client)).toMatchObject({ code: 1009, reason: 'headgate: overfull' });
    await untilStatus('turns', { queued: 0 });
  },
);

it('a turn that is refused gets an error event, and its connection stays', async () => {
  await configure(turnConfig({ on_saturated: 'reject' }));
  const other = await connect(RESPONSES);
  other.send(create(HELD));
  await untilEvent(other, 'response.created');
  const client = await connect(RESPONSES);
  client.send(create('refused', { stream_id: 's' }));
  await untilEvent(client, 'error');
  expect(client.events()).toEqual([
    expect.objectContaining({
      type: 'error',
      status: 429,
      stream_id: 's',
      code: 'busy',
      error: expect.objectContaining({ type: 'rate_limit_error', code: 'busy' }),
      headers: expect.objectContaining({
        'headgate-reason': 'busy',
        'retry-after': expect.stringMatching(/^\d+$/),
      }),
    }),
  ]);
  await strict.resume();
  await untilEvent(other, 'response.completed');
  client.send(create('served'));
  await untilEvent(client, 'response.completed');
});

it.each([
  ['with escapes', String.raw`{"type":"response\u002ecreate","model":"gpt-5","input":"x"}`],
  ['as bytes', new TextEncoder().encode(JSON.stringify(create('x'))).buffer],
])('a turn waits for its slot however its message is written: %s', async (_, message) => {
  const other = await connect(RESPONSES);
  other.send(create(HELD));
  await untilEvent(other, 'response.created');
  const client = await connect(RESPONSES);
  client.send(message);
  await untilStatus('turns', { queued: 1 });
  await strict.resume();
  await untilEvent(client, 'response.completed');
  expect((await strict.stats()).turns).toMatchObject({ total: 2, rejected429: 0 });
});

it('what goes on from the response before waits for its slot as a request does', async () => {
  await configure(turnConfig({ name: 'going-on', match: { upstreams: ['x'], models: ['gpt-5'] } }));
  const client = await connect(RESPONSES);
  client.send(create('first'));
  await untilEvent(client, 'response.completed');
  const other = await connect(RESPONSES);
  other.send(create(HELD));
  await untilEvent(other, 'response.created');
  client.send({ type: 'response.append', input: 'x' });
  await untilStatus('going-on', { in_use: 1, queued: 1 });
  expect((await strict.stats()).sockets[0]?.messages).toHaveLength(1);
});

it('a message that continues a response must name its model once the connection has used several', async () => {
  const client = await connect(RESPONSES);
  client.send(create('first'));
  await untilEvent(client, 'response.completed');
  client.send(create('second', { model: 'another' }));
  await untilEvent(client, 'response.completed', 2);
  client.send({ type: 'response.append', input: 'x' });
  await untilEvent(client, 'error');
  const [error] = client.events().filter(({ type }) => type === 'error');
  expect(error).toMatchObject({ status: 400, code: 'body_unreadable' });
  expect((await strict.stats()).sockets[0]?.messages).toHaveLength(2);
  client.send({ type: 'response.append', model: 'another', input: 'x' });
  await until(async () => expect((await strict.stats()).sockets[0]?.messages).toHaveLength(3));
});

it('a message that the upstream may read in another way is refused, and its connection stays', async () => {
  const client = await connect(RESPONSES);
  client.send('{"type":"response.create","type":"x","model":"gpt-5"}');
  await untilEvent(client, 'error');
  expect(client.events()[0]).toMatchObject({ status: 400, code: 'body_unreadable' });
  client.send(create('right'));
  await untilEvent(client, 'response.completed');
  expect((await strict.stats()).sockets[0]?.messages).toHaveLength(1);
});

it.each([
  ['a list of requests', '[{"type":"response.create","model":"gpt-5"}]', 'one JSON object'],
  ['a list', '[1]', 'one JSON object'],
  ['no JSON', '//{"type":"response.create","model":"gpt-5"}', 'one JSON object'],
  ['bytes that are not UTF-8', new Uint8Array([0x7b, 0xff, 0x7d]).buffer, 'one JSON object'],
  ['a request in another case', '{"type":"Response.Create","model":"gpt-5"}', 'one JSON object'],
  [
    'a steer without a response',
    '{"type":"response.steer","input":"go on"}',
    'no response is running',
  ],
  [
    'a steer on another stream',
    '{"type":"response.steer","stream_id":"s"}',
    'no response is running',
  ],
])('%s does not reach the upstream', async (_, message, why) => {
  const client = await connect(RESPONSES);
  client.send(message);
  const error = await untilEvent(client, 'error');
  expect(error).toMatchObject({ status: 400, code: 'body_unreadable' });
  expect(JSON.stringify(error)).toContain(why);
  client.send(create('right'));
  await untilEvent(client, 'response.completed');
  expect((await strict.stats()).sockets[0]?.messageCount).toBe(1);
});

it('headgate-max-wait holds for each turn', async () => {
  const other = await connect(RESPONSES);
  other.send(create(HELD));
  await untilEvent(other, 'response.created');
  const client = await connect(RESPONSES, { 'headgate-max-wait': '50ms' });
  client.send(create('late'));
  await untilEvent(client, 'error');
  expect(client.events()[0]).toMatchObject({ status: 429, code: LATE });
});

it('a turn that the upstream refuses is tried again before its client hears of it', async () => {
  await strict.failNext('concurrency', 1);
  const client = await connect(RESPONSES);
  client.send(create('again'));
  await untilEvent(client, 'response.completed');
  expect(client.events().some(({ type }) => type === 'error')).toBe(false);
  expect((await strict.stats()).turns).toMatchObject({ total: 2, rejected429: 1 });
});

it("an error that is the client's own passes on, and gives the slot back", async () => {
  const client = await connect(RESPONSES);
  client.send(create('[[strict status=400]]'));
  await untilEvent(client, 'error');
  await untilStatus('turns', { in_use: 0 });
  client.send(create('right'));
  expect(await untilEvent(client, 'response.completed')).toBeDefined();
});

it.each([
  ['x.unknown', 0],
  ['x.unknown', 1],
  ['response.steer', 1],
])(
  'an error about something else that the client has sent does not give the slot of its turn back: %s, %d events in',
  async (type, chunks) => {
    const client = await connect(RESPONSES);
    if (chunks === 0) client.send({ type });
    client.send(create(HELD));
    await untilEvent(client, 'response.created');
    if (chunks > 0) client.send({ type });
    await untilEvent(client, 'error');
    const other = await connect(RESPONSES);
    other.send(create('next'));
    await untilStatus('turns', { in_use: 1, queued: 1 });
    await strict.resume();
    await untilEvent(client, 'response.completed');
    await untilEvent(other, 'response.completed');
    expect((await strict.stats()).turns).toMatchObject({ total: 2, rejected429: 0 });
  },
);

it('an error of a turn is its own again once an answer has begun behind what else was sent', async () => {
  const client = await connect(RESPONSES);
  client.send({ type: 'x.unknown' });
  await untilEvent(client, 'error');
  client.send(create('hello'));
  await untilEvent(client, 'response.completed');
  client.send(create('[[strict status=400]]'));
  await untilEvent(client, 'error', 2);
  client.send(create('next'));
  await untilEvent(client, 'response.completed', 2);
  expect((await strict.stats()).turns.total).toBe(3);
});

it('a turn that the upstream has no room for is tried again, whatever else was sent', async () => {
  const client = await connect(RESPONSES);
  client.send({ type: 'x.unknown' });
  await untilEvent(client, 'error');
  await strict.failNext('concurrency', 1);
  client.send(create('again'));
  await untilEvent(client, 'response.completed');
  expect(client.events().filter(({ type }) => type === 'error')).toHaveLength(1);
});

it('a turn whose answer does not begin behind an error that may be about something else ends with its connection', async () => {
  const client = await connect(RESPONSES);
  client.send({ type: 'x.unknown' });
  await untilEvent(client, 'error');
  client.send(create('[[strict status=400]]'));
  expect(await endOf(client)).toMatchObject({ code: 1008, reason: 'headgate: idle' });
  await untilStatus('turns', { in_use: 0 });
}, 30_000);

it.each([true, false])(
  'what an upstream says behind an error arrives behind it, its close too: %s',
  async (closes) => {
    const client = await connect(RESPONSES);
    client.send(create(HELD));
    await untilEvent(client, 'response.created');
    const said = [
      { type: 'error', code: 'server_error' },
      { type: 'response.failed' },
      { type: 'x' },
    ];
    const texts = said.map((event) => JSON.stringify(event));
    await strict.act({ do: 'send-raw', base64: rawFrames(said, closes).toBase64() });
    await untilEvent(client, 'x');
    // The first words of the answer may come before it yet.
    expect(client.frames.slice(client.frames.indexOf(texts[0] ?? ''))).toEqual(texts);
    await untilStatus('turns', { in_use: 0 });
    const end = closes ? await endOf(client) : client.closed();
    expect(end?.code).toBe(closes ? 1008 : undefined);
  },
);

it('an answer that is incomplete or fails gives its slot back', async () => {
  const client = await connect(RESPONSES);
  client.send(create('[[strict incomplete=true]]'));
  await untilEvent(client, 'response.incomplete');
  client.send(create('[[strict error-after-chunks=1]]'));
  await until(() =>
    expect(client.events().some(({ type }) => type === 'error' || type === 'response.failed')).toBe(
      true,
    ),
  );
  await untilStatus('turns', { in_use: 0 });
});

it.each([
  ['rate_limit_exceeded', 'unknown'],
  ['server_is_overloaded', 'overload'],
  ['server_error', 'error'],
])(
  'an answer that fails after it has begun counts as the refusal of its code: %s',
  async (code, kind) => {
    const { [kind]: before = 0 }: Record<string, number> = (await pool('turns').status())
      .refusals_total;
    const client = await connect(RESPONSES);
    client.send(create(HELD));
    await untilEvent(client, 'response.created');
    const failed = { type: 'response.failed', response: { status: 'failed', error: { code } } };
    await strict.act({ do: 'send-raw', base64: rawFrames([failed], false).toBase64() });
    await untilEvent(client, 'response.failed');
    await until(async () => {
      const { in_use: inUse, refusals_total: refusals } = await pool('turns').status();
      expect([inUse, refusals]).toEqual([0, expect.objectContaining({ [kind]: before + 1 })]);
    });
  },
);

it('a turn that a limit of the upstream stops is refused with 429, the message of the upstream and the time', async () => {
  const client = await connect(RESPONSES);
  await strict.failNext('long_window', 1);
  client.send(create('first'));
  await untilEvent(client, 'error');
  await untilStatus('turns', { in_use: 0, paused_until: expect.any(String) });
  const { pause } = await pool('turns').status();
  client.send(create('second'));
  await untilEvent(client, 'error', 2);
  const [, refusal] = client.events().filter(({ type }) => type === 'error');
  expect(refusal).toMatchObject({
    status: 429,
    code: 'rate_limit_exceeded',
    message: expect.stringContaining(pause?.message ?? 'none'),
    error: { type: 'rate_limit_error', code: 'rate_limit_exceeded' },
    headers: {
      'headgate-reason': 'upstream_limited',
      'retry-after': expect.stringMatching(/^\d{4,}$/),
      'x-should-retry': 'false',
    },
  });
  expect((await strict.stats()).turns.total).toBe(1);
  await pool('turns').relearn();
});

it('a turn of the flex tier that is refused stops no turn of the standard tier', async () => {
  const client = await connect(RESPONSES);
  client.send(create('before'));
  await untilEvent(client, 'response.completed');
  await strict.failNext('long_window', 1);
  client.send(create('flex', { service_tier: 'flex' }));
  await untilEvent(client, 'error');
  client.send(create('standard'));
  await untilEvent(client, 'response.completed', 2);
  client.send(create('flex again', { service_tier: 'flex' }));
  await untilEvent(client, 'error', 2);
  expect((await strict.stats()).turns.total).toBe(3);
  await pool('turns').relearn();
});

it('a client that goes ends its turn, and the slot is free', async () => {
  const client = await connect(RESPONSES);
  client.send(create(HELD));
  await untilEvent(client, 'response.created');
  client.close(1001, 'bye');
  await untilStatus('turns', { in_use: 0 });
  const { sockets } = await strict.stats();
  expect(sockets[0]).toMatchObject({ closeCode: 1001, closeReason: 'bye' });
});

it('a client that goes while its turn waits leaves the queue', async () => {
  const other = await connect(RESPONSES);
  other.send(create(HELD));
  await untilEvent(other, 'response.created');
  const client = await connect(RESPONSES);
  client.send(create('never'));
  await untilStatus('turns', { queued: 1 });
  client.close(1000);
  await untilStatus('turns', { queued: 0 });
  expect((await strict.stats()).turns.total).toBe(1);
});

it('an upstream that cuts in the middle of a turn ends the connection, and the slot is free', async () => {
  const client = await connect(RESPONSES);
  client.send(create(HELD));
  await untilEvent(client, 'response.created');
  await strict.act({ do: 'cut' });
  expect(await endOf(client)).toMatchObject({ code: 1011 });
});

it.each(['the client disconnects', 'the upstream ends it'])(
  'a turn whose answer is a background run hands its slot to the run when %s',
  async (how) => {
    const id = `run_${how.length}`;
    const client = await connect(RESPONSES);
    client.send(create(HELD));
    await untilEvent(client, 'response.created');
    const response = { id, status: 'queued', background: true };
    await strict.act({ do: 'send', text: JSON.stringify({ type: 'response.queued', response }) });
    await untilEvent(client, 'response.queued');
    if (how === 'the client disconnects') client.close(1000);
    else await strict.act({ do: 'close', code: 1000 });
    await until(async () =>
      expect(await pool('turns').leases()).toEqual([expect.objectContaining({ kind: 'run' })]),
    );
    const other = await connect(RESPONSES);
    other.send(create('next'));
    await untilStatus('turns', { in_use: 1, queued: 1 });
    await env.RUNS?.getByName('x').end(id, 'success');
    await untilEvent(other, 'response.completed');
  },
);

it('a run that the upstream reports after its client has disconnected holds the slot', async () => {
  const client = await connect(RESPONSES);
  client.send(create(HELD));
  await untilEvent(client, 'response.created');
  // The upstream does not notice the close and continues to send.
  await strict.act({ do: 'stall' });
  client.close(1000);
  const response = { id: 'run_late', status: 'queued', background: true };
  await strict.act({ do: 'send', text: JSON.stringify({ type: 'response.queued', response }) });
  await until(async () =>
    expect(await pool('turns').leases()).toEqual([expect.objectContaining({ kind: 'run' })]),
  );
  await env.RUNS?.getByName('x').end('run_late', 'success');
  await untilStatus('turns', { in_use: 0 });
});

it('a turn whose run has ended, or whose lease is revoked, hands over no slot', async () => {
  const say = (type: string, response: object): Promise<void> =>
    strict.act({ do: 'send', text: JSON.stringify({ type, response }) });
  const run = { id: 'run_over', status: 'queued', background: true };
  const client = await connect(RESPONSES);
  client.send(create(HELD));
  await untilEvent(client, 'response.created');
  await say('response.queued', run);
  await say('response.completed', { ...run, status: 'completed' });
  await untilStatus('turns', { in_use: 0 });
  await strict.resume();
  const second = await connect(RESPONSES);
  second.send(create(HELD));
  await untilEvent(second, 'response.created');
  await say('response.queued', run);
  await untilEvent(second, 'response.queued');
  const [lease] = await pool('turns').leases();
  await admin('DELETE', `/groups/turns/leases/${lease?.id ?? ''}`);
  expect(await endOf(second)).toMatchObject({ reason: 'headgate: revoked' });
  await untilStatus('turns', { in_use: 0 });
});

it('an operator who revokes the lease of a turn closes its connection with 1008', async () => {
  const client = await connect(RESPONSES);
  client.send(create(HELD));
  await untilEvent(client, 'response.created');
  const [lease] = await pool('turns').leases();
  await admin('DELETE', `/groups/turns/leases/${lease?.id ?? ''}`);
  expect(await endOf(client)).toMatchObject({ code: 1008, reason: 'headgate: revoked' });
});

it('a turn that takes too long, or is silent for too long, closes its connection with 1008', async () => {
  await configure(turnConfig({ holds: { ...NO_COOLDOWN, max_hold_ms: 1_000 } }));
  const long = await connect(RESPONSES);
  long.send(create(HELD));
  expect(await endOf(long)).toMatchObject({ code: 1008, reason: 'headgate: max_hold' });
  await configure(turnConfig({ holds: { ...NO_COOLDOWN, idle_ms: 1_000 } }));
  const silent = await connect(RESPONSES);
  silent.send(create(HELD));
  expect(await endOf(silent)).toMatchObject({ code: 1008, reason: 'headgate: idle' });
});

it('a group that is drained refuses new turns, and those that run go on', async () => {
  const client = await connect(RESPONSES);
  client.send(create(HELD));
  await untilEvent(client, 'response.created');
  await change('POST', '/groups/turns/drain');
  const other = await connect(RESPONSES);
  other.send(create('new'));
  await untilEvent(other, 'error');
  expect(other.events()[0]).toMatchObject({ code: 'draining' });
  await strict.resume();
  await untilEvent(client, 'response.completed');
});

it('a turn keeps its slot when the object of its group is reset', async () => {
  const client = await connect(RESPONSES);
  client.send(create(HELD));
  await untilEvent(client, 'response.created');
  await resetPool('turns');
  const other = await connect(RESPONSES);
  other.send(create('next'));
  await strict.resume();
  await untilEvent(client, 'response.completed');
  expect(await untilEvent(other, 'response.completed')).toBeDefined();
});

it('each turn goes by its own model', async () => {
  await configure(turnConfig({ name: 'small', match: { upstreams: ['x'], models: ['small'] } }));
  const client = await connect(RESPONSES);
  client.send(create(HELD, { model: 'small' }));
  await untilEvent(client, 'response.created');
  await untilStatus('small', { in_use: 1 });
  await strict.resume();
  expect(await untilEvent(client, 'response.completed')).toBeDefined();
  await untilStatus('small', { in_use: 0 });
});

it('a turn takes a slot of a group that names its path, as over HTTP', async () => {
  await configure(
    turnConfig({ name: 'named', match: { upstreams: ['x'], paths: ['/v1/responses'] } }),
  );
  const client = await connect(RESPONSES);
  client.send(create(HELD));
  await untilEvent(client, 'response.created');
  await untilStatus('named', { in_use: 1 });
  await strict.resume();
  expect(await untilEvent(client, 'response.completed')).toBeDefined();
  await untilStatus('named', { in_use: 0 });
});

it('a gateway key opens the connection, and the key of the operator goes out', async () => {
  const secret = { auth: { secret: 'UPSTREAM_TEST_KEY' } };
  const keys = [{ id: 'k1', hash: await keyHash('hg_turns_key_1') }];
  await configure({ ...turnConfig({}, secret), keys });
  const client = await connect(RESPONSES, { authorization: 'Bearer hg_turns_key_1' });
  client.send(create('hello'));
  await untilEvent(client, 'response.completed');
  const [socket] = (await strict.stats()).sockets;
  expect(socket?.key).toBe('operator-secret-4711');
  await configure({ ...turnConfig({}, secret), keys: [{ id: 'k2', hash: await keyHash('hg_x') }] });
  client.send(create('revoked'));
  expect(await endOf(client)).toMatchObject({ code: 1008, reason: 'headgate: key_invalid' });
  expect((await strict.stats()).turns.total).toBe(1);
});

it.each<[string, object, number, string]>([
  ['is disabled', { enabled: false }, 1008, 'upstream_closed'],
  ['speaks no turns any more', { websocket: 'session' }, 1008, 'upstream_closed'],
  ['has moved', { base_url: 'https://moved.test' }, 1012, 'restart'],
  ['has a key of the operator', { auth: { secret: 'UPSTREAM_TEST_KEY' } }, 1008, 'key_forbidden'],
])(
  'a connection between two turns ends when its upstream %s',
  async (_, upstream, code, reason) => {
    checkSocketsOften();
    const client = await connect(RESPONSES, { authorization: 'Bearer sk-mine' });
    await configure(turnConfig({ match: { base_urls: ['https://moved.test'] } }, upstream));
    expect(await endOf(client)).toMatchObject({ code, reason: `headgate: ${reason}` });
  },
);

it('a turn runs to its end before its connection is replaced', async () => {
  const client = await connect(RESPONSES);
  client.send(create(HELD));
  await untilEvent(client, 'response.created');
  const idle = await connect(RESPONSES);
  await configure(turnConfig({}, { base_url: `${strict.url}/moved` }));
  expect(await endOf(idle)).toMatchObject({ reason: 'headgate: restart' });
  expect(client.closed()).toBeNull();
  await strict.resume();
  await untilEvent(client, 'response.completed');
  expect(await endOf(client)).toMatchObject({ reason: 'headgate: restart' });
});

it.each(['"models":["big"]', '"Model":"big"', '"response":{"model":"big"}'])(
  'a message that an upstream may take for another model is refused where a key goes by it: %s',
  async (field) => {
    const secret = { auth: { secret: 'UPSTREAM_TEST_KEY' } };
    const keys = [{ id: 'k1', hash: await keyHash('hg_turns_key_1'), groups: ['small'] }];
    const match = { upstreams: ['x'], models: ['small'] };
    await configure({ ...turnConfig({ name: 'small', match }, secret), keys });
    const client = await connect(RESPONSES, { 'headgate-key': 'hg_turns_key_1' });
    client.send(`{"type":"response.create","model":"small","input":"x",${field}}`);
    await untilEvent(client, 'error');
    expect(client.events()[0]).toMatchObject({ status: 400, code: 'body_unreadable' });
    expect((await strict.stats()).turns.total).toBe(0);
  },
);

it.each([
  ['that is not known to speak it', { websocket: 'auto' }],
  ['that is closed to it', { websocket: 'off' }],
])('an upstream %s is a 426', async (_, upstream) => {
  await configure(turnConfig({}, upstream));
  const response = await upgrade(RESPONSES);
  expect(response.status).toBe(426);
  expect(response.headers.get('headgate-reason')).toBe('http_required');
  await response.text();
  expect((await strict.stats()).sockets).toHaveLength(0);
});

it.each([200, 404, 405, 501])('an upstream that answers %d is a 426', async (status) => {
  await strict.configure({ status });
  const response = await upgrade(RESPONSES);
  expect(response.status).toBe(426);
  await response.text();
});

it("another answer of the upstream is the caller's", async () => {
  await strict.configure({ status: 401 });
  const response = await upgrade(RESPONSES);
  expect(response.status).toBe(401);
  expect(response.headers.get('headgate-reason')).toBeNull();
  await response.text();
});

it('what an answer used is counted, as the event that ends it reports it', async () => {
  await strict.configure({ inputTokens: 70, outputTokens: 11 });
  await configure(turnConfig({ name: 'counted', limits: { max_concurrency: 1, ...COUNTING } }));
  const client = await connect(RESPONSES);
  client.send(create('hello'));
  expect(await untilEvent(client, 'response.completed')).toBeDefined();
  await untilCounted('counted', { requests: 1, inputTokens: 70, outputTokens: 11 });
});

/** Messages as a server writes them, so that they come all at once, with a close behind them. */
function rawFrames(events: readonly object[], closes: boolean): Uint8Array {
  const texts = events.map((event) => new TextEncoder().encode(JSON.stringify(event)));
  const close = closes ? [0x88, 2, 1008 >> 8, 1008 & 0xff] : [];
  return new Uint8Array([...texts.flatMap((text) => [0x81, text.length, ...text]), ...close]);
}
