import { expect, it } from 'vitest';
import { isUpgrade } from '../../../src/call/request/upgrade.ts';

it.each([
  ['GET', 'websocket', true],
  ['GET', 'WebSocket', true],
  ['GET', 'h2c', false],
  ['POST', 'websocket', false],
])('a %s with Upgrade: %s is a WebSocket: %s', (method, upgrade, expected) => {
  const request = new Request('https://example.com/', { headers: { upgrade } });
  expect(isUpgrade({ method, request })).toBe(expected);
});
