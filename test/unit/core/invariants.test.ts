import { describe, expect, test } from 'vitest';
import { after, instant, leaseIdOf, ticketId } from '../../../src/core/ids.ts';
import { checkInvariants } from '../../../src/core/invariants.ts';
import { emptyQueue } from '../../../src/core/queue.ts';
import { NEVER, type GroupState } from '../../../src/core/state.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** The check itself: every kind of damage is told. A check that finds nothing would prove nothing. */

/** A sound state with a lease, a slot that cools down, and two waiters. */
function soundGroup(): TestGroup {
  const group = new TestGroup({ slotsMax: 2, releaseCooldownMs: 1_000 });
  group.askAll('held', 'cooling', 'first');
  group.release('cooling');
  group.advance(1);
  group.ask('second');
  return group;
}

const FIRST = leaseIdOf(ticketId('first'), 1);
const HELD = leaseIdOf(ticketId('held'), 1);

test('a sound state has nothing wrong with it', () => {
  const group = soundGroup();
  expect(checkInvariants(group.state, group.now)).toEqual([]);
});

describe('is told', () => {
  test.each<[string, RegExp, (state: GroupState) => void]>([
    [
      'a free slot beside a waiter',
      /could take a free slot/,
      (state) => (state.settings = { ...state.settings, slotsMax: 3 }),
    ],
    [
      'a queue that differs from its index',
      /queue and its index differ/,
      (state) => state.queue.byTicket.delete(ticketId('first')),
    ],
    [
      'a waiter before an older one',
      /stands before an older one/,
      (state) => state.queue.line.reverse(),
    ],
    [
      'a waiter that holds',
      /waits and holds/,
      (state) => {
        const [lease] = state.leases.values();
        if (lease !== undefined) state.leases.set(FIRST, lease);
      },
    ],
    [
      'a waiter that has ended',
      /waits and has ended/,
      (state) => state.tombstones.set(FIRST, NEVER),
    ],
    ['a waiter without an alarm', /no alarm/, (state) => (state.waitersDueAt = NEVER)],
    ['a lease without an alarm', /no alarm/, (state) => (state.leasesDueAt = NEVER)],
    [
      'a lease that is held and has ended',
      /held and has ended/,
      (state) => state.tombstones.set(HELD, NEVER),
    ],
    [
      'too many tombstones',
      /too many tombstones/,
      (state) => {
        for (let index = 0; index < 10_001; index += 1) {
          state.tombstones.set(`t${index}`, instant(0));
        }
      },
    ],
  ])('%s', (_what, message, damage) => {
    const group = soundGroup();
    damage(group.state);
    expect(checkInvariants(group.state, group.now).join()).toMatch(message);
  });
});

test('a free slot is no damage while granting is not allowed yet', () => {
  const { state, now } = soundGroup();
  state.settings = { ...state.settings, slotsMax: 3 };
  state.grantsFrom = after(now, 1);
  expect(checkInvariants(state, now)).toEqual([]);
});

test('a free slot is no damage when nobody waits', () => {
  const { state, now } = soundGroup();
  const free: GroupState = { ...state, queue: emptyQueue(), leases: new Map() };
  expect(checkInvariants(free, now)).toEqual([]);
});
