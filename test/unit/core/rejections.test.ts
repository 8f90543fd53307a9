import { describe, expect, test } from 'vitest';
import type { Rejection } from '../../../src/core/words/outcome.ts';
import { SETTLE_MS } from '../../../src/core/words/settings.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** Rejections: when, why, and what they say. */

describe('a caller that does not want to wait', () => {
  test('is granted when a slot is free', () => {
    expect(new TestGroup().ask('a', { wait: false })).toEqual(['grant a.1']);
  });

  test('is told busy when none is, and leaves no trace in the queue', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.ask('holder');
    expect(group.ask('a', { wait: false })).toEqual(['reject a busy']);
    expect(group.rejection('a')).toMatchObject({ reason: 'busy', slotsMax: 1 });
    expect(group.waiting()).toEqual([]);
  });

  test('is told paused while the group is paused', () => {
    const group = new TestGroup({ paused: true });
    expect(group.ask('a', { wait: false })).toEqual(['reject a paused']);
  });

  test('is told busy, not granted, in the settle time after a reset', () => {
    const before = TestGroup.stored();
    before.ask('holder');
    const group = before.restart();
    expect(group.ask('a', { wait: false })).toEqual(['reject a busy']);
    const { cause, retryAfterMs } = group.rejection('a') as Rejection & { reason: 'busy' };
    expect(cause).toBe('settling');
    expect(retryAfterMs).toBeGreaterThan(0);
    expect(retryAfterMs).toBeLessThanOrEqual(SETTLE_MS);
  });

  test('hears that all slots are in use only if they are', () => {
    const full = new TestGroup({ slotsMax: 1 });
    full.ask('holder');
    full.ask('a', { wait: false });
    expect(full.rejection('a')).not.toHaveProperty('cause');
    const capped = new TestGroup({ slotsMax: 4, slotsMaxEach: 1 });
    capped.ask('holder', { tenant: 'ann' });
    capped.ask('b', { tenant: 'ann', wait: false });
    expect(capped.rejection('b')).toMatchObject({ reason: 'busy', cause: 'cap' });
  });
});

describe('the length of the queue', () => {
  test('admits exactly its maximum', () => {
    const group = new TestGroup({ slotsMax: 0, queueLengthMax: 2 });
    expect(group.askAll('a', 'b')).toEqual([]);
    expect(group.ask('c')).toEqual(['reject c queue_full']);
    expect(group.rejection('c')).toMatchObject({ queueLengthMax: 2 });
    expect(group.waiting()).toEqual(['a', 'b']);
  });

  test('does not matter to a caller that can be granted', () => {
    const group = new TestGroup({ slotsMax: 1, queueLengthMax: 0 });
    expect(group.ask('a')).toEqual(['grant a.1']);
    expect(group.ask('b')).toEqual(['reject b queue_full']);
  });

  test('does not matter to a waiter that asks again', () => {
    const group = new TestGroup({ slotsMax: 0, queueLengthMax: 1 });
    group.ask('a');
    expect(group.ask('a')).toEqual([]);
    expect(group.waiting()).toEqual(['a']);
  });
});

describe('the deadline', () => {
  test('of the group rejects with queue_timeout, not a millisecond early', () => {
    const group = new TestGroup({ slotsMax: 0, timeoutMs: 1_000 });
    group.ask('a');
    expect(group.advance(999)).toEqual([]);
    expect(group.advance(1)).toEqual(['reject a queue_timeout']);
    expect(group.rejection('a')).toMatchObject({ waitedMs: 1_000 });
    expect(group.waiting()).toEqual([]);
  });

  test('of the caller counts when it is earlier', () => {
    const group = new TestGroup({ slotsMax: 0, timeoutMs: 1_000 });
    group.ask('a', { deadlineMs: 300 });
    expect(group.advance(299)).toEqual([]);
    expect(group.advance(1)).toEqual(['reject a queue_timeout']);
  });

  test('of the group counts when the caller would wait longer', () => {
    const group = new TestGroup({ slotsMax: 0, timeoutMs: 1_000 });
    group.ask('a', { deadlineMs: 5_000 });
    expect(group.advance(1_000)).toEqual(['reject a queue_timeout']);
  });

  test.each([300, 5_000])(
    'is that of its lane or its key where they have one: %i ms',
    (timeoutMs) => {
      const group = new TestGroup({ slotsMax: 0, timeoutMs: 1_000 });
      group.ask('a', { timeoutMs, deadlineMs: 6_000 });
      expect(group.advance(timeoutMs - 1)).toEqual([]);
      expect(group.advance(1)).toEqual(['reject a queue_timeout']);
    },
  );

  test('of such a call counts the whole of its wait, though it is longer than others may', () => {
    const group = new TestGroup({ slotsMax: 0, timeoutMs: 1_000 });
    group.ask('a', { timeoutMs: 5_000, enqueuedMs: -3_000 });
    expect(group.advance(1_999)).toEqual([]);
    expect(group.advance(1)).toEqual(['reject a queue_timeout']);
    expect(group.rejection('a')).toMatchObject({ waitedMs: 5_000 });
  });

  test('counts from the time at which the call reached Headgate', () => {
    const group = new TestGroup({ slotsMax: 0, timeoutMs: 1_000 });
    group.ask('a', { enqueuedMs: -400 });
    expect(group.advance(599)).toEqual([]);
    expect(group.advance(1)).toEqual(['reject a queue_timeout']);
    expect(group.rejection('a')).toMatchObject({ waitedMs: 1_000 });
  });

  test('says paused when the group is still paused', () => {
    const group = new TestGroup({ paused: true, timeoutMs: 1_000 });
    group.ask('a');
    expect(group.advance(1_000)).toEqual(['reject a paused']);
    expect(group.rejection('a')).toMatchObject({ waitedMs: 1_000 });
  });

  test('does not touch a ticket that was granted before it', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.ask('a', { deadlineMs: 300 });
    expect(group.advance(300)).toEqual([]);
    expect(group.inUse()).toBe(1);
  });

  test('ends a ticket before a slot of the same instant could be granted to it', () => {
    const group = new TestGroup({ slotsMax: 1, releaseCooldownMs: 300 });
    group.ask('holder');
    group.ask('late', { deadlineMs: 300 });
    group.ask('next');
    group.release('holder');
    expect(group.advance(300)).toEqual(['reject late queue_timeout', 'grant next.1']);
  });
});

test('rejections are counted by their reason', () => {
  const group = new TestGroup({ slotsMax: 0, queueLengthMax: 1, timeoutMs: 1_000 });
  group.askAll('a', 'b', 'c');
  group.ask('d', { wait: false });
  group.advance(1_000);
  expect(group.state.totals.rejected).toEqual({ queue_full: 2, busy: 1, queue_timeout: 1 });
});
