import { SCAN_BYTES_MAX } from './body-budget.ts';
import type { BodyBudget, Reservation } from './body-budget.ts';
import type { BodyScan } from './encoded-scan.ts';
import { unreadable } from './model-scan.ts';
import type { ScanState } from './model-scan.ts';
import { readBody } from './outgoing-body.ts';
import type { OutgoingBody, ReadParts } from './outgoing-body.ts';
import type { AbortSource } from '../../runtime/async.ts';

/**
 * How much of a large body is read first, if that much is free. Most clients send the model first, and then the call
 * neither waits nor delays others. If nothing is free, only the head is read.
 */
const PEEK_BYTES = 16 * 1024;
const BUFFER_BYTES_MAX = 256 * 1024;

/** How many bytes beyond the head are reserved for a body of unknown length before it grows. */
const UNKNOWN_BYTES = 256 * 1024;

type FoundParts = Pick<ReadParts, 'model' | 'watch'>;

/** Reads a small body of known length. */
export class WholeReading {
  readonly #request: Request;
  readonly #signal: AbortSource;
  readonly #reservation: Reservation;
  #bytes = new Uint8Array();
  readonly isWhole = true;

  constructor(request: Request, signal: AbortSource, reservation: Reservation) {
    this.#request = request;
    this.#signal = signal;
    this.#reservation = reservation;
  }

  async run(scan: BodyScan): Promise<ScanState | 'aborted'> {
    const { promise: gone, resolve } = Promise.withResolvers<null>();
    const leave = (): void => resolve(null);
    this.#signal.addEventListener('abort', leave);
    try {
      if (this.#signal.aborted) return 'aborted';
      // On Workers, a read may stay pending forever after the client has left. Only the signal reports that.
      const read = await Promise.race([this.#request.arrayBuffer(), gone]);
      if (read === null) return 'aborted';
      this.#bytes = new Uint8Array(read);
    } catch {
      return 'aborted';
    } finally {
      this.#signal.removeEventListener('abort', leave);
    }
    await scan.push(this.#bytes);
    return scan.goesOn ? scan.end() : scan.state;
  }

  body(found: FoundParts): OutgoingBody {
    const contentLength = this.#bytes.length;
    const chunks = [this.#bytes];
    const reservation = this.#reservation;
    return readBody({ chunks, rest: null, contentLength, reservation, ...found });
  }

  giveUp(): void {
    this.#reservation.release();
  }
}

/** Reads a body up to the point where its model is known. */
export class BodyReading {
  readonly #stream: ReadableStream<Uint8Array>;
  readonly #reader: ReadableStreamBYOBReader;
  readonly #contentLength: number | null;
  readonly #budget: BodyBudget;
  readonly #maxWaitMs: number;
  readonly #signal: AbortSource;
  /** Full buffers. `#buffer` is the one being filled. */
  readonly #full: Uint8Array[] = [];
  #buffer = new ArrayBuffer(0);
  #filled = 0;
  #bytes = 0;
  #isWhole = false;
  #reservation: Reservation;
  /** Whether all of it may be read at once, which is the cheapest way. */
  readonly #isFree: boolean;
  /** Whether the search ends after the first read, even if no model was found. */
  readonly #mayGoUnfound: boolean;

  constructor(
    stream: ReadableStream<Uint8Array>,
    contentLength: number | null,
    budget: BodyBudget,
    maxWaitMs: number,
    signal: AbortSource,
    mayGoUnfound: boolean,
  ) {
    this.#stream = stream;
    this.#reader = stream.getReader({ mode: 'byob' });
    this.#contentLength = contentLength;
    this.#budget = budget;
    this.#maxWaitMs = maxWaitMs;
    this.#signal = signal;
    this.#mayGoUnfound = mayGoUnfound;
    const whole =
      contentLength !== null && budget.isSmall(contentLength)
        ? budget.tryTake(contentLength)
        : null;
    this.#isFree = whole !== null;
    this.#reservation = whole ?? budget.tryTake(PEEK_BYTES) ?? budget.count(budget.headBytes);
  }

  get isWhole(): boolean {
    return this.#isWhole;
  }

  async run(scan: BodyScan): Promise<ScanState | 'aborted' | 'crowded'> {
    const { promise: gone, resolve } = Promise.withResolvers<'aborted'>();
    const leave = (): void => resolve('aborted');
    this.#signal.addEventListener('abort', leave);
    try {
      if (this.#signal.aborted) return 'aborted';
      return await this.#search(scan, gone);
    } finally {
      this.#signal.removeEventListener('abort', leave);
    }
  }

  async #search(
    scan: BodyScan,
    gone: Promise<'aborted'>,
  ): Promise<ScanState | 'aborted' | 'crowded'> {
    for (;;) {
      const { state } = scan;
      if (this.#isWhole) return scan.goesOn ? scan.end() : state;
      const isLookedAt = this.#bytes >= this.#reservation.bytes;
      const isEnough = state.kind !== 'more' || (this.#mayGoUnfound && isLookedAt);
      if (isEnough && !this.#isFree) return state;
      if (this.#bytes >= SCAN_BYTES_MAX) {
        return unreadable(`it is not within the first ${SCAN_BYTES_MAX} bytes`);
      }
      if (isLookedAt) {
        const more = await this.#takeMore();
        if (more !== 'taken') return more;
      }
      // On Workers, a read may stay pending forever after the client has left. Only the signal reports that.
      const chunk = await Promise.race([this.#read(), gone]);
      if (chunk === 'aborted') return 'aborted';
      if (scan.goesOn && chunk.length > 0) await scan.push(chunk);
    }
  }

  /** Waits for the memory that the rest needs, or for some more if the length is unknown. */
  async #takeMore(): Promise<'taken' | 'aborted' | 'crowded'> {
    if (this.#contentLength === null && this.#reservation.bytes >= UNKNOWN_BYTES) {
      const grown = await this.#reservation.grow(this.#maxWaitMs, this.#signal);
      return grown === 'left' ? 'aborted' : grown;
    }
    const bytes = Math.min(this.#contentLength ?? UNKNOWN_BYTES, SCAN_BYTES_MAX);
    const more = await this.#budget.take(bytes, this.#maxWaitMs, this.#signal);
    if (more === 'left') return 'aborted';
    if (more === 'crowded') return more;
    this.#reservation.release();
    this.#reservation = more;
    return 'taken';
  }

  /** Reads available bytes into the current buffer. Returns an empty chunk at the end of the body. */
  async #read(): Promise<Uint8Array | 'aborted'> {
    if (this.#filled === this.#buffer.byteLength) this.#nextBuffer();
    try {
      const { done, value } = await this.#reader.read(new Uint8Array(this.#buffer, this.#filled));
      // The buffer was transferred, and is returned with the result, except from a cancelled body.
      if (value === undefined) return 'aborted';
      this.#buffer = value.buffer;
      this.#filled += value.length;
      this.#bytes += value.length;
      this.#isWhole = done || this.#bytes === this.#contentLength;
      return value;
    } catch {
      return 'aborted';
    }
  }

  /**
   * Buffers grow with the body, so that a short body wastes no memory and a long one needs few reads. They never exceed
   * the reservation.
   */
  #nextBuffer(): void {
    this.#keepBuffer();
    const length = this.#contentLength ?? Infinity;
    const left = Math.min(length, this.#reservation.bytes) - this.#bytes;
    const wanted = this.#isFree ? left : clamp(this.#bytes, PEEK_BYTES, BUFFER_BYTES_MAX);
    this.#buffer = new ArrayBuffer(left > 0 ? Math.min(left, wanted) : this.#budget.headBytes);
    this.#filled = 0;
  }

  #keepBuffer(): void {
    if (this.#filled > 0) this.#full.push(new Uint8Array(this.#buffer, 0, this.#filled));
  }

  /** Returns the part that was read, and the rest. Nothing may be read afterwards. */
  body(found: FoundParts): OutgoingBody {
    this.#keepBuffer();
    this.#reservation.keep(this.#bytes - this.#filled + this.#buffer.byteLength);
    this.#reader.releaseLock();
    return readBody({
      chunks: this.#full,
      rest: this.#isWhole ? null : this.#stream,
      contentLength: this.#contentLength,
      reservation: this.#reservation,
      ...found,
    });
  }

  giveUp(): void {
    this.#reservation.release();
    this.#reader.cancel().catch(ignore);
  }
}

function clamp(value: number, min: number, max: number): number {
  return Math.min(Math.max(value, min), max);
}

function ignore(): void {
  // The body is discarded, so a failure does not matter.
}
