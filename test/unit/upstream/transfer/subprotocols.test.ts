import { expect, it } from 'vitest';
import {
  dropSubprotocols,
  keysInSubprotocols,
} from '../../../../src/upstream/transfer/subprotocols.ts';

function offering(text: string): Headers {
  return new Headers({ 'sec-websocket-protocol': text });
}

it('finds the key that a page says among its subprotocols', () => {
  expect(keysInSubprotocols(offering('realtime, openai-insecure-api-key.sk-1, x.y'))).toEqual([
    'sk-1',
  ]);
  expect(keysInSubprotocols(new Headers())).toEqual([]);
});

it.each([
  ['realtime, openai-insecure-api-key.hg_1, x.y', 'realtime, x.y'],
  ['openai-insecure-api-key.hg_1', null],
  ['realtime, openai-organization.o, openai-project.p, openai-insecure-api-key.hg_1', 'realtime'],
  ['realtime, openai-organization.o, openai-insecure-api-key.sk-1', null],
])('takes out the keys that leave, and whose account they are for: %s', (offered, left) => {
  const headers = offering(offered);
  dropSubprotocols(headers, (key) => key.startsWith('hg_'));
  const expected = offered.includes('hg_') ? left : offered;
  expect(headers.get('sec-websocket-protocol')).toBe(expected);
});
