import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import type { Outcome } from '../../src/core/words/outcome.ts';
import type { GroupSettings } from '../../src/core/words/settings.ts';
import { someSettings } from '../support/core-builders.ts';
import { stepMsArb } from './actions.ts';
import { Fleet, type Mishap } from './fleet.ts';
import { runs } from './runs.ts';

/**
 * Holders die, messages are lost, late or doubled, and the group's instance is replaced again and again.
 * The upstream counts the calls that really run.
 */

const pick = fc.nat(9);
const outcome = fc.constantFrom<Outcome>('success', 'cancelled', 'failed', 'unused');

function plain<Kind extends 'arrive' | 'reset' | 'lossy_reset' | 'ask_all' | 'renew_all'>(
  kind: Kind,
): fc.Arbitrary<Mishap> {
  return fc.constant({ kind });
}

function picked(kind: 'ask' | 'leave' | 'renew' | 'resume' | 'echo') {
  return fc.record({ kind: fc.constant(kind), pick }) as fc.Arbitrary<Mishap>;
}

function isHeardArb(): fc.Arbitrary<boolean> {
  return fc.nat(3).map((nat) => nat > 0);
}

const mishapArb: fc.Arbitrary<Mishap> = fc.oneof(
  { weight: 6, arbitrary: plain('arrive') },
  { weight: 3, arbitrary: plain('ask_all') },
  { weight: 2, arbitrary: picked('ask') },
  { weight: 1, arbitrary: picked('leave') },
  { weight: 4, arbitrary: plain('renew_all') },
  { weight: 2, arbitrary: picked('renew') },
  { weight: 1, arbitrary: picked('resume') },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('revoke' as const),
      of: fc.constantFrom('asking' as const, 'running' as const),
      pick,
    }),
  },
  { weight: 2, arbitrary: picked('echo') },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('finish' as const),
      pick,
      outcome,
      isHeard: isHeardArb(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('die' as const), pick, isHeard: isHeardArb() }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('lose_next_grant' as const),
      isHeard: fc.boolean(),
    }),
  },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: stepMsArb }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('freeze' as const), ms: stepMsArb }) },
  { weight: 2, arbitrary: plain('reset') },
  { weight: 1, arbitrary: plain('lossy_reset') },
);

const cooldownMs = fc.constantFrom(0, 0, 200, 5_000);
const settingsArb: fc.Arbitrary<GroupSettings> = fc
  .record({
    slotsMax: fc.constantFrom(1, 2, 3),
    releaseCooldownMs: cooldownMs,
    cancelCooldownMs: cooldownMs,
    failureCooldownMs: cooldownMs,
    timeoutMs: fc.constant(240_000),
  })
  .map((settings) => someSettings(settings));
const mishapsArb = fc.array(mishapArb, { maxLength: 80, size: 'max' });

test('with holders that renew or stop, no more calls ever run than the limit allows', () => {
  let fullHouses = 0;
  fc.assert(
    fc.property(settingsArb, mishapsArb, (settings, mishaps) => {
      const fleet = new Fleet(settings, true);
      for (const mishap of mishaps) {
        fleet.run(mishap);
        assert.ok(fleet.peak <= settings.slotsMax, `${fleet.peak} calls ran at once`);
      }
      if (fleet.peak === settings.slotsMax) fullHouses += 1;
    }),
    runs(4_000),
  );
  assert.ok(fullHouses > 1_000, 'the histories hardly ever reach the limit');
});

test('with holders that stream on, only calls whose lease had lapsed run above the limit', () => {
  fc.assert(
    fc.property(settingsArb, mishapsArb, (settings, mishaps) => {
      const fleet = new Fleet(settings, false);
      for (const mishap of mishaps) {
        fleet.run(mishap);
        assert.ok(fleet.peak <= settings.slotsMax + fleet.lapsed, `${fleet.peak} ran at once`);
      }
    }),
    runs(4_000),
  );
});

test('when every holder dies unheard, all slots and rows come back by themselves', () => {
  fc.assert(
    fc.property(settingsArb, mishapsArb, (settings, mishaps) => {
      const fleet = new Fleet(settings, true);
      for (const mishap of mishaps) fleet.run(mishap);
      fleet.abandon();
    }),
    runs(1_000),
  );
});
