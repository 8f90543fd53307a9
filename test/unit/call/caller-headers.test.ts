import { expect, it } from 'vitest';
import { keptAliveWaitMs, readCallerHeaders } from '../../../src/call/request/caller-headers.ts';

function maxWaitOf(headers: Record<string, string>): number | null {
  const read = readCallerHeaders(new Headers(headers));
  if (!read.ok) throw new Error(read.message);
  return read.value.maxWaitMs;
}

it.each([
  [null, {}],
  [595_000, { 'x-stainless-timeout': '600' }],
  [2_000, { 'x-stainless-timeout': '600', 'headgate-max-wait': '2s' }],
  [0, { 'x-stainless-timeout': '600', 'headgate-max-wait': '0' }],
  [2_700, { 'x-stainless-timeout': '3', 'headgate-max-wait': '300s' }],
])('a call may wait %s ms with %o', (expected, headers) => {
  expect(maxWaitOf(headers)).toBe(expected);
});

it.each([
  ['Python: the read time-out as a float', { 'x-stainless-read-timeout': '3.0' }],
  [
    'Python of Anthropic, time-out not given by the call',
    { 'x-stainless-timeout': 'NOT_GIVEN', 'x-stainless-read-timeout': '3' },
  ],
  [
    'Python of Anthropic, without a time-out',
    { 'x-stainless-timeout': 'None', 'x-stainless-read-timeout': '3.0' },
  ],
  [
    'Java: both, the shorter one ends first',
    { 'x-stainless-timeout': '600', 'x-stainless-read-timeout': '3' },
  ],
  ['Ruby: a float', { 'x-stainless-timeout': '3.0' }],
  ['Go: whole seconds', { 'x-stainless-timeout': '3' }],
  ['.NET in a German culture', { 'x-stainless-timeout': '3,0' }],
  ['a proxy that pads values', { 'x-stainless-timeout': ' 3 ' }],
  ['Envoy, in milliseconds', { 'x-envoy-expected-rq-timeout-ms': '3000' }],
  ['gRPC, with its unit', { 'grpc-timeout': '3S' }],
  ['gRPC in milliseconds', { 'grpc-timeout': '3000m' }],
])('a client that gives up after 3 s is answered after 2.7 s: %s', (_, headers) => {
  expect(maxWaitOf(headers)).toBe(2_700);
});

it('reads the time-outs of Google SDKs as rounded up to seconds', () => {
  expect(maxWaitOf({ 'x-server-timeout': '60' })).toBe(54_000);
  expect(maxWaitOf({ 'x-server-timeout': '3' })).toBe(1_750);
  expect(maxWaitOf({ 'x-server-timeout': '1' })).toBe(250);
});

it.each([
  'NOT_GIVEN',
  'None',
  'inf',
  'nan',
  '-1',
  '-0.001',
  '',
  'PT10M',
  '3s',
  '3, 3',
  '0x3',
  '1e3',
])('ignores a time-out of %j', (text) => {
  for (const name of ['x-stainless-timeout', 'x-stainless-read-timeout', 'x-server-timeout']) {
    expect(maxWaitOf({ [name]: text })).toBeNull();
  }
  expect(maxWaitOf({ 'grpc-timeout': text })).toBeNull();
});

it('bounds absurd time-outs to a day', () => {
  expect(maxWaitOf({ 'x-stainless-timeout': '99999999999999' })).toBe(86_400_000);
  expect(maxWaitOf({ 'grpc-timeout': '99999999H' })).toBe(86_400_000);
});

it('a time-out that an SDK has cut down to 0 seconds still lets the call wait', () => {
  expect(maxWaitOf({ 'x-stainless-timeout': '0' })).toBe(250);
  expect(maxWaitOf({ 'x-stainless-timeout': '0.000001' })).toBe(1);
});

it('comments satisfy time-outs that end with the next bytes, if they come early enough', () => {
  const waitOf = (headers: Record<string, string>, silentMs = 15_000) =>
    keptAliveWaitMs(new Headers(headers), silentMs);
  const js = { 'x-stainless-lang': 'js', 'x-stainless-timeout': '60' };
  expect(waitOf(js)).toBeNull();
  expect(waitOf(js, 200_000)).toBe(55_000);
  expect(waitOf({ 'x-stainless-lang': 'python', 'x-stainless-read-timeout': '60.0' })).toBeNull();
  const java = { 'x-stainless-read-timeout': '60', 'x-stainless-timeout': '600' };
  expect(waitOf({ 'x-stainless-lang': 'java', ...java })).toBe(595_000);
  expect(waitOf({ 'x-stainless-lang': 'go', 'x-stainless-timeout': '60' })).toBe(55_000);
  expect(waitOf({ 'x-server-timeout': '600' })).toBe(594_000);
});

it('what is too long to be a lease is no parent', () => {
  const read = readCallerHeaders(
    new Headers({ 'headgate-parent': `a.1, ${'x'.repeat(101)}, b.1` }),
  );
  expect(read).toMatchObject({ ok: true, value: { parents: ['a.1', 'b.1'] } });
});
