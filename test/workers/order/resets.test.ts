// Resets of a group under a queue: who asks again within the boot window keeps its place.
import { afterAll, beforeEach, expect, it } from 'vitest';
import { nothingLeaks, pool, resetPool, untilWrittenEmpty, untilStatus } from '../support/pool.ts';
import {
  allFree,
  arrived,
  configureGroups,
  finish,
  groupOf,
  newScene,
  queued,
  streaming,
  untilInFlight,
  type Scene,
} from './scene.ts';

let scene: Scene;
let group = '';

beforeEach(async () => {
  scene = await newScene({ limit: 1 });
  group = scene.name('resets');
});

afterAll(nothingLeaks);

function run(lane: string, id: string, startedMsAgo: number) {
  const startedAt = String(Date.now() - startedMsAgo);
  const agent = { 'headgate-agent': id, 'headgate-agent-started-at': startedAt };
  return { headers: { 'headgate-lane': lane, ...agent } };
}

it('lanes and the age of agent runs outlive a reset', async () => {
  await configureGroups(scene, [groupOf(group, 1)]);
  const calls = [
    await streaming(scene, 'holder'),
    await queued(group, 'low', run('low', 'l', 90_000)),
    await queued(group, 'young', run('normal', 'y', 1_000)),
    await queued(group, 'old', run('normal', 'o', 60_000)),
    await queued(group, 'high', run('high', 'h', 0)),
  ];
  await resetPool(group);
  await untilStatus(group, { in_use: 1, queued: 4 });
  expect((await pool(group).waiters()).map(({ agent }) => agent)).toEqual(['h', 'o', 'y', 'l']);
  await resetPool(group);
  await finish(scene, calls);
  expect(await arrived(scene)).toEqual(['holder', 'high', 'old', 'young', 'low']);
  expect(await scene.strict.stats()).toMatchObject({ peak: 1, rejected429: 0 });
  await untilWrittenEmpty(group);
});

it.each(['narrow', 'wide'])(
  'a reset of the %s group keeps the places of calls in two groups',
  async (which) => {
    const wide = scene.name('wide');
    await configureGroups(scene, [
      groupOf(group, 4, { match: { models: ['m'] } }),
      groupOf(wide, 1),
    ]);
    const calls = [await streaming(scene, 'holder', { model: 'other' })];
    // At most a quarter of the narrow group is held by calls that wait for the wide one.
    calls.push(await queued(wide, 'first'));
    await untilStatus(group, { in_use: 1 });
    calls.push(await queued(group, 'second'), await queued(group, 'third'));
    await resetPool(which === 'wide' ? wide : group);
    // The call that waits in the wide group may be known again, or unclaimed.
    await untilStatus(group, { queued: 2 });
    await untilStatus(wide, { in_use: 1, queued: 1 });
    await untilInFlight(scene.strict, 1);
    await finish(scene, calls);
    expect(await arrived(scene)).toEqual(['holder', 'first', 'second', 'third']);
    expect(await scene.strict.stats()).toMatchObject({ peak: 1, rejected429: 0 });
    await allFree(group, wide);
  },
);
