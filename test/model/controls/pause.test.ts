import fc from 'fast-check';
import { assert, expect, test } from 'vitest';
import { instant, leaseId, type LeaseId } from '../../../src/core/words/ids.ts';
import {
  emptyPause,
  isPaused,
  mayProbe,
  nextChangeAt,
  noteEnded,
  noteGranted,
  noteRefused,
  noteServed,
  pauseFor,
  rampSlotsMax,
  rebase,
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
          const served = { leaseId: leaseId('served.1'), grantedAt, isMistake: false };
          if (afterMs === 200_000) noteServed(pause, served, instant(now));
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

const probedActionArb = fc.oneof(
  fc.record({ kind: fc.constant('advance' as const), ms: fc.nat(20 * 60_000) }),
  fc.record({ kind: fc.constantFrom('ask', 'served', 'refused', 'left', 'reset') }),
);

test('one probe of a long pause is in flight at a time, and the times between them double', () => {
  fc.assert(
    fc.property(fc.array(probedActionArb, { maxLength: 60 }), (actions) => {
      const pause = emptyPause();
      let now = instant(1_000_000);
      const cause = { retryAfterMs: 30 * 86_400_000, isLongWindow: true, isProbed: true };
      pauseFor(pause, { ...cause, grantedAt: now }, now);
      let earliest = now + 60_000;
      let waitMs = 60_000;
      let inFlight: LeaseId | null = null;
      let asked = 0;
      for (const action of actions) {
        if (action.kind === 'advance') now = instant(now + action.ms);
        if (action.kind === 'reset') {
          Object.assign(pause, JSON.parse(JSON.stringify(pause)));
          rebase(pause, now);
          inFlight = null;
        }
        if (action.kind === 'ask') {
          const isAllowed = inFlight === null && now >= earliest;
          assert.equal(mayProbe(pause, now), isAllowed);
          if (!isAllowed) continue;
          inFlight = leaseId(`probe-${asked++}.1`);
          noteGranted(pause, inFlight, now);
        } else if (inFlight === null) {
          continue;
        } else if (action.kind === 'refused') {
          assert.isTrue(noteRefused(pause, inFlight, now));
          inFlight = null;
          waitMs = Math.min(900_000, 2 * waitMs);
          earliest = now + waitMs;
        } else if (action.kind === 'left') {
          noteEnded(pause, inFlight);
          inFlight = null;
        } else if (action.kind === 'served') {
          const call = { leaseId: inFlight, grantedAt: now, isMistake: false };
          noteServed(pause, call, now);
          assert.isFalse(isPaused(pause, now));
          return;
        }
      }
      expect(isPaused(pause, now)).toBe(true);
    }),
    runs(1_000),
  );
});
