import { steadyClock, type Schedule } from '../../runtime/async.ts';
import type { ByteFilter } from '../usage/usage-drop.ts';
import type { UsageMeter } from '../usage/usage-meter.ts';

/** Pipes a response body under time limits, as it is or metered. */

/** A time limit. `onOver` is called when it is reached, and must abort the pipe's signal. */
export interface TimeBound {
  readonly afterMs: number;
  readonly onOver: () => void;
  readonly after: Schedule;
}

/**
 * Watches how long repeated operations take. All of them share one timer, because a timer for each would cost more than
 * the operations.
 */
export class BoundWatch {
  readonly #bound: TimeBound;
  /** Start of the current operation. null if none is in progress. */
  #beganAt: number | null = null;
  #callOff: (() => void) | null = null;

  constructor(bound: TimeBound) {
    this.#bound = bound;
  }

  begin(): void {
    this.#beganAt = steadyClock.now();
    if (this.#callOff === null) this.#arm(this.#beganAt + this.#bound.afterMs);
  }

  end(): void {
    this.#beganAt = null;
  }

  stop(): void {
    this.#callOff?.();
  }

  #arm(at: number): void {
    this.#callOff = this.#bound.after(at - steadyClock.now(), () => this.#check(at));
  }

  #check(at: number): void {
    steadyClock.reach(at);
    this.#callOff = null;
    if (this.#beganAt === null) return;
    const endsAt = this.#beganAt + this.#bound.afterMs;
    if (endsAt <= steadyClock.now()) this.#bound.onOver();
    else this.#arm(endsAt);
  }
}

/** Size of the buffer in bytes. Stream events are far smaller. A large body arrives in pieces of this length. */
const BUFFER_BYTES = 16_384;

interface ChunkPipe {
  readonly signal: AbortSignal;
  /** How long the upstream may send nothing. null means no limit. */
  readonly idle: TimeBound | null;
  /** How long the caller may leave an available chunk unread. null means no limit. */
  readonly stalled: TimeBound | null;
  /** Receives each chunk and returns the bytes to pass on before the next one. Neither may be kept. */
  readonly pass: (chunk: Uint8Array) => Uint8Array;
  /** Returns the bytes to pass on after the last chunk. */
  readonly last: () => Uint8Array;
}

/**
 * Pipes a body and watches both sides. It runs JavaScript for every chunk. The native pipe does not, but it cannot be
 * watched from outside, and interrupting it may lose bytes.
 */
export async function pipeWatched(
  body: ReadableStream<Uint8Array>,
  writable: WritableStream<Uint8Array>,
  bounds: Pick<ChunkPipe, 'signal' | 'idle' | 'stalled'>,
): Promise<void> {
  await pipeChunks(body, writable, { ...bounds, pass: unchanged, last: nothing });
}

/**
 * Pipes a body chunk by chunk. A chunk is read when the previous one was accepted, so a slow client slows down the
 * upstream. An abort or a failure of either side cancels the reader, aborts the writer and rejects.
 *
 * The body must be a byte stream, and the writable must be native. A native write ends when its bytes were accepted, so
 * one buffer serves all chunks.
 */
export async function pipeChunks(
  body: ReadableStream<Uint8Array>,
  writable: WritableStream<Uint8Array>,
  { signal, idle, stalled, pass, last }: ChunkPipe,
): Promise<void> {
  const reader = body.getReader({ mode: 'byob' });
  const writer = writable.getWriter();
  const abort = new AbortWatch(signal);
  const reading = idle === null ? null : new BoundWatch(idle);
  const writing = stalled === null ? null : new BoundWatch(stalled);
  const write = async (chunk: Uint8Array): Promise<void> => {
    if (chunk.length === 0) return;
    writing?.begin();
    await abort.or(writer.write(chunk));
    writing?.end();
  };
  let buffer = new ArrayBuffer(BUFFER_BYTES);
  try {
    for (;;) {
      reading?.begin();
      const { done, value } = await abort.or(reader.read(new Uint8Array(buffer)));
      reading?.end();
      if (done) break;
      buffer = value.buffer;
      await write(pass(value));
    }
    await write(last());
    writing?.begin();
    await abort.or(writer.close());
  } catch (error) {
    await Promise.allSettled([reader.cancel(error), writer.abort(error)]);
    throw error;
  } finally {
    reading?.stop();
    writing?.stop();
    abort.stop();
  }
}

/** Rejects the wait for a promise when a signal aborts. A race with one long-lived promise would retain every loser. */
export class AbortWatch {
  readonly #signal: AbortSignal;
  readonly #fire = (): void => this.#reject(aborted());
  #reject: (error: Error) => void = () => {};

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener('abort', this.#fire, { once: true });
  }

  or<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      promise.then(resolve, reject);
      if (this.#signal.aborted) reject(aborted());
    });
  }

  stop(): void {
    this.#signal.removeEventListener('abort', this.#fire);
  }
}

function aborted(): Error {
  return new Error('aborted');
}

function unchanged(chunk: Uint8Array): Uint8Array {
  return chunk;
}

function nothing(): Uint8Array {
  return new Uint8Array();
}

export interface PipeMetering {
  readonly meter: Pick<UsageMeter, 'push'>;
  /** Removes something from the body after the meter has read it. null if everything is passed on. */
  readonly filter: ByteFilter | null;
}

/**
 * Pipes a body and passes every chunk to a meter.
 *
 * The cost is that JavaScript runs for each chunk at all. The 1 to 2 µs of the meter itself are negligible. CPU per
 * chunk on workerd 1.20260918.1, as a multiple of the native identity pipe (50 streams of 400 chunks of 245 bytes,
 * medians of three rounds on a busy machine, November 2026):
 * - a reader with one buffer and a writer, as here: 2.0. With a new buffer for every chunk: 2.3. With a race against
 *   one promise for the abort: 2.4. With a timer for every chunk as well: 3.3.
 * - `for await`: 2.7. A pipe to a JavaScript sink: 2.6. A JavaScript transform: 3.0.
 * - a tee with a reader next to the native pipe: 2.1, but a slow client does not slow down the upstream. With a reader
 *   that waits for 16 kB: 0.5, but the client has to wait for them too.
 *
 * Event streams from which nothing is removed use `observed-pipe.ts`, which runs no JavaScript per chunk.
 * `bench/metering.ts` measures the total.
 */
export function pipeMetered(
  body: ReadableStream<Uint8Array>,
  writable: WritableStream<Uint8Array>,
  bounds: Pick<ChunkPipe, 'signal' | 'idle' | 'stalled'>,
  { meter, filter }: PipeMetering,
): Promise<void> {
  return pipeChunks(body, writable, {
    ...bounds,
    pass(chunk) {
      meter.push(chunk);
      return filter === null ? chunk : filter.push(chunk);
    },
    last: () => filter?.end() ?? new Uint8Array(),
  });
}
