// Calls that name no agent share their caller's turns by the user or session that their clients send anyway.
import { expect, it } from 'vitest';
import { pool, untilStatus } from '../support/pool.ts';
import { admin, open, type WorkerOpenCall } from '../support/worker.ts';
import {
  arrived,
  CHAT,
  configureGroups,
  finish,
  group,
  groupOf,
  scene,
  streaming,
  useScenes,
} from './scene.ts';

useScenes('sessions');

interface SessionsReply {
  readonly body?: object;
  readonly headers?: Record<string, string>;
}

/** Starts a call and waits until it is queued. */
async function queued(
  label: string,
  { body = {}, headers = {} }: SessionsReply,
): Promise<WorkerOpenCall> {
  const before = (await pool(group).status()).queued;
  const messages = [{ role: 'user', content: label }];
  const json = { model: 'm', stream: true, messages, ...body };
  const one = open(CHAT, label, { json, headers });
  await untilStatus(group, { queued: before + 1 });
  return one;
}

/** Queues six calls of Alice and one of Bob, and returns how many of hers started before his. */
async function aheadOfBob(alice: SessionsReply, bob: SessionsReply): Promise<number> {
  const calls = [await streaming(scene, 'holder')];
  for (let at = 0; at < 6; at += 1) calls.push(await queued(`alice-${at}`, alice));
  calls.push(await queued('bob', bob));
  await finish(scene, calls);
  const order = await arrived(scene);
  expect(order).toHaveLength(8);
  return order.indexOf('bob') - 1;
}

const LONG = 'x'.repeat(100_000);

it.each<[string, SessionsReply, SessionsReply]>([
  ['user', { body: { user: 'alice' } }, { body: { user: 'bob' } }],
  [
    'user behind 100 KB of messages',
    { body: { input: LONG, user: 'alice' } },
    { body: { input: LONG, user: 'bob' } },
  ],
  [
    'safety_identifier',
    { body: { safety_identifier: 'alice' } },
    { body: { safety_identifier: 'bob' } },
  ],
  [
    'metadata.user_id',
    { body: { metadata: { user_id: 'user_a_account__session_alice' } } },
    { body: { metadata: { user_id: 'user_a_account__session_bob' } } },
  ],
  [
    'prompt_cache_key',
    { body: { prompt_cache_key: 'alice' } },
    { body: { prompt_cache_key: 'bob' } },
  ],
  [
    'previous_response_id',
    { body: { previous_response_id: 'resp_alice' } },
    { body: { previous_response_id: 'resp_bob' } },
  ],
  ['conversation', { body: { conversation: 'alice' } }, { body: { conversation: { id: 'bob' } } }],
  [
    'x-litellm-session-id',
    { headers: { 'x-litellm-session-id': 'alice' } },
    { headers: { 'x-litellm-session-id': 'bob' } },
  ],
  ['nothing of her, user of him', {}, { body: { user: 'bob' } }],
  [
    'user of her, agent of him',
    { body: { user: 'alice' } },
    { headers: { 'x-session-id': 'bob' } },
  ],
])('one call of another session waits about one turn: %s', async (_, alice, bob) => {
  await configureGroups(scene, [groupOf(group, 1)]);
  expect(await aheadOfBob(alice, bob)).toBeLessThanOrEqual(2);
});

it('calls of one session keep their order', async () => {
  await configureGroups(scene, [groupOf(group, 1)]);
  expect(await aheadOfBob({ body: { user: 'same' } }, { body: { user: 'same' } })).toBe(6);
});

it('sessions do not count where agents do not', async () => {
  await configureGroups(scene, [groupOf(group, 1, { fairness: { by: ['caller'] } })]);
  expect(await aheadOfBob({ body: { user: 'alice' } }, { body: { user: 'bob' } })).toBe(6);
});

it('bounds for agents do not apply to sessions', async () => {
  const fairness = { max_concurrency_each_agent: 1 };
  const queue = { max_length_each_agent: 1 };
  await configureGroups(scene, [groupOf(group, 2, { fairness, queue })]);
  const user = { user: 'alice' };
  const calls = [await streaming(scene, 'holder'), await streaming(scene, 'second')];
  for (const label of ['one', 'two', 'three']) calls.push(await queued(label, { body: user }));
  await finish(scene, calls);
  expect(await arrived(scene)).toEqual(['holder', 'second', 'one', 'two', 'three']);
});

it('what names a session is shown nowhere', async () => {
  await configureGroups(scene, [groupOf(group, 1)]);
  const name = 'alice@example.com';
  const calls = [await streaming(scene, 'holder')];
  for (const label of ['one', 'two', 'three']) {
    calls.push(await queued(label, { body: { user: name } }));
  }
  const { json: shown } = await admin('GET', `/groups/${group}/waiters`);
  expect(JSON.stringify(shown)).toContain('"agent":null');
  expect(JSON.stringify(shown)).not.toContain(name);
  await finish(scene, calls);
});
