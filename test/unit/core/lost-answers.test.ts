import { expect, test } from 'vitest';
import { takeWrite } from '../../../src/core/writes.ts';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { someClaim, TestGroup } from '../../support/core-builders.ts';

/** A group of one slot whose only call was granted behind a write, and that is reset before anybody hears of it. */
function lost(): TestGroup {
  const group = TestGroup.stored({ slotsMax: 1 });
  group.ask('a');
  group.write();
  return group.reset();
}

test('a caller whose answer was lost with the instance has its lease when it asks again', () => {
  const group = lost();
  expect(group.state.unclaimed.slots).toBe(1);
  expect(group.ask('a')).toEqual(['grant a.1']);
  expect(group.state.unclaimed.slots).toBe(0);
  expect(group.inUse()).toBe(1);
  expect(group.state.totals.resurrected).toBe(0);
});

test('it is given back once, and to nobody else', () => {
  const group = lost();
  expect(group.ask('b')).toEqual([]);
  expect(group.ask('a')).toEqual(['grant a.1']);
  group.release('a');
  expect(group.ask('a')).toEqual(['gone a']);
});

test('a lease that was told of before the last write is its holder’s to claim', () => {
  const group = TestGroup.stored({ slotsMax: 2 });
  group.ask('a');
  group.write();
  group.ask('b');
  group.write();
  const next = group.reset();
  expect(next.ask('a')).toEqual([]);
  expect(next.ask('b')).toEqual(['grant b.1']);
});

test('so has one whose write was still on its way when the last one was issued', () => {
  const group = TestGroup.stored({ slotsMax: 2 });
  group.ask('a');
  takeWrite(group.state, group.now);
  group.ask('b');
  group.write();
  const next = group.reset();
  expect(next.ask('a')).toEqual(['grant a.1']);
  expect(next.ask('b')).toEqual(['grant b.1']);
  expect(next.state.unclaimed.slots).toBe(0);
});

test('a refusal that is told by id to an instance that does not know the lease is heeded', () => {
  const group = TestGroup.stored({ slotsMax: 4 });
  group.askAll('a', 'b');
  group.write();
  const { attachment } = group.lease('a');
  const next = group.reset();
  const signal = { kind: 'requests', retryAfterMs: 20_000, slotsMax: null, hints: [] } as const;
  const claim = someClaim('a', { attachment });
  next.send({ kind: 'report', leaseId: claim.leaseId, signal, isRepeat: false, claim });
  expect(next.state.controls.pause.until).toBe(next.now + 20_000);
  expect(next.state.unclaimed.slots).toBe(1);
});

test('a holder whose lease lapsed right before a reset is taken up again, above the limit', () => {
  const group = TestGroup.stored({ slotsMax: 1 });
  group.ask('a');
  group.write();
  const { attachment } = group.lease('a');
  group.advance(LEASE_TTL_MS);
  group.ask('b');
  group.write();
  const next = group.reset();
  expect(next.resume('a', { attachment, hasLapsed: true })).toEqual(['grant a.1']);
  expect(next.state.unclaimed.slots).toBe(1);
  expect(next.state.totals.resurrected).toBe(1);
});

test('a release of a lease that lapsed frees nothing of what was handed on since', () => {
  const group = TestGroup.stored({ slotsMax: 1 });
  group.ask('a');
  group.write();
  const claim = someClaim('a', { attachment: group.lease('a').attachment });
  group.advance(LEASE_TTL_MS);
  group.ask('b');
  group.write();
  const next = group.reset();
  const end = { outcome: 'success', settlement: null, status: 200 } as const;
  next.send({ kind: 'release', leaseId: claim.leaseId, claim, ...end });
  expect(next.state.unclaimed.slots).toBe(1);
});
