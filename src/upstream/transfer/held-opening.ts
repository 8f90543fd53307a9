import type { Schedule } from '../../runtime/clock.ts';
import type { Judgement } from '../opening/judge-record.ts';
import type { OpeningReader } from '../opening/opening-reader.ts';

export interface HoldBack {
  /** Maximum time and bytes to hold back. The beginning is passed on after that. null waits until the call is cut. */
  readonly waitMs: number | null;
  readonly bytesMax: number;
  readonly signal: AbortSignal;
  readonly after: Schedule;
}

type StreamRead = ReadableStreamReadResult<Uint8Array>;

/**
 * The beginning of a body, read before anything is passed on. The rest stays in the body, which is piped natively. A
 * tee in front of it would cost CPU for every chunk.
 */
export class HeldOpening {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #pieces: Uint8Array[] = [];
  /** A read that was in progress when the time ran out. Its bytes come next. */
  #pending: Promise<StreamRead> | null = null;
  #bytes = 0;

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader();
  }

  /**
   * Reads until the beginning is more than a prelude, or a limit is reached. Throws if the body breaks or the call is
   * cut.
   */
  async read(
    opening: OpeningReader,
    { waitMs, bytesMax, signal, after }: HoldBack,
  ): Promise<Judgement> {
    const over = Promise.withResolvers<null>();
    const onAbort = (): void => over.reject(new Error('aborted'));
    const callOff = waitMs === null ? null : after(waitMs, () => over.resolve(null));
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      signal.throwIfAborted();
      while (this.#bytes < bytesMax) {
        const pending = this.#reader.read();
        const read = await Promise.race([pending, over.promise]);
        if (read === null) {
          this.#pending = pending;
          return 'prelude';
        }
        if (read.done) return opening.end();
        this.#pieces.push(read.value);
        this.#bytes += read.value.length;
        const judgement = opening.push(read.value);
        if (judgement !== 'prelude') return judgement;
      }
      return 'prelude';
    } finally {
      callOff?.();
      signal.removeEventListener('abort', onAbort);
    }
  }

  giveUp(): void {
    this.#reader.cancel().catch(() => {});
  }

  /** Writes the bytes that were read, in order. The rest stays in the body. */
  async passOn(write: (piece: Uint8Array) => Promise<void>): Promise<void> {
    for (const piece of this.#pieces) await write(piece);
    const last = await this.#pending;
    if (last?.done === false) await write(last.value);
    this.#reader.releaseLock();
  }

  /** The whole body with its beginning. Runs JavaScript for every chunk. */
  body(): ReadableStream<Uint8Array> {
    const pieces = this.#pieces.values();
    return new ReadableStream({
      type: 'bytes',
      pull: async (controller) => {
        const next = pieces.next();
        const read = next.done === true ? await this.#next() : { done: false, value: next.value };
        if (!read.done && read.value !== undefined) return controller.enqueue(read.value);
        controller.close();
        controller.byobRequest?.respond(0);
      },
      cancel: (reason) => this.#reader.cancel(reason),
    });
  }

  #next(): Promise<StreamRead> {
    const pending = this.#pending ?? this.#reader.read();
    this.#pending = null;
    return pending;
  }
}
