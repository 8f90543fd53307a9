// The promises that are checked where a group runs: a state that was damaged makes each of them count.
import { beforeEach, expect, test } from 'vitest';
import { after, leaseIdOf, ticketId, type LeaseId } from '../../../src/core/words/ids.ts';
import { endLease } from '../../../src/core/leases.ts';
import { INVARIANTS, type Invariant } from '../../../src/core/parts/totals.ts';
import { step } from '../../../src/core/step.ts';
import { handedGroupOf } from '../../../src/core/hand-over.ts';
import { checkMark } from '../../../src/core/stats.ts';
import { someTicket, TestGroup } from '../../support/core-builders.ts';

let group: TestGroup;

beforeEach(() => {
  group = TestGroup.stored({ slotsMax: 20 });
});

const idOf = (name: string): LeaseId => leaseIdOf(ticketId(name), 1);

/** Asks without the check that makes every other test fail. */
function ask(name: string, changes: Parameters<typeof someTicket>[2] = {}): void {
  const ticket = someTicket(name, group.now, changes);
  const event = { kind: 'acquire', ticket, leaseId: idOf(name), sliceMs: 30_000 } as const;
  group.effects = step(group.state, event, group.now);
}

function fill(slots: number): void {
  for (let index = 0; index < slots; index += 1) group.ask(`held-${index}`);
}

/** Lists the invariants that were broken, with how often. */
function violations(): Partial<Record<Invariant, number>> {
  const broken = Object.entries(group.state.totals.violations).filter(([, count]) => count > 0);
  return Object.fromEntries(broken);
}

test('above_limit: a slot that was counted out twice is handed out again', () => {
  fill(20);
  group.state.slotsInUse -= 1;
  group.member().slotsInUse -= 1;
  ask('one-too-many');
  expect(group.state.leases.has(idOf('one-too-many'))).toBe(true);
  expect(violations()).toEqual({ above_limit: 1 });
});

test('above_limit: slots that nobody has claimed are forgotten', () => {
  fill(20);
  group.write();
  group = group.reset();
  expect(group.state.unclaimed.slots).toBeGreaterThanOrEqual(20);
  group.state.slotsInUse = 0;
  group.member().slotsInUse = 0;
  group.now = after(group.now, 1_000);
  ask('one-too-many');
  expect(violations()).toEqual({ above_limit: 1 });
});

test('above_limit: not by a call that is wider than what was learned, nor in a dry run, nor after a lowered limit', () => {
  group.state.controls.ceiling.slots = 1;
  group.ask('wide', { slots: 3 });
  expect(group.inUse()).toBe(3);
  group.reconfigure({ isDryRun: true });
  group.askAll('dry', 'drier');
  group.reconfigure({ isDryRun: false });
  group.ask('waits');
  expect(group.waiting()).toEqual(['waits']);
  expect(violations()).toEqual({});
});

test('above_limit: not by a call that passes on the slots of another one, nor by what outlives that', () => {
  group.reconfigure({ slotsMax: 1, nested: 'pass' });
  group.ask('parent');
  group.ask('child', { parents: ['parent'] });
  expect(group.state.leases.size).toBe(2);
  group.release('parent');
  group.release('child');
  group.ask('next');
  expect(violations()).toEqual({});
});

test('above_mark: what is granted is not counted against the last write', () => {
  fill(9);
  group.write();
  const { confirmed } = group.state.bound;
  if (confirmed === null) throw new Error('nothing was written');
  const margin = confirmed.mark - confirmed.held;
  expect(margin).toBeGreaterThan(0);
  for (let index = 0; index <= margin; index += 1) {
    expect(violations()).toEqual({});
    ask(`unwritten-${index}`);
    confirmed.granted = 0;
  }
  expect(violations()).toEqual({ above_mark: 1 });
});

test('above_mark: an answer leaves behind a write that does not cover it', () => {
  fill(9);
  checkMark(group.state, 9);
  expect(violations()).toEqual({});
  checkMark(group.state, 8);
  expect(violations()).toEqual({ above_mark: 1 });
});

test('above_mark: not where nothing is stored', () => {
  group = new TestGroup();
  group.ask('a');
  checkMark(group.state, 0);
  expect(violations()).toEqual({});
});

test('granted_twice: a lease is there already', () => {
  group.reconfigure({ slotsMax: 1 });
  group.askAll('held', 'twice');
  group.state.leases.set(idOf('twice'), group.lease('held'));
  step(
    group.state,
    { kind: 'release', leaseId: idOf('held'), outcome: 'success', settlement: null },
    group.now,
  );
  expect(violations()).toEqual({ granted_twice: 1 });
});

test('granted_twice: an attempt has ended', () => {
  group.reconfigure({ slotsMax: 1 });
  group.askAll('held', 'twice');
  group.state.tombstones.add(idOf('twice'), group.now);
  step(
    group.state,
    { kind: 'release', leaseId: idOf('held'), outcome: 'success', settlement: null },
    group.now,
  );
  expect(violations()).toEqual({ granted_twice: 1 });
});

test.each([0, 1_000])('settled_twice: a lease ends again, with a cool-down of %i ms', (coolMs) => {
  group.reconfigure({ releaseCooldownMs: coolMs });
  group.ask('a');
  const lease = group.lease('a');
  endLease(group.state, lease, 'success', null, group.now, []);
  expect(violations()).toEqual({});
  endLease(group.state, lease, 'success', null, group.now, []);
  expect(violations()).toEqual({ settled_twice: 1 });
  expect(group.state.slotsInUse).toBe(coolMs > 0 ? 1 : 0);
});

test('a pool that takes over another one’s leases counts them as handed out', () => {
  const verification = new TestGroup({ slotsMax: 20 });
  verification.askAll('x', 'y', 'z', 'u', 'v');
  group.ask('own');
  group.write();
  const handed = handedGroupOf(verification.state, verification.now);
  group.send({ kind: 'take_over', handed, isNew: false, isRepeat: true, firstAttachment: 1 });
  group.now = after(group.now, 1_000);
  group.ask('next');
  expect(group.asksToWrite()).toBe('behind');
});

test('the check of the tests tells each of them', () => {
  for (const invariant of INVARIANTS) {
    group = new TestGroup();
    group.state.totals.violations[invariant] = 1;
    expect(() => group.tick()).toThrow(`${invariant} was violated`);
  }
});
