// When a change that holds for a while ends, by the words that people have for it.
import { expect, it } from 'vitest';
import { endOf } from '../../../scripts/cli/while.ts';

/** Half past eight here. */
const NOW = new Date(2026, 10, 24, 8, 30, 15);

const at = (day: number, hours: number, minutes: number): string =>
  new Date(2026, 10, day, hours, minutes).toISOString();

it('a clock time is the next one here', () => {
  expect(endOf({ until: '09:00' }, NOW)).toBe(at(24, 9, 0));
  expect(endOf({ until: '8:30' }, NOW)).toBe(at(25, 8, 30));
  expect(endOf({ until: '00:00' }, NOW)).toBe(at(25, 0, 0));
});

it('an instant is itself in UTC, and a length counts from now', () => {
  expect(endOf({ until: '2026-11-24T10:00:00+01:00' }, NOW)).toBe('2026-11-24T09:00:00.000Z');
  expect(endOf({ for: '90s' }, NOW)).toBe(new Date(NOW.getTime() + 90_000).toISOString());
  expect(endOf({}, NOW)).toBeNull();
});

it.each([
  { until: '24:00' },
  { until: 'tomorrow' },
  { until: '2026' },
  { for: '2' },
  { for: '0s' },
  { for: '1h', until: '09:00' },
])('%j is refused', (given) => {
  expect(() => endOf(given, NOW)).toThrow(/--until|--for/);
});
