import type { Outcome } from '../core/outcome.ts';
import { pipeWatched } from './watched-pipe.ts';

/** Why a call was cut short. */
export type CutReason =
  /** The caller has gone. */
  | 'left'
  /** An operator took the lease away. */
  | 'revoked'
  /** The upstream was silent for too long. */
  | 'idle'
  /** The call held its slot for too long. */
  | 'max_hold';

export interface HoldLimits {
  /** Longest silence of the upstream's body. Null: only the wait for its headers is watched. */
  readonly idleMs: number | null;
  /** Longest time for the whole call. */
  readonly maxHoldMs: number;
}

/** How long an upstream may take to its headers where the group says nothing. */
export const HEADERS_WAIT_MS = 600_000;

/** Statuses whose responses have no body. */
const BODILESS = new Set([101, 204, 205, 304]);

export interface Fetcher {
  fetch(url: string, init: RequestInit): Promise<Response>;
}

/**
 * One call to an upstream while it holds a slot. Whatever ends it, the upstream's connection is closed
 * before `done` resolves, and only then may the slot go back.
 */
export class HeldCall {
  readonly #stop = new AbortController();
  readonly #limits: HoldLimits;
  readonly #maxHold: ReturnType<typeof setTimeout>;
  #cutBy: CutReason | null = null;

  constructor(callerSignal: AbortSignal, limits: HoldLimits) {
    this.#limits = limits;
    this.#maxHold = setTimeout(() => this.cut('max_hold'), limits.maxHoldMs);
    // The incoming signal does not reach subrequests by itself, so it is bridged.
    if (callerSignal.aborted) this.cut('left');
    callerSignal.addEventListener('abort', () => this.cut('left'), { once: true });
  }

  get cutBy(): CutReason | null {
    return this.#cutBy;
  }

  /** Aborts the upstream call. The first reason stays. */
  cut(reason: CutReason): void {
    this.#cutBy ??= reason;
    this.#stop.abort();
  }

  /** Sends the call. Null: there are no headers, because it was cut (`cutBy`) or the connection broke. */
  async send(fetcher: Fetcher, url: string, init: RequestInit): Promise<Response | null> {
    const wait = setTimeout(() => this.cut('idle'), this.#limits.idleMs ?? HEADERS_WAIT_MS);
    try {
      // Manual: otherwise a compressed stream is unpacked, packed anew, and held back meanwhile.
      return await fetcher.fetch(url, {
        ...init,
        signal: this.#stop.signal,
        redirect: 'manual',
        encodeResponseBody: 'manual',
      });
    } catch {
      this.#finish();
      return null;
    } finally {
      clearTimeout(wait);
    }
  }

  /**
   * Passes the upstream's response through, byte for byte. `done` resolves when the last byte has gone
   * or the call was cut, and must be kept alive by the caller (`ctx.waitUntil`).
   *
   * The body goes through an identity stream and a native pipe. Handing `upstream.body` to the runtime
   * would end this context, and with it the lease, at the headers; a JavaScript transform would not
   * learn of a caller that leaves, and costs several times the CPU.
   */
  relay(upstream: Response, headers: Headers): { response: Response; done: Promise<Outcome> } {
    const init: ResponseInit = {
      status: upstream.status,
      statusText: upstream.statusText,
      headers,
      encodeBody: 'manual',
    };
    if (upstream.body === null || BODILESS.has(upstream.status)) {
      this.#finish();
      const done = Promise.resolve(outcomeOf(upstream.status));
      return { response: new Response(null, init), done };
    }
    const length = headers.get('content-length');
    const { readable, writable } =
      length === null ? new IdentityTransformStream() : new FixedLengthStream(BigInt(length));
    const done = this.#pipe(upstream.body, writable, upstream.status);
    return { response: new Response(readable, init), done };
  }

  async #pipe(body: ReadableStream, writable: WritableStream, status: number): Promise<Outcome> {
    const { signal } = this.#stop;
    const { idleMs } = this.#limits;
    try {
      if (idleMs === null) await body.pipeTo(writable, { signal });
      else await pipeWatched(body, writable, signal, idleMs, () => this.cut('idle'));
    } catch {
      // A caller that leaves does not take back what the upstream has said.
      this.#stop.abort();
      if (outcomeOf(status) === 'failed') return 'failed';
      return this.#cutBy === null ? 'failed' : 'cancelled';
    } finally {
      this.#finish();
    }
    return outcomeOf(status);
  }

  #finish(): void {
    clearTimeout(this.#maxHold);
  }
}

function outcomeOf(status: number): Outcome {
  return status === 429 || status >= 500 ? 'failed' : 'success';
}
