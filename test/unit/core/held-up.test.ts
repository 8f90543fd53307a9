import { expect, test } from 'vitest';
import { after } from '../../../src/core/words/ids.ts';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** Time in which nobody could be heard: the process was frozen, or its clock was set forward. */

const FROZEN_MS = 60_000;

function heldUp(group: TestGroup, lostMs = FROZEN_MS): string[] {
  group.now = after(group.now, lostMs);
  return group.send({ kind: 'held_up', lostMs });
}

function held(): TestGroup {
  const group = new TestGroup({ slotsMax: 1, timeoutMs: 600_000, releaseCooldownMs: 5_000 });
  group.ask('holder');
  group.ask('next', { sliceMs: 600_000 });
  return group;
}

test('is not part of the TTL of a holder that lives', () => {
  const group = held();
  group.advance(20_000);
  expect(heldUp(group)).toEqual([]);
  expect(group.lease('holder').until).toBe(group.now + LEASE_TTL_MS - 20_000);
  group.renew('holder');
  expect(group.lease('holder').until).toBe(group.now + LEASE_TTL_MS);
});

test('costs a dead holder just that, however often it happens', () => {
  const group = held();
  for (let times = 0; times < 9; times += 1) {
    expect(group.advance(4_000)).toEqual([]);
    expect(heldUp(group, 6_000)).toEqual([]);
  }
  expect(group.advance(LEASE_TTL_MS - 36_000 - 1)).toEqual([]);
  expect(group.advance(1)).toEqual(['ended holder.1', 'grant next.1']);
});

test('is not part of the time that holders have to come back in after a reset', () => {
  const before = TestGroup.stored({ slotsMax: 1, timeoutMs: 600_000 });
  before.ask('holder');
  const group = before.restart();
  group.advance(LEASE_TTL_MS - 1);
  heldUp(group);
  expect(group.state.unclaimed).toMatchObject({ slots: 1, until: group.now + 1 });
  expect(group.resume('holder')).toEqual(['grant holder.1']);
  expect(group.state.totals.resurrected).toBe(0);
});

test('counts for a slot that cools down', () => {
  const group = held();
  group.release('holder');
  group.advance(1_000);
  expect(heldUp(group)).toEqual(['grant next.1']);
});

test('holds for a lease that was taken away: its holder could not let go', () => {
  const group = held();
  group.revoke('holder');
  expect(heldUp(group)).toEqual([]);
  expect(group.lease('holder').until).toBe(group.now + LEASE_TTL_MS);
});
