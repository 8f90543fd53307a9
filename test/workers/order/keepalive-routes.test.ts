// Streams that wait are kept alive on the unified routes too, and while their group moves away.
import { expect, it } from 'vitest';
import { pool, untilStatus } from '../support/pool.ts';
import { change, configure } from '../support/worker.ts';
import {
  bytesFromUpstream,
  keptAlive,
  readUntil,
  restOf,
  withoutSignsOfLife,
} from './event-stream.ts';
import {
  allFree,
  CHAT,
  configureGroups,
  finish,
  group,
  groupOf,
  scene,
  streaming,
  untilInFlight,
  useScenes,
} from './scene.ts';

useScenes('keepalive-routes');

const QUEUE = { keepalive: { after_ms: 100, every_ms: 1_000 } };
const MODEL = { models: ['m'] };

function bodyOf(model: string, more: object = {}) {
  return { model, stream: true, messages: [{ role: 'user', content: 'waits' }], ...more };
}

interface Unified {
  readonly by: string;
  readonly path: string;
  readonly model: string;
  readonly json: object;
  readonly headers?: Record<string, string>;
  readonly dialect: 'openai' | 'anthropic';
}

const UNIFIED: readonly Unified[] = [
  {
    by: 'prefix of the model',
    path: '/v1/chat/completions',
    model: 'up/m',
    json: {},
    dialect: 'openai',
  },
  {
    by: 'pattern of the models',
    path: '/v1/chat/completions',
    model: 'm',
    json: {},
    dialect: 'openai',
  },
  {
    by: 'header',
    path: '/v1/chat/completions',
    model: 'm',
    json: {},
    dialect: 'openai',
    headers: { 'headgate-upstream': 'up' },
  },
  {
    by: 'prefix, in the dialect of Anthropic',
    path: '/v1/messages',
    model: 'up/m',
    json: { max_tokens: 9 },
    dialect: 'anthropic',
  },
];

it.each(UNIFIED)(
  'a stream that waits on a unified route is kept alive: upstream by $by',
  async ({ path, model, json, headers = {}, dialect }) => {
    const base_url = dialect === 'openai' ? `${scene.strict.url}/v1` : scene.strict.url;
    await configure({
      upstreams: [{ id: 'up', base_url, dialect, models: MODEL.models }],
      groups: [groupOf(group, 1, { queue: QUEUE })],
    });
    const holder = await streaming(scene, 'holder', { path, model });
    const { reader, first } = await keptAlive(path, { json: bodyOf(model, json), headers });
    expect(first).toMatch(/^: headgate waiting for a slot/);
    await untilStatus(group, { in_use: 1, queued: 1 });
    await finish(scene, [holder]);
    const rest = withoutSignsOfLife(await restOf(reader));
    // Nothing but the prefix is gone from what the upstream got.
    const sent = JSON.stringify(bodyOf('m', json));
    expect(rest).toBe(await bytesFromUpstream(scene.strict, sent, path));
    expect(rest).toContain(dialect === 'openai' ? 'data: [DONE]' : 'message_stop');
    await allFree(group);
  },
);

/** A narrow group for one model and a wide one, both full, and a stream that is kept alive before them. */
async function waitingBeforeTwo() {
  const wide = scene.name('wide');
  await configureGroups(scene, [
    groupOf(group, 1, { match: MODEL, queue: QUEUE }),
    groupOf(wide, 2, { queue: { keepalive: { after_ms: 60_000, every_ms: 1_000 } } }),
  ]);
  const holders = [
    await streaming(scene, 'narrow', { model: 'm' }),
    await streaming(scene, 'wide', { model: 'other' }),
  ] as const;
  const { reader } = await keptAlive(CHAT, { json: bodyOf('m') });
  await untilStatus(group, { in_use: 1, queued: 1 });
  return { wide, holders, reader };
}

it('a stream that is kept alive goes another way when its group is deleted, and is kept alive there', async () => {
  const { wide, holders, reader } = await waitingBeforeTwo();
  await change('DELETE', `/groups/${group}`);
  await untilStatus(wide, { in_use: 2, queued: 1 });
  expect(await pool(group).status()).toMatchObject({ in_use: 1, queued: 0 });
  await readUntil(reader, /: headgate [^\n]+\n\n/);
  await finish(scene, holders);
  const rest = withoutSignsOfLife(await restOf(reader));
  expect(rest).toBe(await bytesFromUpstream(scene.strict, JSON.stringify(bodyOf('m'))));
  await allFree(group, wide);
  expect(await scene.strict.stats()).toMatchObject({ peak: 2, rejected429: 0 });
});

it('a stream that is kept alive begins at once where it moves to and there is room', async () => {
  const { wide, holders, reader } = await waitingBeforeTwo();
  holders[1].leave();
  await untilStatus(wide, { in_use: 1 });
  await untilInFlight(scene.strict, 1);
  await change('DELETE', `/groups/${group}`);
  expect(await readUntil(reader, /data: /)).not.toContain('error');
  await untilInFlight(scene.strict, 2);
  await finish(scene, [holders[0]]);
  expect(await restOf(reader)).toContain('[DONE]');
  await allFree(group, wide);
});

it('a stream that is kept alive is told as its last event that its upstream was removed', async () => {
  const { wide, holders, reader } = await waitingBeforeTwo();
  await configure({ upstreams: [{ id: 'another', base_url: scene.strict.url }] });
  const last = withoutSignsOfLife(await restOf(reader));
  expect(JSON.parse(last.replace(/^data: /, ''))).toMatchObject({
    error: {
      code: 'upstream_unknown',
      message: 'Upstream `up` was removed from the configuration. Use another upstream.',
    },
  });
  await finish(scene, holders);
  await allFree(group, wide);
});
