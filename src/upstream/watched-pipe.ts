/** Events of a stream are far smaller; a large answer comes in pieces of this length. */
const BUFFER_BYTES = 16_384;

/** How the chunks of a body go from one stream to another. */
export interface ChunkPipe {
  readonly signal: AbortSignal;
  /** Calls `onIdle`, which must abort `signal`, when the upstream sends nothing for so long. Null: never. */
  readonly idle: { readonly afterMs: number; readonly onIdle: () => void } | null;
  /** Takes each chunk; its answer goes on, before the next one comes. Neither may be kept. */
  readonly pass: (chunk: Uint8Array) => Uint8Array;
  /** What goes on behind the last chunk. */
  readonly last: () => Uint8Array;
}

/**
 * Pipes a body and watches for silence: `onIdle` is called when the upstream sends nothing for `idleMs`,
 * and must abort `signal`. Costs JavaScript for every chunk, which the native pipe does not: only for
 * groups that ask for it.
 */
export async function pipeWatched(
  body: ReadableStream<Uint8Array>,
  writable: WritableStream<Uint8Array>,
  signal: AbortSignal,
  idleMs: number,
  onIdle: () => void,
): Promise<void> {
  const idle = { afterMs: idleMs, onIdle };
  await pipeChunks(body, writable, { signal, idle, pass: unchanged, last: nothing });
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
  { signal, idle, pass, last }: ChunkPipe,
): Promise<void> {
  const reader = body.getReader({ mode: 'byob' });
  const writer = writable.getWriter();
  const abort = new AbortWatch(signal);
  const silence = idle === null ? null : new Silence(idle.afterMs, idle.onIdle);
  let buffer = new ArrayBuffer(BUFFER_BYTES);
  try {
    for (;;) {
      silence?.begin();
      const { done, value } = await abort.or(reader.read(new Uint8Array(buffer)));
      silence?.end();
      if (done) break;
      buffer = value.buffer;
      const passed = pass(value);
      if (passed.length > 0) await abort.or(writer.write(passed));
    }
    const rest = last();
    if (rest.length > 0) await abort.or(writer.write(rest));
    await writer.close();
  } catch (error) {
    await Promise.allSettled([reader.cancel(error), writer.abort(error)]);
    throw error;
  } finally {
    silence?.stop();
    abort.stop();
  }
}

/** Ends the wait for a promise when a signal says so. A race with one promise would keep every loser. */
class AbortWatch {
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

/** Watches how long something takes. One timer for many times, because a timer for each costs more than they. */
class Silence {
  readonly #afterMs: number;
  readonly #onIdle: () => void;
  /** Null: nothing is waited for. */
  #beganAt: number | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(afterMs: number, onIdle: () => void) {
    this.#afterMs = afterMs;
    this.#onIdle = onIdle;
  }

  begin(): void {
    this.#beganAt = Date.now();
    this.#timer ??= setTimeout(this.#check, this.#afterMs);
  }

  end(): void {
    this.#beganAt = null;
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  readonly #check = (): void => {
    this.#timer = null;
    if (this.#beganAt === null) return;
    const leftMs = this.#beganAt + this.#afterMs - Date.now();
    if (leftMs <= 0) this.#onIdle();
    else this.#timer = setTimeout(this.#check, leftMs);
  };
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
