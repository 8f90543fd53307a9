import { describe, expect, test } from 'vitest';
import { leaseIdOf, ticketId } from '../../../src/core/words/ids.ts';
import { LEASE_TTL_MS, SETTLE_MS, TOMBSTONES_MAX } from '../../../src/core/words/settings.ts';
import { someClaim, TestGroup } from '../../support/core-builders.ts';

/** The state after a reset, from the bound on disk. */

/** A group with one slot, held by `holder`, that has just been reset `afterMs` into the lease. */
function resetGroup(afterMs = 10_000): TestGroup {
  const group = TestGroup.stored({ slotsMax: 1, timeoutMs: 600_000 });
  group.ask('holder');
  group.advance(afterMs);
  return group.restart();
}

describe('what was handed out', () => {
  test('is unclaimed until one TTL from the reset, whoever held it', () => {
    const group = resetGroup();
    group.ask('waiter', { sliceMs: 600_000 });
    expect(group.inUse()).toBe(1);
    expect(group.advance(LEASE_TTL_MS - 1)).toEqual([]);
    expect(group.wakesIn()).toBe(1);
    expect(group.advance(1)).toEqual(['grant waiter.1']);
  });

  test('belongs to no tenant and no lane, and is at no upstream', () => {
    const { accounts, slotsByLane, leases } = resetGroup().state;
    expect([...accounts.tenants.values()].map(({ slots }) => slots)).toEqual([]);
    expect(slotsByLane).toEqual({ high: 0, normal: 0, low: 0 });
    expect(leases.size).toBe(0);
  });

  test('waits for a whole TTL again after a second reset', () => {
    const first = resetGroup();
    first.advance(30_000);
    const second = first.restart();
    second.ask('waiter', { sliceMs: 600_000 });
    expect(second.advance(LEASE_TTL_MS - 1)).toEqual([]);
    expect(second.advance(1)).toEqual(['grant waiter.1']);
  });

  test('does not grow with resets in a row', () => {
    let group = TestGroup.stored({ slotsMax: 64, timeoutMs: 600_000 });
    for (let index = 0; index < 32; index += 1) group.ask(`call-${index}`);
    group = group.restart();
    const { slots } = group.state.unclaimed;
    for (let resets = 0; resets < 10; resets += 1) group = group.restart();
    expect(group.state.unclaimed.slots).toBe(slots);
  });

  test.each([1_000, 15_001, 44_000])(
    'by a dead holder is free one TTL after the last of resets every %i ms',
    (everyMs) => {
      let group = resetGroup();
      for (let resets = 0; resets < 5; resets += 1) {
        group.advance(everyMs);
        group = group.restart();
      }
      group.advance(LEASE_TTL_MS - 1);
      expect(group.inUse()).toBe(1);
      group.advance(1);
      expect(group.inUse()).toBe(0);
    },
  );
});

describe('a holder that comes back', () => {
  test('has its lease and its slots again, under a larger attachment', () => {
    const before = TestGroup.stored();
    before.ask('holder');
    const { attachment } = before.lease('holder');
    const group = before.restart();
    expect(group.resume('holder', { attachment })).toEqual(['grant holder.1']);
    expect(group.lease('holder').attachment).toBeGreaterThan(attachment);
    expect(group.inUse()).toBe(1);
    expect(group.state.totals.resurrected).toBe(0);
    expect(group.state.unclaimed.slots).toBe(0);
  });

  test('has one TTL from then on', () => {
    const group = resetGroup();
    group.advance(1_000);
    group.resume('holder');
    expect(group.lease('holder').until).toBe(group.now + LEASE_TTL_MS);
  });

  test('is dated back by what it has held its lease', () => {
    const group = resetGroup();
    group.resume('holder', { heldMs: 7_000 });
    expect(group.lease('holder').grantedAt).toBe(group.now - 7_000);
  });

  test('is known under an attachment that no instance gave out, though none was written for long', () => {
    const before = TestGroup.stored();
    before.ask('first');
    before.write();
    before.ask('second');
    for (let times = 0; times < 100; times += 1) before.ask('second');
    const { attachment } = before.lease('second');
    const next = before.reset();
    next.resume('second', { attachment });
    expect(next.lease('second').attachment).toBeGreaterThan(attachment);
  });

  test('asks anew where its answer was lost before the last write, and has its slot after one TTL', () => {
    const before = resetGroup();
    before.write();
    const group = before.reset();
    expect(group.ask('holder', { sliceMs: 600_000 })).toEqual([]);
    expect(group.advance(LEASE_TTL_MS)).toEqual(['grant holder.1']);
  });
});

describe('a lease that has ended', () => {
  test('is gone, and nobody takes a slot for it', () => {
    const before = TestGroup.stored();
    before.askAll('ended', 'holder');
    before.write();
    before.release('ended');
    const group = before.restart();
    expect(group.resume('ended')).toEqual(['gone ended']);
    expect(group.ask('ended')).toEqual(['gone ended']);
    expect(group.state.unclaimed.slots).toBe(1);
  });

  test('was being taken away: it is gone, and its slot stays unclaimed', () => {
    const before = TestGroup.stored();
    before.ask('holder');
    before.revoke('holder');
    const group = before.restart();
    expect(group.resume('holder')).toEqual(['gone holder']);
    const claim = someClaim('holder');
    const { leaseId } = claim;
    group.send({ kind: 'release', leaseId, outcome: 'cancelled', settlement: null, claim });
    expect(group.inUse()).toBe(1);
    group.advance(LEASE_TTL_MS);
    expect(group.inUse()).toBe(0);
  });
});

describe('a slot that cools down', () => {
  function coolingGroup(): TestGroup {
    const group = TestGroup.stored({ slotsMax: 1, releaseCooldownMs: 5_000, timeoutMs: 600_000 });
    group.ask('a');
    group.release('a');
    return group;
  }

  test('is unclaimed after a reset, like one that is held', () => {
    const next = coolingGroup().restart();
    expect(next.state).toMatchObject({ slotsCooling: 0, unclaimed: { slots: 1 } });
    next.ask('b', { sliceMs: 600_000 });
    expect(next.advance(LEASE_TTL_MS - 1)).toEqual([]);
    expect(next.advance(1)).toEqual(['grant b.1']);
  });

  test('is not given to a late ask or resumption of its old holder, nor freed by its release', () => {
    const next = coolingGroup().restart();
    expect(next.ask('a')).toEqual(['gone a']);
    expect(next.resume('a')).toEqual(['gone a']);
    const leaseId = leaseIdOf(ticketId('a'), 1);
    const claim = someClaim('a');
    next.send({ kind: 'release', leaseId, outcome: 'success', settlement: null, claim });
    expect(next.inUse()).toBe(1);
  });
});

describe('the settle time', () => {
  test('grants nothing until those who waited had time to come back', () => {
    const before = TestGroup.stored({ slotsMax: 3 });
    before.ask('holder', { slots: 2 });
    const group = before.restart();
    expect(group.ask('young')).toEqual([]);
    group.ask('old', { enqueuedMs: -10 });
    expect(group.advance(SETTLE_MS - 1)).toEqual([]);
    expect(group.advance(1)).toEqual(['grant old.1']);
  });

  test('is not there when nothing was ever written', () => {
    expect(TestGroup.stored().reset().ask('a')).toEqual(['grant a.1']);
  });

  test('is not there when nothing was held', () => {
    const group = TestGroup.stored();
    group.ask('a');
    group.write();
    group.release('a');
    group.advance(60_000);
    expect(group.restart().ask('b')).toEqual(['grant b.1']);
  });

  test('does not keep a holder from its own lease', () => {
    const group = resetGroup();
    expect(group.resume('holder')).toEqual(['grant holder.1']);
    expect(group.ask('holder')).toEqual(['grant holder.1']);
  });
});

test('a release that is told once more frees nothing, however many have ended in between', () => {
  const before = TestGroup.stored({ slotsMax: 100_000 });
  before.ask('holder');
  before.write();
  const { bound } = before.stored;
  if (bound === null) throw new Error('nothing was written');
  const next = before.reset({ ...before.stored, bound: { ...bound, mark: 50_000 } });
  const release = (name: string) => {
    const claim = someClaim(name);
    const { leaseId } = claim;
    next.send({ kind: 'release', leaseId, outcome: 'success', settlement: null, claim });
  };
  for (let index = 0; index <= TOMBSTONES_MAX; index += 1) release(`t${index}`);
  expect(next.state.tombstones.has(leaseIdOf(ticketId('t0'), 1))).toBe(false);
  const { slots } = next.state.unclaimed;
  release('t0');
  expect(next.state.unclaimed.slots).toBe(slots);
});
