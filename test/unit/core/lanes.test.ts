import { describe, expect, test } from 'vitest';
import type { GroupSettings } from '../../../src/core/words/settings.ts';
import { LANES, type Lane } from '../../../src/core/words/ticket.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** Lanes: strict, but for the turns that the lower ones earn. */

/** A group whose only slot is taken, and `counts` calls that wait in each lane. */
function waitingGroup(
  counts: Partial<Record<Lane, number>>,
  changes: Partial<GroupSettings> = {},
): TestGroup {
  const group = new TestGroup({ slotsMax: 1, queueLengthMax: 5_000, ...changes });
  group.ask('holder');
  for (const lane of LANES.toReversed()) {
    for (let index = 0; index < (counts[lane] ?? 0); index += 1) {
      group.ask(`${lane}-${index}`, { lane });
    }
  }
  return group;
}

/** The lanes of the next grants, as letters. */
function nextLanes(group: TestGroup, count: number): string {
  let letters = '';
  for (let granted = 0; granted < count; granted += 1) {
    const [lease] = group.state.leases.values();
    if (lease === undefined) break;
    group.release(lease.ticketId, 'unused');
    letters += [...group.state.leases.values()][0]?.lane[0] ?? '';
  }
  return letters;
}

const NO_SHARES = { laneShares: { high: 0, normal: 0, low: 0 } };

test('high goes before normal, and normal before low, whenever they came', () => {
  const group = waitingGroup({ high: 2, normal: 2, low: 2 }, NO_SHARES);
  expect(nextLanes(group, 6)).toBe('hhnnll');
});

test('a high call overtakes 500 low ones and waits for one slot at most', () => {
  const group = waitingGroup({ low: 500 });
  group.ask('urgent', { lane: 'high' });
  expect(group.release('holder')).toEqual(['ended holder.1', 'grant urgent.1']);
});

test('every tenth grant goes to normal, every twentieth to low', () => {
  const group = waitingGroup({ high: 400, normal: 100, low: 100 });
  const letters = nextLanes(group, 215);
  const count = (lane: string) => letters.split(lane).length - 1;
  expect([count('h'), count('n'), count('l')]).toEqual([184, 21, 10]);
  expect(letters.slice(0, 22)).toBe('hhhhhhhhhhnhhhhhhhhhln');
});

test('a share of 0 is none: the lane starves', () => {
  const group = waitingGroup({ high: 300, normal: 1, low: 1 }, NO_SHARES);
  expect(nextLanes(group, 300)).toBe('h'.repeat(300));
  expect(group.waiting()).toEqual(['normal-0', 'low-0']);
});

test('a lane earns nothing while nobody waits there', () => {
  const group = waitingGroup({ high: 60 });
  nextLanes(group, 30);
  group.ask('late', { lane: 'normal' });
  expect(nextLanes(group, 10)).toBe('h'.repeat(10));
  expect(nextLanes(group, 1)).toBe('n');
});

test('a lane that could not be served catches up with two turns and no more', () => {
  const group = new TestGroup({ slotsMax: 2, slotsMaxEach: 1, queueLengthMax: 200 });
  group.ask('ann-holds', { tenant: 'ann' });
  group.ask('high-0', { tenant: 'high-0', lane: 'high' });
  for (let index = 0; index < 5; index += 1) group.ask(`ann-${index}`, { tenant: 'ann' });
  for (let index = 1; index <= 50; index += 1) {
    group.ask(`high-${index}`, { tenant: `high-${index}`, lane: 'high' });
  }
  for (let index = 0; index < 40; index += 1) group.release(`high-${index}`, 'unused');
  expect(group.lease('high-40').lane).toBe('high');
  expect(group.state.laneCredit.normal).toBe(2);
});

test('the lane that is owed more goes first', () => {
  const group = waitingGroup({ high: 3, normal: 3, low: 3 });
  Object.assign(group.state.laneCredit, { normal: 1, low: 1.5 });
  expect(nextLanes(group, 3)).toBe('lnh');
});

describe('an operator', () => {
  test('puts a waiter first, before all lanes and tenants', () => {
    const group = waitingGroup({ high: 2, low: 2 });
    group.promote('low-1');
    expect(group.release('holder')).toContain('grant low-1.1');
  });

  test('puts the best of several first that were put first', () => {
    const group = waitingGroup({ high: 1, normal: 2, low: 2 });
    group.promote('low-1');
    group.promote('normal-1');
    expect(group.release('holder')).toContain('grant normal-1.1');
    expect(group.release('normal-1')).toContain('grant low-1.1');
    expect(group.release('low-1')).toContain('grant high-0.1');
  });

  test('gives one that was put first no slot while nobody stands behind it', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.ask('holder');
    group.ask('away', { sliceMs: 100, lane: 'low' });
    group.ask('here');
    group.promote('away');
    group.advance(100);
    expect(group.release('holder')).toContain('grant here.1');
    expect(group.ask('away', { lane: 'low' })).toEqual([]);
    expect(group.release('here')).toContain('grant away.1');
  });

  test('changes the lane of a waiter, which keeps its age there', () => {
    const group = waitingGroup({ normal: 2, low: 1 });
    group.promote('low-0', 'normal');
    expect(group.waiting()).toEqual(['low-0', 'normal-0', 'normal-1']);
    expect(group.state.queue.lanes.low.length).toBe(0);
    expect(group.release('holder')).toContain('grant low-0.1');
    expect(group.lease('low-0').lane).toBe('normal');
  });

  test('puts a waiter back into a lower lane', () => {
    const group = waitingGroup({ high: 1, normal: 1 });
    group.promote('high-0', 'low');
    expect(group.waiting()).toEqual(['normal-0', 'high-0']);
  });

  test('does both at once, and the first place stays with a later change of lane', () => {
    const group = waitingGroup({ normal: 1, low: 2 });
    group.promote('low-1', 'normal', true);
    group.promote('low-1', 'low');
    expect(group.release('holder')).toContain('grant low-1.1');
  });

  test('promotes nobody whom nobody knows', () => {
    const group = waitingGroup({ normal: 1 });
    expect(group.promote('stranger')).toEqual([]);
    expect(group.promote('holder')).toEqual([]);
    expect(group.waiting()).toEqual(['normal-0']);
  });
});

test('what a lane holds is counted, and given back', () => {
  const group = new TestGroup({ slotsMax: 5 });
  group.ask('a', { lane: 'low', slots: 2 });
  group.ask('b', { lane: 'high' });
  expect(group.state.slotsByLane).toEqual({ high: 1, normal: 0, low: 2 });
  group.release('a');
  expect(group.state.slotsByLane).toEqual({ high: 1, normal: 0, low: 0 });
});

/** The holder of the only slot lets go after a while. */
function next(group: TestGroup, heldMs: number): void {
  group.now = (group.now + heldMs) as typeof group.now;
  const [lease] = group.state.leases.values();
  group.release(lease?.ticketId ?? '');
}

describe('who begins to wait in a lane', () => {
  /** High and low are full of ann's and bob's calls; ann has been served for long. */
  function uneven(): TestGroup {
    const laneShares = { high: 0, normal: 0, low: 0 };
    const group = new TestGroup({ slotsMax: 1, timeoutMs: 600_000, laneShares });
    group.ask('low-1', { tenant: 'bob', lane: 'low', sliceMs: 600_000 });
    group.ask('low-2', { tenant: 'bob', lane: 'low', sliceMs: 600_000 });
    for (const name of ['ann-1', 'ann-2', 'ann-3', 'ann-4']) {
      group.ask(name, { tenant: 'ann', lane: 'high', sliceMs: 600_000 });
    }
    for (const heldMs of [1_000, 40_000, 40_000]) next(group, heldMs);
    return group;
  }

  test('starts level with those there, not with those of a lane that is hardly served', () => {
    const group = uneven();
    expect(group.service('bob', 'low')).toBe(1_000);
    group.ask('new', { tenant: 'new', lane: 'high' });
    expect(group.service('new', 'high')).toBe(group.service('ann', 'high'));
  });

  test('brings no credit along from waiting in a lane that is hardly served', () => {
    const group = uneven();
    group.ask('high', { tenant: 'bob', lane: 'high' });
    expect(group.service('bob', 'high')).toBe(group.service('ann', 'high'));
    expect(group.waiting()).toEqual(['ann-4', 'high', 'low-2']);
  });

  test('starts where the last one was granted there, if nobody waits there', () => {
    const group = uneven();
    const level = group.service('ann', 'high') - group.lease('ann-3').chargedMs;
    next(group, 40_000);
    group.ask('new', { tenant: 'new', lane: 'high' });
    expect(group.service('new', 'high')).toBe(level + 40_000);
  });

  test('keeps its place in another lane, until it is served', () => {
    const group = uneven();
    group.ask('low-3', { tenant: 'cid', lane: 'low', sliceMs: 600_000 });
    expect(group.waiting()).toEqual(['ann-4', 'low-2', 'low-3']);
    group.ask('high', { tenant: 'bob', lane: 'high', sliceMs: 600_000 });
    expect(group.waiting()).toEqual(['ann-4', 'high', 'low-2', 'low-3']);
    for (const heldMs of [40_000, 40_000]) next(group, heldMs);
    expect(group.waiting()).toEqual(['low-3', 'low-2']);
  });

  test('does not fall behind in its own lane because those in another have had far more', () => {
    const laneShares = { high: 0, normal: 0, low: 0 };
    const group = new TestGroup({ slotsMax: 1, timeoutMs: 600_000, laneShares }).learned();
    const high = (tenant: string, ...names: string[]) => {
      for (const name of names) group.ask(name, { tenant, lane: 'high', sliceMs: 600_000 });
    };
    high('ann', 'ann-1', 'ann-2', 'ann-3');
    high('bob', 'bob-1', 'bob-2');
    group.ask('night', { tenant: 'night', lane: 'low' });
    for (const share of Object.values(group.state.accounts.tenants.get('night')?.shares ?? {})) {
      share.service += 3_600_000;
    }
    group.ask('ann-low', { tenant: 'ann', lane: 'low' });
    expect(group.service('ann', 'low')).toBeGreaterThanOrEqual(3_600_000);
    const served = [1, 2, 3, 4].map(() => {
      next(group, 10_000);
      return [...group.state.leases.values()].map(({ ticketId }) => ticketId).join();
    });
    expect(served).toEqual(['ann-2', 'bob-1', 'ann-3', 'bob-2']);
  });

  test('gets no more back than what it had when it began to wait anywhere', () => {
    const group = uneven();
    group.ask('high', { tenant: 'bob', lane: 'high' });
    const { floor } = group.state.accounts.tenants.get('bob')?.shares.high ?? {};
    group.ask('normal', { tenant: 'bob', lane: 'normal' });
    expect(floor).toBe(group.service('ann', 'high'));
    expect(group.state.accounts.tenants.get('bob')?.shares.high.floor).toBe(floor);
  });
});
