import { describe, expect, it } from 'vitest';
import { NO_RATES } from '../../../src/core/parts/rate-limits.ts';
import { rateRooms, emptyRates, take } from '../../../src/core/parts/rates.ts';
import { instant } from '../../../src/core/words/ids.ts';

const NOW = instant(1_000_000_000_000);
const MINUTE_MS = 60_000;

describe('the room in limits', () => {
  it('is none of limits that are not set, and none of a pace', () => {
    expect(rateRooms(emptyRates(), NO_RATES, NOW)).toEqual([]);
    expect(rateRooms(emptyRates(), { ...NO_RATES, startsPerS: 5 }, NOW)).toEqual([]);
  });

  it('is what a minute has left, however little of it may go at once, until all of it is back', () => {
    const settings = { ...NO_RATES, rpm: 600, tpd: 1_000, burstMs: 1 };
    const rates = emptyRates();
    const whole = { left: 600, resetMs: 0 };
    expect(rateRooms(rates, settings, NOW)[0]).toEqual({ name: 'rpm', limit: 600, ...whole });
    const usage = { requests: 1, inputTokens: 300, outputTokens: 900 };
    take(rates, settings, usage, NOW);
    const [rpm, tpd] = rateRooms(rates, settings, NOW);
    expect(rpm).toMatchObject({ name: 'rpm', limit: 600, left: 599 });
    // A bin of a second, and half a second for messages that travel unevenly.
    expect(rpm?.resetMs).toBeGreaterThan(MINUTE_MS);
    expect(rpm?.resetMs).toBeLessThanOrEqual(MINUTE_MS + 1_500);
    // Never below nothing, though more was used than there was.
    expect(tpd).toMatchObject({ name: 'tpd', limit: 1_000, left: 0 });
    const later = instant(NOW + (rpm?.resetMs ?? 0));
    expect(rateRooms(rates, settings, later)[0]).toMatchObject(whole);
    expect(rateRooms(rates, settings, instant(later - 1))[0]).toMatchObject({ resetMs: 1 });
  });

  it('of a limit of 0 is nothing', () => {
    expect(rateRooms(emptyRates(), { ...NO_RATES, rpm: 0 }, NOW)).toEqual([
      { name: 'rpm', limit: 0, left: 0, resetMs: 0 },
    ]);
  });
});
