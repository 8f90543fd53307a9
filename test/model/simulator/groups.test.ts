import { afterAll, describe, expect, test } from 'vitest';
import { Clock } from './clock.ts';
import { SimGroup } from './sim-group.ts';
import { mean, percent, printTable, quantile, seconds } from './table.ts';
import { gather } from './workload.ts';

/**
 * Calls that belong to a model's group and to their provider's: M1 has four slots and is hot, M2 has as
 * many as the provider P. P should never stand idle, because M2 alone could fill it.
 */

const ONE_WAY_MS = 20;
const FROM_MS = 300_000;
const TO_MS = 3_000_000;

interface SimulatorGroupsMeasured {
  /** Part of P's slots in which calls run, and that are held. */
  readonly running: number;
  readonly held: number;
  readonly peaks: readonly number[];
}

const rows: string[][] = [];

/** @param slots those of M1, M2 and P */
function measure(slots: readonly [number, number, number]): SimulatorGroupsMeasured {
  const clock = new Clock();
  const [m1, m2, provider] = (['M1', 'M2', 'P'] as const).map((group, index) => {
    return new SimGroup(clock, group, { slotsMax: slots[index] ?? 0 }, () => ONE_WAY_MS);
  });
  if (m1 === undefined || m2 === undefined || provider === undefined) throw new Error('no groups');
  const common = { serviceMs: 8_000, thinkMs: 2_000 };
  const hot = gather(
    clock,
    { ...common, tenant: 'hot', size: 40, groups: [m1, provider] },
    FROM_MS,
    1,
  );
  const calm = gather(
    clock,
    { ...common, tenant: 'calm', size: 16, groups: [m2, provider] },
    FROM_MS,
    2,
  );
  clock.runTo(FROM_MS);
  provider.run(0);
  const busyBefore = provider.busyMs;
  let held = 0;
  let looks = 0;
  for (let at = FROM_MS; at <= TO_MS; at += 1_000, looks += 1) {
    clock.runTo(at);
    held += provider.state.slotsInUse;
  }
  provider.run(0);
  const running = (provider.busyMs - busyBefore) / (TO_MS - FROM_MS) / slots[2];
  rows.push([
    slots.join(', '),
    percent(running),
    percent(held / looks / slots[2]),
    (calm.calls / ((TO_MS - FROM_MS) / 1_000)).toFixed(2),
    seconds(mean(calm.waitsMs)),
    seconds(quantile(calm.waitsMs, 0.5)),
    (hot.calls / ((TO_MS - FROM_MS) / 1_000)).toFixed(2),
  ]);
  return {
    running,
    held: held / looks / slots[2],
    peaks: [m1.peak, m2.peak, provider.peak],
  };
}

describe('a call that needs slots of two groups', () => {
  afterAll(() => {
    const head = ['slots of M1, M2 and P', 'P runs', 'P held', 'M2/s', 'mean wait', 'p50', 'M1/s'];
    printTable('Two groups at once', head, rows);
  });

  test('keeps the provider busy while it waits for a full model', () => {
    const { running, peaks } = measure([4, 12, 12]);
    expect(running).toBeGreaterThan(0.98);
    expect([peaks[0], peaks[2]]).toEqual([4, 12]);
  });

  test('comes through where both models and the provider are full', () => {
    const { running, peaks } = measure([6, 6, 12]);
    expect(running).toBeGreaterThan(0.9);
    expect(peaks[2]).toBe(12);
  });

  test('leaves the provider busy where it is the narrowest of all', () => {
    const { running, peaks } = measure([4, 12, 8]);
    expect(running).toBeGreaterThan(0.98);
    expect(peaks[2]).toBe(8);
  });
});
