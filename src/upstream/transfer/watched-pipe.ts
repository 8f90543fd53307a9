import { steadyClock, type Schedule } from '../../runtime/async.ts';
import type { ByteFilter } from '../usage/usage-drop.ts';
import type { UsageMeter } from '../usage/usage-meter.ts';

/** Time limits of bodies: the pace of an upload, and pipes of a response, as it is or metered. */

export interface UploadPaceOptions extends Pick<HoldLimits, 'stalledMs' | 'uploadMinBytesPerS'> {
  readonly after: Schedule;
  /** Called when the caller has fallen too far behind. */
  readonly onOver: () => void;
  /** Called when Headgate starts to wait for the caller, and when a piece has arrived. */
  readonly onWait?: () => void;
  readonly onPiece?: () => void;
}

/**
 * Watches how fast a caller sends its body while its call holds a slot. Only time spent waiting for the caller counts,
 * not time in which the upstream reads.
 *
 * It is a leaky bucket of time. Waiting drains it, and each byte refills it by its time at the minimum rate. It holds
 * at most `stalledMs`, so a caller that stops is cut after that time, whatever it sent before. A caller that sends only
 * drips is cut a little later. A slow caller may pause if it catches up.
 */
export class UploadPace {
  readonly #options: UploadPaceOptions;
  readonly #mostMs: number;
  #leftMs: number;
  /** Start of the current wait. null if the caller is not being waited for. */
  #waitsSince: number | null = null;
  #callOff: (() => void) | null = null;

  constructor(options: UploadPaceOptions) {
    this.#options = options;
    this.#mostMs = options.stalledMs ?? Infinity;
    this.#leftMs = this.#mostMs;
  }

  get isWaiting(): boolean {
    return this.#waitsSince !== null;
  }

  /** Starts to wait for the next piece. */
  begin(): void {
    const now = steadyClock.now();
    this.#waitsSince = now;
    this.#options.onWait?.();
    // A timer that is already set fires no later than this one would.
    if (this.#callOff === null && this.#leftMs < Infinity) this.#arm(now + this.#leftMs);
  }

  /** Called when a piece or the end has arrived. */
  got(bytes: number): void {
    if (this.#waitsSince === null) return;
    const { uploadMinBytesPerS: rate, onPiece } = this.#options;
    const waitedMs = steadyClock.now() - this.#waitsSince;
    const refillMs = rate > 0 ? (bytes * 1_000) / rate : bytes > 0 ? Infinity : 0;
    this.#leftMs = Math.min(this.#mostMs, this.#leftMs - waitedMs + refillMs);
    this.#waitsSince = null;
    onPiece?.();
  }

  stop(): void {
    this.got(0);
    this.#callOff?.();
  }

  #arm(at: number): void {
    this.#callOff = this.#options.after(at - steadyClock.now(), () => this.#check(at));
  }

  #check(at: number): void {
    steadyClock.reach(at);
    this.#callOff = null;
    if (this.#waitsSince === null) return;
    const endsAt = this.#waitsSince + this.#leftMs;
    if (endsAt <= steadyClock.now()) this.#options.onOver();
    else this.#arm(endsAt);
  }
}

export interface HoldLimits {
  /** Longest silence of the upstream's body. null limits only the wait for its headers. */
  readonly idleMs: number | null;
  /**
   * Longest time for which the caller may read nothing of the response, and by which its body may fall behind
   * `uploadMinBytesPerS`. null means no limit.
   */
  readonly stalledMs: number | null;
  /** Minimum rate at which the caller sends its body. 0 allows any rate, but no pause of `stalledMs`. */
  readonly uploadMinBytesPerS: number;
  readonly maxHoldMs: number;
  /**
   * Longest time for which work that continues at the upstream after the response holds the slots. 0 releases them with
   * the response.
   */
  readonly maxRunMs: number;
}

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
