import { ReadableStream, WritableStream } from 'node:stream/web';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { onTimer } from '../../../../src/runtime/async.ts';
import { pipeMetered } from '../../../../src/upstream/transfer/watched-pipe.ts';
import type { ByteFilter } from '../../../../src/upstream/usage/usage-drop.ts';
import { encode } from './frames.ts';

/** A body, a client and a meter, each of which the test moves by hand. */
class MeteredPipe {
  readonly stop = new AbortController();
  readonly seen: string[] = [];
  readonly taken: string[] = [];
  readonly idle = vi.fn<() => void>(() => this.stop.abort());
  readonly stalled = vi.fn<() => void>(() => this.stop.abort());
  /** How the source and the sink ended. */
  cancelledWith: unknown = null;
  abortedWith: unknown = null;
  isClosed = false;
  /** Reads that wait for a chunk. */
  pulls = 0;
  readonly done: Promise<void>;
  #source: ReadableByteStreamController | null = null;
  readonly #writes: (() => void)[] = [];
  readonly #isSlow: boolean;

  constructor({
    isSlow = false,
    idleMs = null,
    stalledMs = null,
    filter = null,
  }: {
    isSlow?: boolean;
    idleMs?: number | null;
    stalledMs?: number | null;
    filter?: ByteFilter | null;
  } = {}) {
    this.#isSlow = isSlow;
    const body = new ReadableStream({
      type: 'bytes',
      start: (controller) => {
        this.#source = controller as ReadableByteStreamController;
      },
      pull: () => {
        this.pulls += 1;
      },
      cancel: (reason) => {
        this.cancelledWith = reason;
      },
    });
    const client = new WritableStream<Uint8Array>({
      write: (chunk) => this.#take(chunk),
      close: () => {
        this.isClosed = true;
      },
      abort: (reason) => {
        this.abortedWith = reason;
      },
    });
    const idle = idleMs === null ? null : { afterMs: idleMs, onOver: this.idle, after: onTimer };
    const stalled =
      stalledMs === null ? null : { afterMs: stalledMs, onOver: this.stalled, after: onTimer };
    const meter = {
      push: (chunk: Uint8Array) => this.seen.push(text(chunk)),
      end: () => ({ usage: null, outputTokensSeen: 0 }),
    };
    this.done = pipeMetered(
      body as globalThis.ReadableStream<Uint8Array>,
      client as globalThis.WritableStream<Uint8Array>,
      { signal: this.stop.signal, idle, stalled },
      { meter, filter },
    );
    this.done.catch(() => {});
  }

  async send(chunk: string): Promise<void> {
    this.#source?.enqueue(encode(chunk));
    await settled();
  }

  async end(): Promise<void> {
    this.#source?.close();
    this.#source?.byobRequest?.respond(0);
    await settled();
  }

  async fail(error: Error): Promise<void> {
    this.#source?.error(error);
    await settled();
  }

  /** The client takes the chunk that waits for it. */
  async take(): Promise<void> {
    this.#writes.shift()?.();
    await settled();
  }

  /** A native sink has taken the bytes when its write ends, and they may change then. */
  #take(chunk: Uint8Array): Promise<void> | void {
    if (!this.#isSlow) {
      this.taken.push(text(chunk));
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#writes.push(() => {
      this.taken.push(text(chunk));
      resolve();
    });
    return promise;
  }
}

function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
}

describe('a metered pipe', () => {
  test('passes every chunk on as it comes, and shows it to the meter', async () => {
    const pipe = new MeteredPipe();
    await pipe.send('one');
    expect(pipe.taken).toEqual(['one']);
    await pipe.send('two');
    await pipe.send('three');
    await pipe.end();
    await pipe.done;
    expect(pipe.taken).toEqual(['one', 'two', 'three']);
    expect(pipe.seen).toEqual(pipe.taken);
    expect(pipe.isClosed).toBe(true);
  });

  test('passes on what its filter leaves, and its rest; the meter sees everything', async () => {
    const filter = {
      push: (chunk: Uint8Array) => encode(text(chunk).replaceAll('x', '')),
      end: () => encode('rest'),
    };
    const pipe = new MeteredPipe({ filter });
    for (const chunk of ['axb', 'x', 'c']) await pipe.send(chunk);
    await pipe.end();
    await pipe.done;
    expect(pipe.taken).toEqual(['ab', 'c', 'rest']);
    expect(pipe.seen).toEqual(['axb', 'x', 'c']);
  });

  test('reads nothing more while the client has not taken a chunk', async () => {
    const pipe = new MeteredPipe({ isSlow: true });
    await pipe.send('one');
    const { pulls } = pipe;
    await pipe.send('two');
    await pipe.send('three');
    expect([pipe.pulls, pipe.seen]).toEqual([pulls, ['one']]);
    await pipe.take();
    expect(pipe.taken).toEqual(['one']);
    // What came meanwhile is one piece.
    expect(pipe.seen.join('')).toBe('onetwothree');
  });

  test.each([
    ['the upstream is silent', false],
    ['the client takes nothing', true],
  ])('ends at once by its signal while %s, and lets go of both', async (_, isSlow) => {
    const pipe = new MeteredPipe({ isSlow });
    await pipe.send('one');
    pipe.stop.abort();
    await pipe.take();
    await expect(pipe.done).rejects.toThrow('aborted');
    expect(pipe.cancelledWith).toBeInstanceOf(Error);
    expect(pipe.isClosed).toBe(false);
  });

  test('does not begin under a signal that has come', async () => {
    const stop = AbortSignal.abort();
    const body = new ReadableStream({ type: 'bytes' });
    const ended = pipeMetered(
      body as globalThis.ReadableStream<Uint8Array>,
      new WritableStream<Uint8Array>() as globalThis.WritableStream<Uint8Array>,
      { signal: stop, idle: null, stalled: null },
      { meter: { push() {} }, filter: null },
    );
    await expect(ended).rejects.toThrow('aborted');
  });

  test('breaks off when the upstream does', async () => {
    const pipe = new MeteredPipe();
    await pipe.send('one');
    await pipe.fail(new Error('connection lost'));
    await expect(pipe.done).rejects.toThrow('connection lost');
    expect(pipe.abortedWith).toMatchObject({ message: 'connection lost' });
    expect(pipe.isClosed).toBe(false);
  });
});

/** The clock of the isolate never goes back, from one test to the next neither. */
let startsAt = Date.now();

describe('silence', () => {
  beforeEach(() => {
    startsAt += 60_000;
    vi.useFakeTimers({ now: startsAt });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test('of the upstream is noticed when it has lasted', async () => {
    const pipe = new MeteredPipe({ idleMs: 100 });
    for (let chunk = 0; chunk < 5; chunk += 1) {
      await vi.advanceTimersByTimeAsync(90);
      await pipe.send('token');
    }
    await vi.advanceTimersByTimeAsync(99);
    expect(pipe.idle).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(pipe.idle).toHaveBeenCalledOnce();
    await expect(pipe.done).rejects.toThrow('aborted');
  });

  test('lasts no longer where the wall clock is set back', async () => {
    const pipe = new MeteredPipe({ idleMs: 10_000 });
    await vi.advanceTimersByTimeAsync(4_000);
    await pipe.send('token');
    vi.setSystemTime(Date.now() - 3_600_000);
    await vi.advanceTimersByTimeAsync(9_999);
    expect(pipe.idle).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(pipe.idle).toHaveBeenCalledOnce();
  });

  test('of a client that takes nothing is none', async () => {
    const pipe = new MeteredPipe({ idleMs: 100, isSlow: true });
    await pipe.send('one');
    await vi.advanceTimersByTimeAsync(1_000);
    expect(pipe.idle).not.toHaveBeenCalled();
    await pipe.take();
    await vi.advanceTimersByTimeAsync(99);
    expect(pipe.idle).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(pipe.idle).toHaveBeenCalledOnce();
  });

  test('a client that takes nothing of what is there is noticed, a slow one is not', async () => {
    const pipe = new MeteredPipe({ idleMs: 1_000, stalledMs: 100, isSlow: true });
    for (let chunk = 0; chunk < 5; chunk += 1) {
      await pipe.send('token');
      await vi.advanceTimersByTimeAsync(90);
      await pipe.take();
    }
    // Nothing is there for it.
    await vi.advanceTimersByTimeAsync(500);
    await pipe.send('last');
    await vi.advanceTimersByTimeAsync(99);
    expect(pipe.stalled).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(pipe.stalled).toHaveBeenCalledOnce();
    expect(pipe.idle).not.toHaveBeenCalled();
  });

  test('is watched no longer when the body has ended', async () => {
    const pipe = new MeteredPipe({ idleMs: 100, stalledMs: 100 });
    await pipe.send('one');
    await pipe.end();
    await pipe.done;
    expect(vi.getTimerCount()).toBe(0);
  });
});
