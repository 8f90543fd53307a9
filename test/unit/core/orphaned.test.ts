import { describe, expect, test } from 'vitest';
import { atUpstream } from '../../../src/core/capacity.ts';
import type { Settlement } from '../../../src/core/words/ticket.ts';
import { LEASE_TTL_MS, settleMs } from '../../../src/core/words/settings.ts';
import { isOfNewer, type Claim } from '../../../src/core/orphaned.ts';
import { someClaim, TestGroup } from '../../support/core-builders.ts';
import { call, leftIn, metered, used } from './limits/metered.ts';

/** Slots that an earlier instance may have handed out, and how their holders come by them. */

/** A pool after a reset, in which so many slots are unclaimed. */
function resetGroup(slots: number, settings = {}): TestGroup {
  const before = TestGroup.stored({ slotsMax: 8, timeoutMs: 600_000, ...settings });
  for (let index = 0; index < slots; index += 1) before.ask(`held-${index}`);
  return before.restart();
}

/** A holder gives back by its id what this instance may not know. */
function releaseById(
  group: TestGroup,
  name: string,
  changes: Partial<Claim> = {},
  settlement: Settlement | null = null,
): string[] {
  const claim = someClaim(name, changes);
  const { leaseId } = claim;
  return group.send({ kind: 'release', leaseId, outcome: 'success', settlement, claim });
}

function slotsOrphaned({ state }: TestGroup): number {
  return state.unclaimed.slots;
}

describe('unclaimed slots', () => {
  test('are as many as the mark says, and not those of calls at the upstream', () => {
    const group = resetGroup(3);
    expect(slotsOrphaned(group)).toBe(3);
    expect(group.inUse()).toBe(3);
    expect(atUpstream(group.state, group.member())).toBe(0);
  });

  test('keep others out, also where the limit is lower by now', () => {
    const group = resetGroup(3);
    group.reconfigure({ slotsMax: 2 });
    expect(group.ask('a', { sliceMs: 600_000 })).toEqual([]);
    expect(group.advance(LEASE_TTL_MS)).toEqual(['grant a.1']);
    expect(group.state.totals.resurrected).toBe(0);
  });

  test('are none where nothing is stored', () => {
    const before = new TestGroup();
    before.ask('a');
    before.write();
    expect(slotsOrphaned(before.reset({ ...before.stored, bound: null }))).toBe(0);
  });

  test('lapse all at once, whoever has come', () => {
    const group = resetGroup(3);
    group.advance(LEASE_TTL_MS - 1);
    group.resume('held-0');
    expect(slotsOrphaned(group)).toBe(2);
    group.advance(1);
    expect(group.inUse()).toBe(1);
  });
});

describe('a claim', () => {
  test('takes its slots out of them', () => {
    const group = resetGroup(3);
    group.resume('held-0', { slots: 2 });
    expect(slotsOrphaned(group)).toBe(1);
    expect(group.inUse()).toBe(3);
    expect(group.state.totals.resurrected).toBe(0);
  });

  test('of more than there are counts as resurrected, and is answered behind a write', () => {
    const group = resetGroup(1);
    group.write();
    group.resume('wide', { slots: 3 });
    expect(group.asksToWrite()).toBe('behind');
    expect(slotsOrphaned(group)).toBe(0);
    expect(group.inUse()).toBe(3);
    expect(group.state.totals.resurrected).toBe(1);
    expect(group.write().bound).toMatchObject({ held: 3, mark: 3 });
  });

  test('within them is answered at once where a write has arrived', () => {
    const group = resetGroup(3);
    group.write();
    group.resume('held-0');
    expect(group.asksToWrite()).toBe('no');
  });

  test.each<[string, Partial<Claim>]>([
    ['whose holder knows that it has lapsed', { hasLapsed: true }],
    ['of before the pool was empty', { attachment: 0 }],
    ['that this instance has granted itself', { attachment: 1e9 }],
  ])('%s takes nothing out of them: its slots have been given up', (_what, changes) => {
    const group = resetGroup(3);
    group.resume('other', changes);
    expect(slotsOrphaned(group)).toBe(3);
    expect(group.inUse()).toBe(4);
    expect(group.state.totals.resurrected).toBe(1);
  });

  test('of a holder that knows no attachment is believed', () => {
    const group = resetGroup(3);
    group.resume('held-0', { attachment: null });
    expect(slotsOrphaned(group)).toBe(2);
  });

  test('after they have lapsed counts besides', () => {
    const group = resetGroup(1);
    group.advance(LEASE_TTL_MS);
    group.resume('held-0');
    expect(group.state.totals.resurrected).toBe(1);
  });

  test('of what an instance before has seen end is gone', () => {
    const before = TestGroup.stored({ slotsMax: 8 });
    before.askAll('a', 'b');
    before.write();
    before.release('a');
    const group = before.restart();
    expect(group.resume('a')).toEqual(['gone a']);
    expect(slotsOrphaned(group)).toBe(1);
  });

  test('keeps what was reserved for it, so that it is settled once', () => {
    const before = metered({ tpd: 5_000 }, { slotsMax: 8 });
    call(before, 'a', { input: 400 });
    const { reserved } = before.lease('a');
    const group = before.restart();
    const { tpd = 0 } = leftIn(group);
    group.resume('a', { reserved });
    group.release('a', 'success', 1, used({ input: 100 }));
    expect(leftIn(group)['tpd']).toBe(tpd + 300);
  });

  test('that is resurrected settles nothing: what was reserved for it counts already', () => {
    const before = metered({ tpd: 5_000 }, { slotsMax: 8 });
    call(before, 'a', { input: 400 });
    const { reserved } = before.lease('a');
    const group = before.restart();
    const { tpd = 0 } = leftIn(group);
    group.resume('a', { reserved, hasLapsed: true });
    group.release('a', 'success', 1, used({ input: 100 }));
    expect(leftIn(group)['tpd']).toBe(tpd);
  });
});

describe('a release by id of a lease that was never seen', () => {
  test('takes its slots out of them at once', () => {
    const group = resetGroup(2);
    expect(releaseById(group, 'held-0')).toEqual(['ended held-0.1']);
    expect(slotsOrphaned(group)).toBe(1);
    expect(group.inUse()).toBe(1);
    expect(group.state.totals.resurrected).toBe(0);
  });

  test('lets the slot cool down, and others wait for that', () => {
    const group = resetGroup(1, { slotsMax: 1, releaseCooldownMs: 5_000 });
    releaseById(group, 'held-0');
    expect(group.lease('held-0').phase).toBe('cooling');
    expect(group.ask('next', { sliceMs: 600_000 })).toEqual([]);
    expect(group.advance(5_000)).toEqual(['grant next.1']);
  });

  test('settles what it has used', () => {
    const before = metered({ tpd: 5_000 }, { slotsMax: 8 });
    call(before, 'a', { input: 400 });
    const { reserved } = before.lease('a');
    const group = before.restart();
    const { tpd = 0 } = leftIn(group);
    releaseById(group, 'a', { reserved }, used({ input: 100 }));
    expect(leftIn(group)['tpd']).toBe(tpd + 300);
    releaseById(group, 'a', { reserved }, used({ input: 100 }));
    expect(leftIn(group)['tpd']).toBe(tpd + 300);
  });

  test('takes them once, also across resets', () => {
    const group = resetGroup(3);
    releaseById(group, 'held-0');
    expect(releaseById(group, 'held-0')).toEqual([]);
    expect(slotsOrphaned(group)).toBe(2);
    const next = group.restart();
    expect(slotsOrphaned(next)).toBe(2);
    expect(releaseById(next, 'held-0')).toEqual([]);
    expect(slotsOrphaned(next)).toBe(2);
  });

  test('takes nothing where a release before was not heard of with the slot passed on', () => {
    const before = TestGroup.stored({ slotsMax: 2, timeoutMs: 600_000 });
    before.askAll('a', 'b');
    before.write();
    before.ask('c');
    expect(before.release('a')).toEqual(['ended a.1', 'grant c.1']);
    before.write();
    const group = before.reset();
    expect(releaseById(group, 'a')).toEqual([]);
    expect(slotsOrphaned(group)).toBe(2);
  });

  test.each<[string, Partial<Claim>]>([
    ['does not fit into them', { slots: 3 }],
    ['has lapsed', { hasLapsed: true }],
    ['is of before the pool was empty', { attachment: 0 }],
    ['is of a newer instance', { attachment: 1e9 }],
  ])('takes nothing where it %s', (_what, changes) => {
    const group = resetGroup(2);
    expect(releaseById(group, 'other', changes)).toEqual([]);
    expect(slotsOrphaned(group)).toBe(2);
    expect(group.resume('other'), 'and it has ended').toEqual(['gone other']);
  });

  test('takes nothing where it does not say what it held', () => {
    const group = resetGroup(2);
    expect(group.release('held-0')).toEqual([]);
    expect(slotsOrphaned(group)).toBe(2);
  });

  test('ends who waits under that id too', () => {
    const before = resetGroup(2, { slotsMax: 2 });
    before.write();
    const group = before.reset();
    group.ask('held-0', { sliceMs: 600_000 });
    expect(releaseById(group, 'held-0')).toEqual(['gone held-0', 'ended held-0.1']);
    expect(slotsOrphaned(group)).toBe(1);
  });
});

describe('once nothing is unclaimed any more', () => {
  test('leases of instances before have no slot, and the next row says so', () => {
    const group = resetGroup(1);
    expect(group.write().bound.since).toBeLessThan(group.state.bound.first);
    group.resume('held-0');
    expect(group.write().bound.since).toBe(group.state.bound.first);
    const next = group.reset();
    next.resume('stranger', { attachment: 1 });
    expect(next.state.totals.resurrected).toBe(1);
    expect(slotsOrphaned(next)).toBe(1);
  });

  test('what those leases did not come back for is over, before anybody is granted', () => {
    const before = metered({ perDayUsd: 1 }, { slotsMax: 1, timeoutMs: 600_000 });
    call(before, 'a', { usd: 0.5 });
    const group = before.restart();
    expect(leftIn(group)).toMatchObject({ spentUsd: 0 });
    group.advance(LEASE_TTL_MS);
    expect(leftIn(group)).toMatchObject({ reservedUsd: 0, spentUsd: 1 });
  });
});

describe('where nothing is stored', () => {
  test('whoever comes back counts, and others may follow before anybody else is granted', () => {
    const group = new TestGroup({ slotsMax: 2 });
    expect(group.resume('a')).toEqual(['grant a.1']);
    expect(group.asksToWrite()).toBe('no');
    expect(group.ask('young', { sliceMs: 600_000 })).toEqual([]);
    expect(group.resume('b')).toEqual(['grant b.1']);
    expect(group.state.totals.resurrected).toBe(2);
    expect(group.release('a')).toEqual(['ended a.1']);
    expect(group.advance(settleMs(1, 1))).toEqual(['grant young.1']);
  });
});

test('a lease that a newer instance has granted is known as such', () => {
  const group = TestGroup.stored();
  const { nextAttachment } = group.state;
  expect(isOfNewer(group.state, someClaim('a', { attachment: nextAttachment }))).toBe(true);
  expect(isOfNewer(group.state, someClaim('a', { attachment: nextAttachment - 1 }))).toBe(false);
  expect(isOfNewer(group.state, someClaim('a', { attachment: null }))).toBe(false);
  const { state } = new TestGroup();
  expect(isOfNewer(state, someClaim('a', { attachment: state.nextAttachment }))).toBe(false);
});
