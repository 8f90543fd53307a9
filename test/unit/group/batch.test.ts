import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Batch } from '../../../src/group/batch.ts';
import { onTimer } from '../../../src/runtime/async.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** Runs one turn that answers somebody, and has something to write besides. */
function turn(batch: Batch, answer: () => void): void {
  batch.answer(answer, false);
  batch.settle();
  batch.soon(true);
}

it('of what is stored the first answer comes with its write, and the next waits for its turn', () => {
  const writes: boolean[] = [];
  const batch = new Batch(
    (isBound) => writes.push(isBound),
    () => true,
    true,
    onTimer,
  );
  const answers: number[] = [];
  turn(batch, () => answers.push(1));
  turn(batch, () => answers.push(2));
  expect(answers).toEqual([1]);
  expect(vi.getTimerCount()).toBeGreaterThan(0);
  vi.runAllTimers();
  expect(answers).toEqual([1, 2]);
  expect(writes).toEqual([true, true]);
});

it('what is written ahead is written right after its turn, once, and nobody waits for it', () => {
  const writes: boolean[] = [];
  const batch = new Batch(
    (isBound) => writes.push(isBound),
    () => true,
    true,
    onTimer,
  );
  batch.ahead();
  batch.ahead();
  batch.settle();
  expect(writes).toEqual([]);
  vi.advanceTimersByTime(0);
  expect(writes).toEqual([true]);
  vi.runAllTimers();
  expect(writes).toEqual([true]);
});

it('what is only observed takes no row of the bound with it', () => {
  const writes: boolean[] = [];
  const batch = new Batch(
    (isBound) => writes.push(isBound),
    () => true,
    true,
    onTimer,
  );
  batch.soon(false);
  vi.runAllTimers();
  expect(writes).toEqual([false]);
  batch.soon(false);
  batch.soon(true);
  vi.runAllTimers();
  expect(writes).toEqual([false, true]);
});

it('where nothing is stored nobody waits, and no timer is set', () => {
  const batch = new Batch(
    () => undefined,
    () => true,
    false,
    onTimer,
  );
  const answers: number[] = [];
  turn(batch, () => answers.push(1));
  turn(batch, () => answers.push(2));
  expect(answers).toEqual([1, 2]);
  expect(vi.getTimerCount()).toBe(0);
});

it.each([
  [true, []],
  [false, [true]],
])(
  'a settled answer that was held up leaves behind a write where it is covered no more',
  (isCovered, expected) => {
    const writes: boolean[] = [];
    const batch = new Batch(
      (isBound) => writes.push(isBound),
      () => isCovered,
      true,
      onTimer,
    );
    const answers: number[] = [];
    for (const answer of [1, 2]) {
      batch.answer(() => answers.push(answer), true);
      batch.settle();
    }
    expect([answers, writes]).toEqual([[1], []]);
    vi.runAllTimers();
    expect([answers, writes]).toEqual([[1, 2], expected]);
  },
);
