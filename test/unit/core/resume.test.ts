import { describe, expect, test } from 'vitest';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** A holder that takes its lease up again, with a new instance or after the lease had lapsed. */

describe('a lease that is known', () => {
  test('is given to the holder under a larger attachment', () => {
    const group = new TestGroup();
    group.ask('a');
    const { attachment } = group.lease('a');
    expect(group.resume('a')).toEqual(['grant a.1']);
    expect(group.lease('a').attachment).toBeGreaterThan(attachment);
    expect(group.state.totals.resurrected).toBe(0);
  });

  test('counts once', () => {
    const group = new TestGroup();
    group.ask('a');
    group.resume('a');
    expect(group.inUse()).toBe(1);
  });

  test('is not freed by the disposal of the answer before', () => {
    const group = new TestGroup();
    group.ask('a');
    const { attachment } = group.lease('a');
    group.resume('a');
    expect(group.detach('a', attachment)).toEqual([]);
  });

  test('is gone for its holder once an operator has taken it away, and ends no later', () => {
    const group = new TestGroup();
    group.ask('a');
    group.revoke('a');
    expect(group.resume('a')).toEqual(['gone a']);
    expect(group.advance(LEASE_TTL_MS)).toEqual(['ended a.1']);
  });
});

describe('a lease that has lapsed', () => {
  test('is made anew, behind a write that covers it', () => {
    const group = TestGroup.stored();
    group.ask('a');
    group.write();
    group.advance(LEASE_TTL_MS);
    expect(group.resume('a', { hasLapsed: true })).toEqual(['grant a.1']);
    expect(group.asksToWrite()).toBe('behind');
    expect(group.state.totals.resurrected).toBe(1);
  });

  test('counts even above the limit, and nobody is granted until there is room again', () => {
    const group = TestGroup.stored({ slotsMax: 1 });
    group.ask('a');
    group.advance(LEASE_TTL_MS);
    group.ask('b');
    group.resume('a', { hasLapsed: true });
    group.ask('c');
    expect(group.inUse()).toBe(2);
    expect(group.release('b')).toEqual(['ended b.1']);
    expect(group.release('a')).toEqual(['ended a.1', 'grant c.1']);
  });

  test('is taken up again while the group is paused or has no slots', () => {
    const group = new TestGroup({ paused: true, slotsMax: 0 });
    expect(group.resume('a')).toEqual(['grant a.1']);
  });
});

describe('a lease that has ended', () => {
  test('by its release is gone', () => {
    const group = new TestGroup();
    group.ask('a');
    group.release('a');
    expect(group.resume('a')).toEqual(['gone a']);
    expect(group.inUse()).toBe(0);
  });

  test('by its release is gone while the slot cools down', () => {
    const group = new TestGroup({ releaseCooldownMs: 100 });
    group.ask('a');
    group.release('a');
    expect(group.resume('a')).toEqual(['gone a']);
    expect(group.lease('a').phase).toBe('cooling');
  });

  test('by the cancellation of its ticket is gone', () => {
    const group = new TestGroup();
    group.ask('a');
    group.cancel('a');
    expect(group.resume('a')).toEqual(['gone a']);
  });
});

test('a ticket that resumes does not wait any more', () => {
  const group = new TestGroup({ slotsMax: 0 });
  group.ask('a');
  expect(group.resume('a')).toEqual(['grant a.1']);
  expect(group.waiting()).toEqual([]);
});
