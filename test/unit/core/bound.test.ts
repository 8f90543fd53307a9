import { describe, expect, test } from 'vitest';
import { IMPLICIT, after } from '../../../src/core/words/ids.ts';
import {
  ATTACHMENTS_UNWRITTEN_MAX,
  CONFIRM_MS,
  emptyBound,
  marginOf,
  noteHandedOut,
  COVERS_MS,
} from '../../../src/core/parts/bound.ts';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { checkMark } from '../../../src/core/stats.ts';
import { confirmWrite, takeWrite } from '../../../src/core/writes.ts';
import { START, TestGroup } from '../../support/core-builders.ts';

/** Grants below what is on disk write nothing; all others wait for a write. */

/** How long a group is empty before that is written, where calls come often and where they do not. */
const EMPTY_BUSY_MS = 3_000;
const EMPTY_SPARSE_MS = 50;

/** A pool with room in which one call holds a slot, and that is written: five are marked. */
function written(): TestGroup {
  const group = TestGroup.stored({ slotsMax: 100, timeoutMs: 600_000 });
  group.ask('first');
  group.write();
  return group;
}

/** Issues a write that has yet to arrive. */
function issued(group: TestGroup) {
  return takeWrite(group.state, group.now).bound;
}

/** Lets so many more calls ask, under names of their own; tells of each whether it waits for a write. */
function askMore(group: TestGroup, count: number): string[] {
  return Array.from({ length: count }, (_, index) => {
    group.ask(`more-${group.state.nextAttachment}-${index}`);
    return group.asksToWrite();
  });
}

describe('a grant', () => {
  test('waits for a write as long as none has arrived', () => {
    const group = TestGroup.stored({ slotsMax: 100 });
    group.ask('a');
    expect(group.asksToWrite()).toBe('behind');
    const { seq } = issued(group);
    group.ask('b');
    expect(group.asksToWrite()).toBe('behind');
    confirmWrite(group.state, seq);
    group.ask('c');
    expect(group.asksToWrite()).toBe('no');
  });

  test('waits for nothing up to the mark, and above it for a write', () => {
    const group = written();
    expect(group.stored.bound).toMatchObject({ held: 1, mark: 5 });
    expect(askMore(group, 5)).toEqual(['no', 'no', 'ahead', 'ahead', 'behind']);
  });

  test('gains nothing by what ended since the last write', () => {
    const group = written();
    askMore(group, 4);
    group.release('first');
    expect(askMore(group, 1)).toEqual(['behind']);
    group.write();
    expect(askMore(group, 1)).toEqual(['no']);
  });

  test('counts with as many slots as it takes', () => {
    const group = written();
    group.ask('wide', { slots: 4 });
    expect(group.asksToWrite()).toBe('ahead');
    expect(askMore(group, 1)).toEqual(['behind']);
  });

  test('waits for nothing until two seconds after the issue of the last write', () => {
    const group = written();
    group.now = after(group.now, COVERS_MS - 1);
    expect(askMore(group, 1)).toEqual(['no']);
    group.now = after(group.now, 1);
    expect(askMore(group, 1)).toEqual(['behind']);
  });

  test('counts the age of a write from its issue, however late it arrives', () => {
    const group = TestGroup.stored({ slotsMax: 100 });
    group.ask('a');
    const { seq } = issued(group);
    group.now = after(group.now, COVERS_MS - 1);
    confirmWrite(group.state, seq);
    expect(askMore(group, 1)).toEqual(['no']);
    group.now = after(group.now, 1);
    expect(askMore(group, 1)).toEqual(['behind']);
  });

  test('that is held by its id waits until what is on disk tells that holders may outlive the process', () => {
    const group = written();
    group.ask('by-id', { isById: true });
    expect(group.asksToWrite()).toBe('behind');
    const { seq, mayOutlive } = issued(group);
    expect(mayOutlive).toBe(true);
    group.ask('second', { isById: true });
    expect(group.asksToWrite(), 'the write has yet to arrive').toBe('behind');
    group.ask('other');
    confirmWrite(group.state, seq);
    group.write();
    group.ask('third', { isById: true });
    expect(group.asksToWrite()).toBe('no');
  });

  test('of a call waits for none of that', () => {
    const group = written();
    group.ask('by-id', { isById: true });
    expect(group.asksToWrite()).toBe('behind');
    issued(group);
    expect(askMore(group, 2)).toEqual(['no', 'no']);
  });

  test('is not covered by a raised mark that has not arrived', () => {
    const group = written();
    askMore(group, 4);
    const { seq, mark } = issued(group);
    expect(mark).toBe(10);
    expect(askMore(group, 1)).toEqual(['behind']);
    confirmWrite(group.state, seq);
    // Five were held when it was issued, and one more was granted since.
    expect(askMore(group, 5)).toEqual(['no', 'no', 'ahead', 'ahead', 'behind']);
  });

  test('keeps below a lowered mark that may have arrived', () => {
    const group = TestGroup.stored({ slotsMax: 100 });
    askMore(group, 20);
    group.advance(2_000);
    group.write();
    const leases = [...group.state.leases.values()];
    for (const { ticketId } of leases.slice(0, 15)) group.release(ticketId);
    const { seq, mark } = issued(group);
    expect(mark).toBeLessThan(20);
    expect(askMore(group, 1)).toEqual(['behind']);
    confirmWrite(group.state, seq);
    expect(askMore(group, 1)).not.toEqual(['behind']);
  });

  test('of an answer that carries a lease again is settled by the same rule', () => {
    const group = written();
    group.ask('first');
    expect(group.asksToWrite()).toBe('no');
    group.now = after(group.now, COVERS_MS);
    group.ask('first');
    expect(group.asksToWrite()).toBe('behind');
  });

  test('waits for nothing where nothing is stored', () => {
    const group = new TestGroup({ slotsMax: 3 });
    expect(askMore(group, 3)).toEqual(['no', 'no', 'no']);
  });
});

describe('a slot that came free without a word of its holder', () => {
  /** A pool with all slots in use and written, with a margin beyond the limit, and somebody who waits. */
  function saturated(): TestGroup {
    const group = TestGroup.stored({ slotsMax: 16, timeoutMs: 600_000 });
    for (let index = 0; index < 16; index += 1) group.ask(`held-${index}`);
    group.write();
    expect(group.stored.bound?.mark).toBe(18);
    group.ask('next', { sliceMs: 600_000 });
    return group;
  }

  test('is handed on behind a write: its holder may live and hold it by a newer instance', () => {
    const group = saturated();
    expect(group.detach('held-0', group.lease('held-0').attachment)).toContain('grant next.1');
    expect(group.asksToWrite()).toBe('behind');
  });

  test('also once it has cooled down, and where a write was issued meanwhile', () => {
    const group = saturated();
    group.reconfigure({ cancelCooldownMs: 1_000 });
    group.detach('held-0', group.lease('held-0').attachment);
    group.advance(999);
    group.write();
    expect(group.advance(1)).toEqual(['grant next.1']);
    expect(group.asksToWrite()).toBe('behind');
  });

  test('also where it has lapsed', () => {
    const group = saturated();
    group.now = after(START, LEASE_TTL_MS - 1);
    for (let index = 1; index < 16; index += 1) group.renew(`held-${index}`);
    group.write();
    expect(group.advance(1)).toContain('grant next.1');
    expect(group.asksToWrite()).toBe('behind');
  });

  test('keeps no grant back that a later write covers', () => {
    const group = saturated();
    group.detach('held-0', group.lease('held-0').attachment);
    group.write();
    group.ask('last', { sliceMs: 600_000 });
    expect(group.release('held-1')).toContain('grant last.1');
    expect(group.asksToWrite()).toBe('no');
  });

  test('is handed on at once where its holder has given it back', () => {
    const group = saturated();
    expect(group.release('held-0')).toContain('grant next.1');
    expect(group.asksToWrite()).toBe('no');
  });
});

describe('the margin', () => {
  /** The margin of a pool in which so many slots were granted in the second before. */
  function margin(held: number, limit: number, granted = 0): number {
    const bound = emptyBound(1, true);
    noteHandedOut(bound, IMPLICIT, granted, START);
    return marginOf(bound, held, limit, START);
  }

  test.each([
    ['there is none up to 8 slots', 0, 8, 0, 0],
    ['from 9 on there is', 0, 9, 0, 4],
    ['it is an eighth of what is held', 80, 1_000, 0, 10],
    ['or what a second granted', 80, 1_000, 200, 200],
    ['it is half of what is free, and an eighth of the limit', 60, 64, 100, 2 + 8],
    ['a full pool is marked beyond its limit, by an eighth', 64, 64, 100, 8],
    ['above the limit no less', 80, 64, 100, 8],
    ['of any number of slots it is what is wanted', 8, Infinity, 100, 100],
  ])('%s', (_what, held, limit, granted, expected) => {
    expect(margin(held, limit, granted)).toBe(expected);
  });

  test('forgets what was granted longer than a second ago', () => {
    const bound = emptyBound(1, true);
    noteHandedOut(bound, IMPLICIT, 50, START);
    expect(marginOf(bound, 0, 1_000, after(START, 1_000))).toBe(50);
    expect(marginOf(bound, 0, 1_000, after(START, 2_000))).toBe(4);
    noteHandedOut(bound, IMPLICIT, 1, after(START, 1_000));
    expect(marginOf(bound, 0, 1_000, after(START, 1_000))).toBe(50);
  });

  test('is none while anything is unclaimed, or it would grow with each reset', () => {
    const group = written().reset();
    expect(group.write().bound).toMatchObject({ held: 5, mark: 5 });
    group.resume('first');
    expect(group.write().bound).toMatchObject({ held: 5, mark: 5 });
    group.advance(60_000);
    group.ask('later');
    expect(group.write().bound.mark).toBeGreaterThan(1);
  });

  test('of a small pool is none: each grant is written', () => {
    const group = TestGroup.stored({ slotsMax: 8 });
    group.ask('a');
    group.write();
    expect(askMore(group, 2)).toEqual(['behind', 'behind']);
  });
});

describe('a write ahead', () => {
  test('is asked for when a quarter of the margin is left', () => {
    const group = written();
    expect(askMore(group, 3)).toEqual(['no', 'no', 'ahead']);
  });

  test('is not asked for while one is on its way', () => {
    const group = written();
    askMore(group, 3);
    issued(group);
    expect(askMore(group, 1)).toEqual(['no']);
  });

  test('is asked for after a second where grants come quickly', () => {
    const group = TestGroup.stored({ slotsMax: 1_000 });
    askMore(group, 200);
    group.write();
    expect(new Set(askMore(group, 16))).toEqual(new Set(['no']));
    group.now = after(group.now, 999);
    group.tick();
    expect(group.asksToWrite()).toBe('no');
    group.now = after(group.now, 1);
    group.tick();
    expect(group.asksToWrite()).toBe('ahead');
  });
});

describe('a pool of which nothing is held', () => {
  /** A pool that was empty for so long before the call that has just ended. */
  function emptied(idleMs: number): TestGroup {
    const group = TestGroup.stored({ slotsMax: 4 });
    group.ask('before');
    group.write();
    group.release('before');
    group.now = after(group.now, idleMs);
    group.ask('last');
    group.write();
    group.release('last');
    return group;
  }

  test.each([
    ['busy', EMPTY_BUSY_MS - 1, EMPTY_BUSY_MS],
    ['sparse', EMPTY_BUSY_MS, EMPTY_SPARSE_MS],
  ])('is written empty later where it is %s', (_how, idleMs, expected) => {
    const group = emptied(idleMs);
    expect(group.wakesIn()).toBe(expected);
    group.now = after(group.now, expected - 1);
    group.tick();
    expect(group.asksToWrite()).toBe('no');
    group.now = after(group.now, 1);
    group.tick();
    expect(group.asksToWrite()).toBe('ahead');
    expect(group.write().bound).toMatchObject({ mark: 0, held: 0, ended: ['last.1'] });
    expect(group.wakesIn()).toBe(Infinity);
  });

  test('keeps its mark where a call comes before that', () => {
    const group = emptied(0);
    group.advance(EMPTY_BUSY_MS - 1);
    group.ask('next');
    group.release('next');
    group.advance(1);
    expect(group.asksToWrite()).toBe('no');
  });

  test('is written empty once', () => {
    const group = emptied(0);
    group.advance(EMPTY_BUSY_MS);
    group.write();
    group.advance(60_000);
    expect(group.asksToWrite()).toBe('no');
  });

  test('leaves nothing to claim, and leases of before have no slot any more', () => {
    const group = emptied(0);
    group.advance(EMPTY_BUSY_MS);
    expect(group.write().bound.since).toBe(group.state.nextAttachment);
    group.ask('next');
    group.write();
    const later = group.reset();
    expect(later.state.unclaimed.slots).toBe(1);
    later.resume('stranger', { attachment: 1 });
    expect(later.state.totals.resurrected).toBe(1);
    expect(later.state.unclaimed.slots).toBe(1);
  });
});

describe('what has ended', () => {
  test('is told in the next row of the ring, once', () => {
    const group = written();
    group.release('first');
    expect(issued(group).ended).toEqual(['first.1']);
    expect(issued(group).ended).toEqual([]);
  });

  test('is told with the controls, and once more in the ring: their row is written over', () => {
    const group = written();
    group.release('first');
    group.state.isControlsDirty = true;
    const { bound, isInRing, kept } = takeWrite(group.state, group.now);
    expect(kept).not.toBeNull();
    expect(isInRing, 'one row instead of two').toBe(false);
    expect(bound.ended).toEqual(['first.1']);
    expect(issued(group).ended).toEqual(['first.1']);
    expect(issued(group).ended).toEqual([]);
  });

  test('is told in the ring by the instance that finds it beside the controls alone', () => {
    const group = written();
    group.release('first');
    group.state.isControlsDirty = true;
    group.write();
    const next = group.reset();
    next.state.isControlsDirty = true;
    expect(next.write()).toMatchObject({ isInRing: false, bound: { ended: ['first.1'] } });
    const another = next.reset();
    expect(another.write()).toMatchObject({ isInRing: true, bound: { ended: ['first.1'] } });
    expect(another.reset().write().bound.ended, 'the ring has it').toEqual([]);
  });

  test('goes into the ring beside the controls where it is much', () => {
    const group = TestGroup.stored({ slotsMax: 1_000 });
    for (let index = 0; index < 501; index += 1) {
      group.ask(`call-${index}`);
      group.release(`call-${index}`);
    }
    group.state.isControlsDirty = true;
    const first = takeWrite(group.state, group.now);
    expect(first.bound.ended).toHaveLength(501);
    expect(first.kept).not.toBeNull();
    expect(first.isInRing, 'or the next row of the controls would write over them').toBe(true);
    expect(issued(group).ended).toEqual([]);
  });

  test('is written before it is more than a row may hold', () => {
    const group = TestGroup.stored({ slotsMax: 10 });
    group.ask('first');
    group.write();
    group.state.bound.ended.push(...Array.from({ length: 4_999 }, () => group.lease('first').id));
    group.tick();
    expect(group.asksToWrite()).toBe('no');
    group.state.bound.ended.push(group.lease('first').id);
    group.tick();
    expect(group.asksToWrite()).toBe('ahead');
  });

  test('has those beside it whom an operator takes away, in every row until they let go', () => {
    const group = written();
    group.revoke('first');
    expect(issued(group).ended).toEqual(['first.1']);
    expect(issued(group).ended).toEqual(['first.1']);
    group.release('first', 'cancelled');
    expect(issued(group).ended).toEqual(['first.1']);
    expect(issued(group).ended).toEqual([]);
  });
});

describe('the calls by upstream', () => {
  test('ride on the row of a group that falls idle, and cost none of their own', () => {
    const group = written();
    expect(takeWrite(group.state, group.now).upstreams).toBeNull();
    group.release('first');
    group.advance(EMPTY_BUSY_MS);
    const { upstreams, kept, bound } = takeWrite(group.state, group.now);
    expect(bound.mark).toBe(0);
    expect(kept).toBeNull();
    expect([...(upstreams ?? [])].map(([, { granted }]) => granted)).toEqual([1]);
  });

  test('go with the controls after a minute in a group that never falls idle', () => {
    const group = written();
    const in59s = after(group.now, 59_000);
    expect(takeWrite(group.state, in59s)).toMatchObject({ kept: null, upstreams: null });
    const in60s = after(group.now, 60_000);
    expect(takeWrite(group.state, in60s)).toMatchObject({ upstreams: expect.any(Map) });
    expect(takeWrite(group.state, in60s)).toMatchObject({ kept: null, upstreams: null });
  });

  test('are there after a reset', () => {
    const group = written();
    group.release('first');
    group.advance(EMPTY_BUSY_MS);
    group.write();
    expect([...group.reset().state.upstreams.values()]).toMatchObject([{ granted: 1 }]);
  });
});

describe('a write', () => {
  test('that has not arrived in time ends the instance: it asks to be woken for that', () => {
    const group = TestGroup.stored();
    group.ask('a');
    issued(group);
    expect(group.wakesIn()).toBe(CONFIRM_MS);
  });

  test('that arrives says that all before it have', () => {
    const group = TestGroup.stored({ slotsMax: 100 });
    group.ask('a');
    const [first, second] = [issued(group), issued(group)];
    confirmWrite(group.state, second.seq);
    expect(group.state.bound.inFlight).toEqual([]);
    confirmWrite(group.state, first.seq);
    expect(group.state.bound.confirmed?.seq).toBe(second.seq);
  });

  test('covers leases that pass on the slots of others, which may outlive them', () => {
    const group = TestGroup.stored({ slotsMax: 1, nested: 'pass' });
    group.ask('parent');
    group.write();
    group.ask('child', { parents: ['parent'] });
    expect(group.asksToWrite()).toBe('behind');
    expect(group.write().bound).toMatchObject({ held: 2, mark: 2 });
    group.release('parent');
    expect(group.asksToWrite()).toBe('no');
  });

  test('keeps the next attachment, and a new instance begins beyond all that went unwritten', () => {
    const group = written();
    const { next } = issued(group);
    expect(next).toBe(group.state.nextAttachment);
    const later = group.reset();
    expect(later.state.nextAttachment).toBeGreaterThanOrEqual(next + ATTACHMENTS_UNWRITTEN_MAX - 1);
    expect(later.state.bound.first).toBe(later.state.nextAttachment);
  });

  test('is checked when answers leave behind it: more held than marked is counted', () => {
    const group = written();
    group.write();
    expect(group.state.totals.violations.above_mark).toBe(0);
    checkMark(group.state, 0);
    expect(group.state.totals.violations.above_mark).toBe(1);
  });
});
