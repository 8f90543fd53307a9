// What becomes of a call whose upstream gives an answer that cannot be passed on, or must be passed on at once.
import { expect, it } from 'vitest';
import { PlainAbort, onTimer } from '../../src/runtime/async.ts';
import type { Fetcher } from '../../src/upstream/transfer/fetch-answer.ts';
import { HeldCall } from '../../src/upstream/transfer/held-call.ts';

const LIMITS = {
  idleMs: null,
  stalledMs: null,
  uploadMinBytesPerS: 0,
  maxHoldMs: 60_000,
  maxRunMs: 0,
};

it.each([
  ['a status that is none', 999, {}],
  ['a length that is none', 200, { 'content-length': '5, 6' }],
  ['a length that no stream has', 200, { 'content-length': '99999999999999999999' }],
])('an answer with %s is none, and its upstream is let go', async (_, status, given) => {
  const held = new HeldCall(new AbortController().signal, LIMITS, onTimer);
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

it('a stream is passed on as it comes, even if its length is known', async () => {
  const held = new HeldCall(new AbortController().signal, LIMITS, onTimer);
  const first = new TextEncoder().encode('data: {"text":"a"}\n\n');
  const more = Promise.withResolvers<void>();
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(first),
    pull: async (controller) => {
      await more.promise;
      controller.enqueue(first);
      controller.close();
    },
  });
  const length = String(2 * first.length);
  const headers = { 'content-type': 'text/event-stream', 'content-length': length };
  const { response, done } = await held.relay(new Response(body, { headers }), null);
  const reader = response?.body?.getReader();
  expect((await reader?.read())?.value).toEqual(first);
  more.resolve();
  expect((await reader?.read())?.value).toEqual(first);
  expect((await reader?.read())?.done).toBe(true);
  expect([await done, response?.headers.get('content-length')]).toEqual(['success', length]);
});

/** A caller's signal that says how many listen to it. */
class CountedAbort extends PlainAbort {
  listeners = 0;

  override addEventListener(type: 'abort', listener: () => void): void {
    this.listeners += 1;
    super.addEventListener(type, listener);
  }

  override removeEventListener(type: 'abort', listener: () => void): void {
    this.listeners -= 1;
    super.removeEventListener(type, listener);
  }
}

const answerOf = (body: BodyInit, length?: number): Response =>
  new Response(body, length === undefined ? {} : { headers: { 'content-length': String(length) } });

it.each([
  ['a small answer', () => answerOf('hello', 5)],
  ['a stream', () => answerOf(new Blob(['hello']).stream())],
])('a call that has passed on %s listens to its caller no longer', async (_, answer) => {
  const caller = new CountedAbort();
  const held = new HeldCall(caller, LIMITS, onTimer);
  expect(caller.listeners).toBe(1);
  const { response, done } = await held.relay(answer(), null);
  expect([await response?.text(), await done]).toEqual(['hello', 'success']);
  expect(caller.listeners).toBe(0);
});

it('an abandoned call removes its listener from the signal of its caller', () => {
  const caller = new CountedAbort();
  new HeldCall(caller, LIMITS, onTimer).giveUp();
  expect(caller.listeners).toBe(0);
});
