import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { Fleet } from './fleet/fleet.ts';
import { befall, mishapArb, settingsArb } from './fleet/mishaps.ts';
import { runs } from './runs.ts';

/**
 * Holders die, messages are lost, late or doubled, writes land or do not, and the group's instance is replaced again and again
 * while older ones go on. The fleet checks after every step that what runs is within the limit and is counted.
 */

const SMALL = fc.constantFrom(1, 2, 3);
const WIDE = fc.integer({ min: 9, max: 40 });

const length = { maxLength: 80, size: 'max' } as const;

test('a small group: with holders that renew or stop, never more run than the limit allows', () => {
  let fullHouses = 0;
  fc.assert(
    fc.property(
      settingsArb(SMALL),
      fc.boolean(),
      fc.array(mishapArb(true, false), length),
      (settings, isClockStuck, mishaps) => {
        const fleet = new Fleet(settings, { isClockStuck });
        for (const mishap of mishaps) befall(fleet, mishap);
        if (fleet.peak === settings.slotsMax) fullHouses += 1;
      },
    ),
    runs(1_500),
  );
  assert.ok(fullHouses > 500, 'the histories hardly ever reach the limit');
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
