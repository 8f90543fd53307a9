import { beforeEach, describe, expect, test } from 'vitest';
import {
  emptyCeiling,
  noteConcurrencyRefusal,
  noteOverload,
  noteServed,
  SLOTS_LEARNED_MAX,
  slotsMaxNow,
  type Ceiling,
  type CeilingSettings,
} from '../../../src/core/parts/ceiling.ts';
import { instant, ticketId, type InstantMs } from '../../../src/core/words/ids.ts';

const HARD: CeilingSettings = { slotsMax: 64, isHard: true, isAdaptive: true };
const ASSUMED: CeilingSettings = { ...HARD, isHard: false };

let ceiling: Ceiling;
let now: InstantMs;
let refusals: number;

beforeEach(() => {
  now = instant(1_000_000);
  refusals = 0;
  ceiling = emptyCeiling(now);
});

function advance(ms: number): void {
  now = instant(now + ms);
}

/** A call that was granted so long ago is refused while so many others are in flight. */
function refuse(
  othersInUse: number,
  agoMs = 100,
  settings = HARD,
  namedSlotsMax: number | null = null,
  ticket?: string,
) {
  // Each time another call, if it is not said which.
  refusals += 1;
  const call = { grantedAt: instant(now - agoMs), othersInUse, namedSlotsMax };
  const refused = { ...call, ticketId: ticketId(ticket ?? `call-${refusals}`) };
  noteConcurrencyRefusal(ceiling, settings, refused, now);
}

function overload(settings = HARD, agoMs = 100, othersInUse = 0, ticket?: string): void {
  refusals += 1;
  const id = ticketId(ticket ?? `call-${refusals}`);
  noteOverload(
    ceiling,
    settings,
    { ticketId: id, grantedAt: instant(now - agoMs), othersInUse },
    now,
  );
}

/** Serves so many calls, each granted in its turn, with that many slots in use; all by default. */
function serve(calls: number, everyMs = 700, settings = HARD, inUse?: number): void {
  for (let index = 0; index < calls; index += 1) {
    const grantedAt = now;
    advance(everyMs);
    const slotsInUse = inUse ?? slotsMaxNow(ceiling, settings);
    noteServed(ceiling, settings, { grantedAt, slotsAtGrant: slotsInUse, slotsInUse }, now);
  }
}

const slots = (settings = HARD) => slotsMaxNow(ceiling, settings);

describe('a refusal for concurrency', () => {
  test('leaves what was accepted, after a burst exactly', () => {
    for (let others = 63; others >= 4; others -= 1) refuse(others);
    expect(slots()).toBe(4);
  });

  test('leaves one slot at the least', () => {
    for (let others = 3; others >= 0; others -= 1) refuse(others);
    expect(slots()).toBe(1);
  });

  test('never raises the limit', () => {
    refuse(4);
    refuse(9);
    expect(slots()).toBe(4);
  });

  test('that names the limit needs no burst', () => {
    refuse(63, 100, HARD, 4);
    expect(slots()).toBe(4);
  });

  test('that names more than there was room for does not count for more', () => {
    refuse(3, 100, HARD, 10);
    expect(slots()).toBe(3);
  });

  test('learns a limit where none is configured', () => {
    const settings = { ...HARD, slotsMax: Infinity };
    refuse(7, 100, settings);
    expect(slots(settings)).toBe(7);
  });

  test('that comes late cuts by a part: what is in flight now is not what was', () => {
    refuse(4, 2_001);
    expect(slots()).toBe(44);
  });

  test('that comes late cuts once for one and the same call, however often it comes back', () => {
    for (let attempt = 0; attempt < 4; attempt += 1) {
      refuse(4, 2_001, HARD, null, 'poison');
      expect(slots()).toBe(44);
      advance(60_000);
    }
  });

  test('that cut already cuts no more when it comes late', () => {
    refuse(40, 100, HARD, null, 'poison');
    advance(10_000);
    refuse(4, 2_001, HARD, null, 'poison');
    expect(slots()).toBe(40);
  });
});

describe('overload', () => {
  test('cuts by a part, once for all calls of before', () => {
    for (let index = 0; index < 20; index += 1) overload(HARD, 50 + index);
    expect(slots()).toBe(44);
    advance(500);
    overload(HARD, 500);
    expect(slots()).toBe(44);
    overload(HARD, 499);
    expect(slots()).toBe(31);
  });

  test('cuts once for one and the same call, however often it comes back', () => {
    for (let attempt = 0; attempt < 4; attempt += 1) {
      overload(HARD, 100, 0, 'poison');
      expect(slots()).toBe(44);
      advance(60_000);
    }
    overload(HARD, 100, 0, 'other');
    expect(slots()).toBe(31);
  });

  test('leaves one slot at the least', () => {
    for (let index = 0; index < 40; index += 1) {
      advance(1_000);
      overload();
    }
    expect(slots()).toBe(1);
  });

  test('counts from what is in flight where no limit is configured', () => {
    const settings = { ...HARD, slotsMax: Infinity };
    overload(settings, 100, 19);
    expect(slots(settings)).toBe(14);
  });

  test('holds the limit for 30 s, then it grows by one each time it was served', () => {
    overload();
    serve(29, 1_000);
    expect(slots()).toBe(44);
    serve(1, 1_000);
    expect(slots()).toBe(44);
    serve(45, 10);
    expect(slots()).toBe(45);
  });

  test('grows back to what is configured and leaves nothing learned', () => {
    overload();
    advance(30_000);
    serve(5_000, 10);
    expect(slots()).toBe(64);
    expect(ceiling.slots).toBeNull();
  });
});

describe('probing', () => {
  test('comes after 8 served calls, and with a failure after twice as many, up to 52', () => {
    refuse(4);
    const counts = Array.from({ length: 5 }, () => {
      let calls = 0;
      for (; slots() === 4; calls += 1) serve(1);
      refuse(4);
      return calls;
    });
    expect(counts).toEqual([8, 16, 32, 52, 52]);
    expect(slots()).toBe(4);
  });

  test('takes its time where calls are short', () => {
    refuse(4);
    serve(47, 100);
    expect(slots()).toBe(4);
    serve(1, 100);
    expect(slots()).toBe(5);
  });

  test('comes after 5 min where they are long', () => {
    refuse(2);
    serve(4, 60_000);
    expect(slots()).toBe(2);
    serve(1, 60_000);
    expect(slots()).toBe(3);
  });

  test('climbs by steps that double, up to half of what there is', () => {
    refuse(4);
    serve(8);
    const seen = Array.from({ length: 6 }, () => {
      const before = slots();
      serve(3);
      return before;
    });
    expect(seen).toEqual([5, 7, 10, 15, 22, 33]);
  });

  test('climbs on only when a call that was granted since the rise was served', () => {
    refuse(4);
    const grantedAt = now;
    serve(8);
    for (let index = 0; index < 100; index += 1) {
      advance(500);
      noteServed(ceiling, HARD, { grantedAt, slotsAtGrant: 4, slotsInUse: 5 }, now);
    }
    expect(slots()).toBe(5);
  });

  test('fails once, however many calls were refused for it', () => {
    refuse(4);
    serve(8);
    serve(3);
    expect(slots()).toBe(7);
    for (const others of [6, 5, 4]) refuse(others);
    serve(15);
    expect(slots()).toBe(4);
    serve(1);
    expect(slots()).toBe(5);
  });

  test('counts anew after a cut', () => {
    refuse(10);
    serve(7);
    // One alone is not believed: ten were served.
    for (const others of [9, 9]) refuse(others);
    serve(7);
    expect(slots()).toBe(9);
    serve(1);
    expect(slots()).toBe(10);
  });

  test('begins with few calls again after a cut that was no probe', () => {
    refuse(4);
    for (let probes = 0; probes < 3; probes += 1) {
      while (slots() === 4) serve(1);
      refuse(4);
    }
    advance(30_000);
    for (const others of [2, 2]) refuse(others);
    serve(8);
    expect(slots()).toBe(3);
  });

  test('needs the slots to be in use', () => {
    refuse(10);
    serve(500, 700, HARD, 7);
    expect(slots()).toBe(10);
    serve(8, 700, HARD, 8);
    expect(slots()).toBe(11);
  });

  test('never exceeds what is configured, and is done there', () => {
    refuse(60);
    serve(200);
    expect(slots()).toBe(64);
    expect(ceiling.slots).toBeNull();
  });

  test('goes beyond what is only assumed, but not without end', () => {
    serve(8, 700, ASSUMED);
    expect(slots(ASSUMED)).toBe(65);
    serve(500, 1_000, ASSUMED);
    expect(slots(ASSUMED)).toBe(SLOTS_LEARNED_MAX);
  });

  test('begins only after a while in a new group', () => {
    serve(7, 700, ASSUMED);
    expect(slots(ASSUMED)).toBe(64);
  });
});

describe('the configuration', () => {
  test('of 0 grants nothing, whatever was learned', () => {
    refuse(4);
    expect(slots({ ...HARD, slotsMax: 0 })).toBe(0);
    expect(slots({ ...ASSUMED, slotsMax: 0 })).toBe(0);
  });

  test.each<[string, (settings: CeilingSettings) => void]>([
    ['a refusal for concurrency', (settings) => refuse(7, 100, settings)],
    ['a refusal for concurrency that comes late', (settings) => refuse(7, 2_001, settings)],
    ['overload', (settings) => overload(settings)],
  ])('of 0 is in force when calls meet %s: nothing stays of it once it is raised', (_, meet) => {
    meet({ ...HARD, slotsMax: 0 });
    expect(slots()).toBe(64);
    meet(HARD);
    expect(slots()).toBeLessThan(64);
  });

  test('is followed up and down where nothing was learned', () => {
    expect(slots({ ...HARD, slotsMax: 128 })).toBe(128);
    expect(slots({ ...HARD, slotsMax: 2 })).toBe(2);
  });

  test('does not raise what was learned, and lowers it', () => {
    refuse(4);
    expect(slots({ ...HARD, slotsMax: 128 })).toBe(4);
    expect(slots({ ...HARD, slotsMax: 2 })).toBe(2);
  });

  test('that is hard caps what was learned when it was assumed', () => {
    serve(100, 1_000, ASSUMED);
    expect(slots(ASSUMED)).toBeGreaterThan(100);
    expect(slots({ ...HARD, slotsMax: 100 })).toBe(100);
  });

  test('may freeze what was learned', () => {
    refuse(10);
    const off = { ...HARD, isAdaptive: false };
    refuse(2, 100, off);
    overload(off);
    serve(200, 700, off);
    expect(slots(off)).toBe(10);
  });
});

test('it is the same after it was written and read', () => {
  refuse(4);
  serve(5);
  expect(JSON.parse(JSON.stringify(ceiling))).toEqual(ceiling);
});
