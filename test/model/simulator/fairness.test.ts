import { afterAll, describe, expect, test } from 'vitest';
import type { GroupSettings } from '../../../src/core/words/settings.ts';
import { Clock } from './clock.ts';
import { SimGroup } from './sim-group.ts';
import { percent, printTable } from './table.ts';
import { fairShares, gather, type WorkloadCrowd } from './workload.ts';

/** Slot time that tenants get of one group of ten slots, against what is fair. */

const SLOTS = 10;
const FROM_MS = 200_000;
const TO_MS = 8_000_000;

type FairnessParty = Omit<WorkloadCrowd, 'groups'> & {
  /** Slots that it would use if it were alone; Infinity: more than there are. */
  readonly demand?: number;
  readonly weight?: number;
  /** How far from its share it may be: 2 % for who always wants more. */
  readonly margin?: number;
};

interface FairnessScenario {
  readonly name: string;
  readonly settings?: Partial<GroupSettings>;
  readonly parties: readonly FairnessParty[];
  /** The least part of the slots that is used. A wide call keeps slots free until it fits. */
  readonly used?: number;
}

const rows: string[][] = [];

/** Runs a scenario: what each party has, in slots, and its fair share. */
function measure({ name, settings = {}, parties, used = 0.99 }: FairnessScenario, seed: number) {
  const clock = new Clock();
  const group = new SimGroup(clock, 'group', { slotsMax: SLOTS, ...settings });
  const ledgers = parties.map((party, index) => {
    return gather(clock, { ...party, groups: [group] }, FROM_MS, seed * 100 + index);
  });
  clock.runTo(TO_MS);
  const all = ledgers.map(({ slotMs }) => slotMs / (TO_MS - FROM_MS));
  const total = all.reduce((sum, each) => sum + each, 0);
  expect(total / SLOTS, 'part of the slots that is used').toBeGreaterThan(used);
  const shares = fairShares(
    total,
    parties.map(({ demand = Infinity, weight = 1 }) => ({ demand, weight })),
  );
  return parties.map(({ tenant, agent, margin = 0.02 }, index) => {
    const had = all[index] ?? 0;
    const share = shares[index] ?? 0;
    const who = agent === undefined ? tenant : `${tenant}/${agent}`;
    const off = had / share - 1;
    rows.push([`${name}: ${who}`, had.toFixed(3), share.toFixed(3), percent(off)]);
    return { who, off, margin };
  });
}

const SCENARIOS: readonly FairnessScenario[] = [
  {
    name: 'calls of 2 s and of 30 s',
    parties: [
      { tenant: 'short', size: 40, serviceMs: 2_000 },
      { tenant: 'long', size: 40, serviceMs: 30_000 },
    ],
  },
  {
    name: 'weights 1 and 3',
    settings: { weights: { three: 3 } },
    parties: [
      { tenant: 'one', size: 40, serviceMs: 8_000 },
      { tenant: 'three', size: 40, serviceMs: 8_000, weight: 3 },
    ],
  },
  {
    name: 'weights 1 and 3, calls of 2 s and of 30 s',
    settings: { weights: { three: 3 } },
    parties: [
      { tenant: 'one', size: 40, serviceMs: 2_000 },
      { tenant: 'three', size: 40, serviceMs: 30_000, weight: 3 },
    ],
  },
  {
    name: 'a flood of 200',
    parties: [
      { tenant: 'flood', size: 200, serviceMs: 8_000 },
      { tenant: 'twelve', size: 12, serviceMs: 8_000 },
      { tenant: 'twenty', size: 20, serviceMs: 8_000 },
    ],
  },
  {
    name: 'calls of three slots and of one',
    used: 0.93,
    parties: [
      { tenant: 'wide', size: 20, serviceMs: 8_000, slots: 3 },
      { tenant: 'narrow', size: 40, serviceMs: 8_000 },
    ],
  },
  {
    // The modest one cannot be quite served: each of its calls waits for a slot to come back.
    name: 'a modest one',
    parties: [
      { tenant: 'modest', size: 2, serviceMs: 8_000, thinkMs: 8_000, demand: 1, margin: 0.25 },
      { tenant: 'greedy', size: 40, serviceMs: 8_000, margin: 0.04 },
      { tenant: 'also', size: 40, serviceMs: 8_000, margin: 0.04 },
    ],
  },
  {
    name: 'agents of one tenant',
    settings: { byAgent: true },
    parties: [
      { tenant: 'one', agent: 'short', size: 30, serviceMs: 2_000 },
      { tenant: 'one', agent: 'long', size: 60, serviceMs: 30_000 },
    ],
  },
];

describe('slot time is shared fairly', () => {
  afterAll(() => {
    printTable('Slots that each has, of 10', ['', 'has', 'fair', 'off'], rows);
  });

  test.each(SCENARIOS)('between $name', (scenario) => {
    for (const { who, off, margin } of measure(scenario, 1)) {
      expect(Math.abs(off), `${who} is ${percent(off)} off`).toBeLessThanOrEqual(margin);
    }
  });
});

test('a tenant that comes and goes saves up no credit while it is away', () => {
  const clock = new Clock();
  const group = new SimGroup(clock, 'group', { slotsMax: SLOTS });
  const periodMs = 1_600_000;
  const steady = { tenant: 'steady', size: 40, serviceMs: 4_000, groups: [group] };
  const comes = { ...steady, tenant: 'comes', onOffMs: periodMs };
  const ledgers = [gather(clock, steady, FROM_MS, 1), gather(clock, comes, FROM_MS, 2)];
  clock.runTo(TO_MS);
  const [always = 0, half = 0] = ledgers.map(({ slotMs }) => slotMs / (TO_MS - FROM_MS));
  // Half of the time half of the slots; with credit it would have had nearly all of them then.
  expect(half).toBeGreaterThan(0.94 * 2.5);
  expect(half).toBeLessThan(1.06 * 2.5);
  expect(always + half).toBeGreaterThan(0.999 * SLOTS);
});
