import type { RateSettings } from '../../../src/core/words/settings.ts';
import type { CallUsage } from '../../../src/core/words/ticket.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { instant } from '../../../src/core/words/ids.ts';
import { BURST_MS, NO_RATES } from '../../../src/core/parts/rate-limits.ts';
import {
  drain,
  emptyRates,
  refund,
  leftOf,
  lowerToHint,
  roomAt,
  settle,
  take,
  type RateUse,
} from '../../../src/core/parts/rates.ts';
import type { LimitHint } from '../../../src/core/words/signal.ts';

/** Rates: the rest of the limits per minute and per day. */

const NOW = instant(1_800_000_000_000);
const at = (ms: number) => instant(NOW + ms);
const DAY_MS = 86_400_000;

function limits(changes: Partial<RateSettings>): RateSettings {
  return { ...NO_RATES, ...changes };
}

function demand(inputTokens: number, outputTokens: number, requests = 1): CallUsage {
  return { requests, inputTokens, outputTokens };
}

const CALL = demand(30, 12);

let rates: RateUse;

beforeEach(() => {
  rates = emptyRates();
});

/** How long such a call would wait now, in milliseconds. */
function waitMs(settings: RateSettings, wanted = CALL, ms = 0): number {
  return roomAt(rates, settings, wanted, at(ms)) - at(ms);
}

/** How many such calls are granted at once. */
function burst(settings: RateSettings, wanted = CALL, ms = 0): number {
  for (let granted = 0; ; granted += 1) {
    if (waitMs(settings, wanted, ms) > 0 || granted === 10_000) return granted;
    take(rates, settings, wanted, at(ms));
  }
}

describe('each limit counts its own', () => {
  test.each<[keyof RateSettings, number]>([
    ['rpm', 1],
    ['rpd', 1],
    ['tpm', 42],
    ['tpd', 42],
    ['itpm', 30],
    ['otpm', 12],
    ['startsPerS', 1],
  ])('%s counts %i of a call', (name, amount) => {
    const settings = limits({ [name]: 6_000 });
    const before = leftOf(rates, settings, NOW)[name as 'rpm'] ?? NaN;
    take(rates, settings, CALL, NOW);
    const left = leftOf(rates, settings, NOW)[name as 'rpm'] ?? NaN;
    expect(before - left).toBeCloseTo(amount);
  });
});

test('without limits nobody waits, and nothing is kept', () => {
  expect(burst(NO_RATES)).toBe(10_000);
  expect(rates).toEqual(emptyRates());
});

test('a call needs room in every limit, and waits for the last', () => {
  const settings = limits({ rpm: 60, tpm: 6_000 });
  take(rates, settings, demand(900, 70), NOW);
  // What is left of the tokens is 0; a request is free.
  expect(waitMs(settings, demand(48.5, 0))).toBe(500);
  for (let index = 0; index < 8; index += 1) take(rates, settings, demand(0, 0), NOW);
  expect(waitMs(settings, demand(0, 0))).toBe(310);
  expect(waitMs(settings, demand(48.5, 0))).toBe(500);
});

describe('the burst', () => {
  test.each([
    [600, BURST_MS, 97],
    [600, 1_000, 9],
    [60, BURST_MS, 9],
    [6, BURST_MS, 1],
    [1, BURST_MS, 1],
    [600, 0, 1],
    [600, 600_000, 600],
  ])('of %i per minute with %i ms is %i calls', (rpm, burstMs, expected) => {
    expect(burst(limits({ rpm, burstMs }))).toBe(expected);
  });

  test('is followed by an even flow', () => {
    const settings = limits({ rpm: 600 });
    burst(settings);
    expect(waitMs(settings)).toBe(104);
  });

  test.each([
    [1, 1],
    [10, 1],
    [50, 5],
  ])('of %i starts per second is %i', (startsPerS, expected) => {
    const settings = limits({ startsPerS });
    expect(burst(settings)).toBe(expected);
    expect(waitMs(settings)).toBe(1_000 / startsPerS);
  });
});

test('no minute has more than the limit, though the bucket has filled again', () => {
  const settings = limits({ rpm: 60, burstMs: 30_000 });
  let granted = 0;
  for (let ms = 0; ms < 60_000; ms += 100) granted += burst(settings, CALL, ms);
  expect(granted).toBe(60);
  expect(leftOf(rates, settings, at(60_000)).rpm).toBe(0);
});

describe('a limit per day', () => {
  const settings = limits({ rpd: 50 });

  test('may be used at once', () => {
    expect(burst(settings)).toBe(50);
  });

  test('is not given twice in a day, nor after a restart', () => {
    burst(settings);
    rates = JSON.parse(JSON.stringify(rates)) as RateUse;
    expect(burst(settings, CALL, DAY_MS - 1)).toBe(0);
    expect(waitMs(settings)).toBeGreaterThan(DAY_MS);
    expect(waitMs(settings)).toBeLessThan(DAY_MS + 1_801_000);
    expect(burst(settings, CALL, waitMs(settings))).toBe(50);
  });
});

test.each(['rpm', 'rpd', 'tpm', 'startsPerS'])('%s of 0 lets nothing pass', (name) => {
  expect(roomAt(rates, limits({ [name]: 0 }), CALL, NOW)).toBe(Infinity);
});

describe('settling', () => {
  const settings = limits({ itpm: 6_000, otpm: 600, tpm: 60_000, rpm: 60 });

  test('refunds what was not used', () => {
    take(rates, settings, demand(500, 90), NOW);
    const call = { reserved: demand(500, 90), actual: demand(200, 10), takenAt: NOW };
    settle(rates, settings, call, NOW);
    const used = emptyRates();
    take(used, settings, demand(200, 10), NOW);
    expect(leftOf(rates, settings, NOW)).toEqual(leftOf(used, settings, NOW));
    expect(rates.windows).toEqual(used.windows);
  });

  test('debits what was used beyond, into debt', () => {
    take(rates, settings, demand(10, 10), NOW);
    const call = { reserved: demand(10, 10), actual: demand(10, 397), takenAt: NOW };
    settle(rates, settings, call, NOW);
    expect(leftOf(rates, settings, NOW).otpm).toBeCloseTo(97 - 397);
    expect(leftOf(rates, settings, NOW).itpm).toBe(960);
  });

  test('counts a debit when it is known, however long ago the call began', () => {
    take(rates, settings, demand(0, 10), NOW);
    const call = { reserved: demand(0, 10), actual: demand(0, 610), takenAt: NOW };
    settle(rates, settings, call, at(100_000));
    expect(leftOf(rates, settings, at(159_000)).otpm).toBeCloseTo(0);
  });
});

test('a call that never started gives everything back', () => {
  const settings = limits({ rpm: 6, rpd: 2, tpm: 100, startsPerS: 1 });
  take(rates, settings, CALL, NOW);
  const before = leftOf(rates, settings, at(10));
  take(rates, settings, CALL, at(10));
  refund(rates, settings, { reserved: CALL, takenAt: at(10) }, at(10));
  const left = leftOf(rates, settings, at(10));
  expect(Object.keys(left)).toEqual(Object.keys(before));
  for (const name of ['rpm', 'rpd', 'tpm', 'startsPerS'] as const) {
    expect(left[name]).toBeCloseTo(before[name] ?? NaN);
  }
});

describe('an emptied limit', () => {
  const settings = limits({ rpm: 60, tpm: 6_000, itpm: 6_000, otpm: 600 });

  test.each<[LimitHint['dimension'], string[]]>([
    ['requests', ['rpm']],
    ['tokens', ['tpm', 'itpm', 'otpm']],
    ['input_tokens', ['itpm']],
    ['output_tokens', ['otpm']],
  ])('of %s is %j', (dimension, emptied) => {
    drain(rates, settings, dimension, NOW);
    const left = Object.entries(leftOf(rates, settings, NOW));
    expect(left.filter(([, amount]) => amount === 0).map(([name]) => name)).toEqual(emptied);
  });
});

describe('what the upstream says is left', () => {
  const settings = limits({ rpm: 600, tpm: 6_000 });
  const hint: LimitHint = {
    dimension: 'requests',
    windowMs: 60_000,
    limit: 600,
    remaining: 20,
    resetMs: 40_000,
  };
  const rpm = () => leftOf(rates, settings, NOW).rpm ?? NaN;

  test('lowers the limit, less what the upstream had not seen', () => {
    lowerToHint(rates, settings, hint, demand(0, 0, 3), NOW);
    expect(rpm()).toBeCloseTo(17);
    expect(leftOf(rates, settings, NOW).tpm).toBeCloseTo(970);
  });

  test('never raises it', () => {
    drain(rates, settings, 'requests', NOW);
    lowerToHint(rates, settings, hint, demand(0, 0, 0), NOW);
    expect(rpm()).toBe(0);
  });

  test('makes no debt', () => {
    lowerToHint(rates, settings, hint, demand(0, 0, 30), NOW);
    expect(rpm()).toBe(0);
  });

  test.each<Partial<LimitHint>>([
    { windowMs: DAY_MS },
    { windowMs: 1_000 },
    { limit: 0 },
    { limit: -1 },
    { remaining: null },
  ])('says nothing of the minute with %j', (changes) => {
    lowerToHint(rates, settings, { ...hint, ...changes }, demand(0, 0, 0), NOW);
    expect(rpm()).toBeCloseTo(97);
  });

  test('is of the minute where it does not say', () => {
    lowerToHint(rates, settings, { ...hint, windowMs: null }, demand(0, 0, 0), NOW);
    expect(rpm()).toBeCloseTo(20);
  });
});

describe('a changed limit', () => {
  test('that was raised gives what it is more, once', () => {
    burst(limits({ rpm: 60, burstMs: 60_000 }));
    expect(burst(limits({ rpm: 60, burstMs: 60_000 }))).toBe(0);
    // The bucket must fill first, and the minute has room for 30 more.
    expect(burst(limits({ rpm: 90, burstMs: 60_000 }))).toBe(0);
    let granted = 0;
    for (let ms = 0; ms < 59_000; ms += 100) {
      granted += burst(limits({ rpm: 90, burstMs: 60_000 }), CALL, ms);
    }
    expect(granted).toBe(90 - 58);
  });

  test('that was lowered counts what was taken before', () => {
    for (let index = 0; index < 40; index += 1) take(rates, limits({ rpm: 600 }), CALL, NOW);
    expect(waitMs(limits({ rpm: 30 }), CALL, 30_000)).toBeGreaterThan(30_000);
  });

  test('that was off for a moment is not new', () => {
    const settings = limits({ rpm: 60 });
    burst(settings);
    take(rates, NO_RATES, CALL, at(10));
    expect(burst(settings, CALL, 20)).toBe(0);
  });
});

test('a start that happened stays counted, whatever the provider counts of the call', () => {
  const settings = limits({ rpm: 60, startsPerS: 1 });
  take(rates, settings, CALL, NOW);
  settle(rates, settings, { reserved: CALL, actual: demand(0, 0, 0), takenAt: NOW }, NOW);
  expect(leftOf(rates, settings, NOW)).toMatchObject({
    rpm: leftOf(emptyRates(), settings, NOW).rpm,
    startsPerS: 0,
  });
});
