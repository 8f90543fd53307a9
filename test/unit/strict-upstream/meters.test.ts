import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { makeMeter } from '../../strict-upstream/meters.ts';

const WINDOW_MS = 1_000;

describe('a sliding meter', () => {
  test('counts exactly the charges of the last window, whatever the history', () => {
    const step = fc.record({
      gapMs: fc.oneof(fc.constantFrom(0, 1, 999, 1_000, 1_001), fc.nat(400)),
      amount: fc.integer({ min: 1, max: 9 }),
    });
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 60 }),
        fc.integer({ min: 9, max: 30 }),
        (steps, limit) => {
          const meter = makeMeter('sliding', WINDOW_MS);
          const log: { at: number; amount: number }[] = [];
          let now = 5_000;
          const sumAt = (at: number): number =>
            log.filter((c) => c.at > at - WINDOW_MS).reduce((sum, c) => sum + c.amount, 0);
          for (const { gapMs, amount } of steps) {
            now += gapMs;
            expect(meter.used(now, limit)).toBe(sumAt(now));
            const waitMs = meter.waitMs(amount, now, limit);
            expect(waitMs === 0).toBe(sumAt(now) + amount <= limit);
            // The wait is the shortest one that helps.
            expect(sumAt(now + waitMs) + amount).toBeLessThanOrEqual(limit);
            const tooEarly = waitMs === 0 ? Infinity : sumAt(now + waitMs - 1) + amount;
            expect(tooEarly).toBeGreaterThan(limit);
            if (waitMs === 0) {
              meter.add(amount, now, limit);
              log.push({ at: now, amount });
            }
            expect(sumAt(now + meter.resetMs(now, limit))).toBe(0);
          }
        },
      ),
    );
  });
});

describe('a bucket', () => {
  test('is refilled evenly, may go into debt, and says when there is room', () => {
    const meter = makeMeter('bucket', WINDOW_MS);
    meter.add(10, 1_000, 10);
    expect([meter.used(1_000, 10), meter.waitMs(1, 1_000, 10)]).toEqual([10, 100]);
    expect([meter.used(1_250, 10), meter.resetMs(1_250, 10)]).toEqual([7.5, 750]);
    meter.add(12.5, 1_250, 10);
    expect(meter.waitMs(1, 1_250, 10)).toBe(1_100);
    expect(meter.used(9_000, 10)).toBe(0);
  });
});

describe('a fixed window', () => {
  test('begins at nothing at each multiple of its length', () => {
    const meter = makeMeter('fixed', WINDOW_MS);
    meter.add(10, 1_990, 10);
    expect([meter.waitMs(1, 1_990, 10), meter.resetMs(1_990, 10)]).toEqual([10, 10]);
    expect([meter.used(2_000, 10), meter.waitMs(10, 2_000, 10)]).toEqual([0, 0]);
  });
});
