import { describe, expect, it } from 'vitest';
import { HeldSlots, longestOf, othersOf, type Full } from '../../../src/call/acquire/held-slots.ts';
import type { Placement } from '../../../src/routing/placement.ts';

/** For how long slots of a call are held while it waits in another group. */

function placeIn(group: string): Placement {
  return { group, partition: null } as Placement;
}

const [WIDE, NARROW, KEY] = ['wide', 'narrow', 'key:ci'].map(placeIn) as [
  Placement,
  Placement,
  Placement,
];

interface CallHeldSlot {
  readonly placement: Placement;
  readonly endGapMs: number | null;
}

/** Held slots on a clock that the test moves. */
function setUp() {
  let now = 0;
  const timers = new Set<{ readonly at: number; readonly work: () => void }>();
  const returned: [group: string, full: Full | null][] = [];
  const held = new HeldSlots<CallHeldSlot>(
    (ms, work) => {
      const timer = { at: now + ms, work };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    ({ placement }, full) => void returned.push([placement.group, full]),
  );
  const advance = (ms: number): void => {
    now += ms;
    for (const timer of timers) {
      if (timer.at > now) continue;
      timers.delete(timer);
      timer.work();
    }
  };
  return { held, returned, advance, timers };
}

describe('a slot', () => {
  it('is held for a second if the wait is no longer, and given back after it', () => {
    const { held, returned, advance } = setUp();
    held.add({ placement: WIDE, endGapMs: 20 });
    held.limit(NARROW, 1_000);
    advance(999);
    expect(returned).toEqual([]);
    expect(held.has(WIDE)).toBe(true);
    advance(1);
    expect(returned).toEqual([['wide', { pool: 'narrow', forMs: 100 }]]);
    expect(held.has(WIDE)).toBe(false);
  });

  it('is held for as long as its group takes to free one, if that is longer', () => {
    const { held, returned, advance } = setUp();
    held.add({ placement: WIDE, endGapMs: 5_000 });
    held.limit(NARROW, 4_000);
    advance(4_999);
    expect(returned).toEqual([]);
    advance(1);
    expect(returned).toHaveLength(1);
  });

  it.each([
    [1_001, 100],
    [3_000, 2_000],
    [Infinity, 0],
  ])(
    'is given back at once for a wait of %s ms, and others are passed over for %s',
    (waitMs, forMs) => {
      const { held, returned, timers } = setUp();
      held.add({ placement: WIDE, endGapMs: 20 });
      held.limit(NARROW, waitMs);
      expect(returned).toEqual([['wide', { pool: 'narrow', forMs }]]);
      expect(timers.size).toBe(0);
    },
  );

  it('is not given back by the limit of a wait that another one replaced', () => {
    const { held, returned, advance, timers } = setUp();
    held.add({ placement: WIDE, endGapMs: 20 });
    held.limit(NARROW, 500);
    held.limit(KEY, 500);
    expect(timers.size).toBe(1);
    held.add({ placement: KEY, endGapMs: 20 });
    advance(1_000);
    expect(returned).toEqual([]);
  });

  it('is held for an unknown wait once the call has given two back', () => {
    const { held, returned, advance } = setUp();
    for (const [has, other] of [
      [WIDE, NARROW],
      [NARROW, WIDE],
    ] as const) {
      held.add({ placement: has, endGapMs: 20 });
      held.limit(other, Infinity);
    }
    expect(returned).toHaveLength(2);
    held.add({ placement: WIDE, endGapMs: 20 });
    held.limit(NARROW, Infinity);
    advance(2_999);
    expect(returned).toHaveLength(2);
    advance(1);
    expect(returned).toHaveLength(3);
    // From now on for as long as its group usually takes.
    held.add({ placement: WIDE, endGapMs: 60_000 });
    held.limit(NARROW, Infinity);
    advance(239_999);
    expect(returned).toHaveLength(3);
    advance(1);
    expect(returned).toHaveLength(4);
  });

  it('is held twice as long for a wait in a pool with a later name once the call has given one back, so that two calls do not swap their slots', () => {
    const ends = [
      [NARROW, WIDE],
      [WIDE, NARROW],
    ].map(([has = WIDE, other = WIDE]) => {
      const { held, returned, advance } = setUp();
      let ms = 0;
      for (const count of [1, 2]) {
        held.add({ placement: has, endGapMs: 900 });
        held.limit(other, 900);
        while (returned.length < count) {
          advance(500);
          ms += 500;
        }
      }
      return ms;
    });
    expect(ends).toEqual([1_000 + 4_000, 1_000 + 2_000]);
  });

  it('is held twice as long for an unknown wait in a pool with a later name', () => {
    const ends = [
      [NARROW, WIDE],
      [WIDE, NARROW],
    ].map(([has = WIDE, other = WIDE]) => {
      const { held, returned, advance } = setUp();
      for (const first of [WIDE, NARROW]) {
        held.add({ placement: first, endGapMs: 20 });
        held.limit(KEY, Infinity);
      }
      // The time between ends says nothing of a wait that is unknown.
      held.add({ placement: has, endGapMs: 60_000 });
      held.limit(other, Infinity);
      let ms = 0;
      while (returned.length < 3) {
        advance(500);
        ms += 500;
      }
      return ms;
    });
    expect(ends).toEqual([6_000, 3_000]);
  });

  it('is held whatever the wait if nothing is lost by it', () => {
    const { held, returned, timers } = setUp();
    held.add({ placement: WIDE, endGapMs: null });
    held.limit(NARROW, Infinity);
    expect([returned, timers.size]).toEqual([[], 0]);
  });

  it('is held again as long for the next wait', () => {
    const { held, returned, advance } = setUp();
    held.add({ placement: WIDE, endGapMs: 20 });
    held.limit(NARROW, 500);
    advance(900);
    held.add({ placement: NARROW, endGapMs: 20 });
    advance(900);
    held.limit(KEY, 500);
    advance(999);
    expect(returned).toEqual([]);
    advance(1);
    expect(returned.map(([group]) => group)).toEqual(['wide', 'narrow']);
  });

  it('is held for twice as long once the call has given one back, and the call goes first there', () => {
    const { held, returned, advance } = setUp();
    held.add({ placement: WIDE, endGapMs: 20 });
    held.limit(NARROW, 1_500);
    expect([held.hadTurn(WIDE), held.hadTurn(NARROW)]).toEqual([true, false]);
    held.add({ placement: WIDE, endGapMs: 20 });
    held.limit(NARROW, 1_500);
    advance(1_999);
    expect(returned).toHaveLength(1);
    advance(1);
    expect(returned).toHaveLength(2);
  });

  it('is given back with the others of its call for the same wait, whichever is first', () => {
    const { held, returned, timers } = setUp();
    held.add({ placement: KEY, endGapMs: 20 });
    held.add({ placement: NARROW, endGapMs: 20 });
    held.limit(WIDE, 1_500);
    expect(returned.map(([group]) => group)).toEqual(['key:ci', 'narrow']);
    expect(timers.size).toBe(0);
  });

  it('is given back at the end, and names no full group', () => {
    const { held, returned, timers } = setUp();
    held.add({ placement: WIDE, endGapMs: 20 });
    held.add({ placement: NARROW, endGapMs: 20 });
    held.limit(KEY, 500);
    expect(held.end()).toHaveLength(2);
    expect(returned).toEqual([
      ['wide', null],
      ['narrow', null],
    ]);
    expect([timers.size, held.all, held.hadTurn(WIDE)]).toEqual([0, [], false]);
  });
});

it('the longest wait is the first of the longest ones', () => {
  const waits = [10, Infinity, Infinity, 5].map((waitMs, at) => ({ waitMs, at }));
  expect(longestOf(waits)).toEqual({ waitMs: Infinity, at: 1 });
});

it('other groups are named like their pools', () => {
  const part = { group: 'wide', partition: 'a' } as Placement;
  expect(othersOf([WIDE, NARROW, part], NARROW)).toHaveLength(2);
  expect(othersOf([WIDE], WIDE)).toEqual([]);
});
