import { createHmac } from 'node:crypto';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { isSigned } from '../../../src/runtime/webhook.ts';

const NOW_S = 1_750_000_000;
const KEY = Buffer.from('a key of 16 bytes');
const SECRET = `whsec_${KEY.toString('base64')}`;

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: NOW_S * 1_000 }));
afterEach(() => void vi.useRealTimers());

function sign(key: Uint8Array, timestamp: string, body = 'x', id = 'm'): string {
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
}

function headersFor(key: Uint8Array, more: Record<string, string> = {}, at = NOW_S): Headers {
  return new Headers({
    'webhook-id': 'm',
    'webhook-timestamp': String(at),
    'webhook-signature': sign(key, String(at)),
    ...more,
  });
}

it.each([
  ['base64', SECRET, KEY],
  ['plain text', 'plain text, ä', Buffer.from('plain text, ä')],
])('a message is signed by a secret of %s', (_, secret, key) => {
  expect(isSigned(headersFor(key), 'x', secret)).toBe(true);
  expect(isSigned(headersFor(key), 'y', secret)).toBe(false);
  expect(isSigned(headersFor(key, { 'webhook-id': 'n' }), 'x', secret)).toBe(false);
});

it('one of several signatures is enough, whatever the others are', () => {
  const right = sign(KEY, String(NOW_S));
  const signedAs = (list: string): boolean =>
    isSigned(headersFor(KEY, { 'webhook-signature': list }), 'x', SECRET);
  expect(signedAs(`v1,!!! v1 v2,${right.slice(3)} ${right}`)).toBe(true);
  expect(signedAs(`v2,${right.slice(3)}`)).toBe(false);
  expect(signedAs('v1,')).toBe(false);
  expect(signedAs('')).toBe(false);
});

it.each([
  [0, true],
  [-299, true],
  [299, true],
  [-301, false],
  [301, false],
])('a message of %i s from now: %s', (offset, expected) => {
  expect(isSigned(headersFor(KEY, {}, NOW_S + offset), 'x', SECRET)).toBe(expected);
});

it.each(['webhook-id', 'webhook-timestamp', 'webhook-signature'])(
  'a message without %s is not signed',
  (name) => {
    const headers = headersFor(KEY);
    headers.delete(name);
    expect(isSigned(headers, 'x', SECRET)).toBe(false);
  },
);

it.each(['whsec_', 'whsec_!', ''])('nothing is signed by the unusable secret %s', (secret) => {
  expect(isSigned(headersFor(new Uint8Array()), 'x', secret)).toBe(false);
});
