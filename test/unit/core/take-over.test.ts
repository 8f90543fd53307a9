import { describe, expect, test } from 'vitest';
import { leaseId } from '../../../src/core/words/ids.ts';
import { handedGroupOf } from '../../../src/core/hand-over.ts';
import {
  LEASE_TTL_MS,
  MOVE_SETTLE_MS,
  type GroupSettings,
} from '../../../src/core/words/settings.ts';
import { someMember, TestGroup, UNMETERED } from '../../support/core-builders.ts';

/** A pool that was on trial goes on in an object of its own. */

function handOver(
  from: TestGroup,
  to: TestGroup,
  how: 'first' | 'again' | 'beside' = 'first',
): string[] {
  return to.send({
    kind: 'take_over',
    handed: structuredClone(handedGroupOf(from.state, from.now)),
    isNew: how === 'first',
    isRepeat: how === 'again',
    firstAttachment: 1_000_000,
  });
}

const TWO = { slotsMax: 2, timeoutMs: 600_000 };

test('its leases count there, and their holders take them up', () => {
  const [from, to] = [new TestGroup(TWO), new TestGroup(TWO)];
  from.ask('a');
  from.ask('b');
  handOver(from, to);
  expect(to.state.slotsInUse).toBe(2);
  to.advance(MOVE_SETTLE_MS);
  expect(to.ask('c')).toEqual([]);
  expect(
    to.send({ kind: 'release', leaseId: leaseId('a.1'), outcome: 'success', settlement: null }),
  ).toEqual(['ended a.1', 'grant c.1']);
  // An answer of the trial was smaller: of two that carry the lease the holder keeps this one.
  expect(to.lease('b').attachment).toBeGreaterThanOrEqual(1_000_000);
});

test('a hand-over that is repeated counts nothing twice, and brings nothing back', () => {
  const [from, to] = [new TestGroup(TWO), new TestGroup(TWO)];
  from.ask('a');
  handOver(from, to);
  handOver(from, to, 'again');
  expect(to.state.slotsInUse).toBe(1);
  to.send({ kind: 'release', leaseId: leaseId('a.1'), outcome: 'success', settlement: null });
  handOver(from, to, 'again');
  expect(to.state.slotsInUse).toBe(0);
});

test('nobody younger takes the turn of who waited in the trial', () => {
  const [from, to] = [new TestGroup(TWO), new TestGroup(TWO)];
  from.ask('a');
  handOver(from, to);
  expect(to.ask('young')).toEqual([]);
  to.advance(MOVE_SETTLE_MS);
  expect(to.state.slotsInUse).toBe(2);
});

test('who waited in the trial finds its place, though others have filled the queue', () => {
  const [from, to] = [new TestGroup(), new TestGroup({ slotsMax: 1, queueLengthMax: 1 })];
  from.ask('a');
  to.advance(100);
  handOver(from, to);
  to.ask('young');
  expect(to.ask('old', { enqueuedMs: 50 })).toEqual(['reject young queue_full']);
});

test('what passes on the slots of another lease does so there, and counts itself where that has ended', () => {
  const pass = { slotsMax: 1, nested: 'pass' } as const;
  const [from, to, late] = [new TestGroup(pass), new TestGroup(pass), new TestGroup(pass)];
  from.ask('parent');
  from.ask('child', { parents: ['parent'] });
  handOver(from, to);
  expect(to.inUse()).toBe(1);
  expect(to.ask('next', { parents: ['parent'] })).toEqual([]);
  late.send({
    kind: 'release',
    leaseId: leaseId('parent.1'),
    outcome: 'success',
    settlement: null,
  });
  handOver(from, late);
  expect(late.inUse()).toBe(1);
  expect(late.lease('child').slots).toBe(1);
});

test('slots of a process before, which are held by ids, are told of as such by what is on disk', () => {
  const from = TestGroup.stored(TWO);
  from.ask('leased', { isById: true });
  const [restarted, to] = [from.restart(), TestGroup.stored(TWO)];
  handOver(restarted, to);
  expect(to.state.unclaimed.slots).toBe(1);
  expect(to.write().bound.mayOutlive).toBe(true);
});

describe('what was used of the limits', () => {
  const budgets = { perHourUsd: null, perDayUsd: 1, perMonthUsd: null };
  const METERED = {
    ...TWO,
    slotsMax: 10,
    isMetered: true,
    budgets,
    rates: { ...UNMETERED.rates, rpd: 3 },
  };
  const call = { wait: false, estimate: { price: 0.3 } };

  /** A pool on trial, one call of which has ended, and another one has not. */
  function used(settings: Partial<GroupSettings> = METERED): TestGroup {
    const from = new TestGroup(settings);
    from.ask('ended', call);
    from.release('ended');
    from.ask('held', call);
    return from;
  }

  /** Ends all calls, and returns what counts then. */
  function settled(group: TestGroup): { readonly requests: number; readonly usd: number } {
    for (const { ticketId: of } of group.state.leases.values()) group.release(of);
    const { rates, spend } = group.state.controls;
    expect(spend.reservedUsd).toBeCloseTo(0);
    const bins = rates.windows.rpd?.bins ?? [];
    return {
      requests: bins.reduce((sum, [, amount]) => sum + amount, 0),
      usd: spend.total.usd.day,
    };
  }

  test('counts on, in flight as well', () => {
    const to = new TestGroup(METERED);
    handOver(used(), to);
    to.advance(MOVE_SETTLE_MS);
    expect(to.ask('a', call)).toEqual(['grant a.1']);
    expect(to.ask('b', call)).toEqual([expect.stringContaining('reject b')]);
    expect(settled(to)).toEqual({ requests: 3, usd: expect.closeTo(0.9) });
  });

  test('counts beside what its own pool, or the pool of many partitions, has used', () => {
    const to = new TestGroup(METERED);
    to.ask('own', call);
    to.release('own');
    const from = used();
    handOver(from, to, 'beside');
    to.advance(MOVE_SETTLE_MS);
    expect(to.ask('a', call)).toEqual([expect.stringContaining('reject a')]);
    handOver(from, to, 'again');
    expect(settled(to)).toEqual({ requests: 3, usd: expect.closeTo(0.9) });
    const { keys } = to.state.controls.spend;
    expect(keys.map(({ usd }) => usd.day)).toEqual([expect.closeTo(0.9)]);
  });

  test('counts at its member', () => {
    const members = [someMember('a', { budgets, isMetered: true }), someMember('b')];
    const split = { slotsMax: Infinity, members };
    const [from, to] = [used(split), new TestGroup(split)];
    handOver(from, to);
    const spent = (group: TestGroup) => group.member('a').controls.spend;
    expect(spent(to)).toEqual(spent(from));
    expect(spent(to).total.usd.day + spent(to).reservedUsd).toBeGreaterThan(0);
    expect(to.member('b').slotsInUse).toBe(from.member('b').slotsInUse);
  });
});

test('slots of which no holder was heard since a restart stay held', () => {
  const from = TestGroup.stored(TWO);
  from.ask('lost');
  const restarted = from.restart();
  const to = new TestGroup(TWO);
  handOver(restarted, to);
  to.advance(MOVE_SETTLE_MS);
  expect(to.inUse()).toBe(1);
  expect(to.ask('a')).toEqual(['grant a.1']);
  expect(to.ask('b', { sliceMs: 600_000 })).toEqual([]);
  expect(to.advance(LEASE_TTL_MS - MOVE_SETTLE_MS)).toEqual(['grant b.1']);
});
