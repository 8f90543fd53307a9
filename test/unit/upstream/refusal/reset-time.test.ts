import { describe, expect, test } from 'vitest';
import { parseMs, parseResetMs } from '../../../../src/upstream/refusal/reset-time.ts';

const NOW = Date.parse('2026-10-06T12:00:00Z');

const DAY_MS = 86_400_000;

describe('a reset', () => {
  test.each([
    // Seconds
    ['0', 0],
    ['4', 4_000],
    ['45.5', 45_500],
    ['33011.382867', 33_011_383],
    [' 7 ', 7_000],
    ['999999999', 32 * DAY_MS],
    // Epochs
    [String(NOW / 1_000 + 30), 30_000],
    [String(NOW + 30_001), 30_001],
    [String(NOW - 30_000), 0],
    [`${NOW + 30_000}000`, 30_000],
    [`${NOW + 30_000}000000`, 30_000],
    ['1778479200', 0],
    ['99999999999999999999', 32 * DAY_MS],
    // Go durations
    ['1s', 1_000],
    ['6m0s', 360_000],
    ['12ms', 12],
    ['7.66s', 7_660],
    ['577.5ms', 578],
    ['2m59.56s', 179_560],
    ['2h31m16.752s', 9_076_752],
    ['16.239999999s', 16_240],
    ['4h17m', 15_420_000],
    ['1.5ms2us', 2],
    ['100µs', 1],
    ['9ns', 1],
    ['99999h', 32 * DAY_MS],
    // RFC 3339
    ['2026-10-06T12:40:59Z', 2_459_000],
    ['2026-10-06t12:00:01z', 1_000],
    ['2026-10-06T14:00:01.250+02:00', 1_250],
    ['2026-10-06T12:00:02', 2_000],
    ['2026-10-06T11:59:59Z', 0],
    // HTTP-dates
    ['Tue, 06 Oct 2026 12:01:00 GMT', 60_000],
    ['Tuesday, 06-Oct-26 12:01:00 GMT', 60_000],
    ['Tue Oct  6 12:01:00 2026', 60_000],
    ['06 Oct 2026 12:01:00 GMT', 60_000],
    ['Tue, 06 Oct 2026 08:01:00 EDT', 60_000],
    ['00:01:30', 90_000],
    ['1.00:00:01', 86_401_000],
    ['13,873 s', 13_873_000],
    ['30 seconds', 30_000],
    ['30 Seconds', 30_000],
    ['1 s', 1_000],
    ['1d', 86_400_000],
    ['1 hour and 5 minutes', 3_900_000],
    ['"30"', 30_000],
    ['PT30S', 30_000],
    ['pt1.5s', 1_500],
    ['PT1H2M', 3_720_000],
    ['P1DT1S', 86_401_000],
    ['P1W', 7 * 86_400_000],
    ['+30', 30_000],
    ['30.', 30_000],
    ['in 30 seconds', 30_000],
    ['After 30 seconds', 30_000],
    ['one minute', 60_000],
    ['in an hour', 3_600_000],
    ['30,', 30_000],
    ['30, , 60', 60_000],
    ['30, 30', 30_000],
    ['30,60', 60_000],
    ['5, 1m0s', 60_000],
    ['PT30S, 40 seconds', 40_000],
    ['Tue, 06 Oct 2026 12:01:00 GMT, Tue, 06 Oct 2026 12:02:00 GMT', 120_000],
  ])('%s is %i ms away', (text, expected) => {
    expect(parseResetMs(text, NOW)).toBe(expected);
  });

  test.each([
    '',
    ' ',
    '-1',
    '-1s',
    'soon',
    'null',
    'NaN',
    '1e3',
    '1,000',
    '1s later',
    '1 sheep',
    '1,000, 2,000',
    '30, soon',
    'P',
    'PT',
    'P30S',
    'm',
    '.5',
    'foo 1',
    '2026-13-45T99:00:00Z',
    'Tue, 99 Foo 2026 12:01:00 GMT',
    '1'.repeat(65),
    '1s'.repeat(33),
  ])('"%s" means nothing', (text) => {
    expect(parseResetMs(text, NOW)).toBeNull();
  });
});

describe('a header that counts milliseconds', () => {
  test.each([
    ['0', 0],
    ['3800', 3_800],
    ['99.5', 100],
    ['1791288000000', 32 * DAY_MS],
    ['-1', null],
    ['4s', null],
    ['', null],
    ['1'.repeat(65), null],
  ])('%s is %s ms', (text, expected) => {
    expect(parseMs(text)).toBe(expected);
  });
});
