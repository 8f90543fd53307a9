import type { RateSettings } from '../../../src/core/words/settings.ts';
import type { CallUsage } from '../../../src/core/words/ticket.ts';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { instant } from '../../../src/core/words/ids.ts';
import { BURST_MS, NO_RATES } from '../../../src/core/parts/rate-limits.ts';
import { emptyRates, roomAt, settle, take, type RateUse } from '../../../src/core/parts/rates.ts';
import { runs } from '../runs.ts';
import { SimulatorRandom } from '../simulator/random.ts';
import { percent, printTable } from '../simulator/table.ts';
import { SlidingLog } from './sliding-log.ts';

/** Limits against an upstream that counts as strictly as can be. */

const START = 1_800_000_000_000;
/** How long a call may travel. Two of them may change places on the way. */
const TRAVEL_MAX_MS = 400;

const callArb = fc.record({
  /** How long after the one before; mostly at once. */
  gapMs: fc.oneof(
    { weight: 4, arbitrary: fc.constant(0) },
    fc.constantFrom(1, 999, 1_000, 59_999, 60_000, 60_001, 61_500, 90_000),
    fc.integer({ min: 0, max: 20_000 }),
  ),
  /** Tokens; a few calls take all that there is. */
  size: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 1_000 })),
  /** The part of what was reserved that it used. */
  used: fc.constantFrom(0, 0.3, 1),
  travelMs: fc.integer({ min: 0, max: TRAVEL_MAX_MS }),
  heldMs: fc.constantFrom(0, 700, 30_000, 70_000),
  isAfterRestart: fc.boolean(),
});

const settingsArb = fc.record({
  ...Object.fromEntries(Object.keys(NO_RATES).map((name) => [name, fc.constant(null)])),
  rpm: fc.constantFrom(1, 3, 5, 20, 60),
  tpm: fc.constantFrom(null, 1_000, 1_500),
  burstMs: fc.constantFrom(0, 1_000, BURST_MS, 60_000, 600_000),
}) as fc.Arbitrary<RateSettings>;

test('no minute ever has more than the limit, however calls come, travel, settle and restart', () => {
  fc.assert(
    fc.property(
      settingsArb,
      fc.array(callArb, { maxLength: 120, size: 'max' }),
      (settings, calls) => {
        let rates = emptyRates();
        let now = START;
        const requests = new SlidingLog(60_000);
        const tokens = new SlidingLog(60_000);
        const pending: { at: number; run: () => void }[] = [];
        for (const { gapMs, size, used, travelMs, heldMs, isAfterRestart } of calls) {
          if (isAfterRestart) rates = JSON.parse(JSON.stringify(rates)) as RateUse;
          const reserved: CallUsage = { requests: 1, inputTokens: size - 1, outputTokens: 1 };
          const actual: CallUsage = { ...reserved, inputTokens: Math.floor(used * (size - 1)) };
          let at = roomAt(rates, settings, reserved, instant(now + gapMs));
          // A call that ends meanwhile may make room sooner; what it settles must be settled before.
          pending.sort((a, b) => a.at - b.at);
          while ((pending[0]?.at ?? Infinity) <= at) {
            const due = pending.shift();
            due?.run();
            at = roomAt(rates, settings, reserved, instant(Math.max(now + gapMs, due?.at ?? 0)));
          }
          now = at;
          const takenAt = instant(now);
          take(rates, settings, reserved, takenAt);
          requests.add(now + travelMs, 1);
          tokens.add(now + travelMs, actual.inputTokens + 1);
          const settledAt = instant(now + travelMs + heldMs);
          const run = () => settle(rates, settings, { reserved, actual, takenAt }, settledAt);
          pending.push({ at: settledAt, run });
        }
        expect(requests.most()).toBeLessThanOrEqual(settings.rpm ?? Infinity);
        expect(tokens.most()).toBeLessThanOrEqual(settings.tpm ?? Infinity);
      },
    ),
    runs(300),
  );
});

describe('under load', () => {
  const rows: string[][] = [];

  afterAll(() => {
    printTable('Limits under load', ['', 'used', 'most in a minute'], rows);
  });

  test.each<[Partial<RateSettings>, number]>([
    [{ rpm: 1 }, 100],
    [{ rpm: 3 }, 100],
    [{ rpm: 5 }, 100],
    [{ rpm: 20 }, 100],
    [{ rpm: 60 }, 100],
    [{ rpm: 500 }, 100],
    [{ tpm: 10_000 }, 400],
    [{ rpm: 60, tpm: 10_000 }, 200],
    [{ rpm: 60, tpm: 10_000 }, 500],
  ])('%j with calls of up to %i tokens is used and never exceeded', (changes, largest) => {
    const settings = { ...NO_RATES, ...changes };
    const random = new SimulatorRandom(7);
    const rates = emptyRates();
    const requests = new SlidingLog(60_000);
    const tokens = new SlidingLog(60_000);
    const lengthMs = 7_200_000;
    for (let now = START; ;) {
      const size = 1 + random.below(largest);
      const wanted = { requests: 1, inputTokens: size, outputTokens: 0 };
      now = roomAt(rates, settings, wanted, instant(now));
      if (now >= START + lengthMs) break;
      take(rates, settings, wanted, instant(now));
      const arrivesAt = now + random.below(TRAVEL_MAX_MS);
      requests.add(arrivesAt, 1);
      tokens.add(arrivesAt, size);
    }
    const { rpm, tpm } = settings;
    const used = Math.max(
      (requests.total / (rpm ?? Infinity) / lengthMs) * 60_000,
      (tokens.total / (tpm ?? Infinity) / lengthMs) * 60_000,
    );
    const most = [requests.most(), tokens.most()];
    rows.push([JSON.stringify(changes), percent(used), most.join(', ')]);
    expect(used).toBeGreaterThanOrEqual(0.95);
    expect(most[0]).toBeLessThanOrEqual(rpm ?? Infinity);
    expect(most[1]).toBeLessThanOrEqual(tpm ?? Infinity);
  });

  test('calls that are large for the limit use as much of it as whole calls can', () => {
    const settings = { ...NO_RATES, tpm: 10_000 };
    for (const [size, fitting] of [
      [4_000, 2],
      [8_000, 1],
      [10_000, 1],
    ] as const) {
      const rates = emptyRates();
      const tokens = new SlidingLog(60_000);
      const wanted = { requests: 1, inputTokens: size, outputTokens: 0 };
      let now = START;
      while (now < START + 7_200_000) {
        now = roomAt(rates, settings, wanted, instant(now));
        take(rates, settings, wanted, instant(now));
        tokens.add(now, size);
      }
      const possible = (fitting * size * (now - START)) / 60_000;
      rows.push([
        `{"tpm":10000}, calls of ${size}`,
        percent(tokens.total / possible),
        `${tokens.most()}`,
      ]);
      expect(tokens.most()).toBe(fitting * size);
      expect(tokens.total / possible).toBeGreaterThan(0.95);
    }
  });
});
