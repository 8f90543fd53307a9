// A running session ends after changes of its key, its groups or its upstream, which are checked while it is open.
import { expect, it } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { configure, env, until } from '../support/worker.ts';
import { connect, endOf, keyHash, untilEvent } from './client.ts';
import {
  KEY,
  REALTIME,
  checkSocketsOften,
  keyedConfig,
  sessionConfig,
  useSessions,
} from './scene.ts';

useSessions();

it.each<[string, Parameters<typeof keyedConfig>[0], number, string]>([
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
    'its group no longer matches',
    { group: { match: { upstreams: ['x'], operations: ['chat'] } }, key: { groups: [] } },
    1012,
    'group_changed',
  ],
])('a session ends when %s', async (_, changed, code, reason) => {
  checkSocketsOften();
  Object.assign(env, { UPSTREAM_OTHER_KEY: 'operator-secret-4713' });
  await configure(await keyedConfig());
  const client = await connect(REALTIME, { 'headgate-key': KEY });
  await configure(await keyedConfig(changed));
  expect(await endOf(client)).toMatchObject({ code, reason: `headgate: ${reason}` });
});

it('a session ends when the group whose slot it holds is removed', async () => {
  checkSocketsOften();
  const client = await connect(REALTIME);
  await configure({ ...sessionConfig(), groups: [] });
  expect(await endOf(client)).toMatchObject({ code: 1012, reason: 'headgate: group_changed' });
});

it('a change ends only the connection that it concerns', async () => {
  const turns = { websocket: 'turns' };
  const keysNow = async (groups: string[]): Promise<ConfigInput> => {
    const made = await keyedConfig({ upstream: turns });
    const second = { id: 'k2', hash: await keyHash('hg_realtime_key_2'), groups };
    return { ...made, keys: [...(made.keys ?? []), second] };
  };
  await configure(await keysNow(['rt']));
  const session = await connect(REALTIME, { 'headgate-key': KEY });
  const connection = await connect('/x/v1/responses', { 'headgate-key': 'hg_realtime_key_2' });
  await configure(await keysNow(['other']));
  // It was opened later, so it is checked later.
  expect(await endOf(connection)).toMatchObject({ code: 1008, reason: 'headgate: key_forbidden' });
  session.send({ type: 'response.create' });
  await untilEvent(session, 'response.done');
  expect(session.closed()).toBeNull();
});

it.each([
  ['removed', 'k2'],
  ['replaced under its id', 'k1'],
])('a session ends with 1008 when its gateway key is %s', async (_, id) => {
  checkSocketsOften();
  const keys = [{ id: 'k1', hash: await keyHash('hg_realtime_key_1') }];
  await configure({ ...sessionConfig(), keys });
  const client = await connect(REALTIME, { 'headgate-key': 'hg_realtime_key_1' });
  await configure({ ...sessionConfig(), keys: [{ id, hash: await keyHash('hg_other') }] });
  expect(await endOf(client)).toMatchObject({ code: 1008, reason: 'headgate: key_invalid' });
});

it('a session is closed for a reconnect when a group starts to depend on its model', async () => {
  checkSocketsOften();
  await configure(await keyedConfig());
  const client = await connect(REALTIME, { 'headgate-key': KEY });
  const { groups = [], ...now } = await keyedConfig();
  const byModel = { name: 'small', match: { upstreams: ['x'], models: ['small'] } };
  await configure({ ...now, groups: [...groups, byModel] });
  expect(await endOf(client)).toMatchObject({ code: 1012, reason: 'headgate: group_changed' });
});

it('messages of a session pass unchanged if no group depends on its model, with any key', async () => {
  const match = { upstreams: ['x'], paths: ['/echo'], methods: ['GET'] };
  const upstream = { websocket: 'session' };
  const key = { allow: ['other'] };
  await configure(await keyedConfig({ group: { match }, upstream, key }));
  const client = await connect('/x/echo', { 'headgate-key': KEY });
  for (const message of ['[1]', 'model', new ArrayBuffer(3)]) client.send(message);
  await until(() => expect(client.frames).toEqual(['[1]', 'model', new ArrayBuffer(3)]));
  client.close(1000);
});
