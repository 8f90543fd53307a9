import { BoundWatch, type TimeBound } from './bound-watch.ts';

/** Size of the buffer in bytes. Stream events are far smaller. A large body arrives in pieces of this length. */
const BUFFER_BYTES = 16_384;

export interface ChunkPipe {
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
