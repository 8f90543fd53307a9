import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import {
  emptyCeiling,
  noteConcurrencyRefusal,
  noteOverload,
  noteServed,
  slotsMaxNow,
  type Ceiling,
  type CeilingSettings,
} from '../../../src/core/parts/ceiling.ts';
import { endHoldBack, letsOthersTry } from '../../../src/core/parts/evidence.ts';
import { instant, ticketId, type InstantMs } from '../../../src/core/words/ids.ts';
import {
  noRepeatRefusals,
  noteTaken,
  noteRepeatRefusal,
  refusalsOf,
} from '../../../src/core/parts/affinity.ts';
import { runs } from '../runs.ts';
import { percent, printTable, seconds } from '../simulator/table.ts';
import {
  SaturatedUpstream,
  type Controller,
  type UpstreamSimSeen,
  type Segment,
} from './upstream-sim.ts';

/**
 * The headroom controller before an upstream whose capacity nobody told, and which changes. One run is
 * hours of a full queue. Plain AIMD is the line to be measured by.
 */

function tracking(slotsMax: number, isHard: boolean): Controller {
  const settings = { slotsMax, isHard, isAdaptive: true };
  const ceiling = emptyCeiling(instant(0));
  const repeatRefusals = noRepeatRefusals();
  return {
    slotsMax: () => slotsMaxNow(ceiling, settings),
    mayGo: (ticket, othersInUse, now) => {
      endHoldBack(ceiling.evidence, now);
      // There is always somebody else in the queue.
      if (refusalsOf(repeatRefusals, ticket) > 1) return false;
      return !letsOthersTry(ceiling.evidence, ticket, othersInUse);
    },
    onRefused: (call, now) => {
      noteRepeatRefusal(repeatRefusals, call.ticketId, now);
      noteConcurrencyRefusal(ceiling, settings, { ...call, namedSlotsMax: null }, now);
    },
    onServed: (call, now) => {
      noteTaken(repeatRefusals, call.grantedAt);
      noteServed(ceiling, settings, call, now);
    },
  };
}

/** AIMD as the libraries have it: × 0.9 for each refusal, one more for each call served. */
function plainAimd(slotsMax: number): Controller {
  let limit = slotsMax;
  return {
    slotsMax: () => Math.floor(limit),
    mayGo: () => true,
    onRefused: () => {
      limit = Math.max(1, limit * 0.9);
    },
    onServed: ({ slotsInUse }) => {
      if (2 * slotsInUse >= limit) limit = Math.min(slotsMax, limit + 1);
    },
  };
}

/** Maximum returns of a call into the queue: refused once more, its caller hears of it. */
const REENTRIES_MAX = 3;

const LENGTH_MS = 3_000_000;
/** A probe that finds a risen capacity comes after 52 calls, which takes 2 slots of 8 s 208 s. */
const SETTLE_MS = 300_000;

const rows: string[][] = [];

function measure(name: string, controller: Controller, serviceMs: number, capacities: number[]) {
  const segments = capacities.map((capacity): Segment => ({ capacity, lengthMs: LENGTH_MS }));
  const seen = new SaturatedUpstream(controller, serviceMs, 1).run(segments, SETTLE_MS);
  for (const each of seen) rows.push([name, ...cells(each)]);
  return seen;
}

function cells({ capacity, utilisation, refusedShare, reachedMs }: UpstreamSimSeen): string[] {
  return [String(capacity), percent(utilisation), percent(refusedShare), seconds(reachedMs)];
}

const CAPACITIES = [
  [10, 4, 8],
  [40, 2, 20],
];

const SERVICE_MS = [1_000, 2_000, 8_000];

afterAll(() => {
  printTable('Steady state', ['', 'capacity', 'used', 'refused', 'reached'], rows);
});

describe.each(CAPACITIES)('a hidden capacity of %i, then %i, then %i', (...capacities) => {
  test.each(SERVICE_MS)('is used and hardly exceeded by calls of %i ms', (serviceMs) => {
    const name = `tracking, ${seconds(serviceMs)}`;
    for (const isHard of [true, false]) {
      const seen = measure(name, tracking(64, isHard), serviceMs, capacities);
      for (const { capacity, utilisation, refusedShare } of seen) {
        expect(utilisation, `used of ${capacity}`).toBeGreaterThanOrEqual(0.95);
        expect(refusedShare, `refused at ${capacity}`).toBeLessThanOrEqual(0.02);
      }
    }
  });

  test('makes plain AIMD refuse many times as many', () => {
    const plain = measure('plain AIMD, 8.0 s', plainAimd(64), 8_000, capacities);
    for (const { refusedShare } of plain) expect(refusedShare).toBeGreaterThan(0.1);
  });
});

describe('an upstream that takes 4, configured as 64', () => {
  const times: string[][] = [];

  afterAll(() => {
    printTable(
      'The latest of 20 runs',
      ['', 'settles', 'follows up', 'follows down', 'refused'],
      times,
    );
  });

  test.each(SERVICE_MS)('with calls of %i ms: settles, follows up and down', (serviceMs) => {
    const latest = { settles: 0, followsUp: 0, followsDown: 0, refusals: 0 };
    for (let seed = 1; seed <= 20; seed += 1) {
      const sim = new SaturatedUpstream(tracking(64, true), serviceMs, seed);
      // The capacity changes at another time after the last probe with each seed.
      const segments = [
        { capacity: 4, lengthMs: 300_000 + 7_000 * seed },
        { capacity: 8, lengthMs: 300_000 },
        { capacity: 2, lengthMs: 60_000 },
      ];
      const seen = sim.run(segments, 20_000);
      const [four, eight, two] = seen;
      latest.refusals = Math.max(latest.refusals, ...seen.map((each) => each.refusalsOfOne));
      // Of long calls those in flight hide that the capacity fell until they have ended.
      const hiddenMs = serviceMs <= 2_000 ? 0 : (two?.drainedMs ?? NaN);
      latest.settles = Math.max(latest.settles, four?.withinMs ?? NaN);
      latest.followsUp = Math.max(latest.followsUp, eight?.reachedMs ?? NaN);
      latest.followsDown = Math.max(latest.followsDown, (two?.withinMs ?? NaN) - hiddenMs);
    }
    const { refusals, ...reached } = latest;
    const row = [...Object.values(reached).map(seconds), String(refusals)];
    times.push([`calls of ${seconds(serviceMs)}`, ...row]);
    expect(latest.settles).toBeLessThanOrEqual(20_000);
    expect(latest.followsUp).toBeLessThanOrEqual(120_000);
    expect(latest.followsDown).toBeLessThanOrEqual(5_000);
    expect(refusals).toBeLessThanOrEqual(REENTRIES_MAX);
  });
});

type CeilingEvent =
  | {
      readonly kind: 'refused' | 'overloaded';
      readonly ticket: string;
      readonly others: number;
      readonly agoMs: number;
    }
  | { readonly kind: 'served'; readonly calls: number; readonly inUse: number };

const eventArb: fc.Arbitrary<CeilingEvent> = fc.oneof(
  fc.record({
    kind: fc.constantFrom('refused' as const, 'overloaded' as const),
    ticket: fc.constantFrom('a', 'b', 'c'),
    others: fc.integer({ min: 0, max: 90 }),
    agoMs: fc.constantFrom(0, 100, 2_000, 2_001),
  }),
  fc.record({
    kind: fc.constant('served' as const),
    calls: fc.integer({ min: 1, max: 200 }),
    /** In use beside the limit. */
    inUse: fc.constantFrom(0, 0, 0, -1, -40),
  }),
);

/** Lets it happen to the ceiling. Returns the limit before and after. */
function happen(ceiling: Ceiling, settings: CeilingSettings, event: CeilingEvent, now: InstantMs) {
  const before = slotsMaxNow(ceiling, settings);
  if (event.kind === 'served') {
    for (let index = 0; index < event.calls; index += 1) {
      const at = instant(now + 900 * index);
      const slotsInUse = Math.max(0, slotsMaxNow(ceiling, settings) + event.inUse);
      const call = { grantedAt: instant(at - 900), slotsAtGrant: slotsInUse, slotsInUse };
      noteServed(ceiling, settings, call, at);
    }
  } else {
    const ticket = ticketId(event.ticket);
    const grantedAt = instant(now - event.agoMs);
    const call = { ticketId: ticket, grantedAt, othersInUse: event.others };
    const refused = { ...call, namedSlotsMax: null };
    if (event.kind === 'refused') noteConcurrencyRefusal(ceiling, settings, refused, now);
    else noteOverload(ceiling, settings, call, now);
  }
  return { before, after: slotsMaxNow(ceiling, settings) };
}

test('whatever the upstream says, the limit stays within 1 and what is configured', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 80 }), fc.array(eventArb), (slotsMax, events) => {
      const settings = { slotsMax, isHard: true, isAdaptive: true };
      let now = instant(1_000_000);
      let ceiling = emptyCeiling(now);
      for (const event of events) {
        const { before, after } = happen(ceiling, settings, event, now);
        expect(after).toBeGreaterThanOrEqual(1);
        // A refusal never raises it, nor do calls that leave slots free.
        const mayGrow = event.kind === 'served' && event.inUse !== -40;
        expect(after).toBeLessThanOrEqual(mayGrow ? slotsMax : before);
        ceiling = JSON.parse(JSON.stringify(ceiling)) as Ceiling;
        now = instant(now + 180_000);
      }
    }),
    runs(500),
  );
});

test('a burst of overload cuts once, and a burst of refusals leaves what was accepted', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 200 }),
      fc.nat(200),
      fc.boolean(),
      (accepted, extra, isOverload) => {
        const settings = { slotsMax: accepted + extra, isHard: true, isAdaptive: true };
        const granted = instant(1_000_000);
        const ceiling = emptyCeiling(granted);
        for (let refused = 1; refused <= extra; refused += 1) {
          const now = instant(granted + 100 + refused);
          const call = {
            ticketId: ticketId(`call-${refused}`),
            grantedAt: granted,
            othersInUse: accepted + extra - refused,
          };
          if (isOverload) noteOverload(ceiling, settings, call, now);
          else noteConcurrencyRefusal(ceiling, settings, { ...call, namedSlotsMax: null }, now);
        }
        const cut = Math.max(1, Math.floor(settings.slotsMax * 0.7));
        const expected = isOverload && extra > 0 ? cut : accepted;
        expect(slotsMaxNow(ceiling, settings)).toBe(expected);
      },
    ),
    runs(500),
  );
});
