// Agent runs share their caller's part, or the oldest goes first, however its agent names it.
import { afterAll, beforeEach, expect, it } from 'vitest';
import { nothingLeaks, pool } from '../support/pool.ts';
import {
  arrived,
  configureGroups,
  finish,
  groupOf,
  newScene,
  queued,
  streaming,
  type OrderScene,
} from './scene.ts';

const OLDEST_FIRST = { by: ['caller'] as ['caller'] };

let scene: OrderScene;
let group = '';

beforeEach(async () => {
  scene = await newScene();
  group = scene.name('agents');
  await configureGroups(scene, [groupOf(group, 1, { fairness: OLDEST_FIRST })]);
});

afterAll(nothingLeaks);

function run(id: string, startedMsAgo: number): { headers: Record<string, string> } {
  const startedAt = new Date(Date.now() - startedMsAgo).toISOString();
  return { headers: { 'headgate-agent': id, 'headgate-agent-started-at': startedAt } };
}

it('the call of the older agent run goes first, though it came last', async () => {
  const calls = [
    await streaming(scene, 'holder'),
    await queued(group, 'young', run('young', 1_000)),
    await queued(group, 'none'),
    await queued(group, 'old', run('old', 30_000)),
    await queued(group, 'middle', run('middle', 20_000)),
  ];
  await finish(scene, calls);
  expect(await arrived(scene)).toEqual(['holder', 'old', 'middle', 'young', 'none']);
});

it('a claim to be older than the age credit is worth the age credit', async () => {
  await configureGroups(scene, [
    groupOf(group, 1, { fairness: OLDEST_FIRST, queue: { age_credit_ms: 10_000 } }),
  ]);
  const calls = [
    await streaming(scene, 'holder'),
    await queued(group, 'first', run('first', 60_000)),
    await queued(group, 'ancient', run('ancient', 86_400_000)),
    await queued(group, 'fresh', run('fresh', 5_000)),
  ];
  await finish(scene, calls);
  expect(await arrived(scene)).toEqual(['holder', 'first', 'ancient', 'fresh']);
});

it.each([0, null])('age_credit_ms: %s', async (age_credit_ms) => {
  await configureGroups(scene, [
    groupOf(group, 1, { fairness: OLDEST_FIRST, queue: { age_credit_ms } }),
  ]);
  const calls = [
    await streaming(scene, 'holder'),
    await queued(group, 'first', run('first', 200_000)),
    await queued(group, 'older', run('older', 400_000)),
  ];
  await finish(scene, calls);
  const order = age_credit_ms === 0 ? ['first', 'older'] : ['older', 'first'];
  expect(await arrived(scene)).toEqual(['holder', ...order]);
});

it.each([
  'headgate-agent',
  'x-claude-code-session-id',
  'x-claude-code-agent-id',
  'session-id',
  'x-session-id',
])('%s alone: a run is as old as its first call', async (name) => {
  const of = (id: string) => ({ headers: { [name]: id } });
  const calls = [
    await streaming(scene, 'holder', of('older')),
    await queued(group, 'younger', of('younger')),
    await queued(group, 'younger-2', of('younger')),
    await queued(group, 'older', of('older')),
  ];
  const agents = (await pool(group).waiters()).map(({ agent }) => agent);
  expect(agents).toEqual(['older', 'younger', 'younger']);
  await finish(scene, calls);
  expect(await arrived(scene)).toEqual(['holder', 'older', 'younger', 'younger-2']);
});

it('agents under one key share its part fairly, unless the group says otherwise', async () => {
  await configureGroups(scene, [groupOf(group, 1)]);
  await scene.strict.configure({ chunkDelayMs: 10 });
  const calls = [await streaming(scene, 'holder')];
  for (const label of ['a1', 'a2', 'a3']) {
    calls.push(await queued(group, label, run('a', 60_000)));
  }
  calls.push(await queued(group, 'b1', run('b', 1_000)));
  await finish(scene, calls);
  expect(await arrived(scene)).toEqual(['holder', 'a1', 'b1', 'a2', 'a3']);
});
