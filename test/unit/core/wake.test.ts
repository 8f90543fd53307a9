import { describe, expect, test } from 'vitest';
import {
  LEASE_TTL_MS,
  MOVE_SETTLE_MS,
  ORPHAN_GRACE_MS,
  SETTLE_MS,
} from '../../../src/core/words/settings.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** The shell has one timer: `nextWakeAt` must cover everything that time alone brings about. */

test('an empty group need not be woken', () => {
  expect(new TestGroup().wakesIn()).toBe(Infinity);
});

test('nor one that has become empty, though its timers of before are not due yet', () => {
  const group = new TestGroup({ releaseCooldownMs: 0 });
  group.ask('a');
  group.ask('b', { sliceMs: 8_000 });
  group.cancel('b');
  group.release('a');
  expect(group.wakesIn()).toBe(Infinity);
});

describe('a group is woken', () => {
  test('when a lease lapses', () => {
    const group = new TestGroup();
    group.ask('a', { sliceMs: LEASE_TTL_MS + 1 });
    expect(group.wakesIn()).toBe(LEASE_TTL_MS);
  });

  test('when a cool-down ends', () => {
    const group = new TestGroup({ releaseCooldownMs: 200 });
    group.ask('a');
    group.release('a');
    expect(group.wakesIn()).toBe(200);
  });

  test('when a slice ends', () => {
    const group = new TestGroup({ slotsMax: 0 });
    group.ask('a', { sliceMs: 8_000 });
    expect(group.wakesIn()).toBe(8_000);
  });

  test('when a deadline comes before the end of the slice', () => {
    const group = new TestGroup({ slotsMax: 0 });
    group.ask('a', { sliceMs: 8_000, deadlineMs: 700 });
    expect(group.wakesIn()).toBe(700);
  });

  test('when the grace of an orphan ends', () => {
    const group = new TestGroup({ slotsMax: 0 });
    group.ask('a', { sliceMs: 8_000 });
    group.advance(8_000);
    expect(group.wakesIn()).toBe(ORPHAN_GRACE_MS);
  });

  test('when the settle time after a reset ends and somebody waits', () => {
    const before = TestGroup.stored();
    before.ask('holder');
    const group = before.restart();
    group.ask('a');
    expect(group.wakesIn()).toBe(SETTLE_MS);
  });

  test('when the settle time after a move ends and somebody waits', () => {
    const group = new TestGroup({ slotsMax: 0 });
    group.ask('a');
    group.move();
    group.ask('b');
    expect(group.wakesIn()).toBe(MOVE_SETTLE_MS);
  });

  test('by the earliest of several', () => {
    const group = new TestGroup({ slotsMax: 2, releaseCooldownMs: 3_000 });
    group.askAll('a', 'b');
    group.ask('c', { sliceMs: 8_000 });
    expect(group.wakesIn()).toBe(8_000);
    group.release('a');
    expect(group.wakesIn()).toBe(3_000);
    group.ask('d', { sliceMs: 2_000 });
    expect(group.wakesIn()).toBe(2_000);
  });

  test('at once for a ticket that came after its deadline', () => {
    const group = new TestGroup({ slotsMax: 0 });
    group.advance(1_000);
    group.ask('a', { deadlineMs: 500 });
    expect(group.wakesIn()).toBeLessThanOrEqual(0);
    expect(group.tick()).toEqual(['reject a queue_timeout']);
    expect(group.wakesIn()).toBe(Infinity);
  });
});

test('after a tick the next wake lies in the future', () => {
  const group = new TestGroup({ slotsMax: 1, timeoutMs: 20_000 });
  group.ask('a');
  group.ask('b', { sliceMs: 1_000 });
  for (let wakes = 0; group.wakesIn() !== Infinity; wakes += 1) {
    expect(wakes).toBeLessThan(10);
    group.advance(group.wakesIn());
    expect(group.wakesIn()).toBeGreaterThan(0);
  }
  expect(group.inUse()).toBe(0);
  expect(group.waiting()).toEqual([]);
});
