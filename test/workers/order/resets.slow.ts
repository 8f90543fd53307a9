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
  type OrderScene,
} from './scene.ts';

let scene: OrderScene;
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

it.each([
  ['narrow', 'narrow'],
  ['narrow', 'wide'],
  ['wide', 'narrow'],
  ['wide', 'wide'],
])(
  'calls in two groups that wait in the %s one keep their places at a reset of the %s one',
  async (full, reset) => {
    const wide = scene.name('wide');
    await configureGroups(scene, [
      groupOf(group, full === 'narrow' ? 1 : 4, { match: { models: ['m'] } }),
      groupOf(wide, full === 'wide' ? 1 : 4),
    ]);
    const [waitedIn, other] = full === 'wide' ? [wide, group] : [group, wide];
    const calls = [await streaming(scene, 'holder')];
    for (const label of ['first', 'second', 'third']) calls.push(await queued(waitedIn, label));
    await untilStatus(other, { in_use: 1, queued: 0 });
    await resetPool(reset === 'wide' ? wide : group);
    await untilStatus(waitedIn, { in_use: 1, queued: 3 });
    await untilStatus(other, { in_use: 1, queued: 0 });
    await untilInFlight(scene.strict, 1);
    await finish(scene, calls);
    expect(await arrived(scene)).toEqual(['holder', 'first', 'second', 'third']);
    expect(await scene.strict.stats()).toMatchObject({ peak: 1, rejected429: 0 });
    await allFree(group, wide);
  },
);
