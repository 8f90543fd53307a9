import { describe, expect, test } from 'vitest';
import type { GroupSettings } from '../../../src/core/words/settings.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** The part of a group in calls that belong to several: tries, and slots that are held while waiting. */

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
      const told = group.ask(`try-${tenant}`, { tenant, isTry: true });
      if (told[0]?.startsWith('grant') === true) continue;
      const isPaused = changes.paused === true;
      expect(told).toEqual([`declined try-${tenant}${isPaused ? ' by a pause' : ''}`]);
      expect(traceIn(group.state)).toEqual(before);
    }
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

describe('slots held by calls that wait elsewhere', () => {
  const elsewhere = { waitsElsewhere: true };

  test('are a quarter of the group at most, and the others pass', () => {
    const group = new TestGroup({ slotsMax: 8 });
    expect(group.ask('w1', elsewhere)).toEqual(['grant w1.1']);
    expect(group.ask('w2', elsewhere)).toEqual(['grant w2.1']);
    expect(group.ask('w3', elsewhere)).toEqual([]);
    expect(group.ask('plain')).toEqual(['grant plain.1']);
    expect(group.state.slotsWaitingElsewhere).toBe(2);
  });

  test('make room when one of them is confirmed', () => {
    const group = new TestGroup({ slotsMax: 4 });
    group.ask('w1', elsewhere);
    expect(group.ask('w2', elsewhere)).toEqual([]);
    expect(group.confirm('w1')).toEqual(['grant w2.1']);
    expect(group.state.slotsWaitingElsewhere).toBe(1);
    expect(group.confirm('w1')).toEqual([]);
    expect(group.state.slotsWaitingElsewhere).toBe(1);
  });

  test('make room when one of them is given back', () => {
    const group = new TestGroup({ slotsMax: 4 });
    group.ask('w1', elsewhere);
    group.ask('w2', elsewhere);
    expect(group.release('w1', 'unused')).toEqual(['ended w1.1', 'grant w2.1']);
  });

  test('do not count while they cool down', () => {
    const group = new TestGroup({ slotsMax: 4, failureCooldownMs: 1_000 });
    group.ask('w1', elsewhere);
    group.ask('w2', elsewhere);
    expect(group.release('w1', 'failed')).toEqual(['ended w1.1', 'grant w2.1']);
  });

  test('do not count once they have lapsed', () => {
    const group = new TestGroup({ slotsMax: 4, timeoutMs: 600_000 });
    group.ask('w1', elsewhere);
    group.ask('w2', { ...elsewhere, sliceMs: 600_000 });
    expect(group.advance(45_000)).toEqual(['ended w1.1', 'grant w2.1']);
  });

  test.each([1, 2, 3])('are those of one call at least, in a group of %i', (slotsMax) => {
    const group = new TestGroup({ slotsMax });
    expect(group.ask('w1', { ...elsewhere, slots: slotsMax })).toEqual([`grant w1.1`]);
  });

  test('are not those of a wide call beside another, which bars who waits elsewhere too', () => {
    const group = new TestGroup({ slotsMax: 8 });
    group.ask('w1', elsewhere);
    expect(group.ask('wide', { ...elsewhere, slots: 2 })).toEqual([]);
    expect(group.ask('w2', elsewhere)).toEqual([]);
    expect(group.ask('plain')).toEqual(['grant plain.1']);
    expect(group.confirm('w1')).toEqual(['grant wide.1']);
    expect(group.confirm('wide')).toEqual(['grant w2.1']);
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

describe('a call that holds narrower slots', () => {
  const holding = { holdsNarrower: true };

  test('waits for a slot like any other', () => {
    const group = new TestGroup({ slotsMax: 1 });
    group.ask('holder');
    expect(group.ask('a', holding)).toEqual([]);
    expect(group.release('holder')).toContain('grant a.1');
  });

  test('is declined when it meets a pause', () => {
    const group = new TestGroup({ paused: true });
    expect(group.ask('a', holding)).toEqual(['declined a by a pause']);
    expect(group.waiting()).toEqual([]);
    expect(group.state.totals.rejected).toEqual({});
  });

  test('is declined when a pause begins while it waits, and the others go on waiting', () => {
    const group = new TestGroup({ slotsMax: 0 });
    group.ask('a', holding);
    group.ask('plain');
    expect(group.reconfigure({ paused: true })).toEqual(['declined a by a pause']);
    expect(group.waiting()).toEqual(['plain']);
  });

  test('is granted at the settle time after a reset, not declined', () => {
    const before = TestGroup.stored();
    before.ask('holder');
    const group = before.restart();
    expect(group.ask('a', holding)).toEqual([]);
    expect(group.advance(500)).toEqual(['grant a.1']);
  });
});
