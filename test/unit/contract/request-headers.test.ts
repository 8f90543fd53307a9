import { expect, it } from 'vitest';
import { readCallerHeaders } from '../../../src/contract/request-headers.ts';

function maxWaitOf(headers: Record<string, string>): number | null {
  const read = readCallerHeaders(new Headers(headers));
  if (!read.ok) throw new Error(read.message);
  return read.value.maxWaitMs;
}

it.each([
  [null, {}],
  [600_000, { 'x-stainless-timeout': '600' }],
  [500, { 'x-stainless-timeout': '0.5' }],
  [null, { 'x-stainless-timeout': 'None' }],
  [2_000, { 'x-stainless-timeout': '600', 'headgate-max-wait': '2s' }],
  [0, { 'x-stainless-timeout': '600', 'headgate-max-wait': '0' }],
])('a call may wait %s ms with %o', (expected, headers) => {
  expect(maxWaitOf(headers)).toBe(expected);
});

it('a time-out that an SDK has cut down to 0 seconds still lets the call wait', () => {
  expect(maxWaitOf({ 'x-stainless-timeout': '0' })).toBe(1_000);
});

it('what is too long to be a lease is no parent', () => {
  const read = readCallerHeaders(
    new Headers({ 'headgate-parent': `a.1, ${'x'.repeat(101)}, b.1` }),
  );
  expect(read).toMatchObject({ ok: true, value: { parents: ['a.1', 'b.1'] } });
});
