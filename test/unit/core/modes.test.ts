import { describe, expect, test } from 'vitest';
import { TestGroup } from '../../support/core-builders.ts';

/** Nested calls, groups that drain, and dry runs. */

describe('a call whose parent holds a slot here', () => {
  /** All slots are held by the parent. */
  function parentGroup(nested: 'reject' | 'pass'): TestGroup {
    const group = new TestGroup({ slotsMax: 1, nested });
    group.ask('parent');
    return group;
  }
  const child = { parents: ['parent'] };

  test('is granted when there is a slot', () => {
    const group = new TestGroup({ slotsMax: 2 });
    group.ask('parent');
    expect(group.ask('child', child)).toEqual(['grant child.1']);
    expect(group.inUse()).toBe(2);
  });

  test('is rejected for good where it would wait for itself', () => {
    const group = parentGroup('reject');
    expect(group.ask('child', child)).toEqual(['reject child nested']);
    expect(group.rejection('child').retryAfterMs).toBeNull();
    expect(group.waiting()).toEqual([]);
  });

  test('passes on the slot of its parent where the group says so', () => {
    const group = parentGroup('pass');
    expect(group.ask('child', child)).toEqual(['grant child.1']);
    expect(group.inUse()).toBe(1);
    expect(group.lease('child').slots).toBe(0);
    const before = group.service('somebody');
    group.advance(1_000);
    expect(group.release('child')).toEqual(['ended child.1']);
    expect(group.inUse()).toBe(1);
    expect(group.service('somebody')).toBe(before);
  });

  test('leaves nothing to cool down when it passed', () => {
    const group = parentGroup('pass');
    group.reconfigure({ releaseCooldownMs: 1_000 });
    group.ask('child', child);
    group.release('child');
    expect(group.state.slotsCooling).toBe(0);
    expect(group.state.leases.size).toBe(1);
  });

  test('passes through a pause too: its parent is in flight', () => {
    const group = parentGroup('pass');
    group.reconfigure({ paused: true });
    expect(group.ask('child', child)).toEqual(['grant child.1']);
  });

  test('is known by a grandparent', () => {
    const group = parentGroup('reject');
    const options = { parents: ['stranger', 'parent'] };
    expect(group.ask('child', options)).toEqual(['reject child nested']);
  });

  test('is rejected as a try as well: no wait would help', () => {
    const group = parentGroup('reject');
    expect(group.ask('child', { ...child, isTry: true })).toEqual(['reject child nested']);
  });

  test('waits like any other when the parent has ended, is in another group, or cools down', () => {
    const group = new TestGroup({ slotsMax: 1, releaseCooldownMs: 1_000 });
    group.ask('parent');
    expect(group.ask('a', { parents: ['elsewhere'] })).toEqual([]);
    group.cancel('a');
    group.release('parent');
    expect(group.ask('b', child)).toEqual([]);
    expect(group.advance(1_000)).toEqual(['grant b.1']);
  });
});

describe('a group that drains', () => {
  test('rejects who is new, and says when to come back', () => {
    const group = new TestGroup({ isDraining: true });
    expect(group.ask('a')).toEqual(['reject a draining']);
    expect(group.rejection('a').retryAfterMs).toBeGreaterThanOrEqual(1_000);
    expect(group.state.totals.rejected).toEqual({ draining: 1 });
  });

  test('lets its queue and what is in flight end', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.askAll('a', 'b');
    expect(group.reconfigure({ isDraining: true })).toEqual([]);
    expect(group.ask('b')).toEqual([]);
    expect(group.ask('a')).toEqual(['grant a.1']);
    expect(group.release('a')).toEqual(['ended a.1', 'grant b.1']);
    expect(group.release('b')).toEqual(['ended b.1']);
  });

  test('takes those back who waited when they were sent to be routed again, and nobody else', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.askAll('a', 'b');
    group.advance(10);
    group.reconfigure({ isDraining: true });
    expect(group.move()).toEqual(['moved b']);
    expect(group.ask('b', { attempt: 2, enqueuedMs: 0 })).toEqual([]);
    expect(group.ask('new')).toEqual(['reject new draining']);
    group.advance(1_000);
    expect(group.release('a')).toEqual(['ended a.1', 'grant b.2']);
  });

  test('takes nobody who brings the news that it drains to a group that nobody used', () => {
    const group = new TestGroup();
    group.advance(10);
    group.reconfigure({ isDraining: true });
    expect(group.ask('a', { enqueuedMs: 5 })).toEqual(['reject a draining']);
  });

  test('takes a call back that its upstream refused', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.ask('a');
    group.advance(10);
    group.reconfigure({ isDraining: true });
    group.release('a', 'failed');
    expect(group.ask('a', { attempt: 2, enqueuedMs: 0 })).toEqual(['grant a.2']);
  });

  test('takes those back who waited before a reset', () => {
    const group = TestGroup.stored({ slotsMax: 1 });
    group.askAll('a', 'b');
    group.reconfigure({ isDraining: true });
    group.advance(10);
    const after = group.restart();
    expect(after.ask('b', { enqueuedMs: 0 })).toEqual([]);
    expect(after.ask('new')).toEqual(['reject new draining']);
  });

  test('lets holders resume', () => {
    const group = new TestGroup({ isDraining: true });
    expect(group.resume('a')).toEqual(['grant a.1']);
  });
});

describe('a dry run', () => {
  test('lets everything pass and counts who would have waited', () => {
    const group = new TestGroup({ slotsMax: 1, isDryRun: true });
    expect(group.askAll('a', 'b', 'c')).toEqual(['grant a.1', 'grant b.1', 'grant c.1']);
    expect(group.state.totals).toMatchObject({ granted: 3, wouldWait: 2, rejected: {} });
    expect(group.inUse()).toBe(3);
  });

  test.each([
    ['without slots', { slotsMax: 0 }],
    ['while it is paused', { paused: true }],
    ['with a full queue', { slotsMax: 0, queueLengthMax: 0 }],
    ['above the cap of the tenant', { slotsMaxEach: 0 }],
    ['while it drains', { isDraining: true }],
  ])('lets a call pass %s', (_when, changes) => {
    const group = new TestGroup({ isDryRun: true, ...changes });
    expect(group.ask('a')).toEqual(['grant a.1']);
    expect(group.ask('b', { wait: false })).toEqual(['grant b.1']);
    expect(group.ask('c', { isTry: true })).toEqual(['grant c.1']);
    expect(group.state.totals.wouldWait).toBe(3);
  });

  test('lets a call pass that never fits, and a nested one', () => {
    const group = new TestGroup({ slotsMax: 1, isDryRun: true });
    expect(group.ask('wide', { slots: 5 })).toEqual(['grant wide.1']);
    expect(group.ask('nested', { parents: ['wide'] })).toEqual(['grant nested.1']);
    expect(group.state.totals.wouldWait).toBe(2);
  });

  test('counts nobody who is granted as usual', () => {
    const group = new TestGroup({ slotsMax: 2, isDryRun: true });
    group.askAll('a', 'b');
    expect(group.state.totals.wouldWait).toBe(0);
  });

  test('that begins lets those pass who wait', () => {
    const group = new TestGroup({ slotsMax: 0, paused: true });
    group.ask('a');
    group.ask('wide', { slots: 3 });
    expect(group.reconfigure({ isDryRun: true })).toEqual(['grant a.1', 'grant wide.1']);
  });

  test('that begins lets those pass who are between two asks as soon as they ask again', () => {
    const group = new TestGroup({ slotsMax: 0 });
    group.ask('a', { sliceMs: 100 });
    group.advance(100);
    expect(group.reconfigure({ isDryRun: true })).toEqual([]);
    expect(group.ask('a')).toEqual(['grant a.1']);
  });

  test('that ends grants nothing until what passed has gone', () => {
    const group = new TestGroup({ slotsMax: 1, isDryRun: true });
    group.askAll('a', 'b');
    group.reconfigure({ isDryRun: false });
    expect(group.ask('c')).toEqual([]);
    expect(group.release('a')).toEqual(['ended a.1']);
    expect(group.release('b')).toEqual(['ended b.1', 'grant c.1']);
  });
});
