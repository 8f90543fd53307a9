import type { CutReason, LeaseOutcome } from '../../core/words/outcome.ts';
import { whenQuiet, type Schedule, type AbortSource } from '../../runtime/async.ts';
import {
  BoundWatch,
  UploadPace,
  type TimeBound,
  type PipeMetering,
  type HoldLimits,
} from './watched-pipe.ts';
import { fetchAnswer, type Fetcher } from './fetch-answer.ts';
import { callerResponseHeaders } from './headers.ts';
import { filterWhole } from '../usage/usage-drop.ts';
import type { Judgement } from '../opening/judge-record.ts';
import type { OpeningReader } from '../opening/opening-reader.ts';
import {
  HeldOpening,
  comesInEvents,
  passBody,
  bodyStreams,
  type BodyStreams,
} from './pass-body.ts';

/** Maximum time that an upstream may take to send its headers if the group has no limit. */
const HEADERS_WAIT_MS = 600_000;

/**
 * Maximum bytes of a body that is read completely before it is passed on. A pipe costs a small call as much as the
 * upstream call itself. The slot is held until the upstream has sent everything.
 */
const WHOLE_BYTES_MAX = 32_768;

/**
 * Minimum silence that a group must allow for small responses to be read completely. With a shorter limit they are
 * watched chunk by chunk.
 */
const WHOLE_IDLE_MIN_MS = 60_000;

/** Maximum time and bytes for which the beginning of a body is held back to check whether it is an error. */
const OPENING_WAIT_MS = 1_000;
const OPENING_BYTES_MAX = 65_536;

/**
 * Maximum bytes of the beginning if the call may move to another upstream until the first content. Nothing is passed on
 * before that.
 */
const TOKEN_BYTES_MAX = 1_048_576;

const BODILESS = new Set([101, 204, 205, 304]);

interface SendOptions {
  /** Returns the body again, if it is still available. */
  readonly again?: (() => BodyInit | null) | null;
  /** Timeout for the first content. null if only the timeout for the headers applies. */
  readonly firstTokenMs?: number | null;
}

/** The part of an upstream's response that is passed on. */
export interface Relayed {
  /** null if the connection broke before any of the response was passed on. */
  readonly response: Response | null;
  readonly done: Promise<LeaseOutcome>;
  /** Whether the upstream's last byte has arrived before any of the response was passed on. */
  readonly isWhole: boolean;
}

/**
 * One call to an upstream while it holds a slot. However it ends, the upstream's connection is closed before `done`
 * resolves. Only then may the slot be released.
 */
export class HeldCall {
  readonly #stop = new AbortController();
  readonly #limits: HoldLimits;
  readonly #after: Schedule;
  readonly #callOffMaxHold: () => void;
  readonly #callerSignal: AbortSource;
  readonly #leave = (): void => this.cut('left');
  #cutBy: CutReason | null = null;
  #endWith: ((reason: CutReason) => void) | null = null;
  /** Watches how long the upstream takes to send its headers. */
  #silence: BoundWatch | null = null;
  #pace: UploadPace | null = null;
  /** Ends the wait for the first content. null if there is no timeout. */
  #callOffSlow: (() => void) | null = null;
  /** A body that was read completely before it is passed on. `broken` if it broke off. null if it was not read. */
  #whole: ArrayBuffer | 'broken' | null = null;
  #opening: HeldOpening | null = null;
  #hasOpeningBroken = false;

  constructor(callerSignal: AbortSource, limits: HoldLimits, after: Schedule) {
    this.#limits = limits;
    this.#after = after;
    this.#callOffMaxHold = after(limits.maxHoldMs, () => this.cut('max_hold'));
    // The runtime does not forward the incoming signal to subrequests, so it is bridged.
    if (callerSignal.aborted) this.cut('left');
    callerSignal.addEventListener('abort', this.#leave);
    this.#callerSignal = callerSignal;
  }

  get cutBy(): CutReason | null {
    return this.#cutBy;
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /**
   * Watches how fast the caller sends its body. The upstream does not count as silent while the call waits for the
   * caller.
   */
  pace(): UploadPace {
    const { stalledMs, uploadMinBytesPerS } = this.#limits;
    this.#pace ??= new UploadPace({
      stalledMs,
      uploadMinBytesPerS,
      after: this.#after,
      onOver: () => this.cut('request_timeout'),
      onWait: () => this.#silence?.end(),
      onPiece: () => this.#silence?.begin(),
    });
    return this.#pace;
  }

  /** Ends the call without passing anything on. */
  giveUp(): void {
    this.#stop.abort();
    this.#finish();
  }

  /** Ends the upstream call. Only the first reason is kept. */
  cut(reason: CutReason): void {
    this.#cutBy ??= reason;
    if (this.#endWith === null) this.#stop.abort();
    else this.#endWith(this.#cutBy);
  }

  /** Sets how the call ends if it is cut from now on. A WebSocket is closed before its connection is broken. */
  endWith(end: (reason: CutReason) => void): void {
    this.#endWith = end;
    if (this.#cutBy !== null) end(this.#cutBy);
  }

  /**
   * Sends the call. Returns null if there are no headers that can be passed on: the call was cut (`cutBy`), the
   * connection broke, or the response is not valid.
   */
  async send(
    fetcher: Fetcher,
    url: string,
    init: RequestInit,
    { again = null, firstTokenMs = null }: SendOptions = {},
  ): Promise<Response | null> {
    const waitMs = this.#limits.idleMs ?? HEADERS_WAIT_MS;
    const silence = new BoundWatch({
      afterMs: waitMs,
      onOver: () => this.cut('idle'),
      after: this.#after,
    });
    this.#silence = silence;
    if (this.#pace?.isWaiting !== true) silence.begin();
    const endSilence = (): void => {
      this.#silence = null;
      silence.stop();
    };
    if (firstTokenMs !== null) {
      this.#callOffSlow = this.#after(firstTokenMs, () => this.cut('slow'));
    }
    try {
      // Without `manual`, the runtime would decompress a stream, compress it again, and delay it in between.
      const manual = { redirect: 'manual', encodeResponseBody: 'manual' } as const;
      const { signal } = this.#stop;
      const answer = await fetchAnswer(fetcher, url, { ...init, ...manual, signal }, again);
      endSilence();
      if (canBeRelayed(answer)) return answer;
    } catch {
      // There is no response.
    } finally {
      endSilence();
    }
    this.giveUp();
    await whenQuiet();
    return null;
  }

  get hasWhole(): boolean {
    return this.#whole !== null;
  }

  /** Whether the call waits for the first content. Nothing may be passed on before it. */
  get awaitsContent(): boolean {
    return this.#callOffSlow !== null;
  }

  noteContent(): void {
    this.#callOffSlow?.();
    this.#callOffSlow = null;
  }

  /** Reads a complete body for which `takesWhole` holds. `relay` passes it on. Returns null if it broke off. */
  async takeWhole(answer: Response): Promise<ArrayBuffer | null> {
    const { idleMs } = this.#limits;
    // For a small body, the whole transfer counts as one silence.
    const callOff = idleMs === null ? null : this.#after(idleMs, () => this.cut('idle'));
    try {
      const bytes = await answer.arrayBuffer();
      this.#whole = bytes;
      return bytes;
    } catch {
      this.#whole = 'broken';
      return null;
    } finally {
      callOff?.();
    }
  }

  /**
   * Reads the beginning of a body until it is more than a prelude. `relay` passes it on. Returns null if the call was
   * cut. `isCopy` is set if the body is a branch that is not passed on.
   */
  async readOpening(
    body: ReadableStream<Uint8Array>,
    reader: OpeningReader,
    isCopy = false,
  ): Promise<Judgement | null> {
    const opening = new HeldOpening(body);
    if (!isCopy) this.#opening = opening;
    const { signal } = this.#stop;
    const isPatient = this.awaitsContent;
    const { idleMs } = this.#limits;
    // Longer silences are watched while the body is piped.
    const callOffIdle =
      isPatient && idleMs !== null ? this.#after(idleMs, () => this.cut('idle')) : null;
    try {
      return await opening.read(reader, {
        waitMs: isPatient ? null : OPENING_WAIT_MS,
        bytesMax: isPatient ? TOKEN_BYTES_MAX : OPENING_BYTES_MAX,
        signal,
        after: this.#after,
      });
    } catch {
      if (signal.aborted) return null;
      // If the upstream broke the body off, the caller receives the bytes that had arrived.
      this.#hasOpeningBroken = true;
      return 'content';
    } finally {
      callOffIdle?.();
      if (isCopy) opening.giveUp();
    }
  }

  /** Returns a partly read response as if it were unread. */
  unread(answer: Response): Response {
    const { status, statusText, headers } = answer;
    const body = this.#opening?.body() ?? (this.#whole === 'broken' ? null : this.#whole);
    if (body === null) return answer;
    this.#opening = null;
    this.#whole = null;
    return new Response(body, { status, statusText, headers, encodeBody: 'manual' });
  }

  /**
   * Whether a response is read completely before any of it is passed on. Streams are not, even if their length is
   * known.
   */
  takesWhole({ headers }: Response, type = headers.get('content-type')): boolean {
    const length = headers.get('content-length');
    const isSmall = length !== null && Number(length) <= WHOLE_BYTES_MAX;
    const isWatchedWhole = (this.#limits.idleMs ?? Infinity) >= WHOLE_IDLE_MIN_MS;
    return isSmall && isWatchedWhole && !comesInEvents(type);
  }

  /**
   * Passes the upstream's response through, byte for byte. `done` resolves when the upstream's last byte has been
   * passed on or the call was cut. The caller must keep it alive (`ctx.waitUntil`).
   *
   * The body goes through an identity stream. If `upstream.body` were handed to the runtime, this context would end at
   * the headers, and the lease with it. A JavaScript transform would not notice a caller that leaves. If nothing is
   * watched, a native pipe is used, which costs less than half the CPU.
   */
  async relay(upstream: Response, metering: PipeMetering | null): Promise<Relayed> {
    const { status, statusText, headers } = upstream;
    // A filter makes the body shorter than the length that the upstream declared.
    const isFiltered = metering !== null && metering.filter !== null;
    const relayed = (through: BodyInit | null): Response => {
      const response = new Response(through, { status, statusText, headers, encodeBody: 'manual' });
      callerResponseHeaders(response.headers);
      if (isFiltered) response.headers.delete('content-length');
      return response;
    };
    if (this.#whole !== null) return this.#passWhole(this.#whole, status, relayed, metering);
    const length = isFiltered ? null : headers.get('content-length');
    if (length !== null && this.takesWhole(upstream)) {
      const bytes = await this.takeWhole(upstream);
      return this.#passWhole(bytes ?? 'broken', status, relayed, metering);
    }
    const { body } = upstream;
    if (body === null || BODILESS.has(status)) {
      this.#finish();
      return { response: relayed(null), done: Promise.resolve(outcomeOf(status)), isWhole: true };
    }
    const isWatched = this.#limits.idleMs !== null || this.#limits.stalledMs !== null;
    const streams = bodyStreams(length, headers.get('content-type'), isWatched, metering);
    const done = this.#pipe(body, streams, status, metering);
    return { response: relayed(streams.readable), done, isWhole: false };
  }

  /** Passes on a body that was read completely. `broken` if it broke off. */
  #passWhole(
    bytes: ArrayBuffer | 'broken',
    status: number,
    relayed: (through: BodyInit | null) => Response,
    metering: PipeMetering | null,
  ): Relayed {
    this.#finish();
    if (bytes === 'broken') {
      return { response: null, done: this.#brokenOff(status), isWhole: false };
    }
    metering?.meter.push(new Uint8Array(bytes));
    const filter = metering?.filter ?? null;
    const out = filter === null ? bytes : filterWhole(filter, new Uint8Array(bytes));
    const response = relayed(out.byteLength === 0 ? null : out);
    return { response, done: Promise.resolve(outcomeOf(status)), isWhole: true };
  }

  async #pipe(
    body: ReadableStream<Uint8Array>,
    streams: BodyStreams,
    status: number,
    metering: PipeMetering | null,
  ): Promise<LeaseOutcome> {
    const passing = {
      signal: this.#stop.signal,
      idle: this.#bound(this.#limits.idleMs, 'idle'),
      stalled: this.#bound(this.#limits.stalledMs, 'stalled'),
      after: this.#after,
      metering,
      opening: this.#opening,
      hasBroken: this.#hasOpeningBroken,
    };
    try {
      await passBody(body, streams, passing);
    } catch {
      return await this.#brokenOff(status);
    } finally {
      this.#finish();
    }
    return outcomeOf(status);
  }

  #bound(afterMs: number | null, reason: CutReason): TimeBound | null {
    if (afterMs === null) return null;
    return { afterMs, onOver: () => this.cut(reason), after: this.#after };
  }

  async #brokenOff(status: number): Promise<LeaseOutcome> {
    this.#stop.abort();
    await whenQuiet();
    // A caller that leaves does not change an outcome that the upstream has already reported.
    if (outcomeOf(status) === 'failed') return 'failed';
    return this.#cutBy === null ? 'failed' : 'cancelled';
  }

  #finish(): void {
    this.noteContent();
    this.#pace?.stop();
    this.#callOffMaxHold();
    // The runtime keeps a request's signal and its listeners long after the call.
    this.#callerSignal.removeEventListener('abort', this.#leave);
  }
}

/** The runtime accepts any status and length from an upstream, but passes on only valid ones. */
function canBeRelayed({ status, headers, webSocket }: Response): boolean {
  if (status === 101) return webSocket !== null;
  const length = headers.get('content-length');
  return status >= 200 && status <= 599 && (length === null || /^\d{1,15}$/.test(length));
}

function outcomeOf(status: number): LeaseOutcome {
  return status === 429 || status >= 500 ? 'failed' : 'success';
}
