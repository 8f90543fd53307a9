import { Clock } from './clock.ts';
import { SimGroup } from './sim-group.ts';
import { mean } from './table.ts';
import { gather } from './workload.ts';

/** Calls that need slots of two groups, among calls that need one of them: how long each of them waits. */

const ONE_WAY_MS = 5;

/** Calls that come before are not measured: their groups fill up. */
const FROM_MS = 30_000;

interface Class {
  readonly name: string;
  /** The groups that its calls need, by their places in the list. */
  readonly needs: readonly number[];
  readonly callers: number;
  readonly holdMs: number;
  readonly thinkMs?: number;
}

export interface SeveralGroupsScenario {
  readonly name: string;
  readonly forMs: number;
  /** Slots of each group. */
  readonly slots: readonly number[];
  /** Maximum slots of a tenant in each of them. Absent: as many as there are. */
  readonly slotsMaxEach?: readonly number[];
  readonly classes: readonly Class[];
}

export interface SeveralGroupsPlayed {
  /** Part of all slots in which calls run. */
  readonly busy: number;
  /** Slots given back unused, for each call of several groups. */
  readonly returns: number;
  /** Of each class. */
  readonly classes: readonly {
    readonly name: string;
    readonly perSecond: number;
    readonly meanWaitMs: number;
  }[];
}

const KEY_CALLS = { name: 'of the key', needs: [0, 2], callers: 2, holdMs: 400, thinkMs: 1_000 };
const OTHERS = { name: 'others', needs: [2], callers: 4, holdMs: 400 };
const STUCK = { name: 'stuck', needs: [0, 1], callers: 3, holdMs: 1e9 };

/** A key of four slots, a stalled group of one, and a group of two that the key shares with others. */
const KEY = { slots: [4, 1, 2], forMs: 3_600_000 };

function ofTwo(
  callers: readonly [first: number, second: number, both: number],
  holdMs: number,
): Class[] {
  const [first, second, both] = callers;
  return [
    { name: 'of the first', needs: [0], callers: first, holdMs },
    { name: 'of the second', needs: [1], callers: second, holdMs },
    { name: 'of both', needs: [0, 1], callers: both, holdMs },
  ];
}

/** A full group, and one with room, of which each tenant may have one slot. */
const CAPPED = { slots: [4, 4], slotsMaxEach: [4, 1], forMs: 600_000 };

function cappedCalls(callers: number): Class[] {
  return [
    { name: 'of the first', needs: [0], callers: 12, holdMs: 500 },
    { name: 'of both', needs: [0, 1], callers: 1, holdMs: 500, thinkMs: 500 },
    { name: 'of the capped tenant', needs: [0, 1], callers, holdMs: 5_000 },
  ];
}

export const SCENARIOS = {
  before: { ...KEY, name: 'a key, nothing stalled', classes: [KEY_CALLS, OTHERS] },
  stalled: {
    ...KEY,
    name: 'a key, one of its groups stalled',
    classes: [KEY_CALLS, OTHERS, STUCK],
  },
  full: {
    name: 'two full groups of 8 and 6',
    slots: [8, 6],
    forMs: 600_000,
    classes: ofTwo([12, 12, 6], 1_000),
  },
  crowded: {
    name: 'the same, with ten times as many calls of both',
    slots: [8, 6],
    forMs: 600_000,
    classes: ofTwo([12, 12, 60], 1_000),
  },
  wide: {
    name: 'a full group of 1 and one of 50',
    slots: [1, 50],
    forMs: 900_000,
    classes: ofTwo([3, 80, 3], 2_000),
  },
  uncapped: { ...CAPPED, name: 'a cap in the second group', classes: cappedCalls(1) },
  capped: { ...CAPPED, name: 'the same, used up by many calls', classes: cappedCalls(100) },
  cappedForMinutes: {
    name: 'two groups of 1, all used up by a tenant with calls of minutes',
    slots: [1, 1],
    slotsMaxEach: [1, 1],
    forMs: 60_000_000,
    classes: ofTwo([8, 4, 2], 300_000),
  },
  single: {
    name: 'two full groups of 1',
    slots: [1, 1],
    forMs: 3_600_000,
    classes: ofTwo([2, 2, 2], 2_000),
  },
} as const satisfies Record<string, SeveralGroupsScenario>;

/** @param isShared every class is a tenant of its own, else all are one */
export function play(
  { slots, slotsMaxEach = [], forMs, classes }: SeveralGroupsScenario,
  isShared: boolean,
): SeveralGroupsPlayed {
  const clock = new Clock();
  let returned = 0;
  const groups = slots.map((slotsMax, index) => {
    const { [index]: most = Infinity } = slotsMaxEach;
    const settings = { slotsMax, slotsMaxEach: most };
    const group = new SimGroup(clock, `group-${index}`, settings, () => ONE_WAY_MS);
    const release = group.release.bind(group);
    group.release = (ticket, leaseId, outcome) => {
      if (outcome === 'unused') returned += 1;
      release(ticket, leaseId, outcome);
    };
    return group;
  });
  const ledgers = classes.map((one, index) => {
    const needed = one.needs.flatMap((at) => groups[at] ?? []);
    const { callers: size, holdMs: serviceMs, thinkMs = 1 } = one;
    const tenant = isShared ? one.name : 'one';
    const callersAtOnce = { tenant, size, serviceMs, variation: 1, thinkMs, groups: needed };
    return { ...one, ledger: gather(clock, callersAtOnce, FROM_MS, index + 1) };
  });
  clock.runTo(forMs);
  for (const group of groups) group.run(0);
  const all = slots.reduce((sum, one) => sum + one, 0);
  const wide = ledgers.filter(({ needs }) => needs.length > 1);
  return {
    busy: groups.reduce((sum, { busyMs }) => sum + busyMs, 0) / all / forMs,
    returns: returned / wide.reduce((sum, { ledger }) => sum + ledger.calls, 1),
    classes: ledgers.map(({ name, ledger }) => ({
      name,
      perSecond: ledger.calls / ((forMs - FROM_MS) / 1_000),
      meanWaitMs: mean(ledger.waitsMs),
    })),
  };
}

/** Mean wait of a class in milliseconds. */
export function waitOf({ classes }: SeveralGroupsPlayed, name: string): number {
  const found = classes.find((one) => one.name === name);
  if (found === undefined) throw new Error(`no calls ${name}`);
  return found.meanWaitMs;
}
