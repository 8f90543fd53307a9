import { expect, test } from 'vitest';
import { leaseId } from '../../../src/core/words/ids.ts';
import { handedOf } from '../../../src/core/recover.ts';
import { MOVE_SETTLE_MS } from '../../../src/core/words/settings.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** A pool that was on trial goes on in an object of its own. */

function handOver(from: TestGroup, to: TestGroup, isNew = true): string[] {
  const { leases, controls, totals } = from.state;
  const handed = { leases: [...leases.values()].map(handedOf), controls, totals };
  return to.send({ kind: 'take_over', handed, isNew, firstAttachment: 1_000_000 });
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
  handOver(from, to, false);
  expect(to.state.slotsInUse).toBe(1);
  to.send({ kind: 'release', leaseId: leaseId('a.1'), outcome: 'success', settlement: null });
  handOver(from, to, false);
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
