import { KeptBytes } from '../body/bytes.ts';
import { parseObject } from '../json/parse-json.ts';
import { judgeRecord, type Judgement } from '../opening/judge-record.ts';

/** Event streams of AWS: binary messages, and how the beginning of such a stream is judged. */

/** Bytes before the headers: total length, length of the headers, and a checksum, four bytes each. */
const PRELUDE_BYTES = 12;
const CHECKSUM_BYTES = 4;

/**
 * Maximum bytes of a message. Amazon sends at most 16 MB per message, so a longer one means that message boundaries
 * were lost.
 */
const MESSAGE_BYTES_MAX = 24 * 1024 * 1024;

/** The type of text values in headers. */
const TEXT = 7;

/**
 * Lengths of the values of all types in order: true, false, byte, short, integer, long, bytes, text, timestamp, UUID.
 * null means that a two-byte length precedes the value.
 */
const VALUE_BYTES = [0, 0, 1, 2, 4, 8, null, null, 8, 16] as const;

/**
 * Parses the messages of `application/vnd.amazon.eventstream`: a prelude, headers, a payload and a checksum. Payloads
 * are passed on in pieces as they arrive, and headers only if `onHeaders` is given.
 */
export class MessageStream {
  readonly #onPayload: (piece: Uint8Array) => void;
  readonly #onEnd: () => void;
  readonly #onHeaders: ((piece: Uint8Array) => void) | undefined;
  readonly #prelude = new Uint8Array(PRELUDE_BYTES);
  #preludeLength = 0;
  /** Bytes to come of each part of the current message. */
  #headers = 0;
  #payload = 0;
  #checksum = 0;
  #isLost = false;

  /** `onEnd` is called at the end of each message. */
  constructor(
    onPayload: (piece: Uint8Array) => void,
    onEnd: () => void,
    onHeaders?: (piece: Uint8Array) => void,
  ) {
    this.#onPayload = onPayload;
    this.#onEnd = onEnd;
    this.#onHeaders = onHeaders;
  }

  /** Whether the bytes are not valid messages. Nothing more is read after that. */
  get isLost(): boolean {
    return this.#isLost;
  }

  push(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length && !this.#isLost) {
      if (this.#preludeLength < PRELUDE_BYTES) {
        at = this.#takePrelude(chunk, at);
      } else if (this.#headers > 0) {
        const taken = Math.min(this.#headers, chunk.length - at);
        this.#headers -= taken;
        this.#onHeaders?.(chunk.subarray(at, at + taken));
        at += taken;
      } else if (this.#payload > 0) {
        const taken = Math.min(this.#payload, chunk.length - at);
        this.#payload -= taken;
        this.#onPayload(chunk.subarray(at, at + taken));
        at += taken;
      } else {
        const taken = Math.min(this.#checksum, chunk.length - at);
        this.#checksum -= taken;
        at += taken;
        if (this.#checksum > 0) break;
        this.#preludeLength = 0;
        this.#onEnd();
      }
    }
  }

  #takePrelude(chunk: Uint8Array, from: number): number {
    const taken = Math.min(PRELUDE_BYTES - this.#preludeLength, chunk.length - from);
    this.#prelude.set(chunk.subarray(from, from + taken), this.#preludeLength);
    this.#preludeLength += taken;
    if (this.#preludeLength === PRELUDE_BYTES) {
      const view = new DataView(this.#prelude.buffer);
      const total = view.getUint32(0);
      this.#headers = view.getUint32(4);
      this.#payload = total - PRELUDE_BYTES - this.#headers - CHECKSUM_BYTES;
      this.#checksum = CHECKSUM_BYTES;
      this.#isLost = this.#payload < 0 || total > MESSAGE_BYTES_MAX;
    }
    return from + taken;
  }
}

/** Reads the text headers of a message. Incomplete headers are skipped. */
function textHeaders(bytes: Uint8Array): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const decoder = new TextDecoder();
  let at = 0;
  while (at < bytes.length) {
    const nameEnd = at + 1 + view.getUint8(at);
    if (nameEnd >= bytes.length) break;
    const type = view.getUint8(nameEnd);
    const fixed = VALUE_BYTES[type];
    if (fixed === undefined || (fixed === null && nameEnd + 3 > bytes.length)) break;
    const from = fixed === null ? nameEnd + 3 : nameEnd + 1;
    const end = from + (fixed ?? view.getUint16(nameEnd + 1));
    if (end > bytes.length) break;
    const name = decoder.decode(bytes.subarray(at + 1, nameEnd));
    if (type === TEXT) found.set(name, decoder.decode(bytes.subarray(from, end)));
    at = end;
  }
  return found;
}

/** Maximum bytes of a message's headers that are kept. Amazon sends about 100. */
const HEADER_BYTES_MAX = 2_048;

/** Events of Bedrock that are content only if a part is not empty. */
const PARTS: ReadonlyMap<string, string> = new Map([
  ['contentBlockStart', 'start'],
  ['contentBlockDelta', 'delta'],
]);

/** Events of Bedrock that precede the first content. */
const PRELUDE: ReadonlySet<string> = new Set(['initial-response', 'messageStart']);

/**
 * Judges messages of `application/vnd.amazon.eventstream`, the format of Bedrock's streams. A client can only read
 * complete messages, so a part of one is never content.
 */
export class MessageJudge {
  readonly #messages: MessageStream;
  readonly #headers = new KeptBytes(HEADER_BYTES_MAX);
  readonly #payload: KeptBytes;
  readonly #onMessage: () => void;
  #isWhole = false;

  /**
   * @param payloadBytesMax maximum bytes of a message that are kept
   * @param onMessage called at the end of each message
   */
  constructor(payloadBytesMax: number, onMessage: () => void = () => {}) {
    this.#payload = new KeptBytes(payloadBytesMax);
    this.#onMessage = onMessage;
    this.#messages = new MessageStream(
      (piece) => this.#keep(this.#payload, piece),
      () => {
        this.#isWhole = true;
        this.#onMessage();
      },
      (piece) => this.#keep(this.#headers, piece),
    );
  }

  /** Whether the bytes are not valid messages. */
  get isLost(): boolean {
    return this.#messages.isLost;
  }

  push(chunk: Uint8Array): void {
    this.#messages.push(chunk);
  }

  judge(): Judgement {
    const headers = textHeaders(this.#headers.bytes);
    const text = new TextDecoder().decode(this.#payload.bytes);
    const kind = headers.get(':message-type') ?? 'event';
    return kind === 'event'
      ? judgeEvent(headers.get(':event-type') ?? '', parseObject(text))
      : { error: errorOf(headers, parseObject(text), text) };
  }

  #keep(kept: KeptBytes, piece: Uint8Array): void {
    if (this.#isWhole) {
      this.#headers.clear();
      this.#payload.clear();
    }
    this.#isWhole = false;
    kept.add(piece, 0, piece.length);
  }
}

/** Converts an exception to the JSON that the same error has as a separate response. */
function errorOf(
  headers: ReadonlyMap<string, string>,
  fields: Readonly<Record<string, unknown>> | null,
  text: string,
): string {
  const name = headers.get(':exception-type') ?? headers.get(':error-code') ?? 'exception';
  const message =
    fields?.['message'] ?? fields?.['Message'] ?? headers.get(':error-message') ?? text;
  return JSON.stringify({ __type: name, ...fields, message });
}

function judgeEvent(type: string, fields: Readonly<Record<string, unknown>> | null): Judgement {
  if (fields === null) return 'content';
  if (PRELUDE.has(type)) return 'prelude';
  const part = PARTS.get(type);
  if (part !== undefined) return isFilled(fields[part]) ? 'content' : 'prelude';
  const event = eventOfModel(fields['bytes']);
  return event === null ? 'content' : judgeRecord(event);
}

/** The model's event that Bedrock wraps. null if there is none. */
function eventOfModel(base64: unknown): Readonly<Record<string, unknown>> | null {
  if (typeof base64 !== 'string') return null;
  try {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    return parseObject(new TextDecoder().decode(bytes));
  } catch {
    return null;
  }
}

function isFilled(part: unknown): boolean {
  if (typeof part === 'string') return part !== '';
  return typeof part === 'object' && part !== null && Object.values(part).some(isFilled);
}
