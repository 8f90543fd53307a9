import type { BodyBudget, Reservation } from './body-budget.ts';
import { WHOLE_BYTES_MAX, type OutgoingBody } from './outgoing-body.ts';
import type { UploadPace } from '../transfer/watched-pipe.ts';
import { pump, type Pump } from './pump.ts';
import { renameModel } from './json-model-scan.ts';
import type { AbortSource } from '../../runtime/async.ts';

/**
 * Maximum size of a kept body that is sent in one piece, the cheapest way for the many small ones. The runtime does not
 * report when it has written such a body, so its memory counts until the upstream responds.
 */
const PIECE_BYTES_MAX = 32 * 1024;

/** A body that is kept in memory, so that it can be sent more than once. */
export interface KeptBody extends OutgoingBody {
  /** null if the request has no body, or its memory was released. */
  readonly bytes: Uint8Array | null;
  /** Whether its memory was released to others, so that it cannot be sent again. */
  readonly isGone: boolean;
  /** Makes its memory available to others: a copy is being sent, and this one is only needed for another attempt. */
  spare(): void;
  /** Claims its memory again, for another attempt. */
  unspare(): void;
}

/** Starts a time limit, which calls `stop` when it is exceeded. Returns the function that ends the limit. */
type TimeLimit = (stop: () => void) => () => void;

/** Limits on the time that the caller may take to send a body. */
export interface ReadLimits {
  readonly pace?: UploadPace | null;
  readonly limit?: TimeLimit | null;
}

/**
 * Reads a body completely and keeps it. A small one that was already read completely is always kept. Returns null, and
 * leaves the body unchanged, if it is longer than `bytesMax`, of unknown length, or not enough memory is free. Returns
 * `aborted` if the caller left, exceeded the limit, or its watch found a fault. The body is then lost.
 */
export async function keepBody(
  body: OutgoingBody | KeptBody,
  bytesMax: number,
  budget: BodyBudget,
  signal: AbortSource,
  { pace = null, limit = null }: ReadLimits = {},
): Promise<KeptBody | null | 'aborted'> {
  if ('bytes' in body) return body;
  const { contentLength } = body;
  if (contentLength === null || contentLength > Math.max(bytesMax, WHOLE_BYTES_MAX)) return null;
  const whole = body.whole();
  if (whole !== null) return new WholeKeptBody(whole.bytes, whole.reservation);
  if (contentLength > bytesMax) return null;
  const reservation = budget.tryTake(contentLength);
  if (reservation === null) return null;
  const bytes = await bytesOf(readingOf(body, pace), signal, limit);
  if (bytes === 'aborted') {
    reservation.release();
    return bytes;
  }
  return new WholeKeptBody(bytes, reservation);
}

class WholeKeptBody implements KeptBody {
  readonly contentLength: number;
  readonly reservation: Reservation;
  readonly isComing = false;
  readonly sent = Promise.resolve();
  readonly watch = null;
  #bytes: Uint8Array | null;
  #isGone = false;
  /** null if nothing is being sent. */
  #out: Pump | null = null;
  readonly #isCopy: boolean;

  constructor(bytes: Uint8Array | null, reservation: Reservation, isCopy = false) {
    this.#bytes = bytes;
    this.#isCopy = isCopy;
    this.contentLength = bytes?.length ?? 0;
    this.reservation = reservation;
  }

  get bytes(): Uint8Array | null {
    return this.#bytes;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  open(): BodyInit | null {
    if (this.#isGone) throw new Error('the memory of the body was released');
    const bytes = this.#bytes;
    this.#stop();
    if (bytes === null) return null;
    if (bytes.length <= PIECE_BYTES_MAX && !this.reservation.isScarce) return bytes;
    const out = pump(
      bytes.length,
      async (writer) => {
        await writer.write(bytes);
        await writer.close();
        return null;
      },
      () => this.#handedOn(out),
    );
    this.#out = out;
    return out.readable;
  }

  spare(): void {
    this.#stop();
    this.reservation.spare(() => this.#drop());
  }

  unspare(): void {
    // The end of the previous attempt must not spare it.
    this.#stop();
    this.reservation.unspare();
  }

  answered(): void {
    this.#drop();
    // Bytes that are still being sent stay in memory until then.
    if (this.#out === null) this.reservation.release();
  }

  discard(): void {
    this.#stop();
    this.#drop();
    this.reservation.release();
  }

  whole = (): null => null;
  withoutModelPrefix = (): null => null;

  /** Called when the runtime no longer holds any of the sent bytes. */
  #handedOn(out: Pump): void {
    // It belongs to an earlier attempt.
    if (this.#out !== out) return;
    this.#out = null;
    if (this.#isCopy || this.#isGone) this.discard();
    else this.spare();
  }

  #stop(): void {
    this.#out?.stop();
    this.#out = null;
  }

  #drop(): void {
    this.#isGone = this.contentLength > 0;
    this.#bytes = null;
  }
}

/** A body of these bytes, whose memory is already reserved. */
export function keptBytes(bytes: Uint8Array, reservation: Reservation): KeptBody {
  return new WholeKeptBody(bytes, reservation);
}

/** A copy of a kept body that is sent once in its place. */
export function copiedBody(bytes: Uint8Array, budget: BodyBudget): KeptBody {
  return new WholeKeptBody(bytes, budget.count(bytes.length), true);
}

/**
 * A kept body with another model name. Only the original is held in memory, and the renamed body is built each time it
 * is sent, because a call may wait a long time at each upstream. Returns null if the body names no model.
 */
export function renamedBody(body: KeptBody, model: string): KeptBody | null {
  const renamed = (): Uint8Array | null => {
    const { bytes } = body;
    return bytes === null ? null : renameModel(bytes, model);
  };
  const contentLength = renamed()?.length;
  if (contentLength === undefined) return null;
  return {
    get bytes() {
      return renamed();
    },
    get isGone() {
      return body.isGone;
    },
    contentLength,
    isComing: false,
    reservation: body.reservation,
    open() {
      if (body.isGone) throw new Error('the memory of the body was released');
      return renamed();
    },
    sent: Promise.resolve(),
    watch: null,
    spare: () => body.spare(),
    unspare: () => body.unspare(),
    answered: () => body.answered(),
    discard: () => body.discard(),
    whole: () => null,
    withoutModelPrefix: () => null,
  };
}

/** Reads the rest of a body. If it is not a function, there is nothing left to read. */
type ReadRest = (() => Promise<ArrayBuffer>) | Uint8Array | null;

function readingOf(body: OutgoingBody, pace: UploadPace | null): ReadRest {
  // Reading natively costs much less than reading its stream.
  if (pace === null && body.read !== undefined) return body.read;
  const source = body.open(pace);
  if (source === null || source instanceof Uint8Array) return source;
  return () => new Response(source).arrayBuffer();
}

async function bytesOf(
  reading: ReadRest,
  signal: AbortSource,
  limit: TimeLimit | null,
): Promise<Uint8Array | null | 'aborted'> {
  if (typeof reading !== 'function') return reading;
  const { promise: gone, resolve } = Promise.withResolvers<'aborted'>();
  const leave = (): void => resolve('aborted');
  signal.addEventListener('abort', leave);
  // A signal for the limit, combined with the caller's, would cost a small call more than the rest of the read.
  const endLimit = limit?.(leave);
  try {
    if (signal.aborted) return 'aborted';
    // On Workers, a read may stay pending forever after the client has left. Only the signal reports that.
    const read = await Promise.race([reading(), gone]);
    return read === 'aborted' ? read : new Uint8Array(read);
  } catch {
    return 'aborted';
  } finally {
    endLimit?.();
    signal.removeEventListener('abort', leave);
  }
}
