// A session counts as one model: its messages must name that model if a key or a group depends on it.
import { expect, it } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { pool, untilStatus } from '../support/pool.ts';
import { configure, until } from '../support/worker.ts';
import { connect, endOf, untilEvent, upgrade } from './client.ts';
import { KEY, LIVE, keyedConfig, sessionConfig, strict, useSessions } from './scene.ts';

useSessions();

/** Configures a key that may use one model alone, at an upstream that the operator pays for. */
function boundConfig(model: string, upstream: object = {}): Promise<ConfigInput> {
  const match = { upstreams: ['x'], models: [model] };
  return keyedConfig({ group: { name: 'bound', match }, upstream });
}

it('a Gemini session names its model in a header if groups depend on it', async () => {
  const path = `${LIVE}?key=k`;
  const match = { upstreams: ['x'], models: ['live-*'] };
  await configure(sessionConfig({ name: 'live', match }, { dialect: 'gemini' }));
  const refused = await upgrade(path);
  expect(refused.status).toBe(400);
  expect(await refused.text()).toContain('headgate-model');
  const client = await connect(path, { 'headgate-model': 'live-1' });
  expect(client.response.headers.get('headgate-groups')).toBe('live');
  client.send({ setup: { model: 'models/live-1' } });
  await until(() => expect(client.frames).toHaveLength(1));
  client.close(1000);
  const other = await connect(path, { 'headgate-model': 'live-1' });
  other.send({ setup: { model: 'models/live-2' } });
  expect(await endOf(other)).toEqual({ code: 1008, reason: 'headgate: other_model' });
  expect((await strict.stats()).sockets[1]?.messages).toEqual([]);
});

it.each([
  'model=small&model=big',
  'model=small&deployment=big',
  'model=small&Deployment=big',
  'model=small&model[]=big',
  'model=small&%20model=big',
  'model=small&deploymentId=big',
  'model=small&model_id=big',
  'model=small&agent_id=big',
  'agentId=big',
  'model=small&a=1;model=big',
  'model=small&a=1;deployment=big',
  'model=small&a;agent_id=big',
  'a=1;model=big',
  '/openai/deployments/big/realtime?model=small',
  '/openai/deployments/big/realtime',
  '/openai/Deployments/%62ig/realtime?api-version=1',
  '/v1/engines/big/realtime?deployment=small',
  '/v1/models/big/live?model=small',
  '/v1/agents/big/realtime',
  '/v1//agents/big/realtime',
])(
  'a URL with several models, or a model by reference, is refused if a key depends on the model: %s',
  async (query) => {
    await configure(await boundConfig('small'));
    const path = query.startsWith('/') ? query : `/v1/realtime?${query}`;
    const headers = { 'headgate-key': KEY, 'headgate-model': 'small' };
    const response = await upgrade(`/x${path}`, headers);
    expect(response.status).toBe(400);
    expect(response.headers.get('headgate-reason')).toMatch(/^(?:model_ambiguous|header_invalid)$/);
    await response.text();
    expect((await strict.stats()).sessions.total).toBe(0);
  },
);

async function reached(): Promise<string> {
  const { sockets } = await strict.stats();
  return JSON.stringify(sockets.map(({ messages }) => messages));
}

const utf8 = (text: string): ArrayBuffer => new TextEncoder().encode(text).buffer as ArrayBuffer;
const utf16 = (text: string): ArrayBuffer =>
  Uint16Array.from(text, (char) => char.charCodeAt(0)).buffer;

const CHEAP = '{"setup":{"model":"models/cheap"}}';
const DEAR = '{"setup":{"model":"models/dear"}}';

it.each<[string, (string | ArrayBuffer)[], number, string]>([
  ['names another model', [DEAR], 1008, 'other_model'],
  ['names another model in bytes', [utf8(DEAR)], 1008, 'other_model'],
  ['names another model behind a mark', [`\ufeff${DEAR}`], 1008, 'other_model'],
  ['names none', ['{}'], 1008, 'message_refused: expected a setup with its model first'],
  ['speaks first', ['{"realtimeInput":{}}'], 1008, 'message_refused: expected a setup'],
  ['has two setups', [CHEAP, CHEAP], 1008, 'message_refused: a second setup'],
  ['has two setups in one', [DEAR.replace('}}', '},"setup":{"model":"models/cheap"}}')], 1007, ''],
  ['names two models', ['{"setup":{"model":"dear","model":"cheap"}}'], 1007, ''],
  ['is in UTF-16', [utf16(DEAR)], 1007, 'message_unreadable'],
  [
    'is not UTF-8',
    [new Uint8Array([0x7b, 0xff, 0x7d]).buffer],
    1007,
    'message_unreadable: the bytes',
  ],
  ['is in UTF-16 behind the setup', [CHEAP, utf16(DEAR)], 1007, 'message_unreadable'],
  ['is a list', [`[${DEAR}]`], 1007, 'message_unreadable: it is not a JSON object'],
  ['is a list behind the setup', [CHEAP, `[${DEAR}]`], 1007, 'message_unreadable'],
  ['has keys without quotes', ['{setup:{model:"dear"}}'], 1007, 'message_unreadable'],
  ['has a setup in upper case', ['{"Setup":{"model":"dear"}}'], 1007, 'message_unreadable'],
  ['has a list of models', ['{"setup":{"model":["dear"]}}'], 1007, 'message_unreadable'],
  ['is empty', [''], 1007, 'message_unreadable'],
])('a Gemini session of a key with groups is closed that %s', async (_, frames, code, reason) => {
  await configure(await boundConfig('cheap', { dialect: 'gemini' }));
  const client = await connect(LIVE, { 'x-goog-api-key': KEY, 'headgate-model': 'cheap' });
  for (const frame of frames) client.send(frame);
  const end = await endOf(client);
  expect(end?.code).toBe(code);
  expect(end?.reason).toContain(`headgate: ${reason}`);
  expect(await reached()).not.toContain('dear');
  await untilStatus('bound', { in_use: 0 });
  const name = code === 1007 ? 'message_unreadable' : reason.split(':')[0];
  expect((await pool('bound').metrics()).cut_total).toHaveProperty(name ?? '');
});

it('a Gemini session of a key with groups forwards any messages after its setup', async () => {
  await configure(await boundConfig('cheap', { dialect: 'gemini' }));
  const client = await connect(LIVE, { 'x-goog-api-key': KEY, 'headgate-model': 'cheap' });
  client.send(CHEAP);
  await until(() => expect(client.frames).toHaveLength(1));
  const turns = [{ parts: [{ text: 'the model of a setup, "\\u0041"' }] }];
  client.send({ clientContent: { turns, turnComplete: true } });
  client.send(utf8('{"realtimeInput":{"audio":{"data":"AAAA"}}}'));
  await until(async () => expect((await strict.stats()).sockets[0]?.messageCount).toBe(3));
  expect(client.closed()).toBeNull();
  client.close(1000);
});

it('a model in the URL of a Gemini session does not replace the model of its setup', async () => {
  await configure(await boundConfig('cheap', { dialect: 'gemini' }));
  const client = await connect(`${LIVE}?model=cheap`, { 'x-goog-api-key': KEY });
  client.send(CHEAP);
  await until(() => expect(client.frames).toHaveLength(1));
  client.send(DEAR);
  expect(await endOf(client)).toMatchObject({ code: 1008 });
  expect(await reached()).not.toContain('dear');
});

it('a session that only transcribes must use the model of its header', async () => {
  await configure(await boundConfig('cheap-*'));
  const headers = { 'headgate-key': KEY, 'headgate-model': 'cheap-1' };
  const update = (model: string): object => ({
    type: 'session.update',
    session: { type: 'transcription', audio: { input: { transcription: { model } } } },
  });
  const client = await connect('/x/v1/realtime?intent=transcription', headers);
  client.send({ type: 'input_audio_buffer.append', audio: 'AAAA' });
  client.send(update('cheap-1'));
  await untilEvent(client, 'session.updated');
  client.send(update('dear'));
  expect(await endOf(client)).toMatchObject({ code: 1008, reason: 'headgate: other_model' });
  expect(await reached()).not.toContain('dear');
});

it.each<[string, object | string, number | null]>([
  ['sets another model', { type: 'session.update', session: { model: 'dear' } }, 1008],
  ['asks another model', { type: 'response.create', response: { model: 'dear' } }, 1008],
  ['asks another model at the top', { type: 'response.create', model: 'dear' }, 1008],
  [
    'transcribes with another model',
    { type: 'session.update', session: { input_audio_transcription: { model: 'dear' } } },
    1008,
  ],
  [
    'transcribes with another model in the current format',
    { type: 'session.update', session: { audio: { input: { transcription: { model: 'dear' } } } } },
    1008,
  ],
  ['hides the name', String.raw`{"type":"session.update","session":{"mod\u0065l":"dear"}}`, 1008],
  ['names it twice', '{"session":{"model":"dear","model":"cheap-1"}}', 1007],
  ['is a list', '[{"type":"session.update","session":{"voice":"a"}}]', 1007],
  ['names its own', { type: 'session.update', session: { model: 'cheap-1' } }, null],
  [
    'transcribes with a model of the same group',
    { type: 'session.update', session: { input_audio_transcription: { model: 'cheap-2' } } },
    null,
  ],
])('a realtime session of a key with groups that %s: %s', async (_, message, code) => {
  await configure(await boundConfig('cheap-*'));
  const client = await connect('/x/v1/realtime?model=cheap-1', { 'headgate-key': KEY });
  client.send({ type: 'session.update', session: { voice: 'a' } });
  await untilEvent(client, 'session.updated');
  client.send(message);
  if (code === null) {
    await untilEvent(client, 'session.updated', 2);
    return client.close(1000);
  }
  expect((await endOf(client))?.code).toBe(code);
  expect(await reached()).not.toContain('dear');
});

it('a session of a key with groups is refused if its messages cannot be read', async () => {
  await configure(await boundConfig('cheap', { websocket: 'session' }));
  for (const path of ['/x/echo', '/x/echo?model=cheap', '/x/v1/responses']) {
    const headers = { 'headgate-key': KEY, 'headgate-model': 'cheap' };
    const response = await upgrade(path, headers);
    expect(response.status).toBe(400);
    expect(response.headers.get('headgate-reason')).toBe('body_unreadable');
    expect(await response.text()).toContain('cannot read the model of a session');
  }
  expect((await strict.stats()).total).toBe(0);
});
