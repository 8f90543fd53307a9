import { describe, expect, test } from 'vitest';
import { TestGroup } from '../../support/core-builders.ts';

/** Caps of tenants and agents, reservations, and calls that take several slots. */

describe('a tenant at its cap', () => {
  test('is passed over, and blocks nobody', () => {
    const group = new TestGroup({ slotsMax: 3, slotsMaxEach: 1 });
    group.ask('ann-1', { tenant: 'ann' });
    expect(group.ask('ann-2', { tenant: 'ann' })).toEqual([]);
    expect(group.ask('bob-1', { tenant: 'bob' })).toEqual(['grant bob-1.1']);
    expect(group.inUse()).toBe(2);
  });

  test('goes on when it gives a slot back', () => {
    const group = new TestGroup({ slotsMax: 3, slotsMaxEach: 1 });
    group.ask('ann-1', { tenant: 'ann' });
    group.ask('ann-2', { tenant: 'ann' });
    expect(group.release('ann-1')).toEqual(['ended ann-1.1', 'grant ann-2.1']);
  });

  test('counts its slots that cool down', () => {
    const group = new TestGroup({ slotsMax: 3, slotsMaxEach: 1, releaseCooldownMs: 100 });
    group.ask('ann-1', { tenant: 'ann' });
    group.ask('ann-2', { tenant: 'ann' });
    expect(group.release('ann-1')).toEqual(['ended ann-1.1']);
    expect(group.advance(100)).toEqual(['grant ann-2.1']);
  });

  test('is passed over though an operator put its call first', () => {
    const group = new TestGroup({ slotsMax: 2, slotsMaxEach: 1 });
    group.ask('ann-1', { tenant: 'ann' });
    group.ask('ann-2', { tenant: 'ann' });
    group.promote('ann-2');
    expect(group.ask('bob-1', { tenant: 'bob' })).toEqual(['grant bob-1.1']);
  });

  test('has a wide call that does not fit wait for its own others, not overtaken by them', () => {
    const group = new TestGroup({ slotsMax: 9, slotsMaxEach: 3 });
    group.ask('ann-1', { tenant: 'ann' });
    group.ask('ann-2', { tenant: 'ann' });
    expect(group.ask('wide', { tenant: 'ann', slots: 2 })).toEqual([]);
    expect(group.ask('narrow', { tenant: 'ann' })).toEqual([]);
    expect(group.ask('low', { tenant: 'ann', lane: 'low' })).toEqual([]);
    expect(group.ask('bob-1', { tenant: 'bob' })).toEqual(['grant bob-1.1']);
    expect(group.release('ann-1')).toEqual(['ended ann-1.1', 'grant wide.1']);
    expect(group.release('ann-2')).toEqual(['ended ann-2.1', 'grant narrow.1']);
  });
});

describe('an agent at its cap', () => {
  const ann = (agent: string | null) => ({ tenant: 'ann', agent });

  test('is passed over, and blocks neither its siblings nor its tenant', () => {
    const group = new TestGroup({ slotsMax: 9, slotsMaxEachAgent: 1 });
    group.ask('x1', ann('x'));
    expect(group.ask('x2', ann('x'))).toEqual([]);
    expect(group.ask('y1', ann('y'))).toEqual(['grant y1.1']);
    expect(group.ask('none1', ann(null))).toEqual(['grant none1.1']);
    expect(group.release('x1')).toEqual(['ended x1.1', 'grant x2.1']);
  });

  test('is no bound for calls that belong to none', () => {
    const group = new TestGroup({ slotsMax: 9, slotsMaxEachAgent: 1 });
    expect(group.askAll('a', 'b')).toEqual(['grant a.1', 'grant b.1']);
  });

  test('is another one with another tenant', () => {
    const group = new TestGroup({ slotsMax: 9, slotsMaxEachAgent: 1 });
    group.ask('x1', ann('x'));
    expect(group.ask('bob-x1', { tenant: 'bob', agent: 'x' })).toEqual(['grant bob-x1.1']);
  });

  test('has a wide call that does not fit bar that agent only', () => {
    const group = new TestGroup({ slotsMax: 9, slotsMaxEachAgent: 2 });
    group.ask('x1', ann('x'));
    expect(group.ask('wide', { ...ann('x'), slots: 2 })).toEqual([]);
    expect(group.ask('x2', ann('x'))).toEqual([]);
    expect(group.ask('y1', ann('y'))).toEqual(['grant y1.1']);
    expect(group.release('x1')).toEqual(['ended x1.1', 'grant wide.1']);
  });
});

describe('what is reserved', () => {
  /** Two slots, both in use by bob; ann and bob wait, bob with less behind him. */
  function reservedGroup(reserved: Record<string, number>): TestGroup {
    const group = new TestGroup({ slotsMax: 2, reserved });
    group.ask('bob-1', { tenant: 'bob' });
    group.ask('bob-2', { tenant: 'bob' });
    group.ask('high', { tenant: 'cid', lane: 'high' });
    group.ask('ann-1', { tenant: 'ann', lane: 'low' });
    group.ask('ann-2', { tenant: 'ann', lane: 'low' });
    return group;
  }

  test('for a tenant goes to it before all lanes, up to that many', () => {
    const group = reservedGroup({ ann: 1 });
    expect(group.release('bob-1')).toContain('grant ann-1.1');
    expect(group.release('bob-2')).toContain('grant high.1');
    expect(group.release('high')).toContain('grant ann-2.1');
  });

  test('for a tenant goes to it though others of its lane have had less', () => {
    const group = new TestGroup({ slotsMax: 1, reserved: { ann: 1 } });
    group.ask('ann-0', { tenant: 'ann' });
    group.ask('bob-1', { tenant: 'bob' });
    group.ask('ann-1', { tenant: 'ann' });
    group.advance(20_000);
    group.renew('ann-0');
    expect(group.waiting()).toEqual(['bob-1', 'ann-1']);
    expect(group.release('ann-0')).toContain('grant ann-1.1');
  });

  test('is lent to others while it is not wanted', () => {
    const group = new TestGroup({ slotsMax: 2, reserved: { ann: 2 } });
    group.ask('bob-1', { tenant: 'bob' });
    expect(group.ask('bob-2', { tenant: 'bob' })).toEqual(['grant bob-2.1']);
    group.ask('bob-3', { tenant: 'bob' });
    group.ask('ann-1', { tenant: 'ann' });
    // It is not taken away either: the next that comes back is for whom it is reserved.
    expect(group.inUse()).toBe(2);
    expect(group.release('bob-1')).toContain('grant ann-1.1');
  });

  test('for a lane goes to it, up to that many', () => {
    const group = new TestGroup({ slotsMax: 2, reservedLanes: { low: 1 } });
    group.askAll('n1', 'n2', 'n3');
    for (const name of ['l1', 'l2']) group.ask(name, { lane: 'low' });
    expect(group.release('n1')).toContain('grant l1.1');
    expect(group.release('n2')).toContain('grant n3.1');
  });

  test('for nobody who is there changes nothing', () => {
    const group = reservedGroup({ stranger: 2 });
    expect(group.release('bob-1')).toContain('grant high.1');
  });

  test('does not go before whom an operator put first', () => {
    const group = reservedGroup({ ann: 1 });
    group.promote('high');
    expect(group.release('bob-1')).toContain('grant high.1');
  });
});

describe('a wide call', () => {
  test('takes all its slots at once', () => {
    const group = new TestGroup({ slotsMax: 3 });
    expect(group.ask('wide', { slots: 3 })).toEqual(['grant wide.1']);
    expect(group.inUse()).toBe(3);
    group.release('wide');
    expect(group.inUse()).toBe(0);
  });

  test('is not granted with fewer, and bars narrower ones behind it', () => {
    const group = new TestGroup({ slotsMax: 3 });
    group.askAll('a', 'b');
    expect(group.ask('wide', { slots: 3 })).toEqual([]);
    expect(group.ask('narrow')).toEqual([]);
    expect(group.ask('another', { tenant: 'another' })).toEqual([]);
    expect(group.release('a')).toEqual(['ended a.1']);
    expect(group.release('b')).toEqual(['ended b.1', 'grant wide.1']);
    expect(group.release('wide')).toHaveLength(3);
  });

  test('bars nobody while its caller is not there', () => {
    const group = new TestGroup({ slotsMax: 2 });
    group.ask('a');
    group.ask('wide', { slots: 2, sliceMs: 100 });
    group.advance(100);
    expect(group.ask('narrow')).toEqual(['grant narrow.1']);
  });

  test('holds all its slots down while it cools down', () => {
    const group = new TestGroup({ slotsMax: 3, releaseCooldownMs: 100 });
    group.ask('wide', { slots: 3 });
    group.release('wide');
    expect(group.inUse()).toBe(3);
    group.advance(100);
    expect(group.inUse()).toBe(0);
  });

  test('has all its slots again after a reset', () => {
    const group = TestGroup.stored({ slotsMax: 3 });
    group.ask('wide', { slots: 2, lane: 'low' });
    const next = group.restart();
    expect(next.inUse()).toBe(2);
    next.resume('wide', { slots: 2, lane: 'low' });
    expect(next.inUse()).toBe(2);
    expect(next.state.slotsByLane.low).toBe(2);
  });

  test.each([
    ['the group has', { slotsMax: 2, slotsPerCallMax: 8 }, 2],
    ['a call may take', { slotsMax: 9, slotsPerCallMax: 2 }, 2],
    ['its tenant may hold', { slotsMax: 9, slotsMaxEach: 2 }, 2],
    ['its agent may hold', { slotsMax: 9, slotsMaxEachAgent: 2 }, 2],
  ])('of more than %s never fits', (_what, changes, most) => {
    const group = new TestGroup(changes);
    expect(group.ask('fits', { slots: most, agent: 'x' })).toEqual(['grant fits.1']);
    expect(group.ask('a', { slots: most + 1, agent: 'x' })).toEqual(['reject a never_fits']);
    expect(group.rejection('a')).toEqual({
      reason: 'never_fits',
      slotsPerCallMax: most,
      retryAfterMs: null,
    });
  });

  test('waits where there are no slots at all for a while', () => {
    const group = new TestGroup({ slotsMax: 0 });
    expect(group.ask('wide', { slots: 2 })).toEqual([]);
    expect(group.reconfigure({ slotsMax: 2 })).toEqual(['grant wide.1']);
  });

  test('is rejected when the limit falls below it, or it would bar everybody until its deadline', () => {
    const group = new TestGroup({ slotsMax: 3 });
    group.askAll('a', 'b');
    group.ask('wide', { slots: 3 });
    group.ask('narrow');
    expect(group.reconfigure({ slotsMax: 2 })).toEqual(['reject wide never_fits']);
    expect(group.release('a')).toEqual(['ended a.1', 'grant narrow.1']);
  });
});
