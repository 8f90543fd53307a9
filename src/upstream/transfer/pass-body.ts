import type { Schedule } from '../../runtime/async.ts';
import { mediaType } from '../../runtime/header-value.ts';
import type { Judgement } from '../opening/judge-record.ts';
import type { OpeningReader } from '../opening/opening-reader.ts';
import {
  pipeMetered,
  BoundWatch,
  AbortWatch,
  pipeWatched,
  type PipeMetering,
  type TimeBound,
} from './watched-pipe.ts';
import { pipeObserved } from './observed-pipe.ts';

/** Passes a response body to the caller. Its opening is held back until it is certain that it contains no error. */

interface HoldBack {
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

/** How long a body that broke off while it was held back stays open, so that its headers reach the caller. */
const FLUSH_MS = 50;

/** Types of bodies that consist of small events, each of which must be passed on immediately. */
const EVENTS: ReadonlySet<string> = new Set([
  'text/event-stream',
  'application/x-ndjson',
  'application/jsonl',
  'application/vnd.amazon.eventstream',
]);

export interface BodyStreams {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
  /** A readable copy of what the caller has read. null if nothing observes the body. */
  readonly taken: ReadableStream<Uint8Array> | null;
}

interface BodyPassage {
  readonly signal: AbortSignal;
  /** Maximum silence of the upstream. null means no limit. */
  readonly idle: TimeBound | null;
  /** Maximum time for which the caller may read nothing of what was sent. null means no limit. */
  readonly stalled: TimeBound | null;
  readonly after: Schedule;
  readonly metering: PipeMetering | null;
  /** The beginning of the body, if it has already been read. */
  readonly opening: HeldOpening | null;
  readonly hasBroken: boolean;
}

export function comesInEvents(contentType: string | null): boolean {
  return EVENTS.has(mediaType(contentType));
}

/**
 * Creates the streams through which a body reaches the caller.
 *
 * @param length length of the body in bytes. null if it is unknown or a filter removes something
 * @param isWatched whether silences are limited
 */
export function bodyStreams(
  length: string | null,
  contentType: string | null,
  isWatched: boolean,
  metering: PipeMetering | null,
): BodyStreams {
  const { readable, writable } =
    length === null ? new IdentityTransformStream() : new FixedLengthStream(BigInt(length));
  // If the body is only observed, it can be read after it was passed on.
  const looksInto = metering === null ? isWatched : metering.filter === null;
  if (length !== null || !looksInto || !comesInEvents(contentType)) {
    return { readable, writable, taken: null };
  }
  const [out, taken] = readable.tee();
  return { readable: out, writable, taken };
}

/** Passes a body on through the cheapest pipe that can observe what is needed. Rejects if either side breaks. */
export async function passBody(
  body: ReadableStream<Uint8Array>,
  { writable, taken }: BodyStreams,
  passing: BodyPassage,
): Promise<void> {
  const { signal, idle, stalled, after, metering, opening, hasBroken } = passing;
  const passed = opening === null ? 0 : await passOpening(opening, writable, passing);
  if (hasBroken) await new Promise<void>((done) => after(FLUSH_MS, done));
  if (taken !== null) {
    const { meter = null } = metering ?? {};
    const onSaid = (bytes: Uint8Array): void => meter?.push(bytes);
    await pipeObserved(body, writable, taken, { signal, idle, stalled, after, onSaid, passed });
  } else if (metering !== null) {
    await pipeMetered(body, writable, { signal, idle, stalled }, metering);
  } else if (idle === null && stalled === null) {
    await body.pipeTo(writable, { signal });
  } else {
    await pipeWatched(body, writable, { signal, idle, stalled });
  }
}

/** Passes on the bytes of a body that were already read. Returns their number. */
async function passOpening(
  opening: HeldOpening,
  writable: WritableStream<Uint8Array>,
  { signal, idle, stalled, metering }: BodyPassage,
): Promise<number> {
  const writer = writable.getWriter();
  const abort = new AbortWatch(signal);
  const reading = idle === null ? null : new BoundWatch(idle);
  const writing = stalled === null ? null : new BoundWatch(stalled);
  let passed = 0;
  const write = async (piece: Uint8Array): Promise<void> => {
    reading?.end();
    passed += piece.length;
    metering?.meter.push(piece);
    const out = metering?.filter?.push(piece) ?? piece;
    if (out.length > 0) {
      writing?.begin();
      await writer.write(out);
      writing?.end();
    }
    reading?.begin();
  };
  reading?.begin();
  try {
    await abort.or(opening.passOn(write));
  } catch (error) {
    await writer.abort(error).catch(() => {});
    throw error;
  } finally {
    reading?.stop();
    writing?.stop();
    abort.stop();
  }
  writer.releaseLock();
  return passed;
}
