import { expect, it } from 'vitest';
import { ACCOUNT_SELECTORS } from '../../../../src/providers/accounts.ts';
import { dropAccounts } from '../../../../src/upstream/transfer/credentials.ts';
import {
  acceptedSubprotocol,
  dropSubprotocols,
  keysInSubprotocols,
} from '../../../../src/upstream/transfer/tokens.ts';

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

it.each([
  'openai-organization.o',
  'OpenAI-Organization.o',
  'openai_project.p',
  'cf-aig-authorization.token',
  'cf-aig-byok-alias.other',
  'x-portkey-config.pc',
])('takes out what selects an account or steers a gateway, in any spelling: %s', (offered) => {
  const headers = offering(`realtime, ${offered}, openai-beta.realtime-v1`);
  const dropped = dropAccounts(headers, new URLSearchParams(), ACCOUNT_SELECTORS);
  expect(headers.get('sec-websocket-protocol')).toBe('realtime, openai-beta.realtime-v1');
  expect(dropped).toEqual([offered.slice(0, offered.indexOf('.'))]);
});

it.each([
  ['openai-insecure-api-key.sk-1, openai-project.p, realtime, x', 'realtime'],
  ['openai-insecure-api-key.sk-1', null],
  ['', null],
])('accepts the first one that is no key: %s', (offered, expected) => {
  expect(acceptedSubprotocol(offering(offered))).toBe(expected);
});

it('finds a key in any spelling', () => {
  expect(keysInSubprotocols(offering('OpenAI-Insecure-API-Key.hg_1'))).toEqual(['hg_1']);
});
