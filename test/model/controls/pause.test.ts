import fc from 'fast-check';
import { expect, test } from 'vitest';
import { instant } from '../../../src/core/words/ids.ts';
import {
  emptyPause,
  isPaused,
  nextChangeAt,
  noteServed,
  pauseFor,
  rampSlotsMax,
} from '../../../src/core/parts/pause.ts';
import { runs } from '../runs.ts';

/** A greedy queue under random refusals: nobody goes before a pause ends, and few at first after it. */

const TICK_MS = 100;
/** Longer than a step of the ramp, so that no slot is granted twice in one. */
const HELD_MS = 2_500;

const refusalArb = fc.record({
  afterMs: fc.constantFrom(0, 100, 1_000, 2_000, 3_900, 15_000, 200_000),
  grantedBeforeMs: fc.constantFrom(0, 100, 5_000),
  retryAfterMs: fc.constantFrom(null, 0, 900, 7_300, 60_000),
  isLongWindow: fc.boolean(),
});

test('nothing is granted before a pause ends, and a growing part after it', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 70 }),
      fc.array(refusalArb, { minLength: 1, maxLength: 6 }),
      (slotsMax, refusals) => {
        const pause = emptyPause();
        let now = 1_000_000;
        let ends: number[] = [];
        let blockedUntil = 0;
        let grants: number[] = [];
        const tick = () => {
          ends = ends.filter((at) => at > now);
          const most = rampSlotsMax(pause, slotsMax, instant(now));
          expect(isPaused(pause, instant(now))).toBe(most === 0);
          while (ends.length < most) {
            expect(now, 'nobody earlier').toBeGreaterThanOrEqual(blockedUntil);
            ends.push(now + HELD_MS);
            grants.push(now);
          }
          now += TICK_MS;
        };
        for (const { afterMs, grantedBeforeMs, ...asked } of refusals) {
          for (const until = now + Math.min(afterMs, 20_000); now < until;) tick();
          now += Math.max(0, afterMs - 20_000);
          const grantedAt = instant(now - grantedBeforeMs);
          if (afterMs === 200_000) noteServed(pause, grantedAt);
          pauseFor(pause, { grantedAt, ...asked }, instant(now));
          blockedUntil = Math.max(blockedUntil, now + (asked.retryAfterMs ?? 0));
          grants = [];
        }
        for (now = Math.max(now, pause.until - 500); now < pause.until + 20_000;) tick();
        const startedAt = (step: number) => pause.until + 2_000 * step;
        for (let step = 0; step < 8; step += 1) {
          const inStep = grants.filter((at) => at >= startedAt(step) && at < startedAt(step + 1));
          const ramp = Math.min(slotsMax, Math.ceil(slotsMax / 4) * 2 ** step);
          expect(inStep.length).toBeLessThanOrEqual(ramp);
        }
        expect(grants.length, 'all slots come back').toBeGreaterThanOrEqual(slotsMax);
      },
    ),
    runs(300),
  );
});

test('the slots change when it says so, and not before', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 500 }),
      fc.integer({ min: 0, max: 30_000 }),
      fc.integer({ min: 0, max: 40_000 }),
      (slotsMax, retryAfterMs, laterMs) => {
        const pause = emptyPause();
        const began = instant(1_000_000);
        pauseFor(pause, { grantedAt: began, retryAfterMs, isLongWindow: false }, began);
        const now = instant(began + laterMs);
        const seen = rampSlotsMax(pause, slotsMax, now);
        const at = nextChangeAt(pause, slotsMax, now);
        const later = at === Infinity ? instant(now + 100_000) : instant(at - 1);
        expect(rampSlotsMax(pause, slotsMax, later)).toBe(seen);
        const grown = at === Infinity || slotsMax === 0 || rampSlotsMax(pause, slotsMax, at) > seen;
        expect(grown).toBe(true);
      },
    ),
    runs(2_000),
  );
});
