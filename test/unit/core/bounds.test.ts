import { describe, expect, test } from 'vitest';
import {
  HOLD_SAMPLES_MIN,
  RETURN_MAX_MS,
  type GroupSettings,
} from '../../../src/core/words/settings.ts';
import { TestGroup, type AskOptions } from '../../support/core-builders.ts';

/** Bounds of the queue, who makes room in a full one, and waits that are hopeless. */

function closedGroup(changes: Partial<GroupSettings> = {}): TestGroup {
  return new TestGroup({ slotsMax: 0, ...changes });
}

describe('the waiters of one tenant', () => {
  test('are bounded, and those of the others are not by it', () => {
    const group = closedGroup({ queueLengthMaxEach: 2 });
    group.ask('ann-1', { tenant: 'ann' });
    expect(group.ask('ann-2', { tenant: 'ann', lane: 'low' })).toEqual([]);
    expect(group.ask('ann-3', { tenant: 'ann' })).toEqual(['reject ann-3 queue_full']);
    expect(group.rejection('ann-3')).toMatchObject({ of: 'tenant', queueLengthMax: 2 });
    expect(group.ask('bob-1', { tenant: 'bob' })).toEqual([]);
  });

  test('make no room for a better lane: it is their own bound', () => {
    const group = closedGroup({ queueLengthMaxEach: 1 });
    group.ask('low', { tenant: 'ann', lane: 'low' });
    expect(group.ask('high', { tenant: 'ann', lane: 'high' })).toEqual(['reject high queue_full']);
  });
});

describe('the waiters of one agent', () => {
  test('are bounded, and those of its siblings are not by it', () => {
    const group = closedGroup({ queueLengthMaxEachAgent: 1 });
    group.ask('x1', { agent: 'x' });
    expect(group.ask('x2', { agent: 'x' })).toEqual(['reject x2 queue_full']);
    expect(group.rejection('x2')).toMatchObject({ of: 'agent', queueLengthMax: 1 });
    expect(group.ask('y1', { agent: 'y' })).toEqual([]);
    expect(group.ask('x3', { agent: 'x', tenant: 'another' })).toEqual([]);
  });

  test('are not those of calls that belong to none', () => {
    const group = closedGroup({ queueLengthMaxEachAgent: 1 });
    expect(group.askAll('a', 'b')).toEqual([]);
  });
});

describe('in a full queue', () => {
  /** Names who is rejected when `newcomer` comes after the others: name, tenant, lane. */
  function rejected(queueLengthMax: number, asks: readonly [string, string, string][]): string[] {
    const group = closedGroup({ queueLengthMax });
    return asks.flatMap(([name, tenant, lane], index) => {
      return group.ask(name, { tenant, lane: lane as 'low', enqueuedMs: index });
    });
  }

  test('a call of a better lane takes the place of one of a lower lane', () => {
    const group = closedGroup({ queueLengthMax: 1 });
    group.ask('low', { lane: 'low' });
    expect(group.ask('high', { lane: 'high' })).toEqual(['reject low queue_full']);
    expect(group.rejection('low')).toMatchObject({ of: 'group', queueLengthMax: 1 });
    expect(group.waiting()).toEqual(['high']);
    expect(group.state.totals.rejected).toEqual({ queue_full: 1 });
  });

  test.each(['normal', 'high'] as const)('a call of the lane %s evicts none of its own', (lane) => {
    expect(
      rejected(1, [
        ['first', 'ann', lane],
        ['second', 'ann', lane],
      ]),
    ).toEqual(['reject second queue_full']);
  });

  test('nobody is evicted for a call of a lower lane', () => {
    expect(
      rejected(1, [
        ['high', 'ann', 'high'],
        ['low', 'bob', 'low'],
      ]),
    ).toEqual(['reject low queue_full']);
  });

  test('the lowest lane makes room first', () => {
    expect(
      rejected(3, [
        ['low', 'ann', 'low'],
        ['normal-1', 'bob', 'normal'],
        ['normal-2', 'bob', 'normal'],
        ['high', 'cid', 'high'],
      ]),
    ).toEqual(['reject low queue_full']);
  });

  test('the most backlogged tenant of that lane makes room, with its youngest', () => {
    expect(
      rejected(4, [
        ['bob-1', 'bob', 'low'],
        ['bob-2', 'bob', 'low'],
        ['ann-1', 'ann', 'low'],
        ['ann-2', 'ann', 'normal'],
        ['high', 'cid', 'high'],
      ]),
    ).toEqual(['reject bob-2 queue_full']);
  });

  test('of tenants that are backlogged alike the youngest goes', () => {
    expect(
      rejected(2, [
        ['ann-1', 'ann', 'low'],
        ['bob-1', 'bob', 'low'],
        ['high', 'cid', 'high'],
      ]),
    ).toEqual(['reject bob-1 queue_full']);
  });

  test('a call of a tenant that waits less takes the place of the youngest of the one that waits most', () => {
    const group = closedGroup({ queueLengthMax: 4 });
    for (const name of ['ann-1', 'ann-2', 'ann-3']) group.ask(name, { tenant: 'ann' });
    group.ask('cid-1', { tenant: 'cid' });
    expect(group.ask('bob-1', { tenant: 'bob' })).toEqual(['reject ann-3 queue_full']);
    expect(group.rejection('ann-3')).toMatchObject({ of: 'group', dropped: 'share' });
    expect(group.waiting()).toEqual(['ann-1', 'ann-2', 'cid-1', 'bob-1']);
  });

  test('it is refused if its tenant would wait more than the other one', () => {
    expect(
      rejected(4, [
        ['ann-1', 'ann', 'normal'],
        ['ann-2', 'ann', 'normal'],
        ['bob-1', 'bob', 'normal'],
        ['bob-2', 'bob', 'normal'],
        ['bob-3', 'bob', 'normal'],
        ['ann-3', 'ann', 'normal'],
      ]),
    ).toEqual(['reject bob-3 queue_full', 'reject ann-3 queue_full']);
  });

  test('a waiter that an operator put first keeps its place', () => {
    const group = closedGroup({ queueLengthMax: 3 });
    for (const name of ['ann-1', 'ann-2', 'ann-3']) group.ask(name, { tenant: 'ann', lane: 'low' });
    group.promote('ann-3');
    expect(group.ask('bob-1', { tenant: 'bob', lane: 'low' })).toEqual(['reject ann-2 queue_full']);
    expect(group.ask('cid-1', { tenant: 'cid' })).toEqual(['reject ann-1 queue_full']);
    group.promote('bob-1');
    // Two are first, and the third is in the lane of the new call.
    expect(group.ask('cid-2', { tenant: 'cid' })).toEqual(['reject cid-2 queue_full']);
    expect(group.ask('dan-1', { tenant: 'dan', lane: 'high' })).toEqual([
      'reject cid-1 queue_full',
    ]);
  });

  test('the bound is shared by weight', () => {
    const group = closedGroup({ queueLengthMax: 4, weights: { ann: 3 } });
    for (const name of ['ann-1', 'ann-2', 'ann-3', 'ann-4']) group.ask(name, { tenant: 'ann' });
    expect(group.ask('bob-1', { tenant: 'bob' })).toEqual(['reject ann-4 queue_full']);
    expect(group.ask('bob-2', { tenant: 'bob' })).toEqual(['reject bob-2 queue_full']);
    expect(group.ask('ann-5', { tenant: 'ann' })).toEqual(['reject ann-5 queue_full']);
  });

  test('a call does not replace calls of its own tenant or in a higher lane', () => {
    expect(
      rejected(2, [
        ['ann-1', 'ann', 'high'],
        ['ann-2', 'ann', 'high'],
        ['ann-3', 'ann', 'high'],
        ['bob-1', 'bob', 'normal'],
      ]),
    ).toEqual(['reject ann-3 queue_full', 'reject bob-1 queue_full']);
  });

  test('a call that does not want to wait evicts nobody', () => {
    const group = closedGroup({ queueLengthMax: 1 });
    group.ask('low', { lane: 'low' });
    expect(group.ask('high', { lane: 'high', wait: false })).toEqual(['reject high busy']);
    expect(group.waiting()).toEqual(['low']);
  });

  test('who is told to come back is told so by its own place, not by that of the newcomer', () => {
    const group = closedGroup({ queueLengthMax: 30, slotsMax: 1 });
    group.ask('holder');
    for (let index = 0; index < 30; index += 1) group.ask(`low-${index}`, { lane: 'low' });
    group.ask('high', { lane: 'high' });
    expect(group.rejection('low-29').retryAfterMs).toBeGreaterThan(30_000);
  });
});

describe('in a queue that is full again before all are back who lost their places', () => {
  const PATIENT = { slotsMax: 1, queueLengthMax: 2, timeoutMs: 3_600_000 };
  const BEFORE: AskOptions = { enqueuedMs: -100 };

  /** A group after a reset that its holder has come through, and to which those named have come since. */
  function refilled(changes: Partial<GroupSettings>, newer: Record<string, AskOptions>): TestGroup {
    const group = TestGroup.stored({ ...PATIENT, ...changes });
    group.ask('holder');
    const after = group.restart();
    after.resume('holder');
    after.advance(1_000);
    for (const [name, options] of Object.entries(newer)) after.ask(name, options);
    return after;
  }

  test('who returns takes the place of the last call that came after its own', () => {
    const group = refilled({}, { first: { enqueuedMs: 10 }, last: { enqueuedMs: 20 } });
    expect(group.ask('old', BEFORE)).toEqual(['reject last queue_full']);
    expect(group.rejection('last')).toMatchObject({ of: 'group', queueLengthMax: 2 });
    expect(group.ask('older', { enqueuedMs: -200 })).toEqual(['reject first queue_full']);
    expect(group.waiting()).toEqual(['older', 'old']);
    expect(group.ask('oldest', { enqueuedMs: -300 })).toEqual(['reject old queue_full']);
    expect(group.ask('late', { enqueuedMs: -50 })).toEqual(['reject late queue_full']);
    expect(group.waiting()).toEqual(['oldest', 'older']);
  });

  test('of calls that came at once the last to ask goes', () => {
    const at = { enqueuedMs: 10 };
    const group = refilled({}, { a: at, b: at });
    group.promote('a');
    expect(group.ask('old', BEFORE)).toEqual(['reject b queue_full']);
  });

  test('who comes new is refused, from the instant of the reset on', () => {
    const group = refilled({}, { a: {}, b: {} });
    expect(group.ask('new', { enqueuedMs: 0 })).toEqual(['reject new queue_full']);
    expect(group.ask('old', { enqueuedMs: -1 })).toEqual(['reject b queue_full']);
  });

  test('the bound holds for everybody once all have had the time to return', () => {
    const group = refilled({}, { a: {}, b: {} });
    group.advance(RETURN_MAX_MS - 1_000 - 1);
    group.askAll('a', 'b');
    expect(group.ask('old', BEFORE)).toEqual(['reject b queue_full']);
    group.advance(1);
    expect(group.ask('late', { enqueuedMs: -200 })).toEqual(['reject late queue_full']);
    expect(group.waiting()).toEqual(['old', 'a']);
  });

  test('a better lane makes no room, and a lower one does first', () => {
    const group = refilled({}, { high: { lane: 'high' }, low: { lane: 'low' } });
    expect(group.ask('low-old', { ...BEFORE, lane: 'low' })).toEqual(['reject low queue_full']);
    expect(group.ask('old', BEFORE)).toEqual(['reject low-old queue_full']);
    expect(group.ask('older', { enqueuedMs: -200 })).toEqual(['reject old queue_full']);
    expect(group.ask('low-older', { enqueuedMs: -300, lane: 'low' })).toEqual([
      'reject low-older queue_full',
    ]);
    expect(group.waiting()).toEqual(['high', 'older']);
  });

  test('the bound of a tenant is kept among its own calls, of whatever lane', () => {
    const ann: AskOptions = { tenant: 'ann' };
    const group = refilled(
      { queueLengthMaxEach: 1, queueLengthMax: 100 },
      { ann: { ...ann, lane: 'high' }, bob: { tenant: 'bob' } },
    );
    expect(group.ask('old', { ...BEFORE, ...ann })).toEqual(['reject ann queue_full']);
    expect(group.rejection('ann')).toMatchObject({ of: 'tenant', queueLengthMax: 1 });
    expect(group.waiting()).toEqual(['old', 'bob']);
  });

  test('the bound of an agent is kept among its own calls', () => {
    const group = refilled(
      { queueLengthMaxEachAgent: 1, queueLengthMax: 100 },
      { x: { agent: 'x' }, y: { agent: 'y' } },
    );
    expect(group.ask('old', { ...BEFORE, agent: 'x' })).toEqual(['reject x queue_full']);
    expect(group.rejection('x')).toMatchObject({ of: 'agent', queueLengthMax: 1 });
    expect(group.waiting()).toEqual(['old', 'y']);
  });

  test('a tenant takes back no more than its share of the places, however old its calls are', () => {
    const tenants = ['a', 'b', 'c', 'd'];
    const group = refilled(
      { queueLengthMax: 4 },
      Object.fromEntries(tenants.map((tenant) => [tenant, { tenant }])),
    );
    const old = (name: string) => group.ask(name, { ...BEFORE, tenant: 'old' });
    expect(old('old-1')).toEqual(['reject d queue_full']);
    for (const name of ['old-2', 'old-3']) expect(old(name)).toEqual([`reject ${name} queue_full`]);
    expect(group.waiting().toSorted()).toEqual(['a', 'b', 'c', 'old-1']);
  });

  test('the last of a tenant that waits most makes room, not the last of all', () => {
    const group = refilled(
      { queueLengthMax: 4 },
      {
        'ann-1': { tenant: 'ann', enqueuedMs: 10 },
        'ann-2': { tenant: 'ann', enqueuedMs: 20 },
        'ann-3': { tenant: 'ann', enqueuedMs: 30 },
        'bob-1': { tenant: 'bob', enqueuedMs: 40 },
      },
    );
    expect(group.ask('cid-1', { ...BEFORE, tenant: 'cid' })).toEqual(['reject ann-3 queue_full']);
    expect(group.rejection('ann-3')).toMatchObject({ dropped: 'returned' });
    // By weight bob has more than cid now: it has half of the weight.
    group.reconfigure({ weights: { bob: 0.25 } });
    expect(group.ask('cid-2', { ...BEFORE, tenant: 'cid' })).toEqual(['reject bob-1 queue_full']);
  });

  test('a waiter that an operator put first keeps its place', () => {
    const group = refilled({}, { first: { enqueuedMs: 10 }, last: { enqueuedMs: 20 } });
    group.promote('last');
    expect(group.ask('old', BEFORE)).toEqual(['reject first queue_full']);
  });

  test('after a move it is the same as after a reset', () => {
    const group = new TestGroup(PATIENT);
    group.askAll('holder', 'old', 'other');
    group.advance(1_000);
    expect(group.move()).toEqual(['moved old', 'moved other']);
    group.askAll('a', 'b');
    expect(group.ask('old', { enqueuedMs: 0 })).toEqual(['reject b queue_full']);
  });

  test('where nobody lost a place, nobody takes one by its age', () => {
    const group = new TestGroup(PATIENT);
    group.askAll('holder', 'a', 'b');
    expect(group.ask('old', BEFORE)).toEqual(['reject old queue_full']);
    group.cancel('a');
    group.cancel('b');
    group.move();
    group.askAll('c', 'd');
    expect(group.ask('older', BEFORE)).toEqual(['reject older queue_full']);
  });
});

describe('a wait that would outlast the deadline', () => {
  /** One slot, in use, after so many calls of ten seconds each. */
  function experienced(samples: number): TestGroup {
    const group = new TestGroup({ slotsMax: 1, timeoutMs: 35_000 });
    for (let index = 0; index < samples; index += 1) {
      group.ask(`t${index}`);
      group.advance(10_000);
      group.release(`t${index}`);
    }
    group.ask('holder');
    group.askAll('a', 'b', 'c');
    return group;
  }

  test('is rejected at once, with the estimate', () => {
    const group = experienced(HOLD_SAMPLES_MIN);
    expect(group.ask('d')).toEqual(['reject d infeasible']);
    expect(group.rejection('d')).toMatchObject({ reason: 'infeasible', estimateMs: 40_000 });
    expect(group.waiting()).toEqual(['a', 'b', 'c']);
    expect(group.inUse()).toBe(1);
  });

  test('is not rejected if it would end in time', () => {
    const group = experienced(HOLD_SAMPLES_MIN);
    group.cancel('c');
    expect(group.ask('d')).toEqual([]);
  });

  test('is measured by the deadline of the caller', () => {
    const group = experienced(HOLD_SAMPLES_MIN);
    group.cancel('b');
    group.cancel('c');
    const deadlineMs = 10_000 * HOLD_SAMPLES_MIN;
    expect(group.ask('hasty', { deadlineMs: deadlineMs + 19_999 })).toEqual([
      'reject hasty infeasible',
    ]);
    expect(group.ask('patient', { deadlineMs: deadlineMs + 20_000 })).toEqual([]);
  });

  test('is believed only after ten calls', () => {
    const group = experienced(HOLD_SAMPLES_MIN - 1);
    expect(group.ask('d')).toEqual([]);
  });

  test('is believed of nobody while the group is paused', () => {
    const group = experienced(HOLD_SAMPLES_MIN);
    group.reconfigure({ paused: true });
    expect(group.ask('d')).toEqual([]);
  });

  test('evicts nobody on the way', () => {
    const group = experienced(HOLD_SAMPLES_MIN);
    group.reconfigure({ queueLengthMax: 3, slotsMax: 1 });
    for (const name of ['a', 'b', 'c']) group.promote(name, 'high');
    group.promote('c', 'low');
    expect(group.ask('hasty', { lane: 'normal', deadlineMs: 100_000 })).toEqual([
      'reject hasty infeasible',
    ]);
    expect(group.waiting()).toEqual(['a', 'b', 'c']);
  });
});

describe('the place of a waiter', () => {
  /** The position that a waiter hears at the end of its slice. */
  function position(group: TestGroup, name: string, options: Parameters<TestGroup['ask']>[1]) {
    group.ask(name, { ...options, sliceMs: 0 });
    return group.tick()[0];
  }

  test('is behind higher lanes, its own tenant, and as many of each other tenant', () => {
    const group = closedGroup();
    group.ask('high-1', { lane: 'high' });
    for (const name of ['ann-1', 'ann-2']) group.ask(name, { tenant: 'ann' });
    for (const name of ['bob-1', 'bob-2', 'bob-3', 'bob-4']) group.ask(name, { tenant: 'bob' });
    group.ask('cid-1', { tenant: 'cid' });
    group.ask('low-1', { lane: 'low' });
    // One in the lane above, two of its own, three of bob's, one of cid's.
    expect(position(group, 'ann-3', { tenant: 'ann' })).toBe('pending ann-3 at 7');
  });

  test('is before those of its tenant that are younger', () => {
    const group = closedGroup();
    group.ask('young');
    expect(position(group, 'old', { enqueuedMs: -10 })).toBe('pending old at 0');
  });

  test('is the first for one that was put first', () => {
    const group = closedGroup();
    group.askAll('a', 'b');
    group.ask('c', { sliceMs: 100 });
    group.promote('c');
    expect(group.advance(100)).toEqual(['pending c at 0']);
  });
});
