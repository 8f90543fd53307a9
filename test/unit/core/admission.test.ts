import { describe, expect, test } from 'vitest';
import { TestGroup } from '../../support/core-builders.ts';

/** Slots: their number, and to whom they go. */

test.each([1, 2, 3, 10])('a limit of %i grants exactly that many', (slotsMax) => {
  const group = new TestGroup({ slotsMax });
  const names = Array.from({ length: slotsMax + 1 }, (_, index) => `t${index}`);
  expect(group.askAll(...names)).toEqual(names.slice(0, slotsMax).map((name) => `grant ${name}.1`));
  expect(group.inUse()).toBe(slotsMax);
  expect(group.waiting()).toEqual([`t${slotsMax}`]);
});

test('a limit of 0 grants nothing, however long it lasts', () => {
  const group = new TestGroup({ slotsMax: 0 });
  expect(group.ask('a')).toEqual([]);
  expect(group.advance(1_000)).toEqual([]);
  expect(group.waiting()).toEqual(['a']);
});

test('without a limit everybody is granted at once', () => {
  const group = new TestGroup({ slotsMax: Infinity });
  for (let index = 0; index < 500; index += 1) {
    expect(group.ask(`t${index}`)).toEqual([`grant t${index}.1`]);
  }
  expect(group.inUse()).toBe(500);
});

test('a paused group queues and grants nothing', () => {
  const group = new TestGroup({ paused: true });
  expect(group.ask('a')).toEqual([]);
  expect(group.waiting()).toEqual(['a']);
});

describe('a slot that comes back', () => {
  test('goes to the first waiter in the same step', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.askAll('a', 'b', 'c');
    expect(group.release('a')).toEqual(['ended a.1', 'grant b.1']);
    expect(group.waiting()).toEqual(['c']);
  });

  test('goes to nobody when nobody waits', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.ask('a');
    expect(group.release('a')).toEqual(['ended a.1']);
    expect(group.inUse()).toBe(0);
  });
});

test('a grant that no bound covers is answered behind a write', () => {
  const group = TestGroup.stored();
  group.ask('a');
  expect(group.effects).toMatchObject([{ kind: 'grant', isCovered: false }]);
});

test('a grant is counted once', () => {
  const group = new TestGroup({ slotsMax: 1 });
  group.askAll('a', 'a', 'b');
  group.release('a');
  expect(group.state.totals.granted).toBe(2);
});
