import { expect, test } from 'vitest';
import { leaseIdOf, ticketId } from '../../../src/core/words/ids.ts';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { TestGroup, type AskOptions } from '../../support/core-builders.ts';

/** Calls that pass on the slots of the call that they are made for. */

/** All slots are held by the parent. */
function nestedGroup(slotsMax = 1): TestGroup {
  const group = TestGroup.stored({ slotsMax, nested: 'pass', timeoutMs: 600_000 });
  group.ask('parent', { slots: slotsMax });
  return group;
}

/** Makes the options of a child of these parents. */
function childOf(...parents: string[]): AskOptions {
  return { parents, sliceMs: 600_000 };
}

/** The parent, as the holder of a child tells of it after a reset. */
const PARENT = leaseIdOf(ticketId('parent'), 1);
const NESTED = { nested: { in: PARENT, slots: 1 } };

/** Of how many leases it is noted that others pass on them. */
function parentsNoted({ state }: TestGroup): number {
  return state.nestedIn.size;
}

test('as many pass as the lease has slots; the others wait and pass one after the other', () => {
  const group = nestedGroup(2);
  expect(group.ask('a', childOf('parent'))).toEqual(['grant a.1']);
  expect(group.ask('b', childOf('parent'))).toEqual(['grant b.1']);
  expect(group.ask('c', childOf('parent'))).toEqual([]);
  expect(group.ask('d', childOf('parent'))).toEqual([]);
  expect(group.release('a')).toEqual(['ended a.1', 'grant c.1']);
  expect(group.waiting()).toEqual(['d']);
  expect(group.inUse()).toBe(2);
  expect(group.release('b')).toEqual(['ended b.1', 'grant d.1']);
  group.release('c');
  group.release('d');
  expect(parentsNoted(group)).toBe(0);
});

test('a wide one takes as many of them as it has slots', () => {
  const group = nestedGroup(3);
  expect(group.ask('wide', { ...childOf('parent'), slots: 2 })).toEqual(['grant wide.1']);
  expect(group.ask('next', { ...childOf('parent'), slots: 2 })).toEqual([]);
  expect(group.ask('narrow', childOf('parent'))).toEqual(['grant narrow.1']);
  expect(group.release('wide')).toEqual(['ended wide.1', 'grant next.1']);
});

test('one that is wider than its parent is rejected: no wait would help', () => {
  const group = new TestGroup({ slotsMax: 2, nested: 'pass' });
  group.ask('parent');
  expect(group.ask('wide', { ...childOf('parent'), slots: 2 })).toEqual(['reject wide nested']);
});

test('another caller waits like anybody, whatever it claims', () => {
  const group = nestedGroup();
  expect(group.ask('stranger', { ...childOf('parent'), caller: 'another' })).toEqual([]);
  expect(group.ask('same', { ...childOf('parent'), caller: 'somebody' })).toEqual(['grant same.1']);
  const ofStranger = { ...childOf('same'), caller: 'another' };
  expect(group.ask('deeper', ofStranger)).toEqual([]);
  expect(group.waiting()).toEqual(['stranger', 'deeper']);
  group.release('same');
  expect(group.release('parent')).toEqual(['ended parent.1', 'grant stranger.1']);
});

test('tenants do not matter: the caller counts', () => {
  const group = nestedGroup();
  const child = { ...childOf('parent'), tenant: 'another', caller: 'somebody' };
  expect(group.ask('child', child)).toEqual(['grant child.1']);
});

test('a chain passes on the slots of its first call, and no further', () => {
  const group = nestedGroup(2);
  expect(group.ask('a', childOf('parent'))).toEqual(['grant a.1']);
  expect(group.ask('b', childOf('a'))).toEqual(['grant b.1']);
  expect(group.ask('sibling', childOf('parent'))).toEqual([]);
  expect(group.ask('c', childOf('a', 'b'))).toEqual(['reject c nested']);
});

test('one that outlives its parent counts itself: no chain gets past the limit', () => {
  const group = nestedGroup();
  group.ask('a', childOf('parent'));
  expect(group.ask('waits', childOf('parent'))).toEqual([]);
  expect(group.release('parent')).toEqual(['ended parent.1']);
  expect(group.inUse()).toBe(1);
  expect(group.release('a')).toEqual(['ended a.1', 'grant waits.1']);
});

test('one that has outlived its parent lets nobody pass, or its caller would keep the slot for ever', () => {
  const group = nestedGroup();
  group.ask('a', childOf('parent'));
  group.release('parent');
  expect(group.ask('b', childOf('a'))).toEqual(['reject b nested']);
  const next = group.restart();
  next.resume('a', NESTED);
  next.advance(1_000);
  expect(next.ask('c', childOf('a'))).toEqual(['reject c nested']);
});

test('of what a nested call held before its parent ended nothing is charged, and nothing comes back', () => {
  const group = nestedGroup().learned();
  group.ask('a', childOf('parent'));
  group.advance(1_000);
  group.release('parent');
  const before = group.service('somebody');
  group.advance(1_000);
  group.release('a');
  expect(group.service('somebody')).toBe(before + 1_000);
});

test('it counts itself too where the parent lapses, and is charged from then on', () => {
  const group = nestedGroup();
  group.ask('a', childOf('parent'));
  group.advance(40_000);
  group.renew('a');
  const before = group.service('somebody');
  group.advance(5_000);
  expect(group.lease('a').slots).toBe(1);
  const atLapse = group.service('somebody');
  expect(atLapse).toBeGreaterThanOrEqual(before);
  group.advance(1_000);
  group.release('a');
  expect(group.service('somebody')).toBeGreaterThan(atLapse);
});

test('who waits for room on a lease may take a free slot in its turn', () => {
  const group = nestedGroup();
  group.ask('a', childOf('parent'));
  expect(group.ask('b', childOf('parent'))).toEqual([]);
  expect(group.reconfigure({ slotsMax: 2 })).toEqual(['grant b.1']);
  expect(group.lease('b').slots).toBe(1);
  expect(group.inUse()).toBe(2);
});

test('when a wide one passes that barred the queue, the next in line goes', () => {
  const group = new TestGroup({ slotsMax: 3, nested: 'pass', timeoutMs: 600_000 });
  group.ask('parent', { slots: 2 });
  expect(group.ask('a', childOf('parent'))).toEqual(['grant a.1']);
  expect(group.ask('b', childOf('parent'))).toEqual(['grant b.1']);
  expect(group.ask('wide', { ...childOf('parent'), slots: 2 })).toEqual([]);
  expect(group.ask('other', { sliceMs: 600_000 })).toEqual([]);
  group.release('a');
  expect(group.release('b')).toEqual(['ended b.1', 'grant wide.1', 'grant other.1']);
});

test('who nobody is parked behind passes once its caller asks again', () => {
  const group = nestedGroup();
  group.ask('a', childOf('parent'));
  group.ask('b', { parents: ['parent'], sliceMs: 1_000 });
  group.advance(1_000);
  expect(group.release('a')).toEqual(['ended a.1']);
  expect(group.ask('b', childOf('parent'))).toEqual(['grant b.1']);
});

test.each([
  ['parent', 'a'],
  ['a', 'parent'],
])('after a reset a child passes on again, where the first to come back is %s', (...order) => {
  const group = nestedGroup();
  group.ask('a', childOf('parent'));
  const next = group.restart();
  expect(next.inUse(), 'one that outlives its parent needs no write').toBe(2);
  for (const name of order) next.resume(name, name === 'a' ? NESTED : {});
  expect(next.lease('a')).toMatchObject({ slots: 0, ...NESTED });
  expect(next.inUse()).toBe(1);
  expect(next.state.totals.resurrected).toBe(0);
  next.advance(1_000);
  expect(next.ask('b', childOf('parent'))).toEqual([]);
  expect(next.release('a')).toEqual(['ended a.1', 'grant b.1']);
});

test('after a reset that its parent does not outlive a child counts itself', () => {
  const group = nestedGroup();
  group.ask('a', childOf('parent'));
  const next = group.restart();
  next.resume('a', NESTED);
  expect(next.advance(LEASE_TTL_MS - 1)).toEqual([]);
  next.renew('a');
  next.advance(1);
  expect(next.inUse()).toBe(1);
  expect(next.lease('a').slots).toBe(1);
  expect(next.state.seekingParent.size, 'no parent comes any more').toBe(0);
  expect(next.ask('next', { sliceMs: 600_000 })).toEqual([]);
});

test('after a reset nobody passes on a lease in place of a child that may be on its way', () => {
  const group = nestedGroup();
  group.ask('a', childOf('parent'));
  const next = group.restart();
  next.resume('parent');
  expect(next.ask('b', childOf('parent'))).toEqual([]);
  expect(next.advance(LEASE_TTL_MS - 1)).toEqual([]);
  expect(next.state.unclaimed.slots).toBe(1);
  next.renew('parent');
  expect(next.advance(1), 'nobody else comes any more').toEqual(['grant b.1']);
});

test('after a reset who is made for a call that was granted since passes on at once', () => {
  const group = TestGroup.stored({ slotsMax: 2, nested: 'pass' });
  group.askAll('a', 'b');
  const next = group.restart();
  next.resume('a');
  next.release('a');
  next.advance(1_000);
  expect(next.ask('fresh')).toEqual(['grant fresh.1']);
  expect(next.state.unclaimed.slots).toBe(1);
  expect(next.ask('child', childOf('fresh'))).toEqual(['grant child.1']);
});

test('a child that cools down when its parent comes back stays down', () => {
  const group = nestedGroup();
  group.reconfigure({ releaseCooldownMs: 5_000 });
  group.ask('a', childOf('parent'));
  const next = group.restart();
  next.resume('a', NESTED);
  next.release('a');
  next.resume('parent');
  expect(next.inUse()).toBe(2);
  next.advance(5_000);
  expect(next.inUse()).toBe(1);
});

test('a child that comes back counts itself where another one has taken its place meanwhile', () => {
  const group = nestedGroup();
  group.ask('a', childOf('parent'));
  const next = group.restart();
  next.resume('parent', { hasLapsed: true });
  next.advance(1_000);
  expect(next.ask('b', childOf('parent'))).toEqual(['grant b.1']);
  next.resume('a', NESTED);
  expect([next.lease('a').slots, next.lease('b').slots]).toEqual([1, 0]);
});
