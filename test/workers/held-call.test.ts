// What becomes of a call whose upstream gives an answer that cannot be passed on.
import { expect, it } from 'vitest';
import { onTimer } from '../../src/runtime/call-clock.ts';
import type { Fetcher } from '../../src/upstream/transfer/fetch-answer.ts';
import { HeldCall } from '../../src/upstream/transfer/held-call.ts';

it.each([
  ['a status that is none', 999, {}],
  ['a length that is none', 200, { 'content-length': '5, 6' }],
  ['a length that no stream has', 200, { 'content-length': '99999999999999999999' }],
])('an answer with %s is none, and its upstream is let go', async (_, status, given) => {
  const limits = {
    idleMs: null,
    stalledMs: null,
    uploadMinBytesPerS: 0,
    maxHoldMs: 60_000,
    maxRunMs: 0,
  };
  const held = new HeldCall(new AbortController().signal, limits, onTimer);
  const { body } = new Response('hello');
  const answer = { status, statusText: '', headers: new Headers(given), body } as Response;
  let signal: AbortSignal | null | undefined;
  const fetcher: Fetcher = {
    fetch: (_url, init) => {
      signal = init.signal;
      return Promise.resolve(answer);
    },
  };
  expect(await held.send(fetcher, 'https://upstream.test', {})).toBeNull();
  expect(signal?.aborted).toBe(true);
  expect(held.cutBy).toBeNull();
});
