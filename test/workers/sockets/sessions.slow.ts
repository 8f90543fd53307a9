// A session over WebSocket holds a slot from the upgrade to the close: the upstream counts sessions by itself, and refuses
// one too many.
import { expect, it } from 'vitest';
import { COUNTING, untilCounted } from '../metering/scene.ts';
import { NO_COOLDOWN, pool, resetPool, untilStatus } from '../support/pool.ts';
import { admin, change, configure, until } from '../support/worker.ts';
import { connect, endOf, untilEvent, upgrade, keyHash } from './client.ts';
import { REALTIME, checkSocketsOften, sessionConfig, strict, useSessions } from './scene.ts';

useSessions();

it('a session holds its slot until it is closed, and the next one waits for it', async () => {
  const first = await connect(REALTIME, { authorization: 'Bearer k' });
  expect(first.response.headers.get('headgate-groups')).toBe('rt');
  await untilStatus('rt', { in_use: 1 });
  expect(await pool('rt').leases()).toEqual([expect.objectContaining({ kind: 'session' })]);
  const second = connect(REALTIME, { authorization: 'Bearer k' });
  await untilStatus('rt', { in_use: 1, queued: 1 });
  first.close(1000, 'done');
  const client = await second;
  expect(await endOf(first)).toMatchObject({ code: 1000, reason: 'done' });
  expect(Number(client.response.headers.get('headgate-wait-ms'))).toBeGreaterThanOrEqual(0);
  client.close(1000);
  await untilStatus('rt', { in_use: 0, queued: 0 });
  const { sessions, sockets } = await strict.stats();
  expect(sessions).toMatchObject({ total: 2, peak: 1, rejected429: 0 });
  expect(sockets[0]).toMatchObject({ closeCode: 1000, closeReason: 'done', closedBy: 'client' });
});

it('messages pass unchanged both ways, text and bytes, and so does the subprotocol', async () => {
  await configure(sessionConfig({}, { websocket: 'session' }));
  const client = await connect('/x/echo', { 'sec-websocket-protocol': 'realtime, x.y' });
  expect(client.response.headers.get('sec-websocket-protocol')).toBe('realtime');
  const large = 'ü'.repeat(300_000);
  const bytes = crypto.getRandomValues(new Uint8Array(60_000)).buffer;
  for (const message of ['', 'hello', large, bytes, new ArrayBuffer(0)]) client.send(message);
  await until(() => expect(client.frames).toHaveLength(5));
  expect(client.frames).toEqual(['', 'hello', large, bytes, new ArrayBuffer(0)]);
  client.close();
  expect(await endOf(client)).toMatchObject({ code: 1005 });
  await untilStatus('rt', { in_use: 0 });
});

it.each([1000, 1001, 1011, 3000, 4999])('a close of the upstream passes on: %d', async (code) => {
  const client = await connect(REALTIME);
  await strict.act({ do: 'close', code, reason: 'because' });
  expect(await endOf(client)).toMatchObject({ code, reason: 'because' });
  await untilStatus('rt', { in_use: 0 });
});

it('an upstream whose connection breaks ends the session with 1011', async () => {
  const client = await connect(REALTIME);
  await strict.act({ do: 'cut' });
  expect(await endOf(client)).toMatchObject({
    code: 1011,
    reason: 'headgate: the connection to the upstream broke',
  });
  await untilStatus('rt', { in_use: 0 });
});

it('who finds no slot in time is refused at the upgrade with 429 and when to come back', async () => {
  const first = await connect(REALTIME);
  const response = await upgrade(REALTIME, { 'headgate-max-wait': '50ms' });
  expect(response.status).toBe(429);
  // Before the time is over, where it would not do.
  expect(response.headers.get('headgate-reason')).toMatch(/^(?:queue_timeout|infeasible)$/);
  expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
  await response.text();
  first.close(1000);
});

it('a session waits 10 seconds for its slot if its caller does not say', async () => {
  const first = await connect(REALTIME);
  const response = await upgrade(REALTIME);
  expect(response.status).toBe(429);
  expect(await response.text()).toMatch(/1\d{4} ms/);
  first.close(1000);
});

it('an operator who revokes the lease ends both sides with 1008', async () => {
  const client = await connect(REALTIME);
  const [lease] = await pool('rt').leases();
  await admin('DELETE', `/groups/rt/leases/${lease?.id ?? ''}`);
  expect(await endOf(client)).toMatchObject({ code: 1008, reason: 'headgate: revoked' });
  await untilStatus('rt', { in_use: 0 });
  const { sockets } = await strict.stats();
  expect(sockets[0]).toMatchObject({ closeCode: 1008, closeReason: 'headgate: revoked' });
  expect((await pool('rt').metrics()).cut_total).toMatchObject({ revoked: 1 });
});

it('a client that does not read is closed with 1013 above 4 MiB, and counted', async () => {
  // More than all sockets on the way take while the machine is busy.
  await strict.configure({ floodBytes: 96_000_000, floodMessageBytes: 65_536 });
  const { webSocket } = await upgrade(REALTIME);
  await untilStatus('rt', { in_use: 0 });
  expect((await pool('rt').metrics()).cut_total).toMatchObject({ slow_reader: 1 });
  const [socket] = (await strict.stats()).sockets;
  expect(socket).toMatchObject({ closeCode: 1013, closeReason: 'headgate: slow_reader' });
  expect(socket?.sentBytes).toBeLessThan(96_000_000);
  webSocket?.accept();
  webSocket?.close();
});

it('a session ends with 1008 when it has held its slot for too long', async () => {
  await configure(sessionConfig({ holds: { ...NO_COOLDOWN, max_hold_ms: 1_000 } }));
  const client = await connect(REALTIME);
  expect(await endOf(client)).toMatchObject({ code: 1008, reason: 'headgate: max_hold' });
  await untilStatus('rt', { in_use: 0 });
});

it('a session ends with 1008 when neither side says anything for too long', async () => {
  await configure(sessionConfig({ holds: { ...NO_COOLDOWN, idle_ms: 1_000 } }));
  const client = await connect(REALTIME);
  expect(await endOf(client)).toMatchObject({ code: 1008, reason: 'headgate: idle' });
  await untilStatus('rt', { in_use: 0 });
});

it('a group that is drained ends its sessions with 1013', async () => {
  checkSocketsOften();
  const client = await connect(REALTIME);
  await change('POST', '/groups/rt/drain');
  expect(await endOf(client)).toMatchObject({ code: 1013, reason: 'headgate: draining' });
  await untilStatus('rt', { in_use: 0 });
  const refused = await upgrade(REALTIME);
  expect(refused.headers.get('headgate-reason')).toBe('draining');
  await refused.text();
});

it('a paused group keeps an upgrade waiting', async () => {
  await configure(sessionConfig({ paused: true }));
  const waiting = connect(REALTIME);
  await untilStatus('rt', { queued: 1 });
  await change('POST', '/groups/rt/resume');
  const client = await waiting;
  expect(client.response.status).toBe(101);
});

it('a session keeps its slot when the object of its group is reset', async () => {
  const client = await connect(REALTIME);
  await resetPool('rt');
  const waiting = upgrade(REALTIME, { 'headgate-max-wait': '2s' });
  const response = await waiting;
  expect(response.status).toBe(429);
  await response.text();
  client.close(1000);
  await untilStatus('rt', { in_use: 0 });
});

it('an upgrade that the upstream refuses is tried again before anybody hears of it', async () => {
  await strict.failNext('concurrency', 1);
  const client = await connect(REALTIME);
  expect(client.response.headers.get('headgate-tries')).toBe('2');
  client.close(1000);
});

it('a refusal that does not pass is the answer to the upgrade', async () => {
  await strict.configure({ status: 401 });
  const response = await upgrade(REALTIME, { authorization: 'Bearer bad' });
  expect(response.status).toBe(401);
  expect(response.headers.get('headgate-reason')).toBeNull();
  await response.text();
  await untilStatus('rt', { in_use: 0 });
});

it('an upstream that takes the upgrade for a GET tells nothing by it', async () => {
  await configure({
    ...sessionConfig({}, { websocket: 'session', auth: { secret: 'UPSTREAM_TEST_KEY' } }),
    keys: [{ id: 'k1', hash: await keyHash('hg_realtime_key_1') }],
  });
  await strict.configure({ status: 200 });
  const response = await upgrade('/x/v1/realtime', { 'headgate-key': 'hg_realtime_key_1' });
  expect(response.status).toBe(501);
  expect(response.headers.get('headgate-reason')).toBe('websocket_unsupported');
  await response.text();
});

it.each(['/x/files', '/x/v1/chat/completions'])(
  'nothing is served over WebSocket where nobody says so: %s',
  async (path) => {
    const response = await upgrade(path);
    expect(response.status).toBe(501);
    expect(response.headers.get('headgate-reason')).toBe('websocket_unsupported');
    await response.text();
    expect((await strict.stats()).total).toBe(0);
  },
);

it('an upstream may be closed to WebSockets', async () => {
  await configure(sessionConfig({}, { websocket: 'off' }));
  const response = await upgrade(REALTIME);
  expect(response.status).toBe(501);
  await response.text();
});

it.each([
  ['the header', REALTIME, { 'headgate-key': 'hg_realtime_key_1' }],
  ['a bearer token', REALTIME, { authorization: 'Bearer hg_realtime_key_1' }],
  [
    'the subprotocol',
    REALTIME,
    { 'sec-websocket-protocol': 'realtime, openai-insecure-api-key.hg_realtime_key_1' },
  ],
  ['the query', `${REALTIME}&api-key=hg_realtime_key_1`, {}],
])(
  'the gateway key comes in %s, and the key of the operator goes out',
  async (_, path, headers) => {
    await configure({
      ...sessionConfig({}, { auth: { secret: 'UPSTREAM_TEST_KEY' } }),
      keys: [{ id: 'k1', hash: await keyHash('hg_realtime_key_1') }],
    });
    const client = await connect(path, headers as Record<string, string>);
    const { sockets } = await strict.stats();
    const [socket] = sockets;
    expect(socket?.key).toBe('operator-secret-4711');
    expect(JSON.stringify(socket)).not.toContain('hg_realtime');
    const [lease] = await pool('rt').leases();
    expect(lease?.caller).toBe('k1');
    client.close(1000);
  },
);

it('a session is counted by its model, which its query names', async () => {
  const match = { upstreams: ['x'], models: ['gpt-realtime'] };
  await configure(sessionConfig({ name: 'by-model', match }));
  const client = await connect(REALTIME);
  expect(client.response.headers.get('headgate-groups')).toBe('by-model');
  client.close(1000);
});

it('the usage of each answer and transcription of a session is counted', async () => {
  await strict.configure({ inputTokens: 70, outputTokens: 11 });
  await configure(sessionConfig({ name: 'counted', limits: { max_concurrency: 1, ...COUNTING } }));
  const client = await connect(REALTIME);
  client.send({ type: 'response.create' });
  await untilEvent(client, 'response.done');
  client.send({ type: 'response.create' });
  await untilEvent(client, 'response.done', 2);
  const type = 'conversation.item.input_audio_transcription.completed';
  const usage = { type: 'tokens', input_tokens: 9, output_tokens: 3, total_tokens: 12 };
  await strict.act({ do: 'send', text: JSON.stringify({ type, transcript: 'x', usage }) });
  await untilEvent(client, type);
  expect((await strict.stats()).sessions.total).toBe(1);
  client.close(1000);
  await untilCounted('counted', { requests: 1, inputTokens: 149, outputTokens: 25 });
});
