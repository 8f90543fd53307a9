// Members of a group: where a call goes whose turn it is, and what each member learns.
import { describe, expect, test } from 'vitest';
import { leaseIdOf, memberId } from '../../../src/core/words/ids.ts';
import type { MemberSettings, GroupSettings } from '../../../src/core/words/settings.ts';
import type { RefusalKind } from '../../../src/core/words/signal.ts';
import { someClaim, someMember, TestGroup } from '../../support/core-builders.ts';

/** A group of members with so many slots each, by name. */
function groupOf(
  slots: Readonly<Record<string, number>>,
  changes: Partial<GroupSettings> = {},
): TestGroup {
  const members = Object.entries(slots).map(([id, slotsMax]) => someMember(id, { slotsMax }));
  return new TestGroup({ slotsMax: Infinity, members, ...changes });
}

/** The member of a call that holds a lease. */
const at = (group: TestGroup, name: string): string => group.lease(name).member;

/** A call ends; nobody else was told of its lease. */
function endSole(group: TestGroup, name: string): void {
  const { id } = group.lease(name);
  const reported = { outcome: 'success', settlement: null, isSole: true } as const;
  group.send({ kind: 'release', leaseId: id, ...reported });
}

function changed(group: TestGroup, id: string, changes: Partial<MemberSettings>): void {
  const { members } = group.state.settings;
  group.reconfigure({
    members: members.map((member) => (member.id === id ? { ...member, ...changes } : member)),
  });
}

/** A call is refused where it is granted, and served at the first member that takes it then. */
function refusedThenServed(
  group: TestGroup,
  name: string,
  kind: RefusalKind = 'unauthorized',
  agoMs = 0,
): void {
  const { member, ticketId } = group.lease(name);
  group.report(name, { kind });
  group.release(name, 'refused');
  group.ask(name, { attempt: 2, excluded: [member] });
  expect(group.state.leases.get(leaseIdOf(ticketId, 2))?.member).not.toBe(member);
  group.report(name, { kind: 'served', blamed: [{ member, kind, agoMs }] }, false, 2);
  group.release(name, 'success', 2);
}

const outageOf = (group: TestGroup, id: string) => group.member(id).controls.outage;

describe('a call goes', () => {
  test('where the largest part of the slots is free, and of equals where none was granted for longest', () => {
    const group = groupOf({ a: 4, b: 8, c: 4 });
    group.askAll('1', '2', '3', '4', '5');
    // All are empty, then b is an eighth full, and a and c a quarter.
    expect(['1', '2', '3', '4', '5'].map((name) => at(group, name))).toEqual([
      'a',
      'b',
      'c',
      'b',
      'a',
    ]);
  });

  test('more often where the weight is larger', () => {
    const group = groupOf({ a: 10, b: 10 });
    changed(group, 'b', { weight: 3 });
    const names = Array.from({ length: 8 }, (_, index) => `${index}`);
    group.askAll(...names);
    expect(names.filter((name) => at(group, name) === 'b')).toHaveLength(6);
  });

  test('to a later tier only while the tiers before it are full', () => {
    const group = groupOf({ a: 1, b: 2 });
    changed(group, 'b', { tier: 2 });
    group.askAll('1', '2');
    expect([at(group, '1'), at(group, '2')]).toEqual(['a', 'b']);
    group.release('1');
    group.ask('3');
    expect(at(group, '3')).toBe('a');
  });

  test('to none above the limit over all members', () => {
    const group = groupOf({ a: 2, b: 2 }, { slotsMax: 3 });
    group.askAll('1', '2', '3', '4');
    expect(group.waiting()).toEqual(['4']);
    group.release('1');
    expect(group.waiting()).toEqual([]);
  });

  test('nowhere that it excludes, and lets others go there meanwhile', () => {
    const group = groupOf({ a: 1, b: 1 });
    group.ask('held', { excluded: ['a'] });
    group.ask('picky', { excluded: ['a'] });
    expect(group.waiting()).toEqual(['picky']);
    group.ask('free');
    expect(at(group, 'free')).toBe('a');
    group.release('held');
    expect(at(group, 'picky')).toBe('b');
  });

  test.each([false, true])(
    'nowhere once it excludes all, and is told so; dry run: %s',
    (isDryRun) => {
      const group = groupOf({ a: 1, b: 1 }, { isDryRun });
      group.ask('1', { excluded: ['a', 'b', 'gone'] });
      expect(group.rejection('1').reason).toBe('members_out');
    },
  );

  test.each([{ isEnabled: false }, null])(
    'nowhere once those that it does not exclude are gone: %o',
    (changes) => {
      const group = groupOf({ a: 1, b: 1 });
      group.ask('held', { excluded: ['a'] });
      group.ask('picky', { excluded: ['a'] });
      expect(group.waiting()).toEqual(['picky']);
      if (changes !== null) changed(group, 'b', changes);
      else group.reconfigure({ members: [someMember('a', { slotsMax: 1 })] });
      expect(group.rejection('picky').reason).toBe('members_out');
    },
  );

  test('to a new one, though it excludes all that there were', () => {
    const group = groupOf({ a: 1, b: 1 });
    group.reconfigure({ members: [...group.state.settings.members, someMember('c')] });
    group.ask('1', { excluded: ['a', 'b'] });
    expect(at(group, '1')).toBe('c');
  });

  test('not past a wider one that fits nowhere yet', () => {
    const group = groupOf({ a: 2, b: 2 });
    group.askAll('1', '2');
    group.ask('wide', { slots: 2 });
    group.ask('small');
    expect(group.waiting()).toEqual(['wide', 'small']);
    group.release('2');
    expect([at(group, 'wide'), at(group, 'small')]).toEqual(['b', 'a']);
  });

  test('nowhere that is narrower than the call, which lets others go there meanwhile', () => {
    const group = groupOf({ a: 2, b: 3 });
    group.ask('1', { excluded: ['a'] });
    group.ask('wide', { slots: 3 });
    expect(group.waiting()).toEqual(['wide']);
    group.ask('2');
    expect(at(group, '2')).toBe('a');
    group.release('1');
    expect(at(group, 'wide')).toBe('b');
  });

  test('not past a wider one that the limit over all members keeps waiting, wherever it may go', () => {
    const group = groupOf({ a: 3, b: 3 }, { slotsMax: 3 });
    group.askAll('1', '2');
    group.ask('wide', { slots: 2, excluded: ['b'] });
    group.ask('small');
    expect(group.waiting()).toEqual(['wide', 'small']);
    group.release('1');
    group.release('2');
    expect([at(group, 'wide'), at(group, 'small')]).toEqual(['a', 'b']);
  });

  test('with its parent, but not where it was refused', () => {
    const group = groupOf({ a: 1, b: 1 }, { nested: 'pass' });
    group.ask('parent');
    group.ask('other');
    group.ask('refused', { parents: ['parent'], excluded: ['a'] });
    expect(group.waiting()).toEqual(['refused']);
    group.ask('child', { parents: ['parent'] });
    expect(at(group, 'child')).toBe('a');
    group.release('other');
    expect(at(group, 'refused')).toBe('b');
  });

  test('not to one that is switched off, and what runs there goes on', () => {
    const group = groupOf({ a: 1, b: 1 });
    group.ask('1');
    changed(group, 'a', { isEnabled: false });
    group.askAll('2', '3');
    expect(at(group, '2')).toBe('b');
    group.release('1');
    expect(group.waiting()).toEqual(['3']);
  });
});

describe('a call that a member refused for what passes goes there again', () => {
  const REFUSED = { excluded: ['a'], excludedForNow: ['a'], sliceMs: 600_000 };

  /** The other member is full, and a call waits for it. */
  function waitingForB(options: Parameters<TestGroup['ask']>[1] = REFUSED): TestGroup {
    const group = groupOf({ a: 2, b: 1 });
    group.ask('early');
    group.ask('held', { excluded: ['a'] });
    group.advance(1);
    group.ask('refused', options);
    group.advance(1);
    expect(group.waiting()).toEqual(['refused']);
    return group;
  }

  test('once another was served there, that was granted since', () => {
    const group = waitingForB();
    group.release('early');
    expect(group.waiting()).toEqual(['refused']);
    group.ask('other');
    group.report('other', { kind: 'served' });
    expect(at(group, 'refused')).toBe('a');
  });

  test('once that has ended well, if nobody heard of it before', () => {
    const group = waitingForB();
    group.ask('other');
    group.release('other');
    expect(at(group, 'refused')).toBe('a');
  });

  test('after half a minute, if nobody else came', () => {
    const group = waitingForB();
    group.advance(9_999);
    ['early', 'held'].forEach((name) => group.renew(name));
    group.advance(10_000);
    ['early', 'held'].forEach((name) => group.renew(name));
    group.advance(9_999);
    expect(group.wakesIn()).toBe(1);
    group.advance(1);
    expect(at(group, 'refused')).toBe('a');
  });

  test('but not for anything else', () => {
    const group = waitingForB({ ...REFUSED, excludedForNow: [] });
    group.ask('other');
    group.release('other');
    group.advance(40_000);
    expect(group.waiting()).toEqual(['refused']);
  });
});

describe('agents', () => {
  test('stay where their last call ran', () => {
    const group = groupOf({ a: 4, b: 4 });
    group.ask('1', { agent: 'x' });
    group.release('1');
    group.ask('other');
    expect(at(group, 'other')).toBe('b');
    group.ask('2', { agent: 'x' });
    group.ask('3', { agent: 'x' });
    expect([at(group, '2'), at(group, '3')]).toEqual(['a', 'a']);
    expect(group.state.totals.affinityKept).toBe(2);
  });

  test('go at once where their call is too wide for their member', () => {
    const group = groupOf(
      { a: 1, b: 2 },
      { affinity: { by: 'agent', forMs: 300_000, waitMs: 60_000 } },
    );
    group.ask('1', { agent: 'run' });
    group.ask('2', { agent: 'run', slots: 2 });
    expect([at(group, '1'), at(group, '2')]).toEqual(['a', 'b']);
  });

  test('go at once where their member is out, and being probed', () => {
    const group = groupOf({ a: 2, b: 2 });
    group.ask('mine', { agent: 'x' });
    group.release('mine');
    group.ask('1', { excluded: ['b'] });
    refusedThenServed(group, '1', 'quota');
    group.advance(60_000);
    group.ask('probe', { excluded: ['b'] });
    expect(at(group, 'probe')).toBe('a');
    group.ask('2', { agent: 'x' });
    expect(at(group, '2')).toBe('b');
  });

  test('are not those of another tenant, whatever they call themselves', () => {
    const group = groupOf({ a: 4, b: 4 });
    group.ask('1', { agent: 'x', tenant: 'one' });
    group.release('1');
    group.ask('2', { agent: 'x', tenant: 'two' });
    expect([at(group, '2'), group.state.totals.affinityKept]).toEqual(['b', 0]);
  });

  test('are forgotten after a while', () => {
    const group = groupOf({ a: 1, b: 1 });
    group.ask('1', { agent: 'x' });
    group.release('1');
    group.advance(300_000);
    group.ask('2', { agent: 'x' });
    expect(at(group, '2')).toBe('b');
  });

  test('wait a moment for their member though another has room, which others take', () => {
    const group = groupOf({ a: 4, b: 4 });
    group.state.holdMeanMs = 100;
    ['1', '2', '3', '4'].forEach((name) => group.ask(name, { agent: 'x' }));
    group.ask('5', { agent: 'x' });
    expect(group.waiting()).toEqual(['5']);
    group.ask('other', { agent: 'y' });
    expect(at(group, 'other')).toBe('b');
    group.advance(1_900);
    expect(group.waiting()).toEqual(['5']);
    expect(group.wakesIn()).toBe(100);
    group.advance(100);
    expect(at(group, '5')).toBe('b');
    expect(group.state.totals).toMatchObject({ affinityLeft: 1, affinityWaited: 1 });
  });

  test('go to their member as soon as its pause is over, before they have waited for long', () => {
    const group = groupOf({ a: 2, b: 2 });
    group.ask('1', { agent: 'x' });
    group.report('1', { kind: 'requests', retryAfterMs: 1_000 });
    group.release('1', 'refused');
    group.ask('2', { agent: 'x' });
    expect(group.waiting()).toEqual(['2']);
    expect(group.wakesIn()).toBe(1_000);
    group.advance(1_000);
    expect(at(group, '2')).toBe('a');
  });

  test('go at once where their member will not have room in time', () => {
    const group = groupOf({ a: 1, b: 1 });
    group.state.holdMeanMs = 10_000;
    group.ask('1', { agent: 'x' });
    group.ask('2', { agent: 'x' });
    expect(at(group, '2')).toBe('b');
  });

  test('that were sent to a later tier are not kept there for ever', () => {
    const group = groupOf({ a: 1, b: 4 }, {});
    group.state.holdMeanMs = 10_000;
    changed(group, 'b', { tier: 2 });
    group.ask('holds', { agent: 'y' });
    group.ask('1', { agent: 'x' });
    expect(at(group, '1')).toBe('b');
    group.release('holds');
    for (let minute = 0; minute < 4; minute += 1) {
      group.advance(60_000);
      group.renew('1');
      group.ask(`b${minute}`, { agent: 'x' });
      expect(at(group, `b${minute}`)).toBe('b');
      group.release(`b${minute}`);
    }
    group.advance(61_000);
    group.ask('back', { agent: 'x' });
    expect(at(group, 'back')).toBe('a');
  });
});

describe('what an upstream says', () => {
  test('is about the member that it was said to', () => {
    const group = groupOf({ a: 4, b: 4 });
    group.askAll('1', '2', '3', '4');
    group.report('1', { kind: 'concurrency', slotsMax: 1 });
    group.release('1', 'failed');
    expect(group.member('a').controls.ceiling.slots).toBe(1);
    expect(group.member('b').controls.ceiling.slots).toBeNull();
    group.askAll('5', '6', '7');
    expect(['5', '6'].map((name) => at(group, name))).toEqual(['b', 'b']);
    expect(group.waiting()).toEqual(['7']);
  });

  test('pauses one, and the others go on', () => {
    const group = groupOf({ a: 4, b: 4 });
    group.ask('1');
    group.report('1', { kind: 'requests', retryAfterMs: 30_000 });
    group.release('1', 'failed');
    group.askAll('2', '3', '4', '5');
    group.ask('6', { sliceMs: 60_000 });
    expect(['2', '3', '4', '5'].map((name) => at(group, name))).toEqual(['b', 'b', 'b', 'b']);
    expect(group.waiting()).toEqual(['6']);
    group.advance(30_000);
    expect(group.waiting()).toEqual([]);
  });

  const takingOut = ['unauthorized', 'quota', 'egress'] as const;

  test.each(takingOut)('takes one out, once another has served the call: %s', (kind) => {
    const group = groupOf({ a: 2, b: 2 });
    group.ask('1');
    refusedThenServed(group, '1', kind);
    group.askAll('2', '3', '4');
    expect([at(group, '2'), at(group, '3')]).toEqual(['b', 'b']);
    expect(group.waiting()).toEqual(['4']);
    group.release('3');
    expect(at(group, '4')).toBe('b');
    // After a minute one call probes it.
    for (let slice = 0; slice < 3; slice += 1) {
      group.advance(20_000);
      group.renew('2');
      group.renew('4');
    }
    group.askAll('probe', 'behind');
    expect(at(group, 'probe')).toBe('a');
    expect(group.waiting()).toEqual(['behind']);
    group.report('probe', { kind: 'served' });
    expect(at(group, 'behind')).toBe('a');
  });

  test('keeps one out for longer whose probe is refused', () => {
    const group = groupOf({ a: 1, b: 1 });
    group.ask('1');
    refusedThenServed(group, '1');
    group.advance(60_000);
    group.ask('probe');
    expect(at(group, 'probe')).toBe('a');
    group.report('probe', { kind: 'unauthorized' });
    group.release('probe', 'refused');
    expect(group.member('a').controls.outage.probeAt).toBe(group.now + 120_000);
  });

  test.each(takingOut)('leaves all in that refuse one call alike: %s', (kind) => {
    const group = groupOf({ a: 1, b: 1 });
    group.ask('1');
    group.report('1', { kind });
    group.release('1', 'refused');
    group.ask('1', { attempt: 2, excluded: ['a'] });
    group.report('1', { kind }, false, 2);
    group.release('1', 'refused', 2);
    expect([outageOf(group, 'a').reason, outageOf(group, 'b').reason]).toEqual([null, null]);
    group.askAll('2', '3');
    expect([at(group, '2'), at(group, '3')]).toEqual(['a', 'b']);
  });

  test('of a call that was served elsewhere takes nobody out that refused it for what passes', () => {
    const group = groupOf({ a: 1, b: 1 });
    group.ask('1');
    refusedThenServed(group, '1', 'never_fits');
    expect(outageOf(group, 'a').reason).toBeNull();
  });

  test('takes nobody out by a member of which nothing is known, nor the one that served the call', () => {
    const group = groupOf({ a: 1, b: 1 });
    group.ask('1');
    const [a, gone] = ['a', 'gone'].map((id) => ({
      member: memberId(id),
      kind: 'unauthorized' as const,
      agoMs: 0,
    }));
    group.report('1', { kind: 'served', blamed: [a, gone].flatMap((one) => one ?? []) });
    expect(outageOf(group, 'a').reason).toBeNull();
  });

  test('says nothing of a member that came back since', () => {
    const group = groupOf({ a: 1, b: 1 });
    group.ask('1');
    refusedThenServed(group, '1');
    group.advance(60_000);
    group.ask('probe', { excluded: ['b'] });
    group.report('probe', { kind: 'served' });
    group.release('probe');
    group.advance(5_000);
    group.ask('2', { excluded: ['b'] });
    expect(at(group, '2')).toBe('a');
    // It was refused with the first one, and waited until now.
    refusedThenServed(group, '2', 'unauthorized', 65_000);
    expect(outageOf(group, 'a').reason).toBeNull();
    group.ask('3', { excluded: ['b'] });
    refusedThenServed(group, '3');
    expect(outageOf(group, 'a').reason).toBe('unauthorized');
  });

  test('brings back no member by a mistake of the caller, but by what it serves', () => {
    const group = groupOf({ a: 1, b: 1 });
    group.ask('1');
    refusedThenServed(group, '1', 'quota');
    group.advance(60_000);
    group.ask('mistaken', { excluded: ['b'] });
    expect(at(group, 'mistaken')).toBe('a');
    group.report('mistaken', { kind: 'served', isMistake: true });
    group.release('mistaken');
    expect(outageOf(group, 'a').reason).toBe('quota');
    // It has left the probe to the next one.
    group.ask('probe', { excluded: ['b'] });
    group.report('probe', { kind: 'served' });
    expect(outageOf(group, 'a').reason).toBeNull();
  });

  test('is written once it takes one out, and found after a reset', () => {
    const members = [someMember('a'), someMember('b')];
    const group = TestGroup.stored({ slotsMax: Infinity, members });
    group.ask('1');
    refusedThenServed(group, '1');
    const next = group.restart();
    expect(outageOf(next, 'a').reason).toBe('unauthorized');
  });

  test('takes nobody out of a group that names no members', () => {
    const group = new TestGroup({ slotsMax: 2 });
    group.ask('1');
    group.report('1', { kind: 'quota' });
    group.release('1', 'refused');
    group.askAll('2', '3');
    expect(group.waiting()).toEqual([]);
  });

  test('ends the wait of a call that cannot outlast it, once all members that it may go to are out', () => {
    const group = groupOf({ a: 1, b: 1 });
    group.ask('1');
    refusedThenServed(group, '1', 'quota');
    group.ask('impatient', { deadlineMs: 10_000, excluded: ['b'] });
    expect(group.rejection('impatient').reason).toBe('members_out');
    group.ask('patient', { deadlineMs: 59_999_999, excluded: ['b'] });
    expect(group.waiting()).toEqual(['patient']);
  });
});

describe('an operator', () => {
  test('switches a member off until it is switched on', () => {
    const group = groupOf({ a: 1, b: 1 });
    changed(group, 'a', { isEnabled: false });
    group.askAll('1', '2');
    expect(at(group, '1')).toBe('b');
    expect(group.waiting()).toEqual(['2']);
    changed(group, 'a', { isEnabled: true });
    expect(at(group, '2')).toBe('a');
  });

  test('switches one off in a dry run too', () => {
    const group = groupOf({ a: 1, b: 1 }, { isDryRun: true });
    changed(group, 'a', { isEnabled: false });
    group.askAll('1', '2', '3');
    expect(['1', '2', '3'].map((name) => at(group, name))).toEqual(['b', 'b', 'b']);
  });

  test('brings one back without a probe that a refusal took out', () => {
    const group = groupOf({ a: 2, b: 1 });
    group.ask('1');
    refusedThenServed(group, '1', 'quota');
    group.askAll('2', '3');
    expect(group.waiting()).toEqual(['3']);
    group.send({ kind: 'bring_back', member: memberId('a') });
    expect(at(group, '3')).toBe('a');
    group.ask('4');
    expect(at(group, '4')).toBe('a');
  });
});

describe('limits', () => {
  test('of a member are its own, those of the group over all', () => {
    const rates = { ...someMember('a').rates, rpm: 6 };
    const members = [someMember('a', { rates, isMetered: true }), someMember('b')];
    const group = new TestGroup({ slotsMax: Infinity, members });
    for (let call = 0; call < 6; call += 1) {
      group.ask(`${call}`);
      group.release(`${call}`);
    }
    const granted = ['a', 'b'].map((id) => group.member(id).totals.granted);
    expect(granted).toEqual([1, 5]);
  });

  test('a budget that is spent at one member leaves the others', () => {
    const budgets = { perHourUsd: null, perDayUsd: 1, perMonthUsd: null };
    const members = [someMember('a', { budgets, isMetered: true }), someMember('b')];
    const group = new TestGroup({ slotsMax: Infinity, members });
    group.ask('1', { estimate: { price: 0.9 } });
    group.ask('2', { estimate: { price: 0.9 } });
    group.ask('3', { estimate: { price: 0.9 } });
    expect(['1', '2', '3'].map((name) => at(group, name))).toEqual(['a', 'b', 'b']);
  });
});

describe('a reset', () => {
  test('holds at each member what was handed out there', () => {
    const members = [someMember('a', { slotsMax: 2 }), someMember('b', { slotsMax: 2 })];
    const group = TestGroup.stored({ slotsMax: Infinity, members });
    group.askAll('1', '2', '3');
    group.write();
    const next = group.reset();
    expect([next.member('a').unclaimed, next.member('b').unclaimed]).toEqual([2, 1]);
    next.now = group.now;
    next.advance(5_000);
    next.askAll('4', '5');
    expect(at(next, '4')).toBe('b');
    expect(next.waiting()).toEqual(['5']);
    next.resume('1', { member: memberId('a'), attachment: group.lease('1').attachment });
    expect(at(next, '1')).toBe('a');
    expect(next.member('a').unclaimed).toBe(1);
  });

  test('keeps what each member learned', () => {
    const members = [someMember('a', { slotsMax: 4 }), someMember('b', { slotsMax: 4 })];
    const group = TestGroup.stored({ slotsMax: Infinity, members });
    group.askAll('1', '2', '3', '4');
    group.report('1', { kind: 'concurrency', slotsMax: 1 });
    const next = group.restart();
    expect(next.member('a').controls.ceiling.slots).toBe(1);
    expect(next.member('b').controls.ceiling.slots).toBeNull();
  });
});

test('a slot that was given back after a reset is kept for an heir at its member', () => {
  const members = [someMember('a', { slotsMax: 1 }), someMember('b', { slotsMax: 1 })];
  const group = TestGroup.stored({ slotsMax: Infinity, members });
  group.askAll('1', '2', 'heir');
  group.write();
  group.write();
  expect(group.stored.bound?.heirs).toEqual(['heir.1']);
  const next = group.reset();
  const given = [group.lease('1'), group.lease('2')];
  endSole(group, '2');
  expect(group.lease('heir').heirOf).toEqual(['2.1']);
  for (const { id: leaseId, ticketId, member, attachment } of given) {
    const claim = someClaim(ticketId, { member, attachment });
    next.send({ kind: 'release', leaseId, outcome: 'success', settlement: null, claim });
  }
  // One of both may be the heir's, and it is not known which.
  next.advance(5_000);
  next.askAll('4', '5');
  expect(next.waiting()).toEqual(['4', '5']);
});

test('a lease counts where its holder says that it runs, though it was granted anew elsewhere', () => {
  const group = groupOf({ a: 1, b: 1 });
  group.ask('1', { excluded: ['a'] });
  group.resume('1', { member: memberId('a'), attachment: group.lease('1').attachment });
  expect(at(group, '1')).toBe('a');
  group.ask('2');
  expect(at(group, '2')).toBe('b');
});

describe('a change of the members', () => {
  test('loses nothing that is in flight: one that is gone keeps it until it ends', () => {
    const group = groupOf({ a: 2, b: 2 });
    group.askAll('1', '2');
    group.reconfigure({ members: [someMember('b', { slotsMax: 2 })] });
    expect(at(group, '1')).toBe('a');
    expect(group.inUse()).toBe(2);
    group.askAll('3', '4');
    expect(group.waiting()).toEqual(['4']);
    group.release('1');
    expect(group.waiting()).toEqual(['4']);
    group.release('2');
    expect(at(group, '4')).toBe('b');
  });

  test('to members counts what runs already where the same key is', () => {
    const group = new TestGroup({ slotsMax: 2 });
    group.askAll('1', '2');
    const members = [
      someMember('own', { slotsMax: 2, succeeds: 'openai' }),
      someMember('other', { slotsMax: 1 }),
    ];
    group.reconfigure({ slotsMax: Infinity, members });
    expect(at(group, '1')).toBe('own');
    group.askAll('3', '4');
    expect(at(group, '3')).toBe('other');
    expect(group.waiting()).toEqual(['4']);
  });

  test('to none and back finds each call where its key is', () => {
    const { members } = groupOf({ a: 1, b: 1 }).state.settings;
    const group = groupOf({ a: 1, b: 1 });
    group.askAll('1', '2');
    group.reconfigure({ members: [], slotsMax: 2 });
    expect(at(group, '2')).toBe('');
    group.reconfigure({ members, slotsMax: Infinity });
    expect([at(group, '1'), at(group, '2')]).toEqual(['a', 'b']);
    group.release('2');
    group.ask('3');
    expect(at(group, '3')).toBe('b');
  });

  test('to none counts what is unclaimed at the only one', () => {
    const members = [someMember('a', { slotsMax: 2 }), someMember('b', { slotsMax: 2 })];
    const group = TestGroup.stored({ slotsMax: Infinity, members });
    group.askAll('1', '2');
    const next = group.restart();
    next.advance(5_000);
    next.reconfigure({ members: [], slotsMax: 2 });
    expect(next.member().slotsInUse).toBe(2);
    next.ask('3');
    expect(next.waiting()).toEqual(['3']);
  });

  test('that a reset comes between counts what was handed out at each, until its holder says where it is', () => {
    const group = TestGroup.stored({ slotsMax: 2 });
    group.askAll('1', '2');
    const next = group.restart();
    const own = someMember('own', { slotsMax: 2, succeeds: 'openai' });
    const members = [own, someMember('other', { slotsMax: 2 })];
    next.reconfigure({ slotsMax: Infinity, members });
    next.advance(5_000);
    next.askAll('3', '4');
    expect(next.waiting()).toEqual(['3', '4']);
    const { attachment } = group.lease('1');
    next.resume('1', { attachment });
    expect(at(next, '1')).toBe('own');
    // It says where one of the two is; the other may be anywhere.
    expect(at(next, '3')).toBe('other');
    expect(next.waiting()).toEqual(['4']);
  });

  test('that leaves a call none but one that is out ends its wait', () => {
    const group = groupOf({ a: 1, b: 1 });
    group.ask('0', { excluded: ['a'] });
    refusedThenServed(group, '0', 'quota');
    changed(group, 'b', { isEnabled: false });
    group.ask('holds');
    group.ask('1', { deadlineMs: 10_000 });
    expect(group.waiting()).toEqual(['1']);
    group.reconfigure({ members: [someMember('a', { isEnabled: false }), someMember('b')] });
    expect(group.rejection('1').reason).toBe('members_out');
  });

  test('hands no slot to an heir unwritten: what is on disk tells of other members', () => {
    const members = [someMember('own', { slotsMax: 1, succeeds: 'openai' })];
    const group = TestGroup.stored({ slotsMax: 1 });
    group.askAll('1', '2', '3');
    group.write();
    group.write();
    endSole(group, '1');
    expect(group.asksToWrite()).not.toBe('behind');
    group.reconfigure({ members });
    endSole(group, '2');
    expect(at(group, '3')).toBe('own');
    expect(group.asksToWrite()).toBe('behind');
  });

  test('to none counts all at the only one', () => {
    const group = groupOf({ a: 2, b: 2 });
    group.askAll('1', '2');
    group.reconfigure({ members: [], slotsMax: 2 });
    group.ask('3');
    expect(group.waiting()).toEqual(['3']);
    group.release('1');
    expect(at(group, '3')).toBe('');
  });

  test('waits for no probe that counts elsewhere by then', () => {
    const group = groupOf({ a: 1, b: 1 });
    const { members } = group.state.settings;
    group.ask('1');
    refusedThenServed(group, '1', 'quota');
    group.advance(60_000);
    group.ask('probe', { excluded: ['b'] });
    expect(outageOf(group, 'a').probe).not.toBeNull();
    group.reconfigure({ members: [], slotsMax: 1 });
    group.release('probe');
    group.reconfigure({ members, slotsMax: Infinity });
    group.ask('2', { excluded: ['b'] });
    expect(at(group, '2')).toBe('a');
  });

  test('leaves the only member of a group in, whatever refused what ran on', () => {
    const group = new TestGroup({ slotsMax: 2 });
    group.ask('1');
    group.reconfigure({ members: [someMember('a')] });
    group.report('1', { kind: 'unauthorized' });
    group.reconfigure({ members: [] });
    group.ask('2');
    expect(at(group, '2')).toBe('');
  });
});

test('a member that gets another key is in, whatever became of the old one', () => {
  const group = groupOf({ a: 1, b: 1 });
  group.ask('1');
  refusedThenServed(group, '1');
  expect(group.member('a').controls.outage.reason).toBe('unauthorized');
  changed(group, 'a', { slotsMax: 2 });
  expect(group.member('a').controls.outage.reason).toBe('unauthorized');
  changed(group, 'a', { place: 'another key' });
  group.askAll('2', '3');
  expect([at(group, '2'), at(group, '3')].toSorted()).toEqual(['a', 'b']);
});

describe('a member that is there under another id', () => {
  const place = 'one key';
  const known = someMember('known', { slotsMax: 2, place });
  const renamed = { ...known, id: memberId('renamed') };

  test('has what runs there, what was learned, and whose calls belong there', () => {
    const group = new TestGroup({ slotsMax: Infinity, members: [known, someMember('other')] });
    group.ask('1', { agent: 'x' });
    group.reconfigure({ members: [renamed, someMember('other', { slotsMax: 1 })] });
    expect(at(group, '1')).toBe('renamed');
    group.askAll('2', '3', '4');
    expect(group.member('renamed').slotsInUse).toBe(2);
    expect(group.waiting()).toEqual(['4']);
    group.release('1');
    expect(at(group, '4')).toBe('renamed');
    for (const name of ['2', '3']) group.release(name);
    group.ask('5', { agent: 'x' });
    expect(at(group, '5')).toBe('renamed');
    group.report('5', { kind: 'requests', retryAfterMs: 30_000 });
    const pausedUntil = group.now + 30_000;
    expect(group.member('renamed').controls.pause.until).toBe(pausedUntil);
    group.reconfigure({ members: [known] });
    expect(at(group, '5')).toBe('known');
    expect(group.member('known').controls.pause.until).toBe(pausedUntil);
  });

  test('counts calls whose holders know it by the id of before, after a reset too', () => {
    const group = TestGroup.stored({ slotsMax: Infinity, members: [known] });
    group.askAll('1', '2');
    const { attachment } = group.lease('1');
    const next = group.restart();
    next.reconfigure({ members: [renamed] });
    expect(next.member('renamed').slotsInUse).toBe(2);
    next.advance(5_000);
    next.resume('1', { member: known.id, attachment });
    expect(at(next, '1')).toBe('renamed');
    next.ask('3');
    expect(next.waiting()).toEqual(['3']);
  });

  test('stays one where a call runs on from a key that had its id before', () => {
    const group = groupOf({ a: 1, b: 2 });
    group.askAll('1', '2', '3');
    const [a, b] = group.state.settings.members;
    if (a === undefined || b === undefined) throw new Error('there are two');
    group.reconfigure({ members: [b] });
    // The key of `b` is called `a` now.
    group.reconfigure({ members: [{ ...b, id: a.id }] });
    expect(group.member('a').slotsInUse).toBe(3);
    group.ask('4');
    expect(group.waiting()).toEqual(['4']);
  });

  test('holds its budget', () => {
    const budgets = { perHourUsd: 10, perDayUsd: null, perMonthUsd: null };
    const paid = { ...known, budgets, isMetered: true };
    const group = new TestGroup({ slotsMax: Infinity, members: [paid] });
    group.ask('1', { estimate: { price: 6 } });
    group.reconfigure({ members: [{ ...paid, id: memberId('renamed') }] });
    group.ask('2', { estimate: { price: 6 } });
    expect(group.rejection('2').reason).toBe('budget_exhausted');
  });
});

describe('budgets of calls that run while the members change', () => {
  const budgets = { perHourUsd: 10, perDayUsd: null, perMonthUsd: null };
  const own = someMember('own', { slotsMax: 9, budgets, isMetered: true, succeeds: 'openai' });
  const reservedAt = (group: TestGroup, id: string): number =>
    group.member(id).controls.spend.reservedUsd;

  test('go to the member where the same key is now, and from it when they end', () => {
    const group = new TestGroup({ slotsMax: 9, budgets, isMetered: true });
    for (const name of ['1', '2']) group.ask(name, { estimate: { price: 4 } });
    group.reconfigure({ members: [own], budgets: own.budgets });
    expect(reservedAt(group, 'own')).toBe(8);
    group.ask('too-much', { estimate: { price: 4 } });
    expect(group.rejection('too-much').reason).toBe('budget_exhausted');
    group.release('1', 'success', 1, {
      requests: 1,
      inputTokens: 1,
      outputTokens: 0,
      usd: 1,
      seen: null,
    });
    group.release('2', 'unused');
    expect(reservedAt(group, 'own')).toBe(0);
    expect(group.member('own').controls.spend.total.usd.hour).toBe(1);
  });

  test('leave the member that is gone, and come back with it', () => {
    const group = new TestGroup({ slotsMax: Infinity, members: [own] });
    group.ask('1', { estimate: { price: 4 } });
    group.reconfigure({ members: [] });
    expect(reservedAt(group, 'own')).toBe(0);
    group.reconfigure({ members: [own] });
    expect(reservedAt(group, 'own')).toBe(4);
    group.release('1');
    expect(reservedAt(group, 'own')).toBe(0);
  });
});

describe('a call costs what it costs at its member', () => {
  const PRICES = { price: 6, pricesAt: { cheap: 1, dear: 6 } };
  const perHour = (usd: number) => ({ perHourUsd: usd, perDayUsd: null, perMonthUsd: null });
  const reservedAt = (group: TestGroup, id: string): number =>
    group.member(id).controls.spend.reservedUsd;

  test('towards the budget of that', () => {
    const limits = { slotsMax: 9, budgets: perHour(10), isMetered: true };
    const group = groupOf({}, { members: ['cheap', 'dear'].map((id) => someMember(id, limits)) });
    for (const name of ['1', '2', '3', '4']) group.ask(name, { estimate: PRICES });
    expect(['1', '2', '3', '4'].map((name) => at(group, name))).toEqual([
      'cheap',
      'dear',
      'cheap',
      'cheap',
    ]);
    expect([reservedAt(group, 'cheap'), reservedAt(group, 'dear')]).toEqual([3, 6]);
    expect(group.lease('4').decision?.placed?.others).toEqual([
      { member: 'dear', cause: 'budget' },
    ]);
  });

  test('towards the budget over all', () => {
    const group = groupOf({ cheap: 9, dear: 9 }, { budgets: perHour(8), isMetered: true });
    for (const name of ['1', '2', '3']) group.ask(name, { estimate: PRICES });
    expect(['1', '2', '3'].map((name) => at(group, name))).toEqual(['cheap', 'dear', 'cheap']);
    expect(group.state.controls.spend.reservedUsd).toBe(8);
    group.ask('4', { estimate: PRICES });
    expect(group.rejection('4')).toMatchObject({ reason: 'budget_exhausted', limitUsd: 8 });
  });

  test('or the highest of all, if nobody knew of it', () => {
    const limits = { slotsMax: 9, budgets: perHour(10), isMetered: true };
    const group = groupOf({}, { members: [someMember('new', limits)] });
    group.ask('1', { estimate: PRICES });
    expect(reservedAt(group, 'new')).toBe(6);
  });
});

test('the log tells why a call went where it did, and why not elsewhere', () => {
  const group = groupOf({ a: 1, b: 1, c: 1 });
  group.ask('1', { excluded: ['b'] });
  group.ask('2');
  expect(group.lease('2').decision?.placed).toEqual({
    member: 'b',
    by: 'load',
    others: [
      { member: 'a', cause: 'slots' },
      { member: 'c', cause: 'load' },
    ],
  });
});
