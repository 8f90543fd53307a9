// What becomes of a slot when an upstream's answer cannot be passed on.
import { expect, it } from 'vitest';
import { onTimer } from '../../src/upstream/call-clock.ts';
import { HeldCall } from '../../src/upstream/held-call.ts';

it.each([
  ['a status that is none', 999, {}],
  ['a length that is none', 200, { 'content-length': '5, 6' }],
])('an answer with %s ends the call as failed', async (_, status, init) => {
  const limits = { idleMs: null, maxHoldMs: 60_000 };
  const held = new HeldCall(new AbortController().signal, limits, onTimer);
  const body = new Response('hello').body;
  const answer = { status, statusText: '', headers: new Headers(init), body };
  const { response, done } = await held.relay(answer as Response, null);
  expect(response).toBeNull();
  expect(await done).toBe('failed');
});
