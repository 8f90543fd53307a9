import { describe, expect, test } from 'vitest';
import { TestGroup } from '../../support/core-builders.ts';

/** A caller that leaves: before its grant, after it, or before its ask has arrived. */

function fullGroup(): TestGroup {
  const group = new TestGroup({ slotsMax: 1 });
  group.ask('holder');
  return group;
}

describe('cancelled in the queue', () => {
  test('a ticket leaves it, and whoever is parked for it is let go', () => {
    const group = fullGroup();
    group.askAll('a', 'b');
    expect(group.cancel('a')).toEqual(['gone a']);
    expect(group.waiting()).toEqual(['b']);
  });

  test('a ticket is not granted later', () => {
    const group = fullGroup();
    group.ask('a');
    group.cancel('a');
    expect(group.release('holder')).toEqual(['ended holder.1']);
  });

  test('a ticket writes nothing', () => {
    const group = TestGroup.stored({ slotsMax: 0 });
    group.ask('a');
    group.cancel('a');
    expect(group.asksToWrite()).toBe('no');
    expect(group.write().bound.ended).toEqual([]);
  });
});

describe('cancelled after its grant', () => {
  test('a ticket gives its slot to the next', () => {
    const group = fullGroup();
    group.ask('next');
    expect(group.cancel('holder')).toEqual(['ended holder.1', 'grant next.1']);
  });

  test('a ticket has the cool-down of a call that was cut short', () => {
    const group = new TestGroup({ cancelCooldownMs: 300, releaseCooldownMs: 0 });
    group.ask('a');
    group.cancel('a');
    expect(group.lease('a').phase).toBe('cooling');
    expect(group.wakesIn()).toBe(300);
  });

  test('a ticket loses every attempt that still holds a slot', () => {
    const group = new TestGroup();
    group.ask('a');
    group.ask('a', { attempt: 2 });
    expect(group.cancel('a')).toEqual(['ended a.1', 'ended a.2']);
    expect(group.inUse()).toBe(0);
  });

  test('a ticket that was released before keeps its cool-down as it is', () => {
    const group = new TestGroup({ releaseCooldownMs: 100, cancelCooldownMs: 9_000 });
    group.ask('a');
    group.release('a');
    expect(group.cancel('a')).toEqual([]);
    expect(group.wakesIn()).toBe(100);
  });
});

describe('cancelled before its ask arrives', () => {
  test('a ticket gets no slot', () => {
    const group = new TestGroup();
    group.cancel('a');
    expect(group.ask('a')).toEqual(['gone a']);
    expect(group.inUse()).toBe(0);
  });

  test('a ticket gets none with another attempt either', () => {
    const group = new TestGroup();
    group.cancel('a');
    expect(group.ask('a', { attempt: 2 })).toEqual(['gone a']);
  });
});

describe('released before its ask arrives', () => {
  test('an attempt gets no slot', () => {
    const group = new TestGroup();
    group.release('a');
    expect(group.ask('a')).toEqual(['gone a']);
  });

  test('an attempt that waits leaves the queue', () => {
    const group = fullGroup();
    group.ask('a');
    expect(group.release('a')).toEqual(['gone a']);
    expect(group.waiting()).toEqual([]);
  });

  test('the next attempt of the ticket gets one', () => {
    const group = new TestGroup();
    group.release('a');
    expect(group.ask('a', { attempt: 2 })).toEqual(['grant a.2']);
  });
});

test('cancelling twice ends the ticket once', () => {
  const group = fullGroup();
  group.cancel('holder');
  expect(group.cancel('holder')).toEqual([]);
});
