// What an operator does to a queue while calls wait in it: promotes, drains, runs it dry.
import { expect, it } from 'vitest';
import { pool, untilStatus } from '../support/pool.ts';
import { admin, change } from '../support/worker.ts';
import {
  allFree,
  arrived,
  ask,
  configureGroups,
  finish,
  group,
  groupOf,
  queued,
  refusal,
  scene,
  streaming,
  useScenes,
} from './scene.ts';

useScenes('operator');

async function ticketOf(agent: string): Promise<string> {
  const { json } = await admin('GET', `/groups/${group}/waiters`);
  const waiters = json.waiters as { readonly agent: string; readonly ticket: string }[];
  return waiters.find((waiter) => waiter.agent === agent)?.ticket ?? '';
}

async function promote(agent: string, body: object): Promise<void> {
  const path = `/groups/${group}/waiters/${await ticketOf(agent)}/promote`;
  expect((await admin('POST', path, body)).status).toBe(200);
}

it('a waiter that is promoted or put into another lane is sent in that order', async () => {
  await configureGroups(scene, [groupOf(group, 1)]);
  const of = (agent: string, lane = 'normal') => ({
    headers: { 'headgate-agent': agent, 'headgate-lane': lane },
  });
  const calls = [await streaming(scene, 'holder')];
  for (const label of ['a', 'b', 'c']) calls.push(await queued(group, label, of(label)));
  calls.push(await queued(group, 'low', of('low', 'low')));
  calls.push(await queued(group, 'high', of('high', 'high')));
  await promote('low', { first: true });
  await promote('c', { lane: 'high' });
  await promote('a', { lane: 'low' });
  await finish(scene, calls);
  expect(await arrived(scene)).toEqual(['holder', 'low', 'c', 'high', 'b', 'a']);
});

it('a drained group takes nothing new, and lets its queue and its streams end', async () => {
  await configureGroups(scene, [groupOf(group, 1)]);
  const calls = [await streaming(scene, 'holder'), await queued(group, 'waits')];
  await change('POST', `/groups/${group}/drain`);
  await untilStatus(group, { draining: true });
  expect(await refusal(ask('new'))).toMatchObject({ status: 503, reason: 'draining' });
  expect(await pool(group).status()).toMatchObject({ in_use: 1, queued: 1 });
  await finish(scene, calls);
  expect(await arrived(scene)).toEqual(['holder', 'waits']);
  expect(await refusal(ask('still'))).toMatchObject({ status: 503, reason: 'draining' });
  await change('POST', `/groups/${group}/resume`);
  const reopened = ask('reopened');
  expect((await reopened.response).status).toBe(200);
  await finish(scene, [reopened]);
});

it('a group that runs dry blocks nobody, and counts who would have waited', async () => {
  const wide = scene.name('wide');
  await configureGroups(scene, [
    groupOf(group, 1, { match: { models: ['m'] }, dry_run: true }),
    groupOf(wide, 3),
  ]);
  const calls = [];
  for (const label of ['a', 'b', 'c']) calls.push(await streaming(scene, label));
  expect(await pool(group).status()).toMatchObject({ in_use: 3, queued: 0, would_wait_total: 2 });
  // The other group of the same call is no dry run.
  calls.push(await queued(wide, 'd'));
  await finish(scene, calls);
  expect((await scene.strict.stats()).peak).toBe(3);
  await allFree(group, wide);
});
