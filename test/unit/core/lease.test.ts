import { describe, expect, test } from 'vitest';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** The life of a lease between its grant and its end. */

/** One slot, held, and one ticket that waits for it. */
function heldGroup(): TestGroup {
  const group = TestGroup.stored({ slotsMax: 1, timeoutMs: 600_000 });
  group.ask('holder');
  group.ask('waiter', { sliceMs: 600_000 });
  group.write();
  return group;
}

describe('a release', () => {
  test('frees the slot and writes nothing; the next write tells of it', () => {
    const group = TestGroup.stored();
    group.ask('a');
    group.write();
    group.release('a');
    expect(group.inUse()).toBe(0);
    expect(group.asksToWrite()).toBe('no');
    expect(group.write().bound.ended).toEqual(['a.1']);
  });

  test('twice frees the slot once', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.askAll('a', 'b', 'c');
    expect(group.release('a')).toEqual(['ended a.1', 'grant b.1']);
    expect(group.release('a')).toEqual([]);
    expect(group.inUse()).toBe(1);
    expect(group.waiting()).toEqual(['c']);
  });

  test('twice while the slot cools down does not end the cool-down', () => {
    const group = new TestGroup({ releaseCooldownMs: 100 });
    group.ask('a');
    group.release('a');
    expect(group.release('a', 'unused')).toEqual([]);
    expect(group.inUse()).toBe(1);
  });
});

describe('of an unknown id', () => {
  test.each(['renew', 'release', 'cancel', 'revoke'] as const)('%s changes nothing', (verb) => {
    const group = heldGroup();
    expect(group[verb]('nobody')).toEqual([]);
    expect(group.asksToWrite()).toBe('no');
    expect(group.inUse()).toBe(1);
    expect(group.waiting()).toEqual(['waiter']);
  });

  test('detach changes nothing', () => {
    const group = heldGroup();
    expect(group.detach('nobody', 1)).toEqual([]);
    expect(group.inUse()).toBe(1);
  });
});

describe('detach', () => {
  test('of the current attachment frees the slot', () => {
    const group = heldGroup();
    const { attachment } = group.lease('holder');
    expect(group.detach('holder', attachment)).toEqual(['ended holder.1', 'grant waiter.1']);
  });

  test('of an older attachment changes nothing', () => {
    const group = heldGroup();
    const { attachment } = group.lease('holder');
    group.ask('holder');
    expect(group.detach('holder', attachment)).toEqual([]);
    expect(group.lease('holder').phase).toBe('held');
  });

  test('after the release changes nothing', () => {
    const group = new TestGroup({ releaseCooldownMs: 100, cancelCooldownMs: 9_000 });
    group.ask('a');
    const { attachment } = group.lease('a');
    group.release('a');
    group.detach('a', attachment);
    expect(group.wakesIn()).toBe(100);
  });
});

describe('the expiry', () => {
  test('comes after the TTL, not a millisecond early, and frees the slot', () => {
    const group = heldGroup();
    expect(group.advance(LEASE_TTL_MS - 1)).toEqual([]);
    expect(group.advance(1)).toEqual(['ended holder.1', 'grant waiter.1']);
    expect(group.state.totals.expired).toBe(1);
  });

  test('is told with the next write', () => {
    const group = TestGroup.stored();
    group.ask('a');
    group.write();
    group.advance(LEASE_TTL_MS);
    expect(group.write().bound).toMatchObject({ ended: [], lapsed: ['a.1'] });
  });

  test('is put off by a renewal to one TTL from then', () => {
    const group = heldGroup();
    group.advance(LEASE_TTL_MS - 1);
    group.renew('holder');
    expect(group.advance(LEASE_TTL_MS - 1)).toEqual([]);
    expect(group.advance(1)).toEqual(['ended holder.1', 'grant waiter.1']);
  });

  test('cannot be put off by a renewal of the same instant', () => {
    const group = heldGroup();
    group.advance(LEASE_TTL_MS - 1);
    group.now = group.lease('holder').until;
    expect(group.renew('holder')).toEqual(['ended holder.1', 'grant waiter.1']);
  });

  test('has no cool-down: the slot was in use for the whole TTL', () => {
    const group = new TestGroup({ cancelCooldownMs: 1_000, failureCooldownMs: 1_000 });
    group.ask('a');
    group.advance(LEASE_TTL_MS);
    expect(group.inUse()).toBe(0);
  });
});

test('a renewal is not written', () => {
  const group = heldGroup();
  group.renew('holder');
  expect(group.asksToWrite()).toBe('no');
});

describe('a lease that an operator takes away', () => {
  test('has its holder told, while the slot stays taken', () => {
    const group = heldGroup();
    expect(group.revoke('holder')).toEqual(['revoked holder.1']);
    expect(group.lease('holder').phase).toBe('revoking');
    expect(group.waiting()).toEqual(['waiter']);
  });

  test('frees its slot when its holder lets go', () => {
    const group = heldGroup();
    group.revoke('holder');
    expect(group.release('holder', 'cancelled')).toEqual(['ended holder.1', 'grant waiter.1']);
  });

  test('is not extended by a renewal', () => {
    const group = heldGroup();
    group.revoke('holder');
    group.advance(LEASE_TTL_MS - 1);
    group.renew('holder');
    expect(group.advance(1)).toEqual(['ended holder.1', 'grant waiter.1']);
  });

  test('that lapsed cannot be resumed', () => {
    const group = heldGroup();
    group.revoke('holder');
    group.advance(LEASE_TTL_MS);
    expect(group.resume('holder')).toEqual(['gone holder']);
  });

  test('is told once', () => {
    const group = heldGroup();
    group.revoke('holder');
    expect(group.revoke('holder')).toEqual([]);
  });

  test('cannot be one that cools down', () => {
    const group = new TestGroup({ releaseCooldownMs: 100 });
    group.ask('a');
    group.release('a');
    expect(group.revoke('a')).toEqual([]);
    expect(group.lease('a').phase).toBe('cooling');
  });
});
