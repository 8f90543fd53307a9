// Timers of an object when the wall clock is set back, on timers that behave as the runtime's do.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Batch, WakeTimer } from '../../../src/group/batch.ts';
import { Timers } from '../../../src/runtime/async.ts';
import { RuntimeTimers } from '../../support/runtime-timers.ts';

let runtime: RuntimeTimers;
let timers: Timers;
let fired: [name: string, atMs: number][];

beforeEach(() => {
  runtime = new RuntimeTimers();
  runtime.install();
  timers = new Timers();
  fired = [];
});

afterEach(() => {
  vi.restoreAllMocks();
});

const note = (name: string) => (): void => void fired.push([name, runtime.passedMs]);

it('the runtime delays every timer but the first by the step back', () => {
  setTimeout(note('first'), 50);
  setTimeout(note('second'), 100);
  runtime.setBack(60_000);
  runtime.pass(1_000);
  expect(fired).toEqual([['first', 50]]);
  runtime.pass(60_000);
  expect(fired).toEqual([
    ['first', 50],
    ['second', 60_100],
  ]);
});

describe.each([5_000, 60_000, 600_000])('set back by %i ms', (stepMs) => {
  it('every timer fires when it is due', () => {
    for (const ms of [0, 50, 3_000, 45_000]) timers.after(ms, note(String(ms)));
    runtime.setBack(stepMs);
    runtime.pass(50_000);
    expect(fired).toEqual([
      ['0', 0],
      ['50', 50],
      ['3000', 3_000],
      ['45000', 45_000],
    ]);
  });

  it('a timer fires when it is due after the one before it was cancelled', () => {
    const cancel = timers.after(1_000, note('cancelled'));
    timers.after(2_000, note('kept'));
    runtime.pass(500);
    timers.check();
    runtime.setBack(stepMs);
    cancel();
    runtime.pass(5_000);
    expect(fired).toEqual([['kept', 2_000]]);
  });

  it('a step back during a timer delays none of the others, and several steps add up', () => {
    timers.after(10, () => runtime.setBack(stepMs));
    timers.after(20, note('b'));
    timers.after(1_000, () => runtime.setBack(stepMs));
    timers.after(1_500, note('c'));
    runtime.pass(5_000);
    expect(fired).toEqual([
      ['b', 20],
      ['c', 1_500],
    ]);
  });

  it('a pool wakes when something is due, even without events in between', () => {
    const wake = new WakeTimer(timers, note('woken'));
    timers.after(50, note('written'));
    wake.arm(timers.clock.now() + 8_000);
    runtime.setBack(stepMs);
    runtime.pass(10_000);
    expect(fired).toEqual([
      ['written', 50],
      ['woken', 8_000],
    ]);
  });

  it('answers are sent on time, and rows are written within 50 ms', () => {
    const writes: number[] = [];
    const write = (): void => void writes.push(runtime.passedMs);
    const batch = new Batch(write, () => true, true, timers.after);
    batch.answer(note('first'), true);
    batch.settle();
    batch.answer(note('second'), true);
    batch.settle();
    batch.soon(true);
    runtime.setBack(stepMs);
    runtime.pass(100);
    batch.answer(note('third'), true);
    batch.settle();
    expect(fired).toEqual([
      ['first', 0],
      ['second', 0],
      ['third', 100],
    ]);
    expect(writes).toEqual([50]);
  });
});

it('a cancelled timer does not fire, and can be cancelled twice', () => {
  const cancel = timers.after(10, note('cancelled'));
  cancel();
  cancel();
  runtime.pass(100);
  expect(fired).toEqual([]);
});
