import { expect, it } from 'vitest';
import { EachSecond } from '../../../src/runtime/async.ts';

it('so many in a second are the most, and the next one begins anew', () => {
  const questions = new EachSecond(2);
  const at = (now: number): boolean => questions.mayOneMore(now);
  expect([0, 10, 20, 999].map(at)).toEqual([true, true, false, false]);
  expect([1_000, 1_001, 1_002].map(at)).toEqual([true, true, false]);
});
