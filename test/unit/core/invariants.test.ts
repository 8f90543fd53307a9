import { describe, expect, test } from 'vitest';
import { after, leaseIdOf, ticketId } from '../../../src/core/words/ids.ts';
import { checkInvariants } from '../../../src/core/invariants.ts';
import type { LaneQueue, Line } from '../../../src/core/parts/queue.ts';
import { NEVER, type GroupState } from '../../../src/core/state.ts';
import { START, TestGroup } from '../../support/core-builders.ts';

/** The check itself: every kind of damage is told. A check that finds nothing would prove nothing. */

/** A sound state with a lease, a slot that cools down, and waiters of two tenants. */
function soundGroup(): TestGroup {
  const group = new TestGroup({ slotsMax: 2, releaseCooldownMs: 1_000 });
  group.askAll('held', 'cooling', 'first');
  group.release('cooling');
  group.advance(1);
  group.ask('second');
  group.ask('third', { tenant: 'another' });
  return group;
}

function laneIn({ queue }: GroupState): LaneQueue {
  return queue.lanes.normal;
}

function lineIn(state: GroupState): Line {
  const line = laneIn(state).lines.find(({ tenant }) => tenant.key === 'somebody');
  if (line === undefined) throw new Error('nobody waits');
  return line;
}

const FIRST = leaseIdOf(ticketId('first'), 1);
const HELD = leaseIdOf(ticketId('held'), 1);

test('a sound state has nothing wrong with it', () => {
  const group = soundGroup();
  expect(checkInvariants(group.state, group.now)).toEqual([]);
});

describe.each(['slotsInUse', 'slotsRefused', 'slotsCooling', 'slotsWaitingElsewhere'] as const)(
  'of a scope %s',
  (name) => {
    test('is reported when it differs from the leases in the scope', () => {
      const group = new TestGroup({ slotsMax: 2 });
      group.ask('refused', { names: { model: 'pro' } });
      group.report('refused', { kind: 'requests', scope: 'model', retryAfterMs: 9_000 });
      group.ask('other', { names: { model: 'flash' } });
      for (const limiter of group.member().scopes.values()) limiter[name] += 1;
      const broken = checkInvariants(group.state, group.now);
      expect(broken.join()).toContain(`${name} of a scope`);
    });
  },
);

describe('is told', () => {
  test.each<[string, RegExp, (state: GroupState) => void]>([
    [
      'a free slot beside a waiter',
      /could take a free slot/,
      ({ serving: [sole] }) => {
        if (sole !== undefined) sole.settings = { ...sole.settings, slotsMax: 3 };
      },
    ],
    [
      'a queue that differs from its index',
      /queue and its index differ/,
      (state) => state.queue.byTicket.delete(ticketId('first')),
    ],
    [
      'a waiter before an older one',
      /before an older one/,
      (state) => lineIn(state).waiters.reverse(),
    ],
    [
      'a line before one that has had less',
      /out of order/,
      (state) => (lineIn(state).tenant.shares.normal.service = 1e9),
    ],
    ['a lane that counts wrong', /lane normal counts/, (state) => (laneIn(state).length += 1)],
    ['a backlog that drifted', /backlogs/, (state) => (laneIn(state).backlogs[0] = 3)],
    [
      'a lane that differs from its index',
      /differ/,
      (state) => laneIn(state).byTenant.delete(lineIn(state).tenant),
    ],
    [
      'an empty line',
      /line is empty/,
      (state) => laneIn(state).lines.push({ ...lineIn(state), waiters: [] }),
    ],
    [
      'a waiter in a line of another lane',
      /wrong line/,
      (state) => lineIn(state).waiters.forEach((waiter) => (waiter.lane = 'low')),
    ],
    [
      'a promotion that nobody keeps',
      /promoted/,
      (state) => lineIn(state).waiters.forEach((waiter) => (waiter.isPromoted = true)),
    ],
    [
      'less than nothing unclaimed',
      /-1 slots are orphaned/,
      (state) => (state.unclaimed.slots = -1),
    ],
    [
      'slots that are unclaimed after all is settled',
      /all are settled/,
      (state) => (state.unclaimed.slots = 1),
    ],
    [
      'a revocation that nobody knows',
      /set of revoked leases/,
      (state) => state.revoking.add(HELD),
    ],
    ['a revocation of nobody', /revoked but does not exist/, (state) => state.revoking.add(FIRST)],
    [
      'a parent that is sought in vain',
      /although no slots are orphaned/,
      (state) => [...state.leases.values()].forEach((lease) => state.seekingParent.add(lease)),
    ],
    [
      'a parent that is sought for a lease that has none',
      /seeks a parent that/,
      (state) => [...state.leases.values()].forEach((lease) => state.seekingParent.add(lease)),
    ],
    [
      'a parent that is sought for a lease that has gone',
      /seeks its parent but is not held/,
      (state) => {
        const [lease] = state.leases.values();
        if (lease !== undefined) state.seekingParent.add({ ...lease });
      },
    ],
    [
      'a write that covers less than nothing',
      /negative number of grants/,
      ({ bound }) => {
        const none = { awaited: [], answering: new Set<never>(), heirs: new Set<never>() };
        const write = { seq: 1, at: START, mark: 1, held: 1, granted: -1, unlisted: 0 };
        const maps = { parts: new Map(), vacated: new Map() };
        bound.inFlight.push({ ...write, ...none, ...maps, mayOutlive: false });
      },
    ],
    ['nested slots that drifted', /nested slots/, (state) => (state.slotsNested = 1)],
    ['slots that drifted', /in use/, (state) => (state.slotsInUse = 1)],
    ['slots of a lane that drifted', /lane low/, (state) => (state.slotsByLane.low = 1)],
    ['slots that wait', /elsewhere/, (state) => (state.slotsWaitingElsewhere = 1)],
    ['slots that were refused', /refused slots/, (state) => (state.slotsRefused = 1)],
    ['slots of a tenant that drifted', /tenant/, (state) => (lineIn(state).tenant.slots = 9)],
    ['waiters of a tenant that drifted', /tenant/, (state) => (lineIn(state).tenant.waiting = 9)],
    [
      'a service that is none',
      /service of tenant/,
      (state) => (lineIn(state).tenant.shares.normal.service = NaN),
    ],
    ['agents that drifted', /agents drifted/, (state) => (state.accounts.agentCount = 9)],
    [
      'a waiter that holds',
      /queued and has a lease/,
      (state) => {
        const [lease] = state.leases.values();
        if (lease !== undefined) state.leases.set(FIRST, lease);
      },
    ],
    [
      'a waiter that has ended',
      /queued and has ended/,
      (state) => state.tombstones.add(FIRST, START),
    ],
    ['a waiter without an alarm', /no alarm/, (state) => (state.waitersDueAt = NEVER)],
    ['a lease without an alarm', /no alarm/, (state) => (state.leasesDueAt = NEVER)],
    [
      'a lease that is held and has ended',
      /held and has ended/,
      (state) => state.tombstones.add(HELD, START),
    ],
    [
      'too many tombstones',
      /too many tombstones/,
      (state) => Object.defineProperty(state.tombstones, 'size', { value: 10_001 }),
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
  const group = new TestGroup();
  expect(checkInvariants(group.state, group.now)).toEqual([]);
});
