import type { Reservation } from './body-budget.ts';
import type { UploadPace } from '../transfer/upload-pace.ts';
import { pump, writePaced, type Pump, type WriteBody } from './pump.ts';
import { bytesOf, joined } from './chunks.ts';
import type { BodyWatch } from './watch.ts';

/** Maximum size of a body that goes out in one piece. */
export const WHOLE_BYTES_MAX = 256 * 1024;

/** A body that is in memory as a whole, and what is held for it. */
interface WholeBody {
  readonly bytes: Uint8Array;
  readonly reservation: Reservation;
}

/** A request's body on its way to the upstream. Exactly one of `open` and `discard` comes first. */
export interface OutgoingBody {
  /** Bytes of the whole body; null: known only at its end. */
  readonly contentLength: number | null;
  /** The room that what was read of it takes; null: nothing was. */
  readonly reservation: Reservation | null;
  /** Whether the caller has not sent all of it yet. */
  readonly isComing: boolean;
  /**
   * Gives what goes into `fetch`, once. A body of known length goes out with its Content-Length, whatever
   * the request's headers say. `pace` measures how long the rest is waited for.
   */
  open(pace?: UploadPace | null): BodyInit | null;
  /** Reads all of it, in place of `open`. Absent: some of it was read, or there is none. */
  readonly read?: () => Promise<ArrayBuffer>;
  /**
   * Resolves when the body was handed over or given up; never rejects. It must be kept alive with
   * `waitUntil` from `open` on, and comes to an end by `discard` where the upstream stops reading.
   */
  readonly sent: Promise<void>;
  /** Looks on while the rest of it goes out, and may break it off; null: nobody need. */
  readonly watch: BodyWatch | null;
  /** Gives all of it, in place of `open`; null: some of it was not read, and it is as it was. */
  whole(): WholeBody | null;
  /** The upstream has answered: what went out in one piece takes no more room. */
  answered(): void;
  /** Gives up what was not handed over. Must be called when the call ends; may be called at any time. */
  discard(): void;
  /**
   * The same body without the first characters of its model, which must be ASCII. It takes this
   * one's place. Null: not possible, because the body is compressed or its model was not read.
   */
  withoutModelPrefix(characters: number): OutgoingBody | null;
}

/** The body of a request that was not read, passed on natively. */
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

/** The length that a request names; null: none, or not a number. */
export function contentLengthOf(request: Request): number | null {
  const text = request.headers.get('content-length');
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

/** A body of which some or all was read. */
export interface ReadParts {
  /** The pieces that were read, in order. */
  readonly chunks: readonly Uint8Array[];
  /** The rest, unread; null: all was read. */
  readonly rest: ReadableStream<Uint8Array> | null;
  readonly contentLength: number | null;
  /** Held for the chunks. */
  readonly reservation: Reservation;
  /** Where the model stands in the chunks, and whether as a JSON string; null: not in plain sight. */
  readonly model: { readonly start: number; readonly end: number; readonly isJson: boolean } | null;
  /** Scans the rest as it goes out; null: it need not be looked at. */
  readonly watch: BodyWatch | null;
}

/** The body of a request that was read in part or as a whole. */
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
  /** It went out in one piece, which the runtime holds until it is written. */
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

  /** All that was read, as one piece that its taker holds from now on. */
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

  /** Hands over what was read, giving back its bytes as they go. */
  readonly #write: WriteBody = async (writer, signal) => {
    const { rest, reservation, watch } = this.#parts;
    // What is watched goes out a piece behind.
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
 * Frees the memory of a piece that is done with. Left to the collector, which does not hurry, the bodies of
 * many calls would pile up. Pieces that were cut from one buffer follow one another.
 */
function free(done: Uint8Array, next: Uint8Array | undefined): void {
  const { buffer } = done;
  if (buffer !== next?.buffer && buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/** The part of the chunks from one position to another, without copying. */
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

/** Bytes that so many characters take in a JSON string: some clients write `\/` for a slash. */
function escapedLength(value: Uint8Array, characters: number): number {
  let at = 0;
  for (let left = characters; left > 0; left -= 1) {
    if (value[at] !== 0x5c) at += 1;
    else at += value[at + 1] === 0x75 ? 6 : 2;
  }
  return at;
}

function ignore(): void {
  // The stream is given up; how that went concerns nobody.
}
