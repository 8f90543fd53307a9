import { BoundWatch, type TimeBound } from './bound-watch.ts';

/**
 * Bytes of the buffer. Events of a stream are far smaller; a large answer comes in pieces of this length.
 */
const BUFFER_BYTES = 16_384;

/** How the chunks of a body go from one stream to another. */
export interface ChunkPipe {
  readonly signal: AbortSignal;
  /** How long the upstream may send nothing. Null: for ever. */
  readonly idle: TimeBound | null;
  /** How long the caller may take nothing of a chunk that is there for it. Null: for ever. */
  readonly stalled: TimeBound | null;
  /** Takes each chunk; its answer goes on, before the next one comes. Neither may be kept. */
  readonly pass: (chunk: Uint8Array) => Uint8Array;
  /** Bytes that go on behind the last chunk. */
  readonly last: () => Uint8Array;
}

/**
 * Pipes a body and watches both its sides. Costs JavaScript for every chunk, which the native pipe does not:
 * that one cannot be watched from outside, and to interrupt it may lose bytes.
 */
export async function pipeWatched(
  body: ReadableStream<Uint8Array>,
  writable: WritableStream<Uint8Array>,
  bounds: Pick<ChunkPipe, 'signal' | 'idle' | 'stalled'>,
): Promise<void> {
  await pipeChunks(body, writable, { ...bounds, pass: unchanged, last: nothing });
}

/**
 * Pipes a body chunk by chunk. A chunk is read when the one before it was taken, so a slow client slows the
 * upstream down; an abort, or a failure of either side, cancels the one, aborts the other and rejects.
 *
 * The body must be one of bytes, and the writable native: its write ends when the bytes were taken, so one
 * buffer does for all of them.
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

/** Ends the wait for a promise when a signal says so. A race with one promise would keep every loser. */
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
