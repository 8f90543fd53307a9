import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { LEASE_TTL_MS } from '../../src/core/words/settings.ts';
import { Fleet, SLEEP_MS } from './fleet/fleet.ts';
import {
  befall,
  memberMishapArb,
  memberSettingsArb,
  mishapArb,
  refusalArb,
  settingsArb,
} from './fleet/mishaps.ts';
import { enough, runs } from './runs.ts';

/**
 * Holders die, messages are lost, late or doubled, writes land or do not, and the group's instance is replaced
 * again and again while older ones go on. The fleet checks after every step that what runs is within the limit and is counted.
 */

const SMALL = fc.constantFrom(1, 2, 3);
const WIDE = fc.integer({ min: 9, max: 40 });

const PREFETCHING = {
  isAdaptive: false,
  releaseCooldownMs: 0,
  cancelCooldownMs: 0,
  failureCooldownMs: 0,
} as const;

const length = { maxLength: 80, size: 'max' } as const;

test('a small group: with holders that renew or stop, never more run than the limit allows', () => {
  let fullHouses = 0;
  let passes = 0;
  let scoped = 0;
  fc.assert(
    fc.property(
      settingsArb(SMALL),
      fc.boolean(),
      fc.array(mishapArb(true, false), length),
      (settings, isClockStuck, mishaps) => {
        const fleet = new Fleet(settings, { isClockStuck });
        for (const mishap of mishaps) befall(fleet, mishap);
        if (fleet.peak === settings.slotsMax) fullHouses += 1;
        passes += fleet.passes;
        scoped += fleet.scoped;
      },
    ),
    runs(1_500),
  );
  assert.ok(scoped > enough(100), `only ${scoped} refusals made scopes`);
  assert.ok(fullHouses > enough(500), 'the histories hardly ever reach the limit');
  assert.ok(passes > enough(250), 'slots hardly ever change hands unwritten');
});

test('a group with a margin: with holders that renew or stop, never more run than the limit allows', () => {
  fc.assert(
    fc.property(
      settingsArb(WIDE),
      fc.boolean(),
      fc.array(mishapArb(true, true), length),
      (settings, isClockStuck, mishaps) => {
        const fleet = new Fleet(settings, { isClockStuck });
        for (const mishap of mishaps) befall(fleet, mishap);
      },
    ),
    runs(1_000),
  );
});

test('a group of members: with holders that renew or stop, never more run by a key than its limit allows', () => {
  let fullHouses = 0;
  let passes = 0;
  fc.assert(
    fc.property(
      memberSettingsArb(),
      fc.boolean(),
      fc.array(memberMishapArb(), length),
      (settings, isClockStuck, mishaps) => {
        const fleet = new Fleet(settings, { isClockStuck });
        for (const mishap of mishaps) befall(fleet, mishap);
        const slots = settings.members.reduce((sum, { slotsMax }) => sum + slotsMax, 0);
        if (fleet.peak === slots) fullHouses += 1;
        passes += fleet.passes;
      },
    ),
    runs(1_000),
  );
  assert.ok(fullHouses > enough(100), `only ${fullHouses} histories reach the limits`);
  assert.ok(passes > enough(30), `only ${passes} slots change hands unwritten`);
});

test('a group that lends slots: with holders that renew or stop, never more run than the limit allows', () => {
  let onPrefetched = 0;
  fc.assert(
    fc.property(
      settingsArb(fc.constantFrom(6, 12, 24)).map((settings) => ({ ...settings, ...PREFETCHING })),
      fc.array(mishapArb(true, false, true), length),
      (settings, mishaps) => {
        const fleet = new Fleet(settings);
        for (const mishap of mishaps) befall(fleet, mishap);
        onPrefetched += fleet.calls.filter(({ lent: prefetched }) => prefetched !== null).length;
      },
    ),
    runs(1_500),
  );
  assert.ok(onPrefetched > enough(30), `only ${onPrefetched} calls ran on lent slots`);
});

test('a group that names members now and then lends no slot while it does', () => {
  let onLent = 0;
  fc.assert(
    fc.property(
      memberSettingsArb(fc.constantFrom(6, 12, 24)).map((settings) => ({
        ...settings,
        ...PREFETCHING,
      })),
      fc.boolean(),
      fc.array(memberMishapArb(true), length),
      (settings, hasMembers, mishaps) => {
        const fleet = new Fleet(settings);
        if (!hasMembers) fleet.reconfigure([]);
        for (const mishap of mishaps) befall(fleet, mishap);
        onLent += fleet.calls.filter(({ lent }) => lent !== null).length;
      },
    ),
    runs(250),
  );
  assert.ok(onLent > enough(5), `only ${onLent} calls ran on lent slots`);
});

test('beside holders that stream on, those that renew or stop stay within the limit', () => {
  fc.assert(
    fc.property(
      settingsArb(fc.oneof(SMALL, WIDE)),
      fc.array(mishapArb(false, false), length),
      (settings, mishaps) => {
        const fleet = new Fleet(settings);
        for (const mishap of mishaps) befall(fleet, mishap);
      },
    ),
    runs(1_000),
  );
});

test('when every holder dies unheard, all slots come back by themselves within one TTL', () => {
  fc.assert(
    fc.property(
      settingsArb(fc.oneof(SMALL, WIDE)),
      fc.array(mishapArb(true, true), length),
      (settings, mishaps) => {
        const fleet = new Fleet(settings);
        for (const mishap of mishaps) befall(fleet, mishap);
        fleet.abandon();
      },
    ),
    runs(500),
  );
});

test('when every holder dies unheard, the slots of all members come back within one TTL', () => {
  fc.assert(
    fc.property(memberSettingsArb(), fc.array(memberMishapArb(), length), (settings, mishaps) => {
      const fleet = new Fleet(settings);
      for (const mishap of mishaps) befall(fleet, mishap);
      fleet.abandon();
    }),
    runs(300),
  );
});

test('when every isolate dies unheard, lent slots come back by themselves within one TTL', () => {
  fc.assert(
    fc.property(
      settingsArb(fc.constantFrom(6, 12, 24)).map((settings) => ({ ...settings, ...PREFETCHING })),
      fc.array(mishapArb(true, false, true), length),
      (settings, mishaps) => {
        const fleet = new Fleet(settings);
        for (const mishap of mishaps) befall(fleet, mishap);
        fleet.abandon();
      },
    ),
    runs(300),
  );
});

test('beside an instance that was replaced 20 minutes ago, never more run than the limit allows', () => {
  const mishaps = fc.array(mishapArb(true, true), { maxLength: 40, size: 'max' });
  let asked = 0;
  fc.assert(
    fc.property(settingsArb(WIDE), mishaps, mishaps, (settings, before, after) => {
      const fleet = new Fleet(settings);
      for (const mishap of before) befall(fleet, mishap);
      const older = fleet.current;
      fleet.reset('sleeps');
      fleet.advance(SLEEP_MS);
      for (let count = 0; count < 40; count += 1) fleet.arrive(1, true);
      fleet.advance(1_000);
      if (older.isAlive) asked += 1;
      for (let count = 0; count < 5; count += 1) {
        fleet.network.foretell('ask', { isStale: true });
        fleet.arrive(1, true);
        fleet.advance(10);
      }
      for (const mishap of after) befall(fleet, mishap);
    }),
    runs(50),
  );
  assert.ok(asked > enough(20), `only ${asked} older instances lived for 20 minutes`);
});

/** Kinds of events where nothing goes wrong but the instance. */
const calm = new Set(['arrive', 'finish', 'leave', 'learn', 'advance']);
const known = new Set([...calm, 'reset']);
const KNOWN_MS = 2_000;

test('calls wait only for refusals that are about them, and come to run after these', () => {
  let scoped = 0;
  let waited = 0;
  fc.assert(
    fc.property(
      settingsArb(fc.oneof(SMALL, WIDE)),
      fc.array(
        fc.oneof(
          { weight: 4, arbitrary: mishapArb(true, true).filter(({ kind }) => known.has(kind)) },
          { weight: 1, arbitrary: refusalArb },
        ),
        length,
      ),
      (settings, mishaps) => {
        const fleet = new Fleet(settings);
        for (const mishap of mishaps) befall(fleet, mishap);
        waited += fleet.drain();
        scoped += fleet.scoped;
      },
    ),
    runs(150),
  );
  assert.ok(scoped > enough(30), `only ${scoped} refusals made scopes`);
  assert.ok(waited > enough(30), `only ${waited} calls waited at the end`);
});

test('after a plain reset what calls hold is known soon, and the rest comes back within one TTL', () => {
  fc.assert(
    fc.property(
      settingsArb(fc.oneof(SMALL, WIDE)),
      fc.array(
        mishapArb(true, true).filter(({ kind }) => calm.has(kind)),
        length,
      ),
      fc.integer({ min: 1, max: 3 }),
      (settings, mishaps, resets) => {
        const fleet = new Fleet(settings);
        for (const mishap of mishaps) befall(fleet, mishap);
        for (let index = 0; index < resets; index += 1) fleet.reset('dies');
        for (const call of fleet.in('asking')) fleet.holders.leave(call);
        const [short] = fleet.in('running');
        if (short !== undefined) fleet.holders.finish(short, 'unused');
        fleet.advance(KNOWN_MS);
        const { leases } = fleet.state;
        const running = fleet.in('running');
        const unknown = running.filter(({ leaseId }) => !leases.has(leaseId));
        assert.deepEqual(
          unknown.map(({ leaseId }) => leaseId),
          [],
        );
        assert.ok(short === undefined || !leases.has(short.leaseId), 'what has ended is held');
        const held = running.reduce((sum, { ticket }) => sum + ticket.slots, 0);
        fleet.advance(LEASE_TTL_MS - KNOWN_MS);
        assert.equal(fleet.state.slotsInUse, held, 'more is held than runs');
        assert.equal(fleet.state.totals.resurrected, 0);
      },
    ),
    runs(300),
  );
});
