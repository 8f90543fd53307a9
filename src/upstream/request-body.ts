import { EXEMPT_BYTES_MAX, SCAN_BYTES_MAX } from './body-budget.ts';
import type { BodyBudget, Reservation } from './body-budget.ts';
import { scanEncoded } from './model/encoded-scan.ts';
import type { BodyScan } from './model/encoded-scan.ts';
import { createJsonModelScan, createJsonStreamScan } from './model/json-scan.ts';
import { unreadable } from './model/model-scan.ts';
import type { ModelScan, ScanState } from './model/model-scan.ts';
import { createMultipartModelScan, multipartBoundary } from './model/multipart-scan.ts';
import { contentLengthOf, readBody, unreadBody } from './model/outgoing-body.ts';
import type { OutgoingBody, ReadParts } from './model/outgoing-body.ts';

export { unreadBody };
export type { OutgoingBody };

/** What became of the search for a model. Of `unreadable` and `aborted` no body is left. */
export type ModelRead =
  | {
      readonly kind: 'found';
      readonly model: string;
      /** Whether the body asks for a stream, if that was looked for. */
      readonly isStream: boolean;
      readonly body: OutgoingBody;
    }
  | {
      readonly kind: 'absent';
      readonly model: null;
      readonly isStream: boolean;
      readonly body: OutgoingBody;
    }
  /** `message` is a full sentence for the caller. */
  | { readonly kind: 'unreadable'; readonly message: string }
  /** The signal came first, or the client's connection broke. */
  | { readonly kind: 'aborted' };

/**
 * So much of a large body is looked at before the budget is asked: where the model comes first, as
 * with most clients, the call neither waits nor keeps others waiting.
 */
const PEEK_BYTES = 16 * 1024;
const BUFFER_BYTES_MAX = 256 * 1024;

/** Up to this length a body is read in one go, which is the cheapest way for the many small ones. */
const WHOLE_BYTES_MAX = 32 * 1024;

/**
 * Finds the model in a request's body. It reads no further than it must, except that a small body
 * of known length is read whole; what is unread stays with the client. A large body waits for the
 * budget, in order of arrival and until the signal.
 */
export async function readModel(
  request: Request,
  budget: BodyBudget,
  signal: AbortSignal,
  wantsStream = false,
): Promise<ModelRead> {
  if (request.body === null) {
    return { kind: 'absent', model: null, isStream: false, body: unreadBody(request) };
  }
  const form = scanFor(request, wantsStream);
  if (typeof form === 'string') return refused(request.body, form);
  const scan = scanEncoded(form.scan, request.headers.get('content-encoding'));
  if (scan === null) return refused(request.body, 'its content encoding cannot be undone here');

  const length = contentLengthOf(request);
  const reading =
    length !== null && length <= WHOLE_BYTES_MAX
      ? new WholeReading(request, signal)
      : new Reading(request.body, length, budget, signal);
  let state: ScanState | 'aborted' = 'aborted';
  try {
    state = await reading.run(scan);
  } finally {
    scan.close();
    if (state === 'aborted' || state.kind === 'unreadable') reading.giveUp();
  }
  if (state === 'aborted') return { kind: 'aborted' };
  if (state.kind === 'unreadable') return { kind: 'unreadable', message: sentence(state.why) };
  const { isStream } = form.scan;
  if (state.kind !== 'found') {
    return { kind: 'absent', model: null, isStream, body: reading.body(null) };
  }
  const place = scan.isPlain ? { start: state.start, end: state.end, isJson: form.isJson } : null;
  return { kind: 'found', model: state.model, isStream, body: reading.body(place) };
}

/** Anything that does not say that it is a form may be JSON: some clients name no type. */
function scanFor(
  request: Request,
  wantsStream: boolean,
): { scan: ModelScan; isJson: boolean } | string {
  const contentType = request.headers.get('content-type') ?? '';
  if (!/^\s*multipart\/form-data\s*(;|$)/i.test(contentType)) {
    const scan = wantsStream ? createJsonStreamScan() : createJsonModelScan();
    return { scan, isJson: true };
  }
  const boundary = multipartBoundary(contentType);
  if (boundary === null) return 'the content type names no boundary';
  return { scan: createMultipartModelScan(boundary), isJson: false };
}

function refused(body: ReadableStream, why: string): ModelRead {
  body.cancel().catch(ignore);
  return { kind: 'unreadable', message: sentence(why) };
}

function sentence(why: string): string {
  return `The model could not be read from the body: ${why}. The header headgate-model can name it.`;
}

/** The reading of a small body of known length. */
class WholeReading {
  readonly #request: Request;
  readonly #signal: AbortSignal;
  #bytes = new Uint8Array();

  constructor(request: Request, signal: AbortSignal) {
    this.#request = request;
    this.#signal = signal;
  }

  async run(scan: BodyScan): Promise<ScanState | 'aborted'> {
    const { promise: gone, resolve } = Promise.withResolvers<null>();
    const leave = (): void => resolve(null);
    this.#signal.addEventListener('abort', leave);
    try {
      if (this.#signal.aborted) return 'aborted';
      // On Workers a read may stay open for ever when the client has left: only the signal tells.
      const read = await Promise.race([this.#request.arrayBuffer(), gone]);
      if (read === null) return 'aborted';
      this.#bytes = new Uint8Array(read);
    } catch {
      return 'aborted';
    } finally {
      this.#signal.removeEventListener('abort', leave);
    }
    const state = await scan.push(this.#bytes);
    return state.kind === 'more' ? scan.end() : state;
  }

  body(model: ReadParts['model']): OutgoingBody {
    const contentLength = this.#bytes.length;
    return readBody({ chunks: [this.#bytes], rest: null, contentLength, reservation: null, model });
  }

  giveUp(): void {
    // All of it was read, or nobody sends any more.
  }
}

/** The reading of one body, up to the point where its model is known. */
class Reading {
  readonly #stream: ReadableStream<Uint8Array>;
  readonly #reader: ReadableStreamBYOBReader;
  readonly #contentLength: number | null;
  readonly #budget: BodyBudget;
  readonly #signal: AbortSignal;
  /** Buffers that are full, and the one that is being filled. */
  readonly #full: Uint8Array[] = [];
  #buffer = new ArrayBuffer(0);
  #filled = 0;
  #bytes = 0;
  #isWhole = false;
  #reservation: Reservation | null = null;
  readonly #isSmall: boolean;

  constructor(
    stream: ReadableStream<Uint8Array>,
    contentLength: number | null,
    budget: BodyBudget,
    signal: AbortSignal,
  ) {
    this.#stream = stream;
    this.#reader = stream.getReader({ mode: 'byob' });
    this.#contentLength = contentLength;
    this.#isSmall = contentLength !== null && contentLength <= EXEMPT_BYTES_MAX;
    this.#budget = budget;
    this.#signal = signal;
  }

  async run(scan: BodyScan): Promise<ScanState | 'aborted'> {
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

  async #search(scan: BodyScan, gone: Promise<'aborted'>): Promise<ScanState | 'aborted'> {
    const isSmall = this.#isSmall;
    const freeBytes = isSmall || this.#contentLength === null ? EXEMPT_BYTES_MAX : PEEK_BYTES;
    let state: ScanState = { kind: 'more' };
    for (;;) {
      if (this.#isWhole) return state.kind === 'more' ? scan.end() : state;
      if (state.kind !== 'more' && !isSmall) return state;
      if (this.#bytes >= SCAN_BYTES_MAX) {
        return unreadable(`it is not within the first ${SCAN_BYTES_MAX} bytes`);
      }
      if (this.#bytes >= freeBytes && this.#reservation === null) {
        const bytes = Math.min(this.#contentLength ?? SCAN_BYTES_MAX, SCAN_BYTES_MAX);
        this.#reservation = await this.#budget.take(bytes, this.#signal);
        if (this.#reservation === null) return 'aborted';
      }
      // On Workers a read may stay open for ever when the client has left: only the signal tells.
      const chunk = await Promise.race([this.#read(), gone]);
      if (chunk === 'aborted') return 'aborted';
      if (state.kind === 'more' && chunk.length > 0) state = await scan.push(chunk);
    }
  }

  /** Reads what is there into the current buffer. The answer is empty at the end of the body. */
  async #read(): Promise<Uint8Array | 'aborted'> {
    if (this.#filled === this.#buffer.byteLength) this.#nextBuffer();
    try {
      const { done, value } = await this.#reader.read(new Uint8Array(this.#buffer, this.#filled));
      // The buffer was handed over, and comes back with the answer, except from a cancelled body.
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

  /** Buffers grow with the body, so that neither a short one wastes memory nor a long one calls. */
  #nextBuffer(): void {
    this.#keepBuffer();
    const left = this.#contentLength === null ? Infinity : this.#contentLength - this.#bytes;
    const wanted = this.#isSmall ? left : clamp(this.#bytes, PEEK_BYTES, BUFFER_BYTES_MAX);
    this.#buffer = new ArrayBuffer(left > 0 ? Math.min(left, wanted) : PEEK_BYTES);
    this.#filled = 0;
  }

  #keepBuffer(): void {
    if (this.#filled > 0) this.#full.push(new Uint8Array(this.#buffer, 0, this.#filled));
  }

  /** What was read, and the rest. Nothing may be read afterwards. */
  body(model: ReadParts['model']): OutgoingBody {
    this.#keepBuffer();
    this.#reservation?.keep(this.#bytes - this.#filled + this.#buffer.byteLength);
    this.#reader.releaseLock();
    return readBody({
      chunks: this.#full,
      rest: this.#isWhole ? null : this.#stream,
      contentLength: this.#contentLength,
      reservation: this.#reservation,
      model,
    });
  }

  giveUp(): void {
    this.#reservation?.release();
    this.#reader.cancel().catch(ignore);
  }
}

function clamp(value: number, min: number, max: number): number {
  return Math.min(Math.max(value, min), max);
}

function ignore(): void {
  // The body is given up; how that went concerns nobody.
}
