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

interface Setup {
  readonly name: string;
  /** Slots of M1, M2 and P. */
  readonly slots: readonly [number, number, number];
  readonly isBroadFirst?: boolean;
}

interface Measured {
  /** Part of P's slots in which calls run, and that are held. */
  readonly running: number;
  readonly held: number;
  readonly peaks: readonly number[];
}

const rows: string[][] = [];

function measure({ name, slots, isBroadFirst = false }: Setup): Measured {
  const clock = new Clock();
  const [m1, m2, provider] = (['M1', 'M2', 'P'] as const).map((group, index) => {
    return new SimGroup(clock, group, { slotsMax: slots[index] ?? 0 }, () => ONE_WAY_MS);
  });
  if (m1 === undefined || m2 === undefined || provider === undefined) throw new Error('no groups');
  const inOrder = (model: SimGroup) => (isBroadFirst ? [provider, model] : [model, provider]);
  const common = { serviceMs: 8_000, thinkMs: 2_000 };
  const hot = gather(
    clock,
    { ...common, tenant: 'hot', size: 40, groups: inOrder(m1) },
    FROM_MS,
    1,
  );
  const calm = gather(
    clock,
    { ...common, tenant: 'calm', size: 16, groups: inOrder(m2) },
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
    name,
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

  test('takes the narrow one first, which keeps the provider busy', () => {
    const { running, peaks } = measure({ name: '4, 12, 12: narrow first', slots: [4, 12, 12] });
    expect(running).toBeGreaterThan(0.98);
    expect(peaks).toEqual([4, 12, 12]);
  });

  test('would let the provider stand idle if it took the broad one first', () => {
    const broad = {
      name: '4, 12, 12: broad first',
      slots: [4, 12, 12],
      isBroadFirst: true,
    } as const;
    const { running, held } = measure(broad);
    expect(running).toBeLessThan(0.9);
    // Its slots are taken all the same: by calls that wait for the other group.
    expect(held).toBeGreaterThan(0.98);
  });

  test('comes through where both models and the provider are full', () => {
    const { running, peaks } = measure({ name: '6, 6, 12: narrow first', slots: [6, 6, 12] });
    expect(running).toBeGreaterThan(0.9);
    expect(peaks[2]).toBe(12);
  });

  test('leaves the provider busy where it is the narrowest of all', () => {
    const { running, peaks } = measure({ name: '4, 12, 8: narrow first', slots: [4, 12, 8] });
    expect(running).toBeGreaterThan(0.98);
    expect(peaks[2]).toBe(8);
  });
});
