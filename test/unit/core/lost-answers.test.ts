import { expect, test } from 'vitest';
import { TestGroup } from '../../support/core-builders.ts';

/** A group of one slot whose only call was granted behind a write, and that is reset before anybody hears of it. */
function lost(): TestGroup {
  const group = TestGroup.stored({ slotsMax: 1 });
  group.ask('a');
  group.write();
  return group.reset();
}

test('a caller whose answer was lost with the instance has its lease when it asks again', () => {
  const group = lost();
  expect(group.state.unclaimed.slots).toBe(1);
  expect(group.ask('a')).toEqual(['grant a.1']);
  expect(group.state.unclaimed.slots).toBe(0);
  expect(group.inUse()).toBe(1);
  expect(group.state.totals.resurrected).toBe(0);
});

test('it is given back once, and to nobody else', () => {
  const group = lost();
  expect(group.ask('b')).toEqual([]);
  expect(group.ask('a')).toEqual(['grant a.1']);
  group.release('a');
  expect(group.ask('a')).toEqual(['gone a']);
});

test('a lease that was told of before the last write is its holder’s to claim', () => {
  const group = TestGroup.stored({ slotsMax: 2 });
  group.ask('a');
  group.write();
  group.ask('b');
  group.write();
  const next = group.reset();
  expect(next.ask('a')).toEqual([]);
  expect(next.ask('b')).toEqual(['grant b.1']);
});
