import { describe, expect, test } from 'vitest';
import {
  LEASE_TTL_MS,
  TOMBSTONE_TTL_MS,
  TOMBSTONES_MAX,
} from '../../../src/core/words/settings.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** Ended attempts are remembered, so that a late message about them changes nothing; but not for ever. */

/** A group in which others end all the time, one in each tenth of the time for which it remembers. */
class BusyGroup extends TestGroup {
  #others = 0;

  /** Lets time pass, in which others end. */
  goOn(ms: number): void {
    const end = this.now + ms;
    while (this.now < end) {
      this.advance(Math.min(TOMBSTONE_TTL_MS / 10, end - this.now));
      this.release(`other-${this.#others++}`);
    }
  }
}

describe('an ended attempt', () => {
  test.each([0, 0.05, 0.5, 0.95, 1, 1.5])(
    'is remembered for its time, %d times as long after the first that ended',
    (later) => {
      const group = new BusyGroup();
      group.release('first');
      group.goOn(later * TOMBSTONE_TTL_MS);
      group.release('a');
      group.goOn(TOMBSTONE_TTL_MS - 1);
      expect(group.ask('a')).toEqual(['gone a']);
    },
  );

  test('is forgotten when twice its time is over and others go on ending', () => {
    const group = new BusyGroup();
    group.release('a');
    group.goOn(2 * TOMBSTONE_TTL_MS);
    expect(group.state.tombstones.size).toBeLessThanOrEqual(20);
    expect(group.ask('a')).toEqual(['grant a.1']);
  });

  test('that ends again is remembered from then', () => {
    const group = new BusyGroup();
    group.release('a');
    group.goOn(TOMBSTONE_TTL_MS - 1);
    group.release('a');
    group.goOn(TOMBSTONE_TTL_MS - 1);
    expect(group.ask('a')).toEqual(['gone a']);
  });

  test('that ends again when its generation is the older one is remembered from then', () => {
    const group = new BusyGroup();
    group.release('a');
    group.goOn(1.5 * TOMBSTONE_TTL_MS);
    group.release('a');
    group.goOn(TOMBSTONE_TTL_MS - 1);
    expect(group.ask('a')).toEqual(['gone a']);
  });

  test('by expiry is not remembered: its holder may only be out of reach', () => {
    const group = new TestGroup();
    group.ask('a');
    group.advance(LEASE_TTL_MS);
    expect(group.inUse()).toBe(0);
    expect(group.state.tombstones.size).toBe(0);
  });
});

test('no more than the maximum are remembered, and the older half goes first', () => {
  const group = new TestGroup();
  for (let index = 0; index < TOMBSTONES_MAX; index += 1) group.release(`t${index}`);
  expect(group.state.tombstones.size).toBe(TOMBSTONES_MAX);
  expect(group.ask('t0')).toEqual(['gone t0']);
  group.release('one-more');
  expect(group.state.tombstones.size).toBe(TOMBSTONES_MAX / 2 + 1);
  expect(group.ask('t0')).toEqual(['grant t0.1']);
  expect(group.ask(`t${TOMBSTONES_MAX / 2}`)).toEqual([`gone t${TOMBSTONES_MAX / 2}`]);
});
