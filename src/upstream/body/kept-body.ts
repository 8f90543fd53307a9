import type { BodyBudget, Reservation } from './body-budget.ts';
import type { OutgoingBody } from './outgoing-body.ts';
import { renameModel } from './rename-model.ts';

/** A body that is held in memory, so that it can go out more than once. */
export interface KeptBody extends OutgoingBody {
  /** Null: the request has no body, or it is gone. */
  readonly bytes: Uint8Array | null;
  /** Whether its room was given to others, so that it cannot go out any more. */
  readonly isGone: boolean;
  /** Lets others have its room from now on: it went out, and would be sent once more at the most. */
  spare(): void;
}

/**
 * Reads a body whole and keeps it. Null, and the body is as it was: it is longer than `bytesMax`, its
 * length is not known, or so much is not free. `aborted`: the caller left, or its watch found a
 * fault, and nothing is left of it.
 */
export async function keepBody(
  body: OutgoingBody | KeptBody,
  bytesMax: number,
  budget: BodyBudget,
  signal: AbortSignal,
): Promise<KeptBody | null | 'aborted'> {
  if ('bytes' in body) return body;
  const { contentLength } = body;
  if (contentLength === null || contentLength > bytesMax) return null;
  const whole = body.whole();
  if (whole !== null) return new WholeKeptBody(whole.bytes, whole.reservation);
  const reservation = budget.tryTake(contentLength);
  if (reservation === null) return null;
  const source = body.open();
  const bytes = await bytesOf(source, signal);
  if (bytes === 'aborted') {
    reservation.release();
    return bytes;
  }
  return new WholeKeptBody(bytes, reservation);
}

class WholeKeptBody implements KeptBody {
  readonly contentLength: number;
  readonly reservation: Reservation;
  readonly sent = Promise.resolve();
  readonly watch = null;
  #bytes: Uint8Array | null;
  #isGone = false;

  constructor(bytes: Uint8Array | null, reservation: Reservation) {
    this.#bytes = bytes;
    this.contentLength = bytes?.length ?? 0;
    this.reservation = reservation;
  }

  get bytes(): Uint8Array | null {
    return this.#bytes;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  open(): Uint8Array | null {
    if (this.#isGone) throw new Error('the body is gone');
    return this.#bytes;
  }

  spare(): void {
    this.reservation.spare(() => this.#drop());
  }

  answered(): void {
    this.discard();
  }

  discard(): void {
    this.#drop();
    this.reservation.release();
  }

  whole = (): null => null;
  withoutModelPrefix = (): null => null;

  #drop(): void {
    this.#isGone = this.contentLength > 0;
    this.#bytes = null;
  }
}

/**
 * A kept body under another model name. What is held meanwhile is the body that it is made from, each time
 * that it goes out: a call may wait for long at each upstream. Null: it names no model.
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
    reservation: body.reservation,
    open() {
      if (body.isGone) throw new Error('the body is gone');
      return renamed();
    },
    sent: Promise.resolve(),
    watch: null,
    spare: () => body.spare(),
    answered: () => body.answered(),
    discard: () => body.discard(),
    whole: () => null,
    withoutModelPrefix: () => null,
  };
}

async function bytesOf(
  source: BodyInit | null,
  signal: AbortSignal,
): Promise<Uint8Array | null | 'aborted'> {
  if (source === null || source instanceof Uint8Array) return source;
  const { promise: gone, resolve } = Promise.withResolvers<'aborted'>();
  const leave = (): void => resolve('aborted');
  signal.addEventListener('abort', leave);
  try {
    if (signal.aborted) return 'aborted';
    // On Workers a read may stay open for ever when the client has left: only the signal tells.
    const read = await Promise.race([new Response(source).arrayBuffer(), gone]);
    return read === 'aborted' ? read : new Uint8Array(read);
  } catch {
    return 'aborted';
  } finally {
    signal.removeEventListener('abort', leave);
  }
}
