// Connections for turns take no slot: how many of one caller may be open, how long each may be silent between two turns,
// and how its streams share slots.
import { expect, it } from 'vitest';
import { NO_COOLDOWN, untilStatus } from '../support/pool.ts';
import { configure, until } from '../support/worker.ts';
import { connect, create, endOf, keyHash, untilEvent, upgrade } from './client.ts';
import { HELD, RESPONSES, turnConfig, strict, useTurns } from './scene.ts';

useTurns(2);

it('one caller may have 64 connections open by default, and another caller has its own maximum', async () => {
  const keys = [
    { id: 'k1', hash: await keyHash('hg_connections_1') },
    { id: 'k2', hash: await keyHash('hg_connections_2') },
  ];
  await configure({ ...turnConfig(), keys });
  const mine = { 'headgate-key': 'hg_connections_1', authorization: 'Bearer sk-mine' };
  const clients = await Promise.all(Array.from({ length: 64 }, () => connect(RESPONSES, mine)));
  const refused = await upgrade(RESPONSES, mine);
  expect(refused.status).toBe(429);
  expect(refused.headers.get('headgate-reason')).toBe('too_many_connections');
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(await refused.text()).toContain('turn_connections_each');
  await connect(RESPONSES, { ...mine, 'headgate-key': 'hg_connections_2' });
  expect((await strict.stats()).sockets).toHaveLength(65);
  const [first] = clients;
  first?.close(1000);
  await until(async () => expect((await connect(RESPONSES, mine)).closed()).toBeNull());
});

it('an upgrade that the upstream refuses takes no place', async () => {
  await configure(turnConfig({}, { turn_connections_each: 1 }));
  await strict.configure({ status: 401 });
  for (let times = 0; times < 3; times += 1) {
    const refused = await upgrade(RESPONSES);
    expect(refused.status).toBe(401);
    await refused.text();
  }
  await strict.configure({ status: null });
  await connect(RESPONSES);
  const refused = await upgrade(RESPONSES);
  expect(refused.status).toBe(429);
  await refused.text();
});

it('a connection that is silent before its first turn is closed after idle_ms', async () => {
  await configure(turnConfig({ holds: { ...NO_COOLDOWN, idle_ms: 1_000 } }));
  const client = await connect(RESPONSES);
  expect(await endOf(client)).toEqual({ code: 1008, reason: 'headgate: idle' });
});

it('a connection that is silent after a turn is closed after the idle_ms of its groups', async () => {
  const match = { upstreams: ['x'], models: ['gpt-5'] };
  await configure(
    turnConfig({ name: 'by-model', match, holds: { ...NO_COOLDOWN, idle_ms: 2_000 } }),
  );
  const client = await connect(RESPONSES);
  client.send(create('hello'));
  await untilEvent(client, 'response.completed');
  expect(client.closed()).toBeNull();
  expect(await endOf(client)).toEqual({ code: 1008, reason: 'headgate: idle' });
});

it('a queued turn does not count as silence', async () => {
  await configure(turnConfig({ holds: { ...NO_COOLDOWN, idle_ms: 1_500 } }));
  const busy = await connect(RESPONSES);
  busy.send(create(HELD));
  await untilEvent(busy, 'response.created');
  const waiting = await connect(RESPONSES);
  waiting.send(create('second'));
  await untilStatus('turns', { in_use: 1, queued: 1 });
  // The running turn is silent for too long and ends with its connection. The queued one waited as long without being closed.
  expect(await endOf(busy)).toMatchObject({ reason: 'headgate: idle' });
  await untilEvent(waiting, 'response.completed');
});

it('streams of one connection have a slot each, and run side by side where there is room', async () => {
  await configure(turnConfig({ name: 'two', limits: { max_concurrency: 2 } }));
  const client = await connect(RESPONSES);
  client.send(create(HELD, { stream_id: 'a' }));
  client.send(create(HELD, { stream_id: 'b' }));
  await untilEvent(client, 'response.created', 2);
  await untilStatus('two', { in_use: 2 });
  await strict.resume();
  await untilEvent(client, 'response.completed', 2);
  await untilStatus('two', { in_use: 0 });
  const { turns } = await strict.stats();
  expect(turns.peak).toBe(2);
});
