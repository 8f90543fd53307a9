// Calls that take several slots.
import { expect, it } from 'vitest';
import { pool, untilStatus } from '../support/pool.ts';
import {
  allFree,
  arrived,
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
  untilInFlight,
  useScenes,
} from './scene.ts';

useScenes('weights');

const weight = (slots: number) => ({ headers: { 'headgate-weight': String(slots) } });

it('headgate-weight takes so many slots, and gives all of them back', async () => {
  await configureGroups(scene, [groupOf(group, 4, { limits: { max_weight: 3 } })]);
  const wide = await streaming(scene, 'wide', weight(3));
  expect(await pool(group).status()).toMatchObject({ in_use: 3 });
  expect(await pool(group).leases()).toMatchObject([{ slots: 3 }]);
  const one = await streaming(scene, 'one');
  expect(await pool(group).status()).toMatchObject({ in_use: 4 });
  const two = await queued(group, 'two', weight(2));
  expect(await pool(group).waiters()).toMatchObject([{ slots: 2 }]);
  one.leave();
  await untilStatus(group, { in_use: 3, queued: 1 });
  await finish(scene, [wide, two]);
  await allFree(group);
});

it('a call that is heavier than its group allows never fits, and is told so', async () => {
  await configureGroups(scene, [groupOf(group, 4, { limits: { max_weight: 3 } })]);
  const heavy = ask('heavy', weight(4));
  const response = await heavy.response;
  expect(await refusal(heavy)).toMatchObject({ status: 413, reason: 'never_fits' });
  expect(response.headers.get('x-should-retry')).toBe('false');
  expect(await pool(group).status()).toMatchObject({ rejected_total: { never_fits: 1 } });
  expect((await scene.strict.stats()).total).toBe(0);
});

it('a weight counts in every group of the call, and what was tried goes back', async () => {
  const wide = scene.name('wide');
  await configureGroups(scene, [
    groupOf(group, 4, { match: { models: ['m'] }, limits: { max_weight: 2 } }),
    groupOf(wide, 2, { limits: { max_weight: 2 } }),
  ]);
  const one = await streaming(scene, 'one', weight(2));
  for (const name of [group, wide]) expect(await pool(name).status()).toMatchObject({ in_use: 2 });
  one.leave();
  await allFree(group, wide);
});

it('a wide call is not starved by narrow ones that come after it', async () => {
  await configureGroups(scene, [groupOf(group, 2, { limits: { max_weight: 2 } })]);
  const first = await streaming(scene, 'a');
  const second = await streaming(scene, 'b');
  const waiting = [await queued(group, 'wide', weight(2))];
  for (const label of ['c', 'd']) waiting.push(await queued(group, label));
  first.leave();
  await untilStatus(group, { in_use: 1, queued: 3 });
  second.leave();
  await untilStatus(group, { in_use: 2, queued: 2 });
  await untilInFlight(scene.strict, 1);
  expect(await arrived(scene)).toEqual(['a', 'b', 'wide']);
  await finish(scene, waiting);
  expect(new Set(await arrived(scene))).toEqual(new Set(['a', 'b', 'c', 'd', 'wide']));
  await allFree(group);
});

it('a weight counts under max_concurrency_each: a wide call waits for room there, and blocks nobody else', async () => {
  const keys = [await keyOf('acme'), await keyOf('bolt')];
  const caps = { limits: { max_weight: 3 }, fairness: { max_concurrency_each: 3 } };
  await configureGroups(scene, [groupOf(group, 8, caps)], keys);
  const of = (id: string, slots: number) => ({
    headers: { ...keyHeader(id), ...weight(slots).headers },
  });
  const first = await streaming(scene, 'acme-2', of('acme', 2));
  const calls = [await queued(group, 'acme-wide', of('acme', 2))];
  // It would fit under the cap, and would keep the one before it waiting for ever.
  calls.push(await queued(group, 'acme-narrow', of('acme', 1)));
  calls.push(await streaming(scene, 'bolt-3', of('bolt', 3)));
  expect(await pool(group).status()).toMatchObject({ in_use: 5, queued: 2 });
  first.leave();
  await untilStatus(group, { in_use: 6, queued: 0 });
  await untilInFlight(scene.strict, 3);
  await finish(scene, calls);
  await allFree(group);
});

it('a call that is heavier than max_concurrency_each never fits', async () => {
  const caps = { limits: { max_weight: 4 }, fairness: { max_concurrency_each: 3 } };
  await configureGroups(scene, [groupOf(group, 8, caps)]);
  const heavy = ask('heavy', weight(4));
  expect(await refusal(heavy)).toMatchObject({ status: 413, reason: 'never_fits' });
  const fits = await streaming(scene, 'fits', weight(3));
  await finish(scene, [fits]);
  await allFree(group);
});
