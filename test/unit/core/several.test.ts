import { describe, expect, test } from 'vitest';
import { instant, ticketId } from '../../../src/core/words/ids.ts';
import { capOf } from '../../../src/core/order.ts';
import { queuePlace } from '../../../src/core/outlook.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { ORPHAN_GRACE_MS, type GroupSettings } from '../../../src/core/words/settings.ts';
import { START, TestGroup, type AskOptions } from '../../support/core-builders.ts';

/** The part of a group in calls of several groups: tries, expected waits, who is passed over, and whose wait elsewhere counts. */

/** A group of one slot whose calls take ten seconds. Its first one has just ended, and `second` runs. */
function busyGroup(): TestGroup {
  const group = new TestGroup({ slotsMax: 1, timeoutMs: 600_000 });
  group.ask('first');
  group.ask('second');
  group.advance(10_000);
  group.release('first');
  return group;
}

/** A group whose breaker is open, after ten calls that failed. */
function brokenGroup(settings: Partial<GroupSettings> = {}): TestGroup {
  const own = { slotsMax: 20, timeoutMs: 600_000, isAdaptive: false, ...settings };
  const group = new TestGroup(own);
  for (let index = 0; index < 10; index += 1) {
    group.ask(`bad-${index}`);
    group.report(`bad-${index}`, { kind: 'error' });
    group.release(`bad-${index}`, 'failed');
  }
  return group;
}

/** Everything of a state that a declined try must leave as it was. */
function traceIn(state: GroupState): unknown {
  const { leases, queue, accounts, laneCredit, totals, slotsInUse } = state;
  return structuredClone({
    leases: [...leases.values()],
    waiters: [...queue.byTicket.values()].map(({ ticket, sequence }) => [ticket.id, sequence]),
    lines: Object.values(queue.lanes).map(({ lines, backlogs, length }) => [
      lines.map(({ tenant, waiters }) => [tenant.key, waiters.length]),
      backlogs.filter((each) => each > 0),
      length,
    ]),
    accounts: [...accounts.tenants.values()]
      .filter(({ key }) => key !== 'fresh')
      .map(({ agents, waitingAgents, ...tenant }) => {
        return [tenant, [...agents.keys()], [...waitingAgents].map(({ key }) => key)];
      }),
    lastService: accounts.lastService,
    laneCredit,
    totals,
    slotsInUse,
  });
}

describe('a try', () => {
  test('is granted when it would be granted now', () => {
    expect(new TestGroup().ask('a', { isTry: true })).toEqual(['grant a.1']);
  });

  test.each<[string, Partial<GroupSettings>]>([
    ['there is no slot', {}],
    ['the group is paused', { paused: true }],
    ['there are no slots at all', { slotsMax: 0 }],
    ['the queue is as long as it may be', { queueLengthMax: 2 }],
    ['its tenant is at its cap', { slotsMax: 9, slotsMaxEach: 1 }],
  ])('is declined without a trace when %s', (_when, changes) => {
    const group = new TestGroup({ slotsMax: 1, slotsMaxEach: 1 });
    group.ask('holder', { tenant: 'ann' });
    group.ask('ann-1', { tenant: 'ann' });
    group.ask('idle', { tenant: 'idle' });
    group.cancel('idle');
    group.ask('bob-1', { tenant: 'bob' });
    group.ask('bob-2', { tenant: 'bob' });
    group.advance(20_000);
    group.renew('holder');
    group.reconfigure(changes);
    for (const tenant of ['ann', 'idle', 'bob', 'fresh']) {
      const before = traceIn(group.state);
      const reported = group.ask(`try-${tenant}`, { tenant, isTry: true });
      if (reported[0]?.startsWith('grant') === true) continue;
      expect(reported).toEqual([`declined try-${tenant}`]);
      expect(traceIn(group.state)).toEqual(before);
    }
  });

  test('leaves its tenant as far behind the others as it was', () => {
    const group = new TestGroup({ slotsMax: 1, ageCreditMs: 0 });
    group.ask('two-0', { tenant: 'two' });
    group.release('two-0');
    group.askAll('one-0', 'one-1', 'one-2');
    group.advance(10_000);
    group.release('one-0');
    const service = (): number | undefined =>
      group.state.accounts.tenants.get('two')?.shares.normal.service;
    const before = service();
    expect(group.ask('try', { tenant: 'two', isTry: true })[0]).toContain('declined try');
    expect(service()).toBe(before);
  });

  test('asked of a call that waits here keeps its place, and tells the expected wait', () => {
    const group = busyGroup();
    group.ask('a');
    group.ask('b');
    expect(group.ask('b', { isTry: true })).toEqual(['declined b for 20000']);
    expect(group.waiting()).toEqual(['a', 'b']);
    expect(group.ask('b')).toEqual([]);
    group.release('second');
    expect(group.release('a')).toContain('grant b.1');
  });

  test('keeps its place for as long as a caller may take to come back, and no longer', () => {
    const group = new TestGroup({ slotsMax: 0 });
    group.ask('a');
    group.ask('a', { isTry: true });
    expect(group.advance(ORPHAN_GRACE_MS - 1)).toEqual([]);
    expect(group.waiting()).toEqual(['a']);
    group.advance(1);
    expect(group.waiting()).toEqual([]);
  });

  test('does not go before others that wait for more slots', () => {
    const group = new TestGroup({ slotsMax: 3 });
    group.ask('a');
    group.ask('wide', { slots: 3 });
    expect(group.ask('try', { isTry: true })).toEqual(['declined try']);
    expect(group.waiting()).toEqual(['wide']);
  });

  test('is declined, not told busy, whether it would wait or not', () => {
    const group = new TestGroup({ slotsMax: 0 });
    expect(group.ask('a', { isTry: true, wait: false })).toEqual(['declined a']);
    expect(group.state.totals.rejected).toEqual({});
  });

  test('is rejected for what no wait would change', () => {
    const group = new TestGroup({ slotsMax: 1, isDraining: true });
    expect(group.ask('a', { isTry: true })).toEqual(['reject a draining']);
    group.reconfigure({ isDraining: false });
    expect(group.ask('b', { isTry: true, slots: 2 })).toEqual(['reject b never_fits']);
  });

  test('can be asked for as a wait with the next attempt', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.ask('holder');
    group.ask('a', { isTry: true });
    expect(group.ask('a', { attempt: 2 })).toEqual([]);
    expect(group.release('holder')).toContain('grant a.2');
  });
});

test('the next attempt takes the place of the one before, which gets nothing any more', () => {
  const group = new TestGroup({ slotsMax: 1 });
  group.ask('holder');
  group.ask('a', { attempt: 1 });
  group.ask('a', { attempt: 2 });
  expect(group.waiting()).toEqual(['a']);
  expect(group.release('holder')).toEqual(['ended holder.1', 'grant a.2']);
});

describe('the expected wait that a try is told', () => {
  const tried = (group: TestGroup, options: AskOptions = {}): string | undefined =>
    group.ask('try', { isTry: true, ...options })[0];

  test('is that of its place in the queue', () => {
    const group = busyGroup();
    expect(tried(group)).toBe('declined try for 10000');
    group.ask('a');
    expect(tried(group)).toBe('declined try for 20000');
  });

  test('goes by what tenants have had', () => {
    const group = busyGroup();
    group.askAll('a', 'b', 'c', 'd');
    // The tenant of the others had twenty seconds: this one has two turns before it is their turn.
    expect(tried(group, { tenant: 'fresh' })).toBe('declined try for 20000');
    group.ask('fresh', { tenant: 'fresh' });
    expect(tried(group, { tenant: 'fresh' })).toBe('declined try for 40000');
  });

  test('does not count calls that are passed over', () => {
    const group = busyGroup();
    group.ask('a', { needs: ['wide'], waitsElsewhere: true });
    expect(tried(group)).toBe('declined try for 20000');
    group.passOver('wide', 5_000);
    expect(tried(group)).toBe('declined try for 10000');
    expect(tried(group, { needs: ['wide'] })).toBe('declined try for 10000');
  });

  test('is unknown once nothing has ended for longer than five ends usually take', () => {
    const group = busyGroup();
    group.renew('second');
    group.advance(40_000);
    group.renew('second');
    group.advance(10_000);
    expect(tried(group)).toBe('declined try for 10000');
    group.advance(1);
    expect(tried(group)).toBe('declined try');
  });

  test('is known again once an idle group is full', () => {
    const group = busyGroup();
    group.release('first');
    group.release('second');
    group.advance(3_600_000);
    group.askAll('third', 'fourth');
    expect(tried(group)).toMatch(/^declined try for \d+$/);
  });

  test('is unknown while its tenant or agent has all slots that it may have', () => {
    const caps = [{ slotsMaxEach: 1 }, { slotsMaxEachAgent: 1 }];
    for (const cap of caps) {
      const group = new TestGroup({ slotsMax: 9, ...cap });
      group.ask('first', { agent: 'run' });
      group.advance(1_000);
      group.release('first');
      group.ask('second', { agent: 'run' });
      expect(tried(group, { agent: 'run' })).toBe('declined try');
    }
  });

  test('is unknown while what was learned of its model holds it', () => {
    const group = new TestGroup({ slotsMax: 9 });
    group.ask('other', { names: { model: 'other' } });
    group.ask('refused');
    group.advance(1_000);
    group.release('other');
    group.report('refused', { kind: 'requests', scope: 'model', retryAfterMs: 1_000_000 });
    group.release('refused', 'refused');
    expect(tried(group)).toBe('declined try');
  });

  test('is unknown before the first call has ended, and when only unused slots came back', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.askAll('a', 'b');
    expect(tried(group)).toBe('declined try');
    group.release('a', 'unused');
    expect(tried(group)).toBe('declined try');
  });
});

describe('calls that need another pool', () => {
  const wide = { needs: ['wide'], waitsElsewhere: true };

  test('are passed over while it is full, and the others go', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.ask('holder');
    group.ask('both', wide);
    group.ask('narrow');
    group.passOver('wide', 300);
    expect(group.release('holder')).toEqual(['ended holder.1', 'grant narrow.1']);
    expect(group.release('narrow')).toEqual(['ended narrow.1']);
    expect(group.advance(299)).toEqual([]);
    expect(group.wakesIn()).toBe(1);
    expect(group.advance(1)).toEqual(['grant both.1']);
  });

  test('wait for that pool, as long as there is room here', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.passOver('wide', 3_000);
    group.ask('both', wide);
    const waitsFor = (): unknown =>
      queuePlace(group.state, ticketId('both'), instant(group.now)).waitsFor;
    expect(waitsFor()).toEqual({ cause: 'elsewhere' });
    group.ask('narrow');
    expect(waitsFor()).toEqual({ cause: 'slots' });
  });

  test('are passed over for five seconds at most', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.passOver('wide', Infinity);
    group.ask('both', wide);
    expect(group.advance(4_999)).toEqual([]);
    expect(group.advance(1)).toEqual(['grant both.1']);
  });

  test('go on if they have their slot there already, or need a third one', () => {
    const group = new TestGroup({ slotsMax: 3 });
    group.passOver('wide', 5_000);
    expect(group.ask('has-it', { needs: [], waitsElsewhere: true })).toEqual(['grant has-it.1']);
    expect(group.ask('third', { needs: ['third'] })).toEqual(['grant third.1']);
    expect(group.ask('both', { ...wide, needs: ['third', 'wide'] })).toEqual([]);
  });
});

describe('a call that waited for another group', () => {
  /** A group of one slot where `one` has had a minute, and `two` nothing since its last call ended. */
  function shared(): TestGroup {
    const group = new TestGroup({ slotsMax: 1, timeoutMs: 600_000, ageCreditMs: 0 });
    group.ask('two-0', { tenant: 'two' });
    group.release('two-0');
    group.ask('one-0', { tenant: 'one' });
    group.ask('one-1', { tenant: 'one' });
    return group;
  }

  test('is behind nothing that its tenant has not had meanwhile, if it waited since before its last call here', () => {
    const group = shared();
    const since = group.now - START - 1;
    group.advance(40_000);
    group.renew('one-0');
    group.ask('two-1', { tenant: 'two', needs: [], enqueuedMs: since });
    expect(group.state.accounts.tenants.get('two')?.shares.normal.service).toBeLessThan(1_000);
  });

  test('begins level like any other if it came later than that', () => {
    const group = shared();
    group.advance(40_000);
    group.renew('one-0');
    group.ask('two-1', { tenant: 'two', needs: [] });
    const { service = 0 } = group.state.accounts.tenants.get('two')?.shares.normal ?? {};
    expect(service).toBeGreaterThan(1_000);
  });
});

describe('a call whose turn came before', () => {
  test('goes first', () => {
    const group = new TestGroup({ slotsMax: 1, timeoutMs: 600_000 });
    group.ask('holder');
    group.ask('other', { tenant: 'other', lane: 'high' });
    group.ask('back', { needs: [], waitsElsewhere: true, hadTurn: true });
    expect(group.release('holder')).toContain('grant back.1');
  });

  test('has a place in a full queue, which takes no more of the others', () => {
    const group = new TestGroup({ slotsMax: 1, queueLengthMax: 1, queueLengthMaxEach: 1 });
    group.ask('holder');
    group.ask('first');
    expect(group.ask('back', { hadTurn: true })).toEqual([]);
    expect(group.ask('second')).toEqual(['reject second queue_full']);
    expect(group.waiting()).toEqual(['first', 'back']);
  });
});

describe('slots held by calls that wait elsewhere', () => {
  const elsewhere = { waitsElsewhere: true };

  test('are as many as there are', () => {
    const group = new TestGroup({ slotsMax: 3 });
    for (const name of ['w1', 'w2', 'w3']) {
      expect(group.ask(name, elsewhere)).toEqual([`grant ${name}.1`]);
    }
    expect(group.state.slotsWaitingElsewhere).toBe(3);
    group.confirm('w1');
    group.confirm('w1');
    expect(group.state.slotsWaitingElsewhere).toBe(2);
    group.release('w2', 'unused');
    expect(group.state.slotsWaitingElsewhere).toBe(1);
  });

  test('are those of one call while a breaker is not closed', () => {
    const group = brokenGroup();
    group.ask('w1', { ...elsewhere, sliceMs: 60_000 });
    group.ask('w2', { ...elsewhere, sliceMs: 60_000 });
    expect(group.advance(group.wakesIn())).toEqual(['grant w1.1']);
    expect(group.release('w1', 'unused')).toEqual(['ended w1.1', 'grant w2.1']);
  });

  test('are none of a nested call, which runs on the slot of its parent', () => {
    const group = brokenGroup({ nested: 'pass' });
    group.ask('parent', { sliceMs: 60_000 });
    expect(group.advance(group.wakesIn())).toEqual(['grant parent.1']);
    expect(group.ask('child', { ...elsewhere, parents: ['parent'] })).toEqual(['grant child.1']);
    expect(group.state.slotsWaitingElsewhere).toBe(0);
    group.ask('w1', { ...elsewhere, sliceMs: 60_000 });
    const [waiter] = group.state.queue.byTicket.values();
    expect(waiter === undefined ? null : capOf(group.state, waiter)).toBeNull();
  });

  test('are forgotten at a reset: their callers say nothing of it', () => {
    const group = TestGroup.stored({ slotsMax: 4 });
    group.ask('w1', elsewhere);
    const next = group.restart();
    next.resume('w1');
    expect(next.inUse()).toBe(1);
    expect(next.state.slotsWaitingElsewhere).toBe(0);
  });

  test('confirmed by nobody whom anybody knows change nothing', () => {
    const group = new TestGroup();
    expect(group.confirm('stranger')).toEqual([]);
  });
});
