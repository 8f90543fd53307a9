import { KeptBytes } from './body/bytes.ts';
import { parseObject } from './json/json-syntax.ts';
import { judgeRecord, type Judgement } from './opening/judge-record.ts';

/**
 * Event streams. Those of the web: lines of text. Those of AWS: binary messages, and how the beginning of such a stream
 * is judged.
 */

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
const LINE_BREAK = Uint8Array.of(LF);
const MARK = [0xef, 0xbb, 0xbf];
const DATA = new TextEncoder().encode('data');
const EVENT = new TextEncoder().encode('event');

const NAME_BYTES_MAX = 64;

/** Positions within a line: in the field name, after the colon, in the value, or in a part that is skipped. */
const FIELD = 0;
const BEFORE_VALUE = 1;
const IN_VALUE = 2;
const SKIPPED = 3;

/**
 * Reads the data and names of server-sent events across chunks. The data lines of one event are joined by a line feed.
 * Comments and other fields are skipped. A line ends with CR, LF or both.
 */
export class EventData {
  readonly #onData: (piece: Uint8Array) => void;
  readonly #onEnd: () => void;
  readonly #name = new KeptBytes(NAME_BYTES_MAX);
  #place: number = FIELD;
  /** The field that the current line may contain. */
  #field: Uint8Array = DATA;
  /** Number of bytes of the field name that have matched so far. */
  #length = 0;
  #isAfterCr = false;
  #hasData = false;
  /** Number of bytes read of a byte order mark at the beginning. 3 once it has been read or ruled out. */
  #mark = 0;

  /**
   * `onData` receives parts of the chunks, which are valid until it returns. `onEnd` is called after each event with
   * data.
   */
  constructor(onData: (piece: Uint8Array) => void, onEnd: () => void) {
    this.#onData = onData;
    this.#onEnd = onEnd;
  }

  /** The name of the current event, or of the ended event in `onEnd`. Empty if it has none. */
  get name(): string {
    return new TextDecoder().decode(this.#name.bytes).trim();
  }

  push(chunk: Uint8Array): void {
    let at = this.#mark < MARK.length ? this.#passMark(chunk) : 0;
    while (at < chunk.length) {
      const byte = chunk[at] ?? 0;
      if (byte === LF && this.#isAfterCr) {
        this.#isAfterCr = false;
        at += 1;
        continue;
      }
      this.#isAfterCr = byte === CR;
      if (byte === LF || byte === CR) {
        this.#endLine();
        at += 1;
      } else {
        at = this.#readLine(chunk, at);
      }
    }
  }

  /** Reads the rest of a line, up to its end or the end of the chunk. */
  #readLine(chunk: Uint8Array, from: number): number {
    let at = from;
    while (this.#place === FIELD && at < chunk.length) {
      const byte = chunk[at];
      if (byte === LF || byte === CR) return at;
      if (byte === COLON && this.#length === this.#field.length) this.#beginValue();
      else if (!this.#isOfField(byte)) this.#place = SKIPPED;
      at += 1;
    }
    if (this.#place === BEFORE_VALUE && at < chunk.length) {
      this.#place = IN_VALUE;
      if (chunk[at] === SPACE) at += 1;
    }
    const end = lineEnd(chunk, at);
    if (this.#place === IN_VALUE && end > at) {
      if (this.#field === DATA) this.#onData(chunk.subarray(at, end));
      else this.#name.add(chunk, at, end);
    }
    return end;
  }

  /** Whether a byte continues a field name. The first byte decides which field the line may contain. */
  #isOfField(byte: number | undefined): boolean {
    if (this.#length === 0) this.#field = byte === EVENT[0] ? EVENT : DATA;
    if (byte !== this.#field[this.#length]) return false;
    this.#length += 1;
    return true;
  }

  #beginValue(): void {
    this.#place = BEFORE_VALUE;
    if (this.#field === EVENT) return this.#name.clear();
    if (this.#hasData) this.#onData(LINE_BREAK);
    this.#hasData = true;
  }

  #endLine(): void {
    const isEmpty = this.#place === FIELD && this.#length === 0;
    // A line with only a name is a field without a value.
    if (this.#place === FIELD && !isEmpty && this.#length === this.#field.length) {
      this.#beginValue();
    }
    this.#place = FIELD;
    this.#length = 0;
    if (!isEmpty) return;
    if (this.#hasData) {
      this.#hasData = false;
      this.#onEnd();
    }
    this.#name.clear();
  }

  #passMark(chunk: Uint8Array): number {
    let at = 0;
    while (at < chunk.length && this.#mark < MARK.length && chunk[at] === MARK[this.#mark]) {
      this.#mark += 1;
      at += 1;
    }
    if (at < chunk.length) this.#mark = MARK.length;
    return at;
  }
}

/** An event. At the end of the text it may be cut off. */
interface TextEvent {
  readonly name: string;
  readonly data: string;
}

export function eventsIn(text: string): readonly TextEvent[] {
  const found: TextEvent[] = [];
  const decoder = new TextDecoder();
  let data = '';
  const take = (): void => {
    if (data !== '') found.push({ name: events.name, data });
    data = '';
  };
  const events = new EventData((piece) => {
    data += decoder.decode(piece);
  }, take);
  events.push(new TextEncoder().encode(text));
  take();
  return found;
}

function lineEnd(chunk: Uint8Array, from: number): number {
  let at = from;
  while (at < chunk.length && chunk[at] !== LF && chunk[at] !== CR) at += 1;
  return at;
}

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
