// The live feed after ten minutes, when each stream begins anew.
import { beforeAll, expect, it } from 'vitest';
import { passTime, stopTime } from '../support/time.ts';
import { until } from '../support/worker.ts';
import { snapshotOf, usesFeed, withGroups } from './feed-scene.ts';

beforeAll(stopTime);

usesFeed();

/** Tries: on a machine that is busy with other things a reader may be behind just then, and is broken off instead. */
const NOT_BEHIND = { retry: 3 };

it(
  'a stream ends well after ten minutes and wants to be opened again at once, while later ones go on',
  NOT_BEHIND,
  async () => {
    await withGroups(1);
    const reader = await snapshotOf();
    passTime(599_000);
    const later = await snapshotOf();
    const beats = later.of('beat').length;
    await until(() => expect(later.of('beat').length).toBeGreaterThan(beats));
    expect(reader.retryMs).toBe(1_000);
    passTime(2_000);
    expect(await reader.end).toBe('done');
    expect(reader.retryMs).toBe(0);
    const after = later.of('beat').length;
    await until(() => expect(later.of('beat').length).toBeGreaterThan(after));
    expect(later.retryMs).toBe(1_000);
  },
);
