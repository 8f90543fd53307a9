import { describe, expect, test } from 'vitest';
import { LEASE_TTL_MS, ORPHAN_GRACE_MS } from '../../../src/core/words/settings.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** Asking in slices: an ask is parked for a while, then answered, and the ticket asks again. */

function fullGroup(): TestGroup {
  const group = new TestGroup({ slotsMax: 1 });
  group.ask('holder');
  return group;
}

describe('at the end of its slice', () => {
  test('an ask is answered with the place and the estimate, and the ticket still waits', () => {
    const group = fullGroup().learned();
    group.ask('before');
    group.ask('a', { sliceMs: 8_000 });
    expect(group.advance(7_999)).toEqual([]);
    expect(group.advance(1)).toEqual(['pending a at 1']);
    expect(group.estimate('a')).toBe(20_000);
    expect(group.waiting()).toEqual(['before', 'a']);
  });

  test('it is answered once', () => {
    const group = fullGroup();
    group.ask('a', { sliceMs: 1_000 });
    group.advance(1_000);
    expect(group.advance(1)).toEqual([]);
  });

  test('a ticket without a parked ask gets no slot, even if nobody else wants it', () => {
    const group = fullGroup();
    group.ask('a', { sliceMs: 1_000 });
    group.advance(1_000);
    expect(group.release('holder')).toEqual(['ended holder.1']);
    expect(group.inUse()).toBe(0);
  });

  test('the free slot is there for it as soon as it asks again', () => {
    const group = fullGroup();
    group.ask('a', { sliceMs: 1_000 });
    group.advance(1_000);
    group.release('holder');
    expect(group.ask('a')).toEqual(['grant a.1']);
  });
});

describe('asking again', () => {
  test('keeps the place', () => {
    const group = fullGroup();
    group.askAll('a', 'b');
    group.advance(10);
    group.ask('a');
    expect(group.waiting()).toEqual(['a', 'b']);
  });

  test('begins a new slice', () => {
    const group = fullGroup();
    group.ask('a', { sliceMs: 1_000 });
    group.advance(900);
    group.ask('a', { sliceMs: 1_000 });
    expect(group.advance(999)).toEqual([]);
    expect(group.advance(1)).toEqual(['pending a at 0']);
  });

  test('does not move the deadline', () => {
    const group = fullGroup();
    group.ask('a', { deadlineMs: 500 });
    group.advance(400);
    group.ask('a', { deadlineMs: 9_000 });
    expect(group.advance(100)).toEqual(['reject a queue_timeout']);
  });

  test('at the very end of the slice is answered by that end, once', () => {
    const group = fullGroup();
    group.ask('a', { sliceMs: 1_000 });
    group.now = afterMs(group, 1_000);
    expect(group.ask('a')).toEqual(['pending a at 0']);
    expect(group.ask('a')).toEqual([]);
  });

  test('at the very deadline is answered by the rejection and brings nothing back', () => {
    const group = new TestGroup({ slotsMax: 0 });
    group.ask('a', { deadlineMs: 500 });
    group.now = afterMs(group, 500);
    expect(group.ask('a', { deadlineMs: 500 })).toEqual(['reject a queue_timeout']);
    expect(group.waiting()).toEqual([]);
    expect(group.state.totals.rejected).toEqual({ queue_timeout: 1 });
  });

  test('at the very deadline gets no slot that nobody would hold', () => {
    const group = fullGroup();
    group.ask('a', { sliceMs: 100, deadlineMs: 500 });
    group.advance(100);
    group.release('holder');
    group.now = afterMs(group, 400);
    expect(group.ask('a', { deadlineMs: 500 })).toEqual(['reject a queue_timeout']);
    expect(group.inUse()).toBe(0);
  });
});

/** A later instant, without a tick at it. */
function afterMs(group: TestGroup, ms: number): typeof group.now {
  return (group.now + ms) as typeof group.now;
}

describe('an orphan', () => {
  test('keeps its place until its grace is over, and then is dropped without a word', () => {
    const group = fullGroup();
    group.ask('a', { sliceMs: 1_000 });
    group.advance(1_000);
    group.advance(ORPHAN_GRACE_MS - 1);
    expect(group.waiting()).toEqual(['a']);
    expect(group.advance(1)).toEqual([]);
    expect(group.waiting()).toEqual([]);
  });

  test('that asks again in time is none', () => {
    const group = fullGroup();
    group.ask('a', { sliceMs: 1_000 });
    group.advance(1_000);
    group.advance(ORPHAN_GRACE_MS - 1);
    group.ask('a');
    group.advance(1);
    expect(group.waiting()).toEqual(['a']);
  });

  test('has its whole grace even if the end of its slice was seen late', () => {
    const group = fullGroup();
    group.ask('a', { sliceMs: 1_000 });
    expect(group.advance(20_000)).toEqual(['pending a at 0']);
    group.advance(ORPHAN_GRACE_MS - 1);
    expect(group.waiting()).toEqual(['a']);
    group.advance(1);
    expect(group.waiting()).toEqual([]);
  });

  test('that comes back late takes its old place again', () => {
    const group = fullGroup();
    group.ask('a', { sliceMs: 1_000, enqueuedMs: 0 });
    group.ask('b');
    group.advance(1_000);
    group.advance(ORPHAN_GRACE_MS);
    expect(group.waiting()).toEqual(['b']);
    group.ask('a', { enqueuedMs: -1 });
    expect(group.waiting()).toEqual(['a', 'b']);
  });
});

describe('asking for a lease that there is already', () => {
  test('gives the same one under a larger attachment', () => {
    const group = fullGroup();
    const lease = group.lease('holder');
    const { attachment } = lease;
    expect(group.ask('holder')).toEqual(['grant holder.1']);
    expect(group.lease('holder')).toBe(lease);
    expect(lease.attachment).toBeGreaterThan(attachment);
    expect(group.inUse()).toBe(1);
  });

  test('writes nothing where the bound covers it', () => {
    const group = TestGroup.stored();
    group.ask('holder');
    group.write();
    group.ask('holder');
    expect(group.asksToWrite()).toBe('no');
  });

  test('renews it, as a renewal does: a caller that asks has yet to begin', () => {
    const group = fullGroup();
    group.advance(LEASE_TTL_MS - 1);
    group.ask('holder');
    expect(group.lease('holder').until).toBe(group.now + LEASE_TTL_MS);
  });

  test('begins nothing with one that an operator has taken away', () => {
    const group = fullGroup();
    group.revoke('holder');
    expect(group.ask('holder')).toEqual(['gone holder']);
    expect(group.lease('holder').phase).toBe('revoking');
  });

  test('is answered even while the group is paused', () => {
    const group = fullGroup();
    group.reconfigure({ paused: true });
    expect(group.ask('holder')).toEqual(['grant holder.1']);
  });
});

test('another attempt of a ticket is a lease of its own', () => {
  const group = new TestGroup();
  group.ask('a');
  group.release('a', 'unused');
  expect(group.ask('a', { attempt: 2 })).toEqual(['grant a.2']);
  expect(group.ask('a', { attempt: 1 })).toEqual(['gone a']);
});
