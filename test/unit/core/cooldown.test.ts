import { describe, expect, test } from 'vitest';
import type { LeaseOutcome } from '../../../src/core/words/outcome.ts';
import type { GroupSettings } from '../../../src/core/words/settings.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** How long a slot stays down after its call ended. */

const DISTINCT = { releaseCooldownMs: 111, cancelCooldownMs: 222, failureCooldownMs: 333 };

/** How long the slot of a call that ended so stays down; null: not at all. */
function downMs(settings: Partial<GroupSettings>, outcome: LeaseOutcome): number | null {
  const group = new TestGroup(settings);
  group.ask('a');
  group.release('a', outcome);
  return group.inUse() === 0 ? null : group.wakesIn();
}

test.each<[LeaseOutcome, number | null]>([
  ['success', 111],
  ['cancelled', 222],
  ['failed', 333],
  ['unused', null],
])('a call that ended with %s keeps the slot down for %s ms', (outcome, expected) => {
  expect(downMs(DISTINCT, outcome)).toBe(expected);
});

test('a detached lease cools down like a call that was cut short', () => {
  const group = new TestGroup(DISTINCT);
  group.ask('a');
  group.detach('a', group.lease('a').attachment);
  expect(group.wakesIn()).toBe(222);
});

test('a cool-down of 0 is none', () => {
  const group = new TestGroup({ releaseCooldownMs: 0 });
  group.ask('a');
  group.release('a');
  expect(group.inUse()).toBe(0);
});

describe('auto', () => {
  const settings = { releaseCooldownMs: 'auto', cancelCooldownMs: 'auto' } as const;

  test.each<LeaseOutcome>(['success', 'cancelled'])(
    'is none after %s where no lag is known',
    (outcome) => {
      expect(downMs({ ...settings, slotsMax: 1 }, outcome)).toBeNull();
    },
  );

  test('is as long after a call that was cut short as after one that ended well', () => {
    expect(downMs({ releaseCooldownMs: 111, cancelCooldownMs: 'auto' }, 'cancelled')).toBe(111);
  });
});

describe('a slot that cools down', () => {
  test('is covered by the bound, and passed on with a write from its end on', () => {
    const group = TestGroup.stored({ ...DISTINCT, slotsMax: 1 });
    group.ask('a');
    group.write();
    group.release('a');
    expect(group.write().bound).toMatchObject({ mark: 1, ended: ['a.1'] });
    group.ask('b');
    expect(group.advance(111)).toEqual(['grant b.1']);
    expect(group.asksToWrite()).toBe('behind');
    expect(group.write().bound).toMatchObject({ mark: 1, ended: [] });
  });

  test('is in use, and nobody is granted in its stead until its end', () => {
    const group = new TestGroup({ ...DISTINCT, slotsMax: 1 });
    group.ask('a');
    expect(group.release('a')).toEqual(['ended a.1']);
    expect(group.ask('b')).toEqual([]);
    expect(group.advance(110)).toEqual([]);
    expect(group.advance(1)).toEqual(['grant b.1']);
  });

  test('tells nobody of its end, and is no expiry', () => {
    const group = new TestGroup(DISTINCT);
    group.ask('a');
    group.release('a');
    expect(group.advance(111)).toEqual([]);
    expect(group.inUse()).toBe(0);
    expect(group.state.totals.expired).toBe(0);
  });

  test('is not extended by a renewal', () => {
    const group = new TestGroup(DISTINCT);
    group.ask('a');
    group.release('a');
    group.renew('a');
    group.advance(111);
    expect(group.inUse()).toBe(0);
  });

  test('keeps its length when the settings change', () => {
    const group = new TestGroup(DISTINCT);
    group.ask('a');
    group.release('a');
    group.reconfigure({ releaseCooldownMs: 9_000 });
    group.advance(111);
    expect(group.inUse()).toBe(0);
  });
});
