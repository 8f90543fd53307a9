import { describe, expect, test } from 'vitest';
import { instant } from '../../../src/core/words/ids.ts';
import { SETTLE_MAX_MS, SETTLE_MS, settleMs } from '../../../src/core/words/settings.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** How long a group settles after a reset follows those who were there, and rows say how many waited. */

const ROOMY = { slotsMax: 1, timeoutMs: 3_600_000, queueLengthMax: 10_000 };

/** Lets others wait until there are so many. Returns what each of them had written. */
function callersAtOnce(group: TestGroup, waiters: number): string[] {
  const asked: string[] = [];
  while (group.state.queue.byTicket.size < waiters) {
    group.ask(`w${group.state.queue.byTicket.size}`, { sliceMs: 3_600_000 });
    asked.push(group.asksToWrite());
  }
  return asked;
}

/** A group whose slot is held, and where so many wait. */
function crowdedGroup(waiters: number): TestGroup {
  const group = TestGroup.stored(ROOMY);
  group.ask('holder');
  group.write();
  callersAtOnce(group, waiters);
  return group;
}

const settlesFor = (group: TestGroup): number => group.state.grantsFrom - group.now;

describe('a group settles', () => {
  test.each([
    [0, 1, SETTLE_MS],
    [2_000, 200, 2_540],
    [100_000, 0, SETTLE_MAX_MS],
    [0, 100_000, SETTLE_MAX_MS],
  ])('after a reset under %i waiters and %i slots for a time of its own', (waiters, slots, ms) => {
    expect(settleMs(waiters, slots)).toBe(ms);
  });

  test('as long as those who waited need to come back', () => {
    const group = crowdedGroup(300).restart();
    expect(settlesFor(group)).toBe(settleMs(512, 1));
    group.ask('young', { sliceMs: 3_600_000 });
    group.resume('holder');
    group.release('holder');
    expect(group.advance(settleMs(512, 1) - 1)).toEqual([]);
    group.ask('old', { enqueuedMs: -10, sliceMs: 3_600_000 });
    expect(group.advance(1)).toEqual(['grant old.1']);
  });

  test('as long as those who held slots need', () => {
    const group = TestGroup.stored({ ...ROOMY, slotsMax: 100 });
    for (let index = 0; index < 100; index += 1) group.ask(`h${index}`);
    expect(settlesFor(group.restart())).toBe(settleMs(0, group.write().bound.mark));
  });

  test('as long again at a reset before they are back', () => {
    const group = crowdedGroup(300).restart();
    group.advance(100);
    expect(settlesFor(group.restart())).toBe(settleMs(512, 1));
  });

  test('no longer at a reset after the others have not come back', () => {
    const group = crowdedGroup(300).restart();
    group.advance(settleMs(512, 1));
    expect(settlesFor(group.restart())).toBe(settleMs(0, 1));
  });

  test('for nobody who may not wait any more when the group is needed again', () => {
    const group = TestGroup.stored({ ...ROOMY, paused: true });
    callersAtOnce(group, 300);
    const { stored } = group.restart();
    const { timeoutMs } = ROOMY;
    group.now = instant(group.now + timeoutMs - 1);
    expect(settlesFor(group.reset(stored))).toBe(settleMs(512, 0));
    group.now = instant(group.now + 1);
    expect(group.reset(stored).state.grantsFrom).toBe(0);
  });

  test('for those who may wait for longer than the group says, and until the last of them has left', () => {
    const group = TestGroup.stored({ ...ROOMY, paused: true, timeoutMs: 60_000 });
    group.ask('patient', { timeoutMs: 600_000, sliceMs: 3_600_000 });
    group.ask('other', { sliceMs: 3_600_000 });
    const { stored } = group.restart();
    group.now = instant(group.now + 599_999);
    const next = group.reset(stored);
    expect(settlesFor(next)).toBe(settleMs(2, 0));
    // It is not back yet, and the group is replaced once more.
    expect(settlesFor(next.restart())).toBe(settleMs(2, 0));
    group.now = instant(group.now + 1);
    expect(group.reset(stored).state.grantsFrom).toBe(0);
  });

  test('for nobody whom only one who has left would have outwaited', () => {
    const group = TestGroup.stored({ ...ROOMY, paused: true, timeoutMs: 60_000 });
    group.ask('patient', { timeoutMs: 600_000, sliceMs: 3_600_000 });
    group.cancel('patient');
    group.ask('other', { sliceMs: 3_600_000 });
    const { stored } = group.restart();
    group.now = instant(group.now + 60_000);
    expect(group.reset(stored).state.grantsFrom).toBe(0);
  });

  test('where nobody held a slot, for those who waited', () => {
    const group = TestGroup.stored({ ...ROOMY, paused: true });
    callersAtOnce(group, 300);
    const after = group.restart();
    expect(settlesFor(after)).toBe(settleMs(512, 0));
    after.reconfigure({ paused: false });
    after.ask('young', { sliceMs: 3_600_000 });
    expect(after.waiting()).toEqual(['young']);
  });

  test('where nothing is stored, for those who are there when a holder comes', () => {
    const group = new TestGroup(ROOMY);
    group.ask('holder');
    callersAtOnce(group, 50);
    group.resume('other');
    expect(settlesFor(group)).toBe(settleMs(50, 2));
  });
});

describe('a row of its own tells of waiters', () => {
  test('when they are more than 256, and when they are more than were told of', () => {
    const group = crowdedGroup(256);
    expect(callersAtOnce(group, 257)).toEqual(['soon']);
    expect(group.write().bound.waiters).toBe(512);
    expect(new Set(callersAtOnce(group, 512))).toEqual(new Set(['no']));
    expect(callersAtOnce(group, 513)).toEqual(['soon']);
    expect(group.write().bound.waiters).toBe(1_024);
  });

  test('not each time that a queue swings', () => {
    const group = crowdedGroup(513);
    expect(group.write().bound.waiters).toBe(1_024);
    for (let index = 385; index < 513; index += 1) group.cancel(`w${index}`);
    expect(group.write().bound.waiters).toBe(1_024);
    group.cancel('w384');
    expect(group.write().bound.waiters).toBe(512);
  });

  test('when they have all gone, of whom a row has told', () => {
    const group = crowdedGroup(256);
    group.write();
    for (let index = 0; index < 255; index += 1) group.cancel(`w${index}`);
    expect(group.asksToWrite()).toBe('no');
    group.cancel('w255');
    expect(group.asksToWrite()).toBe('soon');
    expect(group.write().bound.waiters).toBe(0);
    group.tick();
    expect(group.asksToWrite()).toBe('no');
  });

  test('not when few come and go', () => {
    const group = crowdedGroup(0);
    expect(new Set(callersAtOnce(group, 256))).toEqual(new Set(['no']));
    group.write();
    for (let index = 0; index < 200; index += 1) group.cancel(`w${index}`);
    expect(group.asksToWrite()).toBe('no');
  });

  test('not while those of before are on their way back', () => {
    const group = crowdedGroup(300).restart();
    group.write();
    group.tick();
    expect(group.asksToWrite()).toBe('no');
    group.advance(settleMs(512, 1));
    expect(group.asksToWrite()).toBe('soon');
  });
});
