// How much may wait, who makes room, and who is refused at once.
import { expect, it } from 'vitest';
import { pool, untilStatus } from '../support/pool.ts';
import { admin, call, change, configure } from '../support/worker.ts';
import {
  ask,
  configureGroups,
  finish,
  group,
  groupOf,
  keyHeader,
  keyOf,
  queued,
  refusal,
  scene,
  streaming,
  useScenes,
} from './scene.ts';

useScenes('bounds');

const FULL = { status: 429, reason: 'queue_full' };

it('max_length_each bounds what one tenant may let wait, and nobody else', async () => {
  const keys = [await keyOf('acme'), await keyOf('bolt')];
  await configureGroups(scene, [groupOf(group, 1, { queue: { max_length_each: 1 } })], keys);
  const acme = { headers: keyHeader('acme') };
  const calls = [await streaming(scene, 'a0', acme), await queued(group, 'a1', acme)];
  expect(await refusal(ask('a2', acme))).toMatchObject(FULL);
  calls.push(await queued(group, 'b0', { headers: keyHeader('bolt') }));
  await finish(scene, calls);
});

it('max_length_each_agent bounds what one agent run may let wait, and no other', async () => {
  await configureGroups(scene, [groupOf(group, 1, { queue: { max_length_each_agent: 1 } })]);
  const of = (id: string) => ({ headers: { 'x-session-id': id } });
  const calls = [await streaming(scene, 'x0', of('x')), await queued(group, 'x1', of('x'))];
  expect(await refusal(ask('x2', of('x')))).toMatchObject(FULL);
  calls.push(await queued(group, 'y0', of('y')), await queued(group, 'none-0'));
  calls.push(await queued(group, 'none-1'));
  await finish(scene, calls);
});

const messages = [{ role: 'user', content: 'evicted' }];

it.each([
  {
    dialect: 'openai',
    path: '/up/v1/chat/completions',
    json: { model: 'm', stream: true, messages },
    body: { error: { code: 'queue_full', type: 'rate_limit_error' } },
  },
  {
    dialect: 'anthropic',
    path: '/up/v1/messages',
    json: { model: 'm', max_tokens: 9, stream: true, messages },
    body: { type: 'error', error: { type: 'rate_limit_error' } },
  },
  {
    dialect: 'gemini',
    path: '/up/v1beta/models/m:streamGenerateContent?alt=sse',
    json: { contents: [{ role: 'user', parts: [{ text: 'evicted' }] }] },
    body: { error: { code: 429, status: 'RESOURCE_EXHAUSTED' } },
  },
  {
    dialect: 'ollama',
    path: '/up/api/chat',
    json: { model: 'm', messages },
    body: { error: expect.stringContaining('queue') },
  },
  {
    dialect: 'bedrock',
    path: '/up/model/m/converse-stream',
    json: { messages: [{ role: 'user', content: [{ text: 'evicted' }] }] },
    body: { message: expect.stringContaining('queue') },
    errorType: 'ThrottlingException',
  },
  {
    dialect: 'opaque',
    path: '/up/v1/chat',
    json: { model: 'm', messages },
    body: { title: 'queue_full', status: 429, reason: 'queue_full' },
  },
] as const)(
  'a high call takes the place of a low one, which is refused in $dialect',
  async (one) => {
    await configure({
      upstreams: [{ id: 'up', base_url: scene.strict.url, dialect: one.dialect }],
      groups: [groupOf(group, 1, { queue: { max_length: 1 } })],
    });
    const holder = await streaming(scene, 'holder');
    const headers = { 'headgate-lane': 'low' };
    const low = call(one.path, { json: one.json, headers });
    await untilStatus(group, { queued: 1 });
    const high = ask('high', { headers: { 'headgate-lane': 'high' } });
    const evicted = await low;
    expect(await refusal(Promise.resolve(evicted))).toMatchObject(FULL);
    expect(Number(evicted.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(evicted.headers.get('x-amzn-errortype')).toBe('errorType' in one ? one.errorType : null);
    expect(await evicted.json()).toMatchObject(one.body);
    await untilStatus(group, { queued_by_lane: { high: 1, normal: 0, low: 0 } });
    // Another one of the same lane makes nobody go.
    expect(await refusal(ask('more', { headers: { 'headgate-lane': 'high' } }))).toMatchObject(
      FULL,
    );
    await finish(scene, [holder, high]);
  },
);

it('a call whose wait would outlast its deadline is refused at once, with the estimate', async () => {
  await configureGroups(scene, [groupOf(group, 10)]);
  await scene.strict.configure({ silentAfterChunks: null, firstByteDelayMs: 1_000 });
  const samples = Array.from({ length: 10 }, (_, at) => ask(`sample-${at}`));
  await Promise.all(samples.map(({ end }) => end));
  await untilStatus(group, { in_use: 0 });
  await change('PATCH', `/groups/${group}`, { limits: { max_concurrency: 1 } });
  await scene.strict.configure({ silentAfterChunks: 1, firstByteDelayMs: 0 });
  const calls = [await streaming(scene, 'holder')];
  for (let at = 0; at < 4; at += 1) calls.push(await queued(group, `w${at}`));
  const hopeless = ask('hopeless', { headers: { 'headgate-max-wait': '3s' } });
  const response = await hopeless.response;
  expect(await refusal(hopeless)).toMatchObject({ status: 429, reason: 'infeasible' });
  // Five turns of what a call took in the mean; the last one that waits has four before it.
  const retryMs = Number(response.headers.get('retry-after-ms'));
  const { json } = await admin('GET', `/groups/${group}/waiters`);
  const lastMs = json.waiters.at(-1).estimate_ms;
  expect(lastMs).toBeGreaterThan(1_000);
  expect(retryMs / lastMs).toBeGreaterThan(1);
  expect(retryMs / lastMs).toBeLessThan(2);
  expect(await pool(group).status()).toMatchObject({
    queued: 4,
    rejected_total: { infeasible: 1 },
  });
  calls.push(await queued(group, 'patient', { headers: { 'headgate-max-wait': '60s' } }));
  await finish(scene, calls);
});

it('a caller that fills the queue does not lock out others: its youngest call makes room, with the reason', async () => {
  const keys = [await keyOf('acme'), await keyOf('bolt')];
  await configureGroups(scene, [groupOf(group, 1, { queue: { max_length: 2 } })], keys);
  const acme = { headers: keyHeader('acme') };
  const calls = [await streaming(scene, 'a0', acme), await queued(group, 'a1', acme)];
  const json = { model: 'm', stream: true, messages };
  const youngest = call('/up/v1/chat/completions', { json, headers: keyHeader('acme') });
  await untilStatus(group, { queued: 2 });
  const bolt = ask('b0', { headers: keyHeader('bolt') });
  const dropped = await youngest;
  expect(dropped.headers.get('headgate-reason')).toBe('queue_full');
  expect(Number(dropped.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  expect(await dropped.text()).toMatch(/this call lost its place.*a caller with fewer took it/);
  const decisions = await admin('GET', `/groups/${group}/decisions`);
  expect(JSON.stringify(decisions.json)).toContain('"dropped":"share"');
  expect(await refusal(ask('a3', acme))).toMatchObject(FULL);
  expect(await refusal(ask('b1', { headers: keyHeader('bolt') }))).toMatchObject(FULL);
  await untilStatus(group, { queued: 2, rejected_total: { queue_full: 3 } });
  await finish(scene, [...calls, bolt]);
});
