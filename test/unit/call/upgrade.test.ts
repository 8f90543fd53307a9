import { expect, it } from 'vitest';
import { isUpgrade } from '../../../src/call/socket/upgrade.ts';

it.each([
  ['GET', 'websocket', true],
  ['GET', 'WebSocket', true],
  ['GET', 'h2c', false],
  ['POST', 'websocket', false],
])('a %s with Upgrade: %s is a WebSocket: %s', (method, upgrade, expected) => {
  expect(isUpgrade({ method, headers: new Headers({ upgrade }) })).toBe(expected);
});
