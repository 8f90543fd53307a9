import { beforeEach, describe, expect, test } from 'vitest';
import { slotsLearned } from '../../../../src/core/capacity.ts';
import { HELD_BACK_MS } from '../../../../src/core/parts/evidence.ts';
import type { GroupSettings } from '../../../../src/core/words/settings.ts';
import { wantsServed } from '../../../../src/core/upstream-signals.ts';
import { TestGroup } from '../../../support/core-builders.ts';

/** A refusal for concurrency that stands alone, against what was served. */

/** How often so many are served at once, until it is sure that this was no chance. */
const ROUNDS = 30;

let group: TestGroup;

beforeEach(() => {
  group = busyGroup();
});

/** Eight calls that were served at once, of which `kept` are still at the upstream. */
function busyGroup(settings: Partial<GroupSettings> = {}, kept = 4): TestGroup {
  const busy = new TestGroup({ slotsMax: 64, timeoutMs: 600_000, ...settings });
  for (let round = 0; round < ROUNDS; round += 1) serveAtOnce(busy, 8);
  for (let index = 0; index < kept; index += 1) busy.ask(`kept-${index}`);
  busy.advance(100);
  return busy;
}

let served = 0;

/** Serves so many calls, which are in flight together. */
function serveAtOnce(target: TestGroup, count: number): void {
  target.advance(1);
  const names = Array.from({ length: count }, () => `served-${(served += 1)}`);
  target.askAll(...names);
  target.advance(100);
  for (const name of names) target.report(name, { kind: 'served' });
  for (const name of names) target.release(name);
}

/** Serves so many calls, one after the other, beside those that are there. */
function serveOneByOne(count: number): void {
  for (let index = 0; index < count; index += 1) {
    const name = `served-${(served += 1)}`;
    group.advance(1);
    group.ask(name);
    group.advance(10);
    group.report(name, { kind: 'served' });
    group.release(name);
  }
}

/** A call is refused at once; its caller hears so, or asks again. */
function refuse(name: string, attempt = 1): void {
  expect(group.ask(name, { attempt })).toEqual([`grant ${name}.${attempt}`]);
  group.report(name, { kind: 'concurrency' }, attempt > 1, attempt);
  group.release(name, 'failed', attempt);
}

const slots = () => slotsLearned(group.state);

describe('a refusal that stands alone', () => {
  test('lowers the limit to what was served at once lately, and no further', () => {
    refuse('poison');
    expect(slots()).toBe(8);
  });

  test('does so where there is no limit', () => {
    group = busyGroup({ slotsMax: Infinity });
    refuse('poison');
    expect(slots()).toBe(8);
  });

  test('again and again leaves the others their slots', () => {
    for (let count = 0; count < 30; count += 1) {
      refuse(`poison-${count}`);
      group.advance(10_000);
      serveAtOnce(group, 4);
    }
    expect(slots()).toBe(8);
    serveAtOnce(group, 4);
  });

  test('is believed where nothing is known', () => {
    group = new TestGroup({ slotsMax: 64 });
    group.askAll('a', 'b', 'c', 'd');
    refuse('e');
    expect(slots()).toBe(4);
  });

  test('is believed where what was served is long ago', () => {
    for (let at = 0; at <= 600_000; at += 30_000) {
      for (let index = 0; index < 4; index += 1) group.renew(`kept-${index}`);
      group.advance(30_000);
    }
    refuse('late');
    expect(slots()).toBe(4);
  });

  test('says nothing beside nobody', () => {
    group = new TestGroup({ slotsMax: 64 });
    refuse('alone');
    expect(slots()).toBe(64);
  });

  test('leaves a probe that is under way', () => {
    group = new TestGroup({ slotsMax: 4, isHard: false });
    for (let round = 0; round < 8; round += 1) {
      serveAtOnce(group, 4);
      group.advance(1_000);
    }
    expect(slots()).toBeGreaterThan(4);
    // The first time the limit may rise once more; it has time to fail before the next rise.
    for (let round = 0; round < 2; round += 1) {
      const others = Array.from({ length: slots() - 1 }, (_, at) => `other-${round}-${at}`);
      group.askAll(...others);
      serveOneByOne(16);
      for (const name of others) group.release(name);
    }
    const before = structuredClone(group.state.controls.ceiling);
    group.ask('a');
    refuse('poison');
    const { evidence: _, ...after } = group.state.controls.ceiling;
    expect(before).toMatchObject({ ...after, slots: before.slots });
  });
});

describe('a second refusal', () => {
  test('of another call is believed whatever was served before', () => {
    refuse('one');
    refuse('other');
    expect(slots()).toBe(4);
  });

  test('of a burst leaves exactly what was accepted', () => {
    const names = ['one', 'two', 'three', 'four'];
    group.askAll(...names);
    for (const name of names) group.report(name, { kind: 'concurrency' });
    expect(slots()).toBe(4);
  });

  test('more than 5 s later stands alone', () => {
    refuse('one');
    group.advance(5_001);
    refuse('other');
    expect(slots()).toBe(8);
  });

  test('stands alone if more were served since the first', () => {
    refuse('one');
    group.advance(1);
    group.ask('more');
    group.report('more', { kind: 'served' });
    group.release('kept-0');
    refuse('other');
    expect(slots()).toBe(8);
  });

  test('lowers the limit no further than what was served since the first', () => {
    group.ask('kept-4');
    refuse('one');
    group.release('kept-4');
    group.advance(1);
    group.ask('kept-5');
    group.report('kept-5', { kind: 'served' });
    group.release('kept-5');
    group.release('kept-0');
    group.release('kept-1');
    refuse('other');
    expect(slots()).toBe(5);
  });

  test('of the same call, beside as many as before, is believed', () => {
    refuse('one');
    group.ask('one', { attempt: 2 });
    expect(group.advance(HELD_BACK_MS)).toEqual(['grant one.2']);
    group.report('one', { kind: 'concurrency' }, true, 2);
    expect(slots()).toBe(4);
  });

  test('of the same call, beside fewer, stands alone', () => {
    refuse('one');
    group.ask('one', { attempt: 2 });
    group.release('kept-0');
    group.advance(HELD_BACK_MS);
    group.report('one', { kind: 'concurrency' }, true, 2);
    expect(slots()).toBe(8);
  });
});

describe('a call whose refusal was not believed', () => {
  test('lets others try first, and the group wakes for it', () => {
    refuse('poison');
    expect(group.ask('poison', { attempt: 2 })).toEqual([]);
    expect(group.wakesIn()).toBe(HELD_BACK_MS);
    expect(group.ask('other')).toEqual(['grant other.1']);
    expect(group.advance(HELD_BACK_MS - 1)).toEqual([]);
    expect(group.advance(1)).toEqual(['grant poison.2']);
  });

  test('goes at once where nobody else is at the upstream', () => {
    refuse('poison');
    expect(group.ask('poison', { attempt: 2 })).toEqual([]);
    for (const name of ['kept-0', 'kept-1', 'kept-2']) expect(group.release(name)).toHaveLength(1);
    expect(group.release('kept-3')).toEqual(['ended kept-3.1', 'grant poison.2']);
  });

  test('goes as soon as more were served', () => {
    refuse('poison');
    group.ask('poison', { attempt: 2 });
    group.advance(1);
    group.ask('more');
    expect(group.report('more', { kind: 'served' })).toEqual(['grant poison.2']);
  });

  test('makes the group want to hear for a while what is served', () => {
    expect(wantsServed(group.member(), group.now)).toBe(false);
    refuse('poison');
    expect(wantsServed(group.member(), group.now)).toBe(true);
    group.advance(5_001);
    expect(wantsServed(group.member(), group.now)).toBe(false);
  });
});

describe('what was served at once', () => {
  test('is known from calls that ended well, where nobody wants to hear of their headers', () => {
    group = new TestGroup({ slotsMax: 64 });
    for (let round = 0; round < ROUNDS; round += 1) {
      const names = Array.from({ length: 6 }, (_, index) => `quiet-${round}-${index}`);
      group.askAll(...names);
      group.advance(100);
      for (const name of names) group.release(name);
    }
    group.askAll('a', 'b');
    refuse('poison');
    expect(slots()).toBe(6);
  });

  test.each([
    [7, 3],
    [8, 4],
  ])(
    'counts when it was seen eight times, since fewer may be chance: %i leave %i',
    (seen, left) => {
      group = new TestGroup({ slotsMax: 64 });
      group.askAll('a', 'b', 'c');
      serveOneByOne(seen);
      refuse('e');
      expect(slots()).toBe(left);
    },
  );

  test('is not known of calls beside which another was refused', () => {
    group = new TestGroup({ slotsMax: 64 });
    const names = Array.from({ length: 2 * ROUNDS }, (_, index) => `beside-${index}`);
    group.askAll(...names, 'poison');
    group.report('poison', { kind: 'concurrency' });
    for (const name of names) group.report(name, { kind: 'served' });
    expect(group.state.controls.ceiling.evidence.servedSlots).toBe(0);
  });
});

test('a row of before knows no evidence, and one of now is read as it was written', () => {
  refuse('poison');
  const kept = group.restart();
  expect(kept.state.controls.ceiling).toEqual(group.state.controls.ceiling);
});
