import type { Reservation } from './body-budget.ts';
import type { UploadPace } from '../transfer/watched-pipe.ts';
import { pump, writePaced, type Pump, type WriteBody, type BodyWatch } from './pump.ts';
import { bytesOf, joined } from './bytes.ts';

export const WHOLE_BYTES_MAX = 256 * 1024;

interface WholeBody {
  readonly bytes: Uint8Array;
  readonly reservation: Reservation;
}

/**
 * A request's body on its way to the upstream. The first call must be either `open` or `discard`, and only one of them.
 */
export interface OutgoingBody {
  /** Length of the whole body in bytes. null if it is unknown until its end. */
  readonly contentLength: number | null;
  /** The memory for the part that was read. null if nothing was read. */
  readonly reservation: Reservation | null;
  /** Whether the caller is still sending it. */
  readonly isComing: boolean;
  /**
   * Returns the body for `fetch`, once. A body of known length is sent with its Content-Length, whatever the request's
   * headers contain. `pace` measures the time spent waiting for the rest.
   */
  open(pace?: UploadPace | null): BodyInit | null;
  /** Reads the whole body, instead of `open`. Absent if some of it was already read, or there is none. */
  readonly read?: () => Promise<ArrayBuffer>;
  /**
   * Resolves when the body was handed over or discarded, and never rejects. After `open` it must be kept alive with
   * `waitUntil`. If the upstream stops reading, `discard` ends it.
   */
  readonly sent: Promise<void>;
  /** Scans the rest while it is sent, and may abort it. null if that is not needed. */
  readonly watch: BodyWatch | null;
  /** Returns the whole body, instead of `open`. Returns null, and changes nothing, if some of it is unread. */
  whole(): WholeBody | null;
  /** Called when the upstream has responded. A body that was sent in one piece then releases its memory. */
  answered(): void;
  /** Discards everything that was not handed over. Must be called when the call ends, and may be called at any time. */
  discard(): void;
  /**
   * Returns the same body without the first characters of its model, which must be ASCII. It replaces this one. Returns
   * null if that is not possible, because the body is compressed or its model was not read.
   */
  withoutModelPrefix(characters: number): OutgoingBody | null;
}

/** The unread body of a request, which is piped natively. */
export function unreadBody(request: Request): OutgoingBody {
  const { body } = request;
  const contentLength = body === null ? 0 : contentLengthOf(request);
  let isOpen = false;
  let out: Pump | null = null;
  return {
    contentLength,
    isComing: body !== null,
    reservation: null,
    whole: () => null,
    answered: ignore,
    open(pace = null) {
      isOpen = true;
      if (body === null || pace === null) return body;
      const write: WriteBody = async (writer, signal) => {
        await writePaced(body, writer, signal, pace);
        return null;
      };
      out = pump(contentLength, write, ignore);
      return out.readable;
    },
    ...(body !== null && {
      read: () => {
        isOpen = true;
        return request.arrayBuffer();
      },
    }),
    sent: Promise.resolve(),
    watch: null,
    discard() {
      out?.stop();
      if (!isOpen) body?.cancel().catch(ignore);
      isOpen = true;
    },
    withoutModelPrefix: () => null,
  };
}

/** The length that a request declares. null if there is none, or it is not a number. */
export function contentLengthOf(request: Request): number | null {
  const text = request.headers.get('content-length');
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

export interface ReadParts {
  readonly chunks: readonly Uint8Array[];
  /** The unread rest. null if everything was read. */
  readonly rest: ReadableStream<Uint8Array> | null;
  readonly contentLength: number | null;
  readonly reservation: Reservation;
  /** Position of the model in the chunks, and whether it is a JSON string. null if the position is unknown. */
  readonly model: { readonly start: number; readonly end: number; readonly isJson: boolean } | null;
  /** Scans the rest while it is sent. null if that is not needed. */
  readonly watch: BodyWatch | null;
}

export function readBody(parts: ReadParts): OutgoingBody {
  return new ReadOutgoingBody(parts);
}

class ReadOutgoingBody implements OutgoingBody {
  readonly contentLength: number | null;
  readonly reservation: Reservation;
  readonly sent: Promise<void>;
  readonly watch: BodyWatch | null;
  readonly #parts: ReadParts;
  readonly #chunks: Uint8Array[];
  #pump: Pump | null = null;
  #pace: UploadPace | null = null;
  #settle: () => void;
  #isTaken = false;
  /** Whether it was sent in one piece, which the runtime holds until it is written. */
  #isOut = false;

  constructor(parts: ReadParts) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#parts = parts;
    this.reservation = parts.reservation;
    this.watch = parts.watch;
    this.#chunks = [...parts.chunks];
    this.#settle = resolve;
    this.sent = promise;
    this.contentLength = parts.rest === null ? bytesOf(parts.chunks) : parts.contentLength;
  }

  get isComing(): boolean {
    return this.#parts.rest !== null;
  }

  open(pace: UploadPace | null = null): BodyInit | null {
    this.#isTaken = true;
    this.#pace = pace;
    const length = this.contentLength;
    if (this.#parts.rest === null && length !== null && length <= WHOLE_BYTES_MAX) {
      const bytes = this.#taken(length);
      this.#isOut = true;
      this.#settle();
      return bytes;
    }
    this.#pump = pump(length, this.#write, (isWhole) => {
      if (!isWhole) this.#parts.rest?.cancel().catch(ignore);
      this.#release();
    });
    return this.#pump.readable;
  }

  whole(): WholeBody | null {
    if (this.#parts.rest !== null || this.contentLength === null) return null;
    this.#isTaken = true;
    const bytes = this.#taken(this.contentLength);
    this.#settle();
    return { bytes, reservation: this.reservation };
  }

  answered(): void {
    if (this.#isOut) this.reservation.release();
  }

  /** Returns everything that was read as one piece, which the caller owns from then on. */
  #taken(length: number): Uint8Array {
    const bytes = joined(this.#chunks, length);
    this.watch?.stop();
    this.#chunks.length = 0;
    return bytes;
  }

  discard(): void {
    this.#pump?.stop();
    if (!this.#isTaken) {
      this.#parts.rest?.cancel().catch(ignore);
      for (const [i, chunk] of this.#chunks.entries()) free(chunk, this.#chunks[i + 1]);
    }
    this.#isTaken = true;
    this.#release();
  }

  withoutModelPrefix(characters: number): OutgoingBody | null {
    const { model, contentLength } = this.#parts;
    if (model === null) return null;
    const value = joined(cut(this.#chunks, model.start, model.end), model.end - model.start);
    const bytes = model.isJson ? escapedLength(value, characters) : characters;
    this.#isTaken = true;
    return new ReadOutgoingBody({
      ...this.#parts,
      chunks: [
        ...cut(this.#chunks, 0, model.start),
        ...cut(this.#chunks, model.start + bytes, Infinity),
      ],
      contentLength: contentLength === null ? null : contentLength - bytes,
      model: { ...model, end: model.end - bytes },
    });
  }

  /** Sends the bytes that were read, and releases their memory as they are sent. */
  readonly #write: WriteBody = async (writer, signal) => {
    const { rest, reservation, watch } = this.#parts;
    // A watched body is sent one piece behind the scan.
    const isWatched = rest !== null && watch?.isOn === true;
    const held = isWatched ? watch.heldBytes : 0;
    for (;;) {
      const [chunk, ...others] = this.#chunks;
      if (chunk === undefined || bytesOf(others) < held) break;
      await writer.write(chunk);
      this.#chunks.shift();
      free(chunk, this.#chunks[0]);
      reservation.keep(bytesOf(this.#chunks));
    }
    const pace = this.#pace;
    if (rest === null) await writer.close();
    else if (isWatched) await watch.pass(this.#chunks, rest, writer, signal, pace);
    else if (pace === null) return rest;
    else await writePaced(rest, writer, signal, pace);
    return null;
  };

  #release(): void {
    this.watch?.stop();
    this.#chunks.length = 0;
    this.reservation.release();
    this.#settle();
  }
}

/**
 * Frees the memory of a piece that is no longer needed. If it were left to the garbage collector, the bodies of many
 * calls would accumulate. Pieces of the same buffer are adjacent.
 */
function free(done: Uint8Array, next: Uint8Array | undefined): void {
  const { buffer } = done;
  if (buffer !== next?.buffer && buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/** The chunks between two positions, without copying. */
function cut(chunks: readonly Uint8Array[], start: number, end: number): Uint8Array[] {
  const found: Uint8Array[] = [];
  let at = 0;
  for (const chunk of chunks) {
    const part = chunk.subarray(Math.max(0, start - at), Math.max(0, end - at));
    if (part.length > 0) found.push(part);
    at += chunk.length;
  }
  return found;
}

/** Number of bytes of the first characters in a JSON string. Some clients write `\/` for a slash. */
function escapedLength(value: Uint8Array, characters: number): number {
  let at = 0;
  for (let left = characters; left > 0; left -= 1) {
    if (value[at] !== 0x5c) at += 1;
    else at += value[at + 1] === 0x75 ? 6 : 2;
  }
  return at;
}

function ignore(): void {
  // The stream is discarded, so a failure does not matter.
}
