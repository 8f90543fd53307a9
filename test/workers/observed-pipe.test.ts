// A body that is piped natively, and looked at now and then.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Schedule } from '../../src/runtime/async.ts';
import { pipeObserved } from '../../src/upstream/transfer/observed-pipe.ts';
import { strictScope } from './support/strict.ts';

/** A pipe whose looks, upstream and caller the test moves by hand. */
class ObservedPipe {
  readonly said: string[] = [];
  /** Milliseconds to each look, as far as one was waited for. */
  readonly rests: number[] = [];
  readonly done: Promise<void>;
  readonly #caller: ReadableStreamDefaultReader<Uint8Array>;
  readonly #due = new Set<() => void>();
  #source: ReadableByteStreamController | null = null;

  constructor(body: ReadableStream<Uint8Array> | null = null, stop = new AbortController()) {
    const { readable, writable } = new IdentityTransformStream();
    const [out, taken] = readable.tee();
    this.#caller = out.getReader();
    const after: Schedule = (ms, run) => {
      this.rests.push(ms);
      this.#due.add(run);
      return () => this.#due.delete(run);
    };
    this.done = pipeObserved(body ?? this.#own(), writable, taken, {
      signal: stop.signal,
      idle: null,
      stalled: null,
      after,
      onSaid: (bytes) => this.said.push(new TextDecoder().decode(bytes)),
    });
    this.done.catch(() => {});
  }

  /** The upstream says something, and the caller gets it at once. */
  async pass(text: string): Promise<string> {
    this.say(text);
    const { value } = await this.#caller.read();
    return new TextDecoder().decode(value);
  }

  say(text: string): void {
    this.#source?.enqueue(new TextEncoder().encode(text));
  }

  end(): void {
    this.#source?.close();
  }

  /** The upstream says something long, and the caller gets it piece by piece. */
  async passLong(text: string): Promise<void> {
    let { length } = await this.pass(text);
    while (length < text.length) length += (await this.#caller.read()).value?.length ?? NaN;
  }

  /** Reads what the caller gets up to the end of so many events. */
  async events(count: number): Promise<string> {
    const decoder = new TextDecoder();
    let text = '';
    while (text.split('\n\n').length <= count) {
      const { done, value } = await this.#caller.read();
      if (done) throw new Error(`it ended behind ${text}`);
      text += decoder.decode(value, { stream: true });
    }
    return text;
  }

  /** Reads what the caller gets from now on, until that fails. */
  async untilBroken(): Promise<string> {
    const decoder = new TextDecoder();
    let text = '';
    for (;;) {
      const read = await this.#caller.read().catch(() => null);
      if (read === null) return text;
      if (read.done) throw new Error('a clean end');
      text += decoder.decode(read.value, { stream: true });
    }
  }

  #own(): ReadableStream<Uint8Array> {
    return new ReadableStream({
      type: 'bytes',
      start: (controller) => {
        this.#source = controller as ReadableByteStreamController;
      },
    }) as ReadableStream<Uint8Array>;
  }

  /** Reads all that the caller gets from now on. */
  async rest(): Promise<string> {
    const decoder = new TextDecoder();
    let text = '';
    for (;;) {
      const { done, value } = await this.#caller.read();
      if (done) return text;
      text += decoder.decode(value, { stream: true });
    }
  }

  /** Waits until so many looks have found something, or wait for it, and rest. */
  async looked(times: number): Promise<void> {
    while (this.rests.length < times) await turn();
    for (let turns = 0; turns < 5; turns += 1) await turn();
  }

  /** Lets the next look begin, once one is waited for. */
  async look(): Promise<void> {
    while (this.#due.size === 0) await turn();
    const due = [...this.#due];
    this.#due.clear();
    for (const run of due) run();
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0);
  });
}

it('chunks go on with nobody looking, and are heard at once where they have become many', async () => {
  const pipe = new ObservedPipe();
  const token = 'token'.repeat(100);
  for (let chunk = 0; chunk < 50; chunk += 1) expect(await pipe.pass(token)).toBe(token);
  await pipe.looked(1);
  expect(pipe.said).toEqual([]);
  await pipe.look();
  await pipe.looked(2);
  expect(pipe.said).toEqual([token.repeat(50)]);
});

it('looks get further apart while little passes, and come sooner where much does', async () => {
  const pipe = new ObservedPipe();
  for (let looks = 1; looks <= 4; looks += 1) {
    await pipe.pass('token');
    await pipe.looked(looks);
    await pipe.look();
  }
  await pipe.pass('token');
  await pipe.looked(5);
  expect(pipe.rests).toEqual([8, 64, 500, 500, 500]);
  await pipe.passLong('x'.repeat(100_000));
  await pipe.look();
  await pipe.looked(7);
  expect(pipe.rests.slice(5).map(Math.round)).toEqual([500, 82]);
});

it('the end comes when all was heard, without another look', async () => {
  const pipe = new ObservedPipe();
  await pipe.pass('first');
  await pipe.looked(1);
  // More than a read takes.
  const long = 'x'.repeat(100_000);
  pipe.say(long);
  pipe.say('last');
  pipe.end();
  expect(await pipe.rest()).toBe(`${long}last`);
  await pipe.done;
  expect(pipe.said.join('')).toBe(`first${long}last`);
});

it.each([
  ['the call is cut', { silentAfterChunks: 5 }],
  ['the upstream breaks off', { breakAfterChunks: 5 }],
])(
  'where %s, what came since the last look was heard, and the caller sees no clean end',
  async (why, settings) => {
    const { url } = await strictScope('observed', { chunks: 9, chunkDelayMs: 50, ...settings });
    const stop = new AbortController();
    const { body } = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'gpt', stream: true, messages: [] }),
      signal: stop.signal,
    });
    const pipe = new ObservedPipe(body, stop);
    const got = await pipe.events(5);
    // The first look heard the beginning, and no other has begun.
    expect(pipe.said.join('').length).toBeLessThan(got.length);
    if (why === 'the call is cut') stop.abort();
    const rest = await pipe.untilBroken();
    await expect(pipe.done).rejects.toBeInstanceOf(Error);
    expect(pipe.said.join('')).toBe(got + rest);
  },
);

it('whatever the chunks and the moments of looks, both sides get the same bytes', async () => {
  const chunk = fc.string({ minLength: 1, maxLength: 6_000, unit: 'binary-ascii' });
  const steps = fc.array(fc.record({ chunk, looks: fc.boolean() }), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      const pipe = new ObservedPipe();
      const rest = pipe.rest();
      for (const { chunk: text, looks } of all) {
        pipe.say(text);
        await turn();
        if (looks) await pipe.look();
      }
      pipe.end();
      await pipe.done;
      const whole = all.map(({ chunk: text }) => text).join('');
      expect(await rest).toBe(whole);
      expect(pipe.said.join('')).toBe(whole);
    }),
    { numRuns: 30 },
  );
});
