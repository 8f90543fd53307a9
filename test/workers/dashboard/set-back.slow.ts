// The wall clock is set back by an hour while dashboards are open.
import { expect, it, vi } from 'vitest';
import { GroupObject } from '../../../src/group/group-object.ts';
import { resetPool, take } from '../support/pool.ts';
import { passTime } from '../support/time.ts';
import { until } from '../support/worker.ts';
import { snapshotOf, untilInUse, usesFeed, withGroups } from './feed-scene.ts';

const HOUR_MS = 3_600_000;

usesFeed();

it('a pool is asked again in time', async () => {
  const [name = ''] = await withGroups(1);
  const reader = await snapshotOf();
  const watch = vi.spyOn(GroupObject.prototype, 'watch');
  passTime(-HOUR_MS);
  const { lease } = await take(name, 'noticed');
  await untilInUse(reader, name, 1);
  await lease.release('unused', null);
  passTime(300_000);
  await until(() => expect(watch).toHaveBeenCalled());
});

it('a pool that begins anew by it is heard', async () => {
  const [name = ''] = await withGroups(1);
  const reader = await snapshotOf();
  passTime(-HOUR_MS);
  await resetPool(name);
  const held = await take(name, 'a');
  expect((await untilInUse(reader, name, 1)).gone).toEqual([]);
  await held.lease.release('unused', null);
});

it('the next reader brings the beats back that the runtime would keep as much longer', async () => {
  let isSetBack = false;
  const setReal = setInterval;
  vi.spyOn(globalThis, 'setInterval').mockImplementation(((run: () => void, ms: number) => {
    const isFromBefore = !isSetBack;
    return setReal(() => (isFromBefore && isSetBack ? undefined : run()), ms);
  }) as typeof setInterval);
  await withGroups(1);
  const reader = await snapshotOf();
  isSetBack = true;
  passTime(-HOUR_MS);
  await snapshotOf();
  const beats = reader.of('beat').length;
  await until(() => expect(reader.of('beat').length).toBeGreaterThan(beats));
});
