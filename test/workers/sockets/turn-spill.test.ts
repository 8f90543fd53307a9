// Turns spill as calls do, but only to upstreams that serve turns. The upstreams count their turns themselves, and accept
// one at a time.
import { afterAll, afterEach, expect, it } from 'vitest';
import { nothingLeaks, untilStatus } from '../support/pool.ts';
import { call, until } from '../support/worker.ts';
import { KEY, newScene, pathTo, type SpillScene } from '../spill/scene.ts';
import { connect, create, untilEvent, type TestSocketClient } from './client.ts';
import { endTurns, HELD } from './scene.ts';

const TURNS = { websocket: 'turns' } as const;
const SETTINGS = { turnLimit: 1, keepsRequests: true } as const;

let scene: SpillScene;

async function begin(setup: Partial<Parameters<typeof newScene>[0]> = {}): Promise<void> {
  const upstreams = { a: TURNS, b: TURNS, c: TURNS };
  const spill = { spill_to: ['b', 'c'], after_ms: 0 } as const;
  scene = await newScene({ settings: SETTINGS, upstreams, spill, ...setup });
}

afterEach(async () => {
  await endTurns([scene.a, scene.b, scene.c]);
  for (const letter of ['a', 'b', 'c'] as const) {
    await untilStatus(scene.name(letter), { in_use: 0, queued: 0 });
  }
});
afterAll(nothingLeaks);

function open(): Promise<TestSocketClient> {
  return connect(pathTo(scene, 'a', '/v1/responses'), KEY);
}

/** Holds the slot of `a` until it is resumed. */
async function holdA(): Promise<void> {
  const holder = await open();
  holder.send(create(HELD));
  await untilEvent(holder, 'response.created');
}

async function modelsAt(letter: 'a' | 'b' | 'c'): Promise<readonly (string | null)[]> {
  return (await scene[letter].stats()).arrivals.map(({ model }) => model);
}

it('a turn without room spills under the name of its model there, and only for that turn', async () => {
  await begin({ spill: { spill_to: [{ upstream: 'b', model: 'gpt-b' }], after_ms: 0 } });
  await holdA();
  const client = await open();
  expect((await scene.b.stats()).sockets).toHaveLength(0);
  client.send(create(HELD));
  await untilEvent(client, 'response.created');
  await untilStatus(scene.name('b'), { in_use: 1 });
  expect(await modelsAt('b')).toEqual(['gpt-b']);
  await Promise.all([scene.a.resume(), scene.b.resume()]);
  await untilEvent(client, 'response.completed');
  await untilStatus(scene.name('a'), { in_use: 0 });
  client.send(create('back'));
  await untilEvent(client, 'response.completed', 2);
  expect(await modelsAt('a')).toEqual(['gpt-5', 'gpt-5']);
});

it('a turn that its upstream refuses for good spills, and its client sees nothing of it', async () => {
  await begin();
  const client = await open();
  await scene.a.failNext('quota');
  client.send(create('moved'));
  await untilEvent(client, 'response.completed');
  expect(client.events().map(({ type }) => type)).not.toContain('error');
  expect([await modelsAt('a'), await modelsAt('b')]).toEqual([['gpt-5'], ['gpt-5']]);
});

it('an upstream that cuts a turn before its answer loses it to the next one', async () => {
  await begin();
  const client = await open();
  await scene.a.failNext('reset');
  client.send(create('moved'));
  await untilEvent(client, 'response.completed');
  expect(client.closed()).toBeNull();
  expect(await modelsAt('b')).toEqual(['gpt-5']);
});

it('an upstream that serves only HTTP gets no turn', async () => {
  await begin({ upstreams: { a: TURNS, b: { websocket: 'off' }, c: TURNS } });
  await holdA();
  const client = await open();
  client.send(create('spilled'));
  await untilEvent(client, 'response.completed');
  expect([await modelsAt('b'), await modelsAt('c')]).toEqual([[], ['gpt-5']]);
});

it('the response of a turn on `/v1` is found at the upstream that it spilled to', async () => {
  await begin({ upstreams: { a: TURNS, b: { ...TURNS, allow: ['responses'] }, c: TURNS } });
  await holdA();
  const client = await connect('/v1/responses', {
    ...KEY,
    'headgate-upstream': scene.name('a'),
  });
  client.send(create(HELD));
  const { response: unstored } = (await untilEvent(client, 'response.created')) ?? {};
  const response = { id: `resp_of_${scene.name('b')}` };
  await scene.b.act({ do: 'send', text: JSON.stringify({ type: 'response.created', response }) });
  const reasonAt = async ({ id }: { readonly id?: string }): Promise<string | null> => {
    const found = await call(`/v1/responses/${id ?? ''}`, { headers: KEY });
    await found.text();
    return found.headers.get('headgate-reason');
  };
  await until(async () => expect(await reasonAt(response)).toBeNull());
  expect(await reasonAt(unstored as object)).toBe('upstream_unknown');
});

it('a turn that continues a response returns to the upstream that it spilled to', async () => {
  await begin({ spill: { spill_to: [{ upstream: 'b', model: 'gpt-b' }], after_ms: 0 } });
  await holdA();
  const client = await open();
  client.send(create('spilled'));
  const { response } = (await untilEvent(client, 'response.completed')) ?? {};
  await scene.a.resume();
  await untilStatus(scene.name('a'), { in_use: 0 });
  const { id } = response as { readonly id: string };
  client.send(create('bound', { previous_response_id: id }));
  await untilEvent(client, 'response.completed', 2);
  expect([await modelsAt('a'), await modelsAt('b')]).toEqual([['gpt-5'], ['gpt-b', 'gpt-b']]);
});
