// What ends a session while it runs: its key, its groups and its upstream are looked at as long as it is open.
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { NO_COOLDOWN, nothingLeaks, untilStatus } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { configure, env, until } from '../support/worker.ts';
import { closeAll, connect, endOf, keyHash, untilEvent } from './client.ts';

let strict: Strict;
const REALTIME = '/x/v1/realtime?model=gpt-realtime';

function config(fields: object = {}, upstream: object = {}): ConfigInput {
  const group = { name: 'rt', match: { upstreams: ['x'] }, limits: { max_concurrency: 1 } };
  return {
    upstreams: [{ id: 'x', base_url: strict.url, ...upstream }],
    groups: [{ ...group, holds: NO_COOLDOWN, ...fields }],
  };
}

beforeEach(async () => {
  strict = await strictScope('sessions', { sessionLimit: 1, keepsRequests: true });
  await configure(config());
});

afterEach(async () => {
  closeAll();
  await untilStatus('rt', { in_use: 0, queued: 0 });
  const { sessions } = await strict.stats();
  if (sessions.peak > 1) throw new Error(`${sessions.peak} sessions at once`);
});

afterAll(nothingLeaks);

const KEY = 'hg_realtime_key_1';

/** A configuration with the operator's key, a key that may use the group, and another group that it may not. */
async function closedConfig({
  group = {},
  upstream = {},
  key = {},
}: Readonly<Record<string, object>> = {}): Promise<ConfigInput> {
  const { upstreams, groups } = config(group, {
    auth: { secret: 'UPSTREAM_TEST_KEY' },
    ...upstream,
  });
  const other = { name: 'other', match: { upstreams: ['openai'] } };
  const all = [...(groups ?? []), other];
  const keys = [{ id: 'k1', hash: await keyHash(KEY), groups: ['rt'], ...key }];
  return { upstreams, groups: all, keys } as ConfigInput;
}

it.each<[string, Parameters<typeof closedConfig>[0], number, string]>([
  ['its key loses the group', { key: { groups: ['other'] } }, 1008, 'key_forbidden'],
  ['its key has expired', { key: { expires_at: '2020-01-01T00:00:00Z' } }, 1008, 'key_invalid'],
  [
    'its upstream is disabled',
    { group: { match: { base_urls: ['https://x.test'] } }, upstream: { enabled: false } },
    1008,
    'upstream_closed',
  ],
  ['its upstream serves no WebSocket', { upstream: { websocket: 'off' } }, 1008, 'upstream_closed'],
  ['its upstream has moved', { upstream: { base_url: 'https://moved.test' } }, 1012, 'restart'],
  [
    'its upstream has another key',
    { upstream: { auth: { secret: 'UPSTREAM_OTHER_KEY' } } },
    1012,
    'restart',
  ],
  [
    'its group is for something else',
    { group: { match: { upstreams: ['x'], operations: ['chat'] } }, key: { groups: [] } },
    1012,
    'group_changed',
  ],
])('a session ends when %s', async (_, changed, code, reason) => {
  Object.assign(env, { UPSTREAM_OTHER_KEY: 'operator-secret-4713' });
  await configure(await closedConfig());
  const client = await connect(REALTIME, { 'headgate-key': KEY });
  await configure(await closedConfig(changed));
  expect(await endOf(client)).toMatchObject({ code, reason: `headgate: ${reason}` });
});

it('a session ends when the group whose slot it holds is removed', async () => {
  const client = await connect(REALTIME);
  await configure({ ...config(), groups: [] });
  expect(await endOf(client)).toMatchObject({ code: 1012, reason: 'headgate: group_changed' });
});

it('a change ends the connection that it is about, and no other', async () => {
  const turns = { websocket: 'turns' };
  const keysNow = async (groups: string[]): Promise<ConfigInput> => {
    const made = await closedConfig({ upstream: turns });
    const second = { id: 'k2', hash: await keyHash('hg_realtime_key_2'), groups };
    return { ...made, keys: [...(made.keys ?? []), second] };
  };
  await configure(await keysNow(['rt']));
  const session = await connect(REALTIME, { 'headgate-key': KEY });
  const connection = await connect('/x/v1/responses', { 'headgate-key': 'hg_realtime_key_2' });
  await configure(await keysNow(['other']));
  // It was made later, so it is looked at later.
  expect(await endOf(connection)).toMatchObject({ code: 1008, reason: 'headgate: key_forbidden' });
  session.send({ type: 'response.create' });
  await untilEvent(session, 'response.done');
  expect(session.closed()).toBeNull();
});

it.each([
  ['removed', 'k2'],
  ['replaced under its id', 'k1'],
])('a session ends with 1008 when its gateway key is %s', async (_, id) => {
  const keys = [{ id: 'k1', hash: await keyHash('hg_realtime_key_1') }];
  await configure({ ...config(), keys });
  const client = await connect(REALTIME, { 'headgate-key': 'hg_realtime_key_1' });
  await configure({ ...config(), keys: [{ id, hash: await keyHash('hg_other') }] });
  expect(await endOf(client)).toMatchObject({ code: 1008, reason: 'headgate: key_invalid' });
});

it('a session is made anew when a group goes by its model from now on', async () => {
  await configure(await closedConfig());
  const client = await connect(REALTIME, { 'headgate-key': KEY });
  const { groups = [], ...now } = await closedConfig();
  const byModel = { name: 'small', match: { upstreams: ['x'], models: ['small'] } };
  await configure({ ...now, groups: [...groups, byModel] });
  expect(await endOf(client)).toMatchObject({ code: 1012, reason: 'headgate: group_changed' });
});

it("messages of a session that goes by no model pass as they are, whatever the caller's key", async () => {
  const match = { upstreams: ['x'], paths: ['/echo'], methods: ['GET'] };
  const upstream = { websocket: 'session' };
  const key = { allow: ['other'] };
  await configure(await closedConfig({ group: { match }, upstream, key }));
  const client = await connect('/x/echo', { 'headgate-key': KEY });
  for (const message of ['[1]', 'model', new ArrayBuffer(3)]) client.send(message);
  await until(() => expect(client.frames).toEqual(['[1]', 'model', new ArrayBuffer(3)]));
  client.close(1000);
});
