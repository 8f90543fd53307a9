import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { leaseId } from '../../../src/core/words/ids.ts';
import { Batch, type Writes } from '../../../src/group/batch.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** Runs one turn that drops a row, answers somebody, and has something to write besides. */
function turn(batch: Batch, answer: () => void): void {
  batch.note({ kind: 'drop', leaseId: leaseId('a.1') });
  batch.afterWrite(answer);
  batch.settle();
  batch.soon();
}

it('of what is stored the first answer comes with its write, and the next waits for its turn', () => {
  const writes: Writes[] = [];
  const batch = new Batch((write) => writes.push(write), true);
  const answers: number[] = [];
  turn(batch, () => answers.push(1));
  turn(batch, () => answers.push(2));
  expect(answers).toEqual([1]);
  expect(vi.getTimerCount()).toBeGreaterThan(0);
  vi.runAllTimers();
  expect(answers).toEqual([1, 2]);
  expect(writes).toHaveLength(2);
});

it('where nothing is stored nobody waits, and no timer is set', () => {
  const batch = new Batch(() => undefined, false);
  const answers: number[] = [];
  turn(batch, () => answers.push(1));
  turn(batch, () => answers.push(2));
  expect(answers).toEqual([1, 2]);
  expect(vi.getTimerCount()).toBe(0);
});
