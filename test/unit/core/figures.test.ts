// Figures for people: plurals, money, parts and lengths of time that make sense.
import { expect, it } from 'vitest';
import {
  dollars,
  namesWords,
  percent,
  plural,
  spanWords,
} from '../../../src/core/words/figures.ts';

it.each([
  [plural(0, 'call'), '0 calls'],
  [plural(1, 'call'), '1 call'],
  [plural(1_200, 'call'), '1,200 calls'],
  [plural(1, 'call waits', 'calls wait'), '1 call waits'],
  [plural(2, 'call waits', 'calls wait'), '2 calls wait'],
  [dollars(0), '$0'],
  [dollars(0.002), '$0.002'],
  [dollars(0.00012345), '$0.000123'],
  [dollars(2), '$2'],
  [dollars(12.5), '$12.50'],
  [dollars(1_234.567), '$1,234.57'],
  [percent(0, 2), '0 %'],
  [percent(0.001, 2), 'less than 1 %'],
  [percent(1.999, 2), '99 %'],
  [percent(2, 2), '100 %'],
  [percent(1, 0), '100 %'],
  [spanWords(400), '1 second'],
  [spanWords(60_000), '1 minute'],
  [spanWords(59_499), '59 seconds'],
  [spanWords(59_500), '1 minute'],
  [spanWords(3_569_999), '59 minutes'],
  [spanWords(3_570_000), '1 hour'],
  [spanWords(84_600_000), '1 day'],
  [spanWords(7_200_000), '2 hours'],
  [namesWords(['a']), 'a'],
  [namesWords(['a', 'b']), 'a and b'],
  [namesWords(['a', 'b', 'c', 'd']), 'a, b, c and 1 more'],
])('%s', (words, expected) => {
  expect(words).toBe(expected);
});
