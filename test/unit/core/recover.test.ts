import { describe, expect, test } from 'vitest';
import { after } from '../../../src/core/words/ids.ts';
import {
  COMES_BACK_MS,
  EXTENSIONS_MAX,
  LEASE_TTL_MS,
  SETTLE_MS,
} from '../../../src/core/words/settings.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** The state after a reset, from the rows of the leases. */

/** A group with one slot, held by `holder`, that has just been reset `afterMs` into the lease. */
function resetGroup(afterMs = 10_000): TestGroup {
  const group = new TestGroup({ slotsMax: 1, timeoutMs: 600_000 });
  group.ask('holder');
  group.advance(afterMs);
  return group.reset();
}

describe('a lease', () => {
  test('gets one more TTL from the reset, because its renewals were not written', () => {
    const group = resetGroup();
    expect(group.lease('holder').until).toBe(group.now + LEASE_TTL_MS);
  });

  test('has that written once', () => {
    const group = resetGroup();
    expect(group.writes()).toEqual(['save holder.1']);
    expect(group.rows()).toMatchObject([{ extendedUntil: group.now + LEASE_TTL_MS }]);
  });

  test('is not extended by a second reset', () => {
    const first = resetGroup();
    const { until } = first.lease('holder');
    first.advance(1_000);
    const second = first.reset();
    expect(second.lease('holder').until).toBe(until);
    expect(second.writes()).toEqual([]);
  });

  test.each([1, COMES_BACK_MS - 1])(
    'with %i ms left lasts until its holder can be back',
    (leftMs) => {
      const first = resetGroup();
      first.advance(LEASE_TTL_MS - leftMs);
      const second = first.reset();
      expect(second.lease('holder').until).toBe(second.now + LEASE_TTL_MS);
      expect(second.writes()).toEqual(['save holder.1']);
    },
  );

  test('whose time passed in a freeze that no turn has seen waits for its holder', () => {
    const first = resetGroup();
    first.now = after(first.lease('holder').until, 3_600_000);
    const second = first.reset();
    expect(second.ask('waiter')).toEqual([]);
    expect(second.advance(COMES_BACK_MS - 1)).toEqual([]);
    second.renew('holder');
    expect(second.lease('holder').until).toBe(second.now + LEASE_TTL_MS);
    expect(second.rows()).toMatchObject([{ extendedUntil: null, extensions: 0 }]);
  });

  test.each([1_000, 15_001, 44_000])(
    'of a dead holder ends, though the object is reset every %i ms',
    (everyMs) => {
      let group = resetGroup();
      const endsAt = group.now + EXTENSIONS_MAX * LEASE_TTL_MS;
      while (group.inUse() > 0 && group.now <= endsAt) {
        group.advance(everyMs);
        group = group.reset();
      }
      expect(group.tick()).toEqual([]);
      expect(group.inUse()).toBe(0);
    },
  );

  test('of a dead holder is extended as often as it may be, in freezes too', () => {
    let group = resetGroup();
    for (let extensions = 1; extensions < EXTENSIONS_MAX; extensions += 1) {
      group.now = after(group.now, 3_600_000);
      group = group.reset();
      expect(group.tick()).toEqual([]);
    }
    group.now = after(group.now, 3_600_000);
    expect(group.reset().tick()).toEqual(['ended holder.1']);
  });

  test('keeps its id, ticket, holder and time', () => {
    const group = new TestGroup();
    group.ask('holder');
    const { id, ticketId, holder, grantedAt } = group.lease('holder');
    group.advance(5_000);
    expect(group.reset().lease('holder')).toMatchObject({ id, ticketId, holder, grantedAt });
  });

  test('has an attachment that no earlier instance gave out', () => {
    const group = new TestGroup();
    group.ask('holder');
    const { attachment } = group.lease('holder');
    expect(group.reset().lease('holder').attachment).toBeGreaterThan(attachment);
  });

  test('that was being taken away is so still', () => {
    const group = new TestGroup();
    group.ask('holder');
    group.revoke('holder');
    const next = group.reset();
    expect(next.lease('holder').phase).toBe('revoking');
    next.renew('holder');
    expect(next.advance(LEASE_TTL_MS)).toEqual(['ended holder.1']);
  });
});

describe('the first renewal after a reset', () => {
  test('is written, and the second is not', () => {
    const group = resetGroup();
    group.renew('holder');
    expect(group.writes()).toEqual(['save holder.1']);
    expect(group.rows()).toMatchObject([{ extendedUntil: null }]);
    group.renew('holder');
    expect(group.writes()).toEqual([]);
  });

  test('earns the lease a new extension at the next reset', () => {
    const first = resetGroup();
    first.advance(20_000);
    first.renew('holder');
    const second = first.reset();
    expect(second.lease('holder').until).toBe(second.now + LEASE_TTL_MS);
    expect(second.writes()).toEqual(['save holder.1']);
  });
});

test.each(['ask', 'resume'] as const)('an %s after a reset counts as a renewal', (verb) => {
  const group = resetGroup();
  group.advance(1_000);
  group[verb]('holder');
  expect(group.writes()).toEqual(['save holder.1']);
  expect(group.rows()).toMatchObject([{ extendedUntil: null }]);
  expect(group.lease('holder').until).toBe(group.now + LEASE_TTL_MS);
});

describe('a slot that cools down', () => {
  function coolingGroup(downMs: number): TestGroup {
    const group = new TestGroup({ slotsMax: 1, releaseCooldownMs: downMs, timeoutMs: 600_000 });
    group.ask('a');
    group.release('a');
    return group;
  }

  test('stays down as long as it would have, and is not extended', () => {
    const next = coolingGroup(5_000).reset();
    expect(next.writes()).toEqual([]);
    expect(next.ask('b')).toEqual([]);
    expect(next.advance(4_999)).toEqual([]);
    expect(next.advance(1)).toEqual(['grant b.1']);
  });

  test('whose time is over is dropped by the first event', () => {
    const group = coolingGroup(100);
    group.now = group.lease('a').until;
    const next = group.reset();
    next.tick();
    expect(next.writes()).toEqual(['drop a.1']);
    expect(next.inUse()).toBe(0);
  });

  test('is not given to a late ask or resumption of its old holder', () => {
    const next = coolingGroup(5_000).reset();
    expect(next.ask('a')).toEqual(['gone a']);
    expect(next.resume('a')).toEqual(['gone a']);
  });
});

describe('the settle time', () => {
  test('grants nothing until those who waited had time to come back', () => {
    const group = resetGroup();
    group.release('holder');
    expect(group.ask('young')).toEqual([]);
    group.ask('old', { enqueuedMs: 0 });
    expect(group.advance(SETTLE_MS - 1)).toEqual([]);
    expect(group.advance(1)).toEqual(['grant old.1']);
  });

  test('is there when only a cool-down was left', () => {
    const group = new TestGroup({ releaseCooldownMs: 1 });
    group.ask('a');
    group.release('a');
    const next = group.reset();
    expect(next.ask('b')).toEqual([]);
    expect(next.advance(SETTLE_MS)).toEqual(['grant b.1']);
  });

  test('is not there when there were no rows', () => {
    expect(new TestGroup().reset().ask('a')).toEqual(['grant a.1']);
  });

  test('does not keep a holder from its own lease', () => {
    const group = resetGroup();
    expect(group.resume('holder')).toEqual(['grant holder.1']);
    expect(group.ask('holder')).toEqual(['grant holder.1']);
  });
});
