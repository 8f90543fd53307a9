// How long a call may wait: as its key says, else its lane, else its group; the caller can only shorten it.
import { expect, it } from 'vitest';
import { untilStatus } from '../support/pool.ts';
import { passTime } from '../support/time.ts';
import { call, configure } from '../support/worker.ts';
import { readerOf, readUntil } from './event-stream.ts';
import {
  allFree,
  ask,
  CHAT,
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

useScenes('time-outs');

const SOON_MS = 40;
const LATE_MS = 3_000_000;
const TIMED_OUT = { status: 429, reason: 'queue_timeout' };

const lane = (name: string) => ({ 'headgate-lane': name });

it('a lane may have a shorter one than its group', async () => {
  await configureGroups(scene, [
    groupOf(group, 1, { queue: { lane_timeouts_ms: { low: SOON_MS } } }),
  ]);
  const holder = await streaming(scene, 'holder');
  const patient = await queued(group, 'patient');
  expect(await refusal(ask('hasty', { headers: lane('low') }))).toMatchObject(TIMED_OUT);
  await finish(scene, [holder, patient]);
  await allFree(group);
});

it('and a longer one, which its caller can shorten', async () => {
  const queue = { timeout_ms: SOON_MS, lane_timeouts_ms: { high: LATE_MS } };
  await configureGroups(scene, [groupOf(group, 1, { queue })]);
  const holder = await streaming(scene, 'holder');
  const patient = await queued(group, 'patient', { headers: lane('high') });
  expect(await refusal(ask('hasty'))).toMatchObject(TIMED_OUT);
  const shortened = { ...lane('high'), 'headgate-max-wait': `${SOON_MS}ms` };
  expect(await refusal(ask('shortened', { headers: shortened }))).toMatchObject(TIMED_OUT);
  passTime(LATE_MS / 2);
  await finish(scene, [holder, patient]);
  await allFree(group);
});

it('that of a key goes before that of the lane', async () => {
  const queue = { timeout_ms: SOON_MS, lane_timeouts_ms: { high: SOON_MS, low: LATE_MS } };
  const keys = [
    await keyOf('hasty', { timeout_ms: SOON_MS }),
    await keyOf('patient', { timeout_ms: LATE_MS }),
  ];
  await configureGroups(scene, [groupOf(group, 1, { queue })], keys);
  const holder = await streaming(scene, 'holder', { headers: keyHeader('patient') });
  const headers = { ...keyHeader('patient'), ...lane('high') };
  const patient = await queued(group, 'patient', { headers });
  const hasty = ask('hasty', { headers: { ...keyHeader('hasty'), ...lane('low') } });
  expect(await refusal(hasty)).toMatchObject(TIMED_OUT);
  await finish(scene, [holder, patient]);
  await allFree(group);
});

it('and holds in automatic groups', async () => {
  const id = scene.name('up');
  await configure({
    upstreams: [{ id, base_url: scene.strict.url }],
    auto_groups: [{ name: `auto:${id}`, paused: true }],
    keys: [await keyOf('hasty', { timeout_ms: SOON_MS })],
  });
  const hasty = ask('hasty', { path: `/${id}/v1/chat/completions`, headers: keyHeader('hasty') });
  expect(await refusal(hasty)).toMatchObject({ status: 503, reason: 'paused' });
});

it('a stream that its key lets wait for long is kept alive', async () => {
  const keys = [await keyOf('patient', { timeout_ms: LATE_MS })];
  await configureGroups(scene, [groupOf(group, 1, { paused: true })], keys);
  const messages = [{ role: 'user', content: 'patient' }];
  const json = { model: 'm', stream: true, messages };
  const leaves = new AbortController();
  const { signal } = leaves;
  const answer = call(CHAT, { json, headers: keyHeader('patient'), signal });
  await untilStatus(group, { queued: 1 });
  // A call looks at the clock after its first second, when this has passed and a little is left.
  passTime(198_500);
  const response = await answer;
  expect(response.status).toBe(200);
  // The first comment may come before the group says what the call waits for.
  const comments = await readUntil(readerOf(response), /for an operator to resume the group/);
  expect(comments).toMatch(/^: headgate waiting for /);
  leaves.abort();
  await allFree(group);
});
