import { afterAll, describe, expect, test } from 'vitest';
import { LANES, type Lane } from '../../../src/core/words/ticket.ts';
import { Clock } from './clock.ts';
import { SimGroup } from './sim-group.ts';
import { percent, printTable } from './table.ts';
import { gather } from './workload.ts';

/** The part of the grants that each lane gets while all that are named have waiters all the time. */

interface LanesScenario {
  readonly lanes: readonly Lane[];
  readonly shares: Record<Lane, number>;
  /** Parts of the grants, in percent, of the lanes that are named. */
  readonly expected: readonly number[];
}

const rows: string[][] = [];

function measure({ lanes, shares }: LanesScenario): number[] {
  const clock = new Clock();
  const group = new SimGroup(clock, 'group', { slotsMax: 10, laneShares: shares });
  for (const [index, lane] of lanes.entries()) {
    // One tenant in all lanes: what it has had must not matter between them.
    const callersAtOnce = { tenant: 'one', size: 40, serviceMs: 4_000, lane, groups: [group] };
    gather(clock, callersAtOnce, 0, index);
  }
  clock.runTo(3_000_000);
  const grants = lanes.map((lane) => group.grants.get(lane) ?? 0);
  const total = grants.reduce((sum, each) => sum + each, 0);
  return grants.map((each) => (100 * each) / total);
}

describe('lanes get their shares under full load', () => {
  afterAll(() => {
    printTable('Grants of each lane', ['shares of normal and low', ...LANES], rows);
  });

  test.each<LanesScenario>([
    {
      lanes: LANES,
      shares: { high: 0, normal: 0.1, low: 0.05 },
      expected: [85, 10, 5],
    },
    { lanes: LANES, shares: { high: 0, normal: 0.3, low: 0.2 }, expected: [50, 30, 20] },
    {
      lanes: ['normal', 'low'],
      shares: { high: 0, normal: 0.1, low: 0.05 },
      expected: [95, 5],
    },
    { lanes: LANES, shares: { high: 0, normal: 0, low: 0 }, expected: [100, 0, 0] },
  ])('of $shares.normal and $shares.low between $lanes', (scenario) => {
    const parts = measure(scenario);
    const { normal, low } = scenario.shares;
    const cells = LANES.map((lane) => {
      const part = parts[scenario.lanes.indexOf(lane)];
      return part === undefined ? '-' : percent(part / 100);
    });
    rows.push([`${normal} and ${low}`, ...cells]);
    for (const [index, part] of parts.entries()) {
      expect(Math.abs(part - (scenario.expected[index] ?? 0))).toBeLessThan(0.3);
    }
  });
});
