import { afterAll, describe, expect, test } from 'vitest';
import { slotsLearned } from '../../../src/core/capacity.ts';
import { instant } from '../../../src/core/words/ids.ts';
import type { GroupSettings } from '../../../src/core/words/settings.ts';
import { someTicket, START } from '../../support/core-builders.ts';
import { someOf } from '../runs.ts';
import { Clock } from './clock.ts';
import { LaggingUpstream } from './lagging-upstream.ts';
import { start, type Process } from './process.ts';
import { SimulatorRandom } from './random.ts';
import { SimGroup } from './sim-group.ts';
import { percent, printTable } from './table.ts';

/**
 * A group with the default holds before an upstream that counts each call for longer than the group does. Ideal is
 * an upstream that is never idle but for its lag; nobody's call may be refused so often that its caller hears of it.
 */

const MINUTE_MS = 60_000;
/** One way between a Worker and the object. */
const DELAY_MS = 1;
const DEFAULTS = {
  releaseCooldownMs: 'auto',
  cancelCooldownMs: 'auto',
  failureCooldownMs: 2_000,
} as const;
const CONFIGURED = { slotsMax: 4 };
const AUTOMATIC = { slotsMax: 64, isHard: false };

interface LagScenario {
  readonly settings: Partial<GroupSettings>;
  readonly lagMs: (random: SimulatorRandom, now: number) => number;
  readonly calls: number;
  /** Callers that call again as soon as they are answered. Default: one for each call. */
  readonly callers?: number;
  readonly serviceMs?: number;
  /** Coefficient of variation of the service time. */
  readonly variation?: number;
  readonly capacity?: number;
  /** The capacity from an instant on. */
  readonly later?: { readonly fromMs: number; readonly capacity: number };
}

interface LagResult {
  /** The part of the upstream's time that was used. Its lag counts as use. */
  readonly used: number;
  /** The part of the calls that the upstream refused after the first minute. */
  readonly refusedShare: number;
  readonly refused: number;
  /** Refusals that callers saw. */
  readonly seen: number;
  readonly slots: number;
  readonly cooldownMs: number;
}

const rows: string[][] = [];

afterAll(() => {
  const head = ['', 'used', 'refused', 'after a minute', 'seen', 'slots', 'cool-down'];
  printTable('An upstream that lags', head, rows);
});

function run(name: string, scenario: LagScenario): LagResult {
  const { settings, lagMs, calls, callers = calls, serviceMs = 200, variation = 0 } = scenario;
  const { capacity = 4, later } = scenario;
  const clock = new Clock();
  const random = new SimulatorRandom(1);
  const lags = new SimulatorRandom(2);
  const group = new SimGroup(clock, 'group', { ...DEFAULTS, ...settings }, () => DELAY_MS);
  let lagged = 0;
  const upstream = new LaggingUpstream(clock, capacity, () => {
    const ms = lagMs(lags, clock.now);
    lagged += ms;
    return ms;
  });
  let begun = 0;
  let over = 0;
  let workMs = 0;
  const early = { refused: 0, accepted: 0 };
  clock.at(MINUTE_MS, () => Object.assign(early, upstream));
  if (later !== undefined) clock.at(later.fromMs, () => (upstream.capacity = later.capacity));
  for (let caller = 0; caller < callers; caller += 1) start(call());

  function* call(): Process {
    while (begun < calls) {
      begun += 1;
      const ms = Math.min(40_000, random.lognormal(serviceMs, variation));
      workMs += ms;
      yield* upstream.call(group, someTicket(`call-${begun}`, instant(START + clock.now)), ms);
      over += 1;
    }
  }

  while (over < calls) clock.runTo(clock.now + 1_000);
  const changedAt = Math.min(later?.fromMs ?? Infinity, upstream.lastEndAt);
  const changed = (later?.capacity ?? 0) * (upstream.lastEndAt - changedAt);
  const refusedLate = upstream.refused - early.refused;
  const result = {
    used: (workMs + lagged) / (capacity * changedAt + changed),
    refusedShare: refusedLate / Math.max(1, refusedLate + upstream.accepted - early.accepted),
    refused: upstream.refused,
    seen: upstream.seen,
    slots: slotsLearned(group.state),
    cooldownMs: group.state.controls.lag.ms,
  };
  const { used, refusedShare, refused, seen, slots, cooldownMs } = result;
  const counts = [percent(refusedShare), seen, slots, `${cooldownMs.toFixed(0)} ms`].map(String);
  rows.push([name, percent(used), String(refused), ...counts]);
  return result;
}

describe('200 calls of 200 ms at once, limit 4', () => {
  test.each([
    [0, 0.95, 0],
    [5, 0.9, 12],
    [30, 0.9, 12],
    [150, 0.9, 12],
    [500, 0.85, 16],
  ])('a lag of %i ms', (lagMs, used, refusedMax) => {
    const name = `200 at once, lag ${lagMs} ms`;
    const result = run(name, { settings: CONFIGURED, lagMs: () => lagMs, calls: 200 });
    expect(result.used).toBeGreaterThanOrEqual(used);
    expect(result.refused).toBeLessThanOrEqual(refusedMax);
    expect(result.seen).toBe(0);
    expect(result.slots).toBe(4);
  });
});

const CALLERS = someOf([40, 4]);

describe.each(someOf([150, 0, 30, 500]))('a lag of %i ms that stays', (lagMs) => {
  const base = { lagMs: () => lagMs, calls: 4_000, variation: 1 };

  test.each(CALLERS)('before a configured limit of 4, %i callers', (callers) => {
    const name = `configured, ${callers} callers, lag ${lagMs} ms`;
    const result = run(name, { ...base, settings: CONFIGURED, callers });
    expect(result.used).toBeGreaterThanOrEqual(lagMs === 0 ? 0.95 : 0.9);
    expect(result.refusedShare).toBeLessThanOrEqual(0.01);
    expect(result.seen).toBe(0);
    expect(result.slots).toBe(4);
  });

  test.each([4, 8])('before a limit of %i that nobody told', (capacity) => {
    const name = `automatic, takes ${capacity}, lag ${lagMs} ms`;
    const result = run(name, { ...base, settings: AUTOMATIC, callers: 100, capacity });
    expect(result.used).toBeGreaterThanOrEqual(0.85);
    expect(result.refusedShare).toBeLessThanOrEqual(0.01);
    expect(result.seen).toBe(0);
    // A probe may be under way.
    expect(result.slots).toBeGreaterThanOrEqual(capacity);
    expect(result.slots).toBeLessThanOrEqual(capacity + 1);
  });

  test('before a limit that is lower than what is configured', () => {
    const settings = { slotsMax: 8 };
    const name = `configured as 8, takes 4, lag ${lagMs} ms`;
    const result = run(name, { ...base, settings, callers: 40 });
    expect(result.used).toBeGreaterThanOrEqual(0.9);
    expect(result.refusedShare).toBeLessThanOrEqual(0.01);
    expect(result.seen).toBe(0);
    expect(result.slots).toBeGreaterThanOrEqual(4);
    expect(result.slots).toBeLessThanOrEqual(5);
  });

  test('before a limit of one, with calls one after the other', () => {
    const name = `limit 1, one caller, lag ${lagMs} ms`;
    const settings = { slotsMax: 1 };
    const result = run(name, { ...base, settings, callers: 1, capacity: 1, calls: 300 });
    expect(result.used).toBeGreaterThanOrEqual(lagMs === 0 ? 0.95 : 0.9);
    expect(result.refused).toBeLessThanOrEqual(12);
    expect(result.seen).toBe(0);
  });

  test.each([1_000, 8_000])('and a limit that falls, with calls of %i ms', (serviceMs) => {
    for (const [settings, before, after] of [
      [CONFIGURED, 4, 3],
      [AUTOMATIC, 8, 2],
    ] as const) {
      const name = `${before}, then ${after}, calls of ${serviceMs} ms, lag ${lagMs} ms`;
      const later = { fromMs: 60_000 + 10 * serviceMs, capacity: after };
      const calls = serviceMs === 8_000 ? 300 : 1_200;
      const one = { settings, calls, callers: 100, serviceMs, variation: 0.5, later };
      const result = run(name, { ...one, lagMs: () => lagMs, capacity: before });
      expect(result.used).toBeGreaterThanOrEqual(0.85);
      expect(result.seen).toBe(0);
      expect(result.slots).toBeGreaterThanOrEqual(after);
      expect(result.slots).toBeLessThanOrEqual(after + 1);
    }
  });
});

test('before a limit that falls, with short calls: what is refused for that makes no lag of it', () => {
  for (const settings of [CONFIGURED, AUTOMATIC]) {
    const name = `${settings === CONFIGURED ? 'configured' : 'automatic'}, 4, then 3, calls of 200 ms, lag 150 ms`;
    const later = { fromMs: 32_000, capacity: 3 };
    const base = { settings, calls: 1_500, callers: 100, variation: 0.5, later };
    const result = run(name, { ...base, lagMs: () => 150 });
    expect(result.used).toBeGreaterThanOrEqual(0.7);
    expect(result.cooldownMs).toBeLessThanOrEqual(300);
    expect(result.seen).toBe(0);
  }
});

describe('a lag that drifts', () => {
  const drift = (fromMs: number, toMs: number) => (_random: SimulatorRandom, now: number) => {
    return fromMs + (toMs - fromMs) * Math.min(1, now / 600_000);
  };

  const DRIFTS = [
    [30, 500],
    [500, 30],
  ] as const;

  test.each(someOf(DRIFTS))('from %i to %i ms in ten minutes', (fromMs, toMs) => {
    for (const [settings, callers] of [
      [CONFIGURED, 40],
      [AUTOMATIC, 100],
    ] as const) {
      const name = `${settings === CONFIGURED ? 'configured' : 'automatic'}, ${fromMs} to ${toMs} ms`;
      const base = { settings, callers, lagMs: drift(fromMs, toMs), calls: 6_000, variation: 1 };
      const result = run(name, base);
      expect(result.used).toBeGreaterThanOrEqual(0.85);
      expect(result.refusedShare).toBeLessThanOrEqual(0.03);
      expect(result.seen).toBe(0);
      expect(result.slots).toBeGreaterThanOrEqual(4);
    }
  });

  test('from call to call', () => {
    const lagMs = (random: SimulatorRandom) => 20 + 40 * random.next();
    const name = 'configured, 20 to 60 ms by chance';
    const base = { settings: CONFIGURED, callers: 40, lagMs, calls: 6_000, variation: 1 };
    const result = run(name, base);
    expect(result.used).toBeGreaterThanOrEqual(0.85);
    expect(result.refusedShare).toBeLessThanOrEqual(0.02);
    expect(result.seen).toBe(0);
    expect(result.slots).toBe(4);
  });
});
