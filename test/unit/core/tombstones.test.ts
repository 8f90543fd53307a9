import { describe, expect, test } from 'vitest';
import { LEASE_TTL_MS, TOMBSTONE_TTL_MS, TOMBSTONES_MAX } from '../../../src/core/settings.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** Ended attempts are remembered, so that a late message about them changes nothing; but not for ever. */

describe('an ended attempt', () => {
  test('is remembered for its time', () => {
    const group = new TestGroup();
    group.release('a');
    group.advance(TOMBSTONE_TTL_MS - 1);
    group.release('another');
    expect(group.ask('a')).toEqual(['gone a']);
  });

  test('is forgotten after it', () => {
    const group = new TestGroup();
    group.release('a');
    group.advance(TOMBSTONE_TTL_MS);
    group.release('another');
    expect(group.state.tombstones.size).toBe(1);
    expect(group.ask('a')).toEqual(['grant a.1']);
  });

  test('that ends again is remembered from then', () => {
    const group = new TestGroup();
    group.release('a');
    group.advance(TOMBSTONE_TTL_MS - 1);
    group.release('a');
    group.advance(1);
    group.release('another');
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

test('no more than the maximum are remembered, and the oldest goes first', () => {
  const group = new TestGroup();
  for (let index = 0; index <= TOMBSTONES_MAX; index += 1) group.release(`t${index}`);
  expect(group.state.tombstones.size).toBe(TOMBSTONES_MAX);
  expect(group.ask('t0')).toEqual(['grant t0.1']);
  expect(group.ask('t1')).toEqual(['gone t1']);
});
