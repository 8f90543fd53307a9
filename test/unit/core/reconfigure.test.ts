import { describe, expect, test } from 'vitest';
import { MOVE_SETTLE_MS } from '../../../src/core/words/settings.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** A change of the group's settings, and of the ways that calls take. */

describe('the limit', () => {
  test('raised, grants at once to as many as fit', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.askAll('a', 'b', 'c', 'd');
    expect(group.reconfigure({ slotsMax: 3 })).toEqual(['grant b.1', 'grant c.1']);
  });

  test('lowered, takes nothing away and grants nothing until there is room', () => {
    const group = new TestGroup({ slotsMax: 3 });
    group.askAll('a', 'b', 'c', 'd');
    expect(group.reconfigure({ slotsMax: 1 })).toEqual([]);
    expect(group.inUse()).toBe(3);
    expect(group.release('a')).toEqual(['ended a.1']);
    expect(group.release('b')).toEqual(['ended b.1']);
    expect(group.release('c')).toEqual(['ended c.1', 'grant d.1']);
  });

  test('of 0 lets nobody in after those who are', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.askAll('a', 'b');
    group.reconfigure({ slotsMax: 0 });
    expect(group.release('a')).toEqual(['ended a.1']);
    expect(group.waiting()).toEqual(['b']);
  });
});

describe('a pause', () => {
  test('grants nothing, though slots become free', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.askAll('a', 'b');
    group.reconfigure({ paused: true });
    expect(group.release('a')).toEqual(['ended a.1']);
  });

  test('does not touch what is in flight', () => {
    const group = new TestGroup();
    group.ask('a');
    expect(group.reconfigure({ paused: true })).toEqual([]);
    expect(group.lease('a').phase).toBe('held');
  });

  test('that ends, grants at once', () => {
    const group = new TestGroup({ paused: true });
    group.askAll('a', 'b', 'c');
    expect(group.reconfigure({ paused: false })).toEqual(['grant a.1', 'grant b.1']);
  });
});

test('a shorter queue sends nobody away who stands in it', () => {
  const group = new TestGroup({ slotsMax: 0 });
  group.askAll('a', 'b');
  expect(group.reconfigure({ queueLengthMax: 1 })).toEqual([]);
  expect(group.ask('c')).toEqual(['reject c queue_full']);
  expect(group.waiting()).toEqual(['a', 'b']);
});

describe('a move', () => {
  test('sends everybody back who waits, first first', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.askAll('holder', 'a', 'b');
    expect(group.move()).toEqual(['moved a', 'moved b']);
    expect(group.waiting()).toEqual([]);
  });

  test('leaves leases where they were taken', () => {
    const group = new TestGroup();
    group.ask('a');
    expect(group.move()).toEqual([]);
    expect(group.lease('a').phase).toBe('held');
  });

  test('grants nobody until those sent back had time to return', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.askAll('holder', 'old');
    group.move();
    group.release('holder');
    expect(group.ask('young')).toEqual([]);
    group.ask('old', { enqueuedMs: -1 });
    expect(group.advance(MOVE_SETTLE_MS - 1)).toEqual([]);
    expect(group.advance(1)).toEqual(['grant old.1']);
  });

  test('that sends nobody back delays nobody', () => {
    const group = new TestGroup();
    group.move();
    expect(group.ask('a')).toEqual(['grant a.1']);
  });
});
