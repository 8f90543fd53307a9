import { describe, expect, test } from 'vitest';
import { COVERS_MS } from '../../../src/core/parts/bound.ts';
import { instant, leaseIdOf, ticketId, type LeaseId } from '../../../src/core/words/ids.ts';
import { takeWrite } from '../../../src/core/writes.ts';
import { someClaim, someTicket, TestGroup } from '../../support/core-builders.ts';

/** Slots that change hands without a write on the way, and what the instance after makes of it. */

const named = (names: string): string[] => names.split(' ');

const idOf = (name: string): LeaseId => leaseIdOf(ticketId(name), 1);

/** A call ends; nobody else was told of its lease. */
function end(group: TestGroup, name: string, isSole = true): string[] {
  const reported = { outcome: 'success', settlement: null, isSole } as const;
  return group.send({ kind: 'release', leaseId: idOf(name), ...reported });
}

/** The same, told by the lease's id to an instance that does not know it. */
function endById(
  group: TestGroup,
  name: string,
  attachment: number,
  ...nextHolderOf: string[]
): string[] {
  const claim = someClaim(name, {
    attachment,
    heirOf: nextHolderOf.map(idOf),
  });
  const reported = { outcome: 'success', settlement: null, claim } as const;
  return group.send({ kind: 'release', leaseId: idOf(name), ...reported });
}

function askAnew(group: TestGroup, name: string): string[] {
  const ticket = someTicket(name, group.now);
  const parked = { sliceMs: 30_000, isAnew: true };
  return group.send({ kind: 'acquire', ticket, leaseId: idOf(name), ...parked });
}

/** A group whose slots are all in use, by `a` and so on; those who wait behind them are on disk as heirs. */
function full(slotsMax: number, ...waiters: string[]): TestGroup {
  const group = TestGroup.stored({ slotsMax });
  group.askAll(...named('a b c d e f g h').slice(0, slotsMax), ...waiters);
  group.write();
  group.write();
  return group;
}

describe('a slot goes to an heir unwritten', () => {
  test('in a group of one slot, one after the other', () => {
    const group = full(1, 'x', 'y', 'z');
    expect(group.stored.bound?.heirs).toEqual(['x.1', 'y.1', 'z.1']);
    expect(end(group, 'a')).toEqual(['ended a.1', 'grant x.1']);
    expect(group.asksToWrite()).not.toBe('behind');
    expect(group.lease('x').heirOf).toEqual(['a.1']);
    end(group, 'x');
    expect(group.asksToWrite()).not.toBe('behind');
    expect(group.lease('y').heirOf).toEqual(['x.1', 'a.1']);
  });

  test('in the order of turns: one who is better and not listed waits for a write', () => {
    const group = full(1, 'x', 'y');
    group.ask('first', { lane: 'high' });
    expect(end(group, 'a')).toEqual(['ended a.1', 'grant first.1']);
    expect(group.asksToWrite()).toBe('behind');
    expect(group.lease('first').heirOf).toEqual([]);
  });

  test.each<readonly [string, (group: TestGroup) => unknown]>([
    ['its holder has said more of it elsewhere', (group) => end(group, 'a', false)],
    ['its holder was not heard', (group) => group.detach('a', group.lease('a').attachment)],
    ['its holder has left, and its caller says so', (group) => group.cancel('a')],
  ])('but not where %s', (_why, ended) => {
    const group = full(1, 'x', 'y');
    ended(group);
    expect(group.lease('x').heirOf).toEqual([]);
    expect(group.asksToWrite()).toBe('behind');
  });

  test('nor where its caller may have it once more by the last write', () => {
    const group = TestGroup.stored({ slotsMax: 1 });
    group.askAll('a', 'x');
    group.write();
    expect(group.stored.bound).toMatchObject({ granted: ['a.1'], heirs: ['x.1'] });
    end(group, 'a');
    expect(group.asksToWrite()).toBe('behind');
  });

  test('nor where the write that lists it is two seconds old', () => {
    const group = full(1, 'x', 'y');
    group.now = instant(group.now + COVERS_MS - 1);
    end(group, 'a');
    expect(group.asksToWrite()).not.toBe('behind');
    group.now = instant(group.now + 1);
    end(group, 'x');
    expect(group.asksToWrite()).toBe('behind');
  });

  test('nor by a write alone that came before one that may be on disk by now', () => {
    const group = TestGroup.stored({ slotsMax: 1 });
    group.askAll('a');
    group.ask('x', { sliceMs: 10 });
    group.write();
    group.write();
    group.advance(10);
    expect(takeWrite(group.state, group.now).bound.heirs).toEqual([]);
    group.ask('x');
    end(group, 'a');
    expect(group.asksToWrite()).toBe('behind');
  });

  test('nor a slot that came free before such a write', () => {
    const group = TestGroup.stored({ slotsMax: 1 });
    group.askAll('a');
    group.ask('x', { sliceMs: 10 });
    group.write();
    group.write();
    group.advance(10);
    end(group, 'a');
    takeWrite(group.state, group.now);
    group.ask('x');
    expect(group.asksToWrite()).toBe('behind');
  });

  test('nor to calls of several slots, nor to callers who have lost an answer', () => {
    const group = TestGroup.stored({ slotsMax: 2 });
    group.askAll('a', 'b');
    group.ask('wide', { slots: 2 });
    askAnew(group, 'anew');
    group.ask('x');
    group.write();
    expect(group.stored.bound?.heirs).toEqual(['x.1']);
  });
});

describe('who comes next is written ahead', () => {
  test('as slots change hands, once fewer than half of them are on disk', () => {
    const group = full(1, ...named('s t u v w x y z'));
    const asked = named('a s t u').map((name) => {
      end(group, name);
      return group.asksToWrite();
    });
    expect(asked).toEqual(['no', 'no', 'no', 'no']);
    group.askAll('1', '2', '3', '4');
    end(group, 'v');
    expect(group.asksToWrite()).toBe('ahead');
  });

  test('once the write that a grant waited for has arrived', () => {
    const group = TestGroup.stored({ slotsMax: 1 });
    group.askAll('a', 'x', 'y', 'z');
    group.write();
    end(group, 'a');
    expect(group.asksToWrite()).toBe('behind');
    group.write();
    expect(group.wakesIn()).toBe(1);
    group.advance(1);
    expect(group.asksToWrite()).toBe('ahead');
  });

  test('but not where slots change hands seldom, nor where they are down after their calls', () => {
    const seldom = TestGroup.stored({ slotsMax: 1 });
    seldom.askAll('a', 'x', 'y');
    seldom.write();
    seldom.advance(1_100);
    expect(seldom.asksToWrite()).toBe('no');
    const down = TestGroup.stored({ slotsMax: 2, releaseCooldownMs: 10 });
    down.askAll('a', 'b', 'x', 'y');
    down.write();
    expect(down.stored.bound?.heirs).toEqual([]);
    expect(down.advance(1)).toEqual([]);
    expect(down.asksToWrite()).toBe('no');
  });
});

describe('after a reset', () => {
  test('what is given back stays unclaimed while an heir may have it, and is that one’s', () => {
    const group = full(1, 'x');
    const { attachment } = group.lease('a');
    end(group, 'a');
    const { attachment: own } = group.lease('x');
    const next = group.reset();
    endById(next, 'a', attachment);
    expect(next.state.unclaimed.slots).toBe(1);
    expect(next.resume('x', { attachment: own, heirOf: [idOf('a')] })).toEqual(['grant x.1']);
    expect(next.inUse()).toBe(1);
    expect(next.state.totals.resurrected).toBe(0);
  });

  test('an heir who asks anew, or has left, has nothing: what is given back is free', () => {
    for (const goes of [
      (next: TestGroup) => askAnew(next, 'x'),
      (next: TestGroup) => next.cancel('x'),
    ]) {
      const group = full(1, 'x');
      const { attachment } = group.lease('a');
      const next = group.reset();
      goes(next);
      endById(next, 'a', attachment);
      expect(next.state.unclaimed.slots).toBe(0);
      const later = group.reset();
      endById(later, 'a', attachment);
      expect(later.state.unclaimed.slots).toBe(1);
      goes(later);
      expect(later.state.unclaimed.slots).toBe(0);
    }
  });

  test('one who asks again may have an answer elsewhere, and stays an heir', () => {
    const group = full(1, 'x');
    const { attachment } = group.lease('a');
    const next = group.reset();
    next.ask('x');
    endById(next, 'a', attachment);
    expect(next.state.unclaimed.slots).toBe(1);
  });

  test('an heir tells whose slot it has: that one’s release takes nothing out any more', () => {
    const group = full(2, 'x');
    const { attachment } = group.lease('a');
    end(group, 'a');
    const next = group.reset();
    endById(next, 'x', group.lease('x').attachment, 'a');
    expect(next.state.unclaimed.slots).toBe(1);
    endById(next, 'a', attachment);
    expect(next.state.unclaimed.slots).toBe(1);
    endById(next, 'b', group.lease('b').attachment);
    expect(next.state.unclaimed.slots).toBe(0);
  });

  test('of many who were in the midst of it nothing is left once all have been heard', () => {
    const group = full(8, ...named('s t u v w x y z'));
    for (const name of named('a b c d')) end(group, name);
    const held = [...group.state.leases.values()];
    const next = group.reset();
    for (const name of named('w x y z')) askAnew(next, name);
    for (const { ticketId: name, attachment, heirOf: nextHolderOf } of held) {
      endById(next, name, attachment, ...nextHolderOf.map((id) => id.slice(0, -2)));
    }
    expect(next.state.unclaimed.slots).toBe(0);
  });

  test('heirs who had ended before it are out: who came after them in their slot says so', () => {
    const group = full(1, 'x', 'y', 'z');
    end(group, 'a');
    end(group, 'x');
    const { attachment } = group.lease('y');
    const next = group.reset();
    askAnew(next, 'z');
    endById(next, 'y', attachment, 'x', 'a');
    expect(next.state.unclaimed.slots).toBe(0);
  });

  test('a slot that is down after its call is free no sooner', () => {
    const group = full(1, 'x');
    const { attachment } = group.lease('a');
    const next = group.reset();
    next.reconfigure({ releaseCooldownMs: 5_000 });
    endById(next, 'a', attachment);
    askAnew(next, 'x');
    next.advance(4_999);
    expect(next.state.unclaimed.slots).toBe(1);
    expect(next.advance(1)).toEqual(['grant x.1']);
  });

  test('heirs that may yet come are written again, and there are no others as long as anything is unclaimed', () => {
    const group = full(1, 'x');
    const next = group.reset();
    next.askAll('y', 'z');
    expect(next.write().bound.heirs).toEqual(['x.1']);
    const third = next.reset();
    endById(third, 'a', group.lease('a').attachment);
    expect(third.state.unclaimed.slots).toBe(1);
  });

  test('whoever has lost an answer is granted behind a write', () => {
    const group = TestGroup.stored({ slotsMax: 100 });
    group.ask('a');
    group.write();
    group.ask('b');
    expect(group.asksToWrite()).toBe('no');
    askAnew(group, 'c');
    expect(group.asksToWrite()).toBe('behind');
    askAnew(group, 'b');
    expect(group.asksToWrite()).toBe('behind');
  });
});
