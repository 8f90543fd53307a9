import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { GroupEvent } from '../../src/core/events.ts';
import { TOMBSTONE_TTL_MS, type GroupSettings } from '../../src/core/words/settings.ts';
import { recover } from '../../src/core/recover.ts';
import type { GroupState } from '../../src/core/state.ts';
import { step } from '../../src/core/step.ts';
import { actionArb, settingsArb } from './actions.ts';
import { nothingStored, START } from '../support/core-builders.ts';
import { enough, runs } from './runs.ts';
import { World, type Recorded } from './world.ts';

/** Messages that come twice, at once or late, change nothing: the same history ends in the same state. */

/** Delivered a second time at once, these must change nothing. An ask gets a new attachment each time. */
const TWICE: ReadonlySet<GroupEvent['kind']> = new Set([
  'renew',
  'confirm',
  'release',
  'detach',
  'cancel',
  'revoke',
  'reconfigure',
  'promote',
  'tick',
]);

/**
 * And these must not, however late they are. A confirmation goes over the lease's own stub, so a real one
 * never comes before its lease, as one of a made-up history may.
 */
const LATE: ReadonlySet<GroupEvent['kind']> = new Set(['release', 'cancel', 'detach']);

const historyArb = fc.array(
  actionArb.filter(({ kind }) => kind !== 'reset'),
  { maxLength: 60, size: 'max' },
);

/** After which events an earlier one comes again, and how many events late. */
const echoesArb = fc.array(fc.record({ after: fc.nat(120), late: fc.nat(5) }), {
  maxLength: 30,
  size: 'max',
});

const TICK: GroupEvent = { kind: 'tick' };

/** Slots that are unclaimed at the begin: some of the holders that come are of an instance before. */
const ORPHANED = 3;

function replay(settings: GroupSettings, events: readonly Recorded[]): GroupState {
  const reported = { since: 0, next: 1, ended: [], lapsed: [], granted: [], heirs: [], waiters: 0 };
  const row = { seq: 1, at: START, mark: ORPHANED, held: ORPHANED, ...reported };
  const state = recover(settings, { ...nothingStored(), bound: row }, 1, true, START);
  for (const { event, at } of events) {
    // What is due at this instant happens in both histories, with or without another message.
    for (const each of [TICK, event, TICK]) step(state, each, at);
  }
  return state;
}

/** All that a state says about who holds, who waits, and what everybody has had. */
function faceOf({
  leases,
  queue,
  accounts,
  unclaimed: orphaned,
  laneCredit,
  totals,
}: GroupState): unknown {
  return {
    unclaimed: orphaned,
    leases: [...leases.values()],
    waiters: [...queue.byTicket.values()].map(({ tenant, agent, ...waiter }) => ({
      ...waiter,
      tenant: tenant.key,
      agent: agent.key,
    })),
    services: [...accounts.tenants.values()].map(({ key, shares, slots }) => [key, shares, slots]),
    laneCredit,
    totals,
  };
}

test('whatever comes twice counts once', () => {
  let echoed = 0;
  fc.assert(
    fc.property(settingsArb, historyArb, echoesArb, (settings, history, echoes) => {
      const world = new World(settings, 'after_jumps');
      for (const action of history) world.run(action);
      const { events } = world;
      const spanMs = (events.at(-1)?.at ?? 0) - (events[0]?.at ?? 0);
      const twice = events.flatMap((recorded, index) => {
        const again = echoes.flatMap(({ after, late }) => {
          const earlier = events[index - late];
          if (after !== index || earlier === undefined) return [];
          // An ended attempt is not remembered for ever.
          const kinds = late === 0 ? TWICE : spanMs < TOMBSTONE_TTL_MS ? LATE : new Set();
          if (!kinds.has(earlier.event.kind)) return [];
          return [{ event: earlier.event, at: recorded.at }];
        });
        echoed += again.length;
        return [recorded, ...again];
      });
      expect(faceOf(replay(settings, twice))).toEqual(faceOf(replay(settings, events)));
    }),
    runs(1_500),
  );
  expect(echoed).toBeGreaterThan(enough(700));
});
