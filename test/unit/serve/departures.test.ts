import { expect, it } from 'vitest';
import { noticesOf } from '../../../scripts/serve/departures.ts';

it('tells of all who leave at once, in headers that workerd takes', () => {
  const left = Array.from({ length: 20_500 }, (_, index) => 1_000_000 + index);
  const reported = noticesOf(left);
  expect(reported.flatMap(({ departed }) => departed)).toEqual(left);
  expect(Math.max(...reported.map((each) => JSON.stringify(each).length))).toBeLessThan(65_536);
});
