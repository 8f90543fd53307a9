// The live feed after ten minutes, when each stream begins anew.
import { beforeAll, expect, it } from 'vitest';
import { passTime, stopTime } from '../support/time.ts';
import { until } from '../support/worker.ts';
import { snapshotOf, usesFeed, withGroups } from './feed-scene.ts';

beforeAll(stopTime);

usesFeed();

it('a stream ends well after ten minutes and wants to be opened again at once, while later ones go on', async () => {
  await withGroups(1);
  const reader = await snapshotOf();
  passTime(599_000);
  const later = await snapshotOf();
  const beats = later.of('beat').length;
  await until(() => expect(later.of('beat').length).toBeGreaterThan(beats));
  expect(reader.retryMs).toBe(1_000);
  passTime(2_000);
  await until(() => expect(reader.retryMs).toBe(0));
  expect(await reader.end).toBe('done');
  expect(reader.retryMs).toBe(0);
  const after = later.of('beat').length;
  await until(() => expect(later.of('beat').length).toBeGreaterThan(after));
  expect(later.retryMs).toBe(1_000);
});
