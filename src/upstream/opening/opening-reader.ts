import { mediaType } from '../../runtime/header-value.ts';
import { joined } from '../body/bytes.ts';
import { EventData, eventsIn, MessageJudge } from '../event-streams.ts';
import { parseCutJson } from '../json/json-syntax.ts';
import { PackedCopy, type Packing } from '../body/packing.ts';
import { hasContent, judgeRecord, type Judgement } from './judge-record.ts';

/** Reads the beginning of a response with status 200, which may contain an error, and the end of its stream. */

/**
 * The format of a response, according to its type.
 * - `events`: server-sent events.
 * - `messages`: Amazon's messages.
 * - `lines`: one JSON value on each line.
 * - `json`: one JSON text, which may be an array of records.
 * - `text`: any of them except `messages`.
 */
export type AnswerForm = 'events' | 'messages' | 'lines' | 'json' | 'text';

/** Decodes independent pieces. */
const decoder = new TextDecoder();

const FORMS: ReadonlyMap<string, AnswerForm> = new Map([
  ['text/event-stream', 'events'],
  ['application/vnd.amazon.eventstream', 'messages'],
  ['application/x-ndjson', 'lines'],
  ['application/jsonl', 'lines'],
  ['application/json-lines', 'lines'],
  ['application/stream+json', 'lines'],
  // Servers without a content type, or with a generic one.
  ['text/plain', 'text'],
  ['', 'text'],
]);

/** Returns the form of a response. null if errors in it cannot be read. */
export function formOf(contentType: string | null): AnswerForm | null {
  // Most responses have this type.
  if (contentType === 'application/json') return 'json';
  const name = mediaType(contentType);
  return FORMS.get(name) ?? (name.includes('json') ? 'json' : null);
}

/**
 * Number of characters in which a JSON error is recognized. Its fields come first, and copies of the request after
 * them.
 */
const HEAD_CHARACTERS = 2_048;

/**
 * Signs of an error near the beginning of a JSON text. A response without any is not parsed. A quote inside a string is
 * escaped, so text of the model contains no signs.
 */
const SUSPECT =
  /"(?:error|errors)"\s*:\s*(?:["[{]|true)|"(?:type|object|event_type)"\s*:\s*"(?:error|response\.failed)"|"status"\s*:\s*(?:"(?:failed|failure|error)"|[45]\d\d\b)|"finish_reason"\s*:\s*"(?:error|network_error|insufficient_system_resource)"|"(?:base_resp|error_code|code|statusCode)"\s*:|"success"\s*:\s*false|"__type"\s*:|^\s*\[?\s*\{\s*"(?:message|msg|detail)"\s*:/;

export function judgeWhole(form: AnswerForm, bytes: Uint8Array): Judgement {
  // Most responses are successful, and this check is enough for them.
  const head = bytes.subarray(0, HEAD_CHARACTERS);
  if (form === 'json' && !SUSPECT.test(decoder.decode(head))) return 'content';
  const reader = new OpeningReader(form);
  const judgement = reader.push(bytes);
  return judgement === 'prelude' ? reader.end() : judgement;
}

/**
 * The beginning of an event that only announces the response. Such an event repeats the request and need not be parsed.
 */
const ANNOUNCES =
  /^\s*\{\s*"type"\s*:\s*"(?:response\.(?:created|queued|in_progress)|message_start|ping)"/;

const FIELDS = ['data:', 'event:', 'id:', 'retry:', ':'];

const SPACE = 0x20;

/** Maximum bytes of an Amazon message that are kept. The beginning is not held back beyond that. */
const MESSAGE_BYTES_MAX = 65_536;

/**
 * Maximum characters that are parsed to inspect incomplete records: a fixed number, and a number for each received
 * character.
 */
const CUT_PARSED_MIN = 65_536;
const CUT_PARSED_EACH = 32;

/**
 * Reads the beginning of a response, split anywhere, until it contains content or an error. Content is recognized by
 * its first characters, and an error when its record is complete. The work is linear in the length.
 */
export class OpeningReader {
  /** `bytes` treats every byte as content. */
  readonly #form: AnswerForm | 'bytes';
  readonly #decoder = new TextDecoder();
  readonly #messages: MessageJudge | null;
  /** null until the response is known to consist of events. */
  #events: EventData | null = null;
  #readsValues = false;
  /** Bytes at the beginning, until the form of the response is known. */
  #head: Uint8Array = new Uint8Array();
  #found: Judgement = 'prelude';
  /** The data of the current event, or the current value. */
  #rest = '';
  #length = 0;
  #parsed = 0;
  #valueEnd = new ValueEnd();

  constructor(form: AnswerForm | 'bytes') {
    this.#form = form;
    this.#messages =
      form === 'messages' ? new MessageJudge(MESSAGE_BYTES_MAX, () => this.#endMessage()) : null;
  }

  /** Judges the bytes received so far. Returns `prelude` if there is nothing else. */
  push(chunk: Uint8Array): Judgement {
    return this.#form === 'bytes' ? 'content' : this.#read(chunk, false);
  }

  /** Judges the remaining bytes when the response has ended. */
  end(): Judgement {
    const judgement = this.#read(new Uint8Array(), true);
    return judgement === 'prelude' ? 'content' : judgement;
  }

  #read(bytes: Uint8Array, isEnd: boolean): Judgement {
    this.#length += bytes.length;
    if (this.#messages !== null) return this.#readMessages(this.#messages, bytes);
    if (this.#events !== null) return this.#readEvents(this.#events, bytes, isEnd);
    if (this.#readsValues) return this.#readValues(bytes, isEnd);
    const head = joined([this.#head, bytes], this.#head.length + bytes.length);
    this.#head = new Uint8Array();
    // A byte order mark may be incomplete.
    const text = new TextDecoder().decode(head, { stream: true });
    const first = text.trimStart();
    if (first === '') {
      if (text === '') this.#head = head;
      return 'prelude';
    }
    if (/^[[{]/.test(first)) {
      this.#readsValues = true;
      return this.#readValues(head, isEnd);
    }
    if (this.#form === 'events' || FIELDS.some((field) => first.startsWith(field))) {
      this.#events = new EventData(
        (piece) => this.#takeData(piece),
        () => this.#endEvent(),
      );
      const from = head.findIndex((byte) => byte > SPACE);
      return this.#readEvents(this.#events, head.subarray(from), isEnd);
    }
    this.#head = head;
    return FIELDS.some((field) => field.startsWith(first)) ? 'prelude' : 'content';
  }

  #readMessages(messages: MessageJudge, bytes: Uint8Array): Judgement {
    messages.push(bytes);
    return messages.isLost ? 'content' : this.#found;
  }

  #endMessage(): void {
    if (this.#found === 'prelude') this.#found = this.#messages?.judge() ?? 'content';
  }

  #readEvents(events: EventData, bytes: Uint8Array, isEnd: boolean): Judgement {
    events.push(bytes);
    if (this.#found !== 'prelude') return this.#found;
    return isEnd ? judgeData(this.#rest, events.name) : this.#judgeCutEvent(events.name);
  }

  #takeData(piece: Uint8Array): void {
    if (this.#found === 'prelude') this.#rest += this.#decoder.decode(piece, { stream: true });
  }

  #endEvent(): void {
    if (this.#found === 'prelude') this.#found = judgeData(this.#rest, this.#events?.name ?? '');
    this.#rest = '';
  }

  #judgeCutEvent(name: string): Judgement {
    if (!this.#mayParse(this.#rest.length)) return 'prelude';
    const data = this.#rest.trimStart();
    if (data === '' || ANNOUNCES.test(data)) return 'prelude';
    if (/^[[{]/.test(data)) return isCutContent(data) ? 'content' : 'prelude';
    return name === 'error' ? 'prelude' : 'content';
  }

  /** Reads successive JSON objects: a document, lines, or the elements of an array. */
  #readValues(bytes: Uint8Array, isEnd: boolean): Judgement {
    let more = this.#decoder.decode(bytes, { stream: !isEnd });
    for (;;) {
      if (this.#rest === '') more = more.replace(BETWEEN, '');
      if (this.#rest + more === '') return 'prelude';
      if (this.#rest === '' && !more.startsWith('{')) return 'content';
      const end = this.#valueEnd.push(more);
      if (end === null) {
        this.#rest += more;
        return isEnd ? judgeData(this.#rest, '') : this.#judgeCutValue();
      }
      const judgement = judgeData(this.#rest + more.slice(0, end), '');
      if (judgement !== 'prelude') return judgement;
      more = more.slice(end);
      this.#rest = '';
      this.#valueEnd = new ValueEnd();
    }
  }

  #judgeCutValue(): Judgement {
    const { length } = this.#rest;
    if (!this.#mayParse(Math.min(length, HEAD_CHARACTERS))) return 'prelude';
    const head = this.#rest.slice(0, HEAD_CHARACTERS);
    if (isCutContent(head)) return 'content';
    if (length < HEAD_CHARACTERS) return 'prelude';
    return SUSPECT.test(head) ? 'prelude' : 'content';
  }

  /** Whether this many characters may be parsed again. */
  #mayParse(length: number): boolean {
    if (this.#parsed + length > CUT_PARSED_MIN + CUT_PARSED_EACH * this.#length) return false;
    this.#parsed += length;
    return true;
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Finds the end of a JSON object that arrives in pieces. Reads each character once. */
class ValueEnd {
  #depth = 0;
  #isInString = false;
  #isEscaped = false;

  /** Returns how many characters of a piece belong to the object, or null if the object continues. */
  push(text: string): number | null {
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (this.#isEscaped) this.#isEscaped = false;
      else if (this.#isInString) {
        if (code === BACKSLASH) this.#isEscaped = true;
        else if (code === QUOTE) this.#isInString = false;
      } else if (code === QUOTE) this.#isInString = true;
      // Brackets and braces differ only in their lower bits.
      else if ((code | 0x20) === 0x7b) this.#depth += 1;
      else if ((code | 0x20) === 0x7d) {
        this.#depth -= 1;
        if (this.#depth <= 0) return at + 1;
      }
    }
    return null;
  }
}

/** Separators between the objects of an array, or of lines. */
const BETWEEN = /^[\s,[\]]+/;

function judgeData(data: string, name: string): Judgement {
  const text = data.trim();
  if (text === '' || ANNOUNCES.test(text)) return 'prelude';
  const { value } = parseCutJson(text);
  // An error event may contain only the text of the error.
  const message = typeof value === 'string' ? value : text;
  if (typeof value !== 'object') return name === 'error' ? { error: message } : 'content';
  return judgeRecord(Array.isArray(value) ? value[0] : value, name);
}

function isCutContent(text: string): boolean {
  const { value } = parseCutJson(text);
  return hasContent(Array.isArray(value) ? value[0] : value);
}

/** Returns the error at the end of a stream, or null. `text` is the end of the stream and may begin anywhere. */
function errorAtEnd(text: string): string | null {
  const ofPart = errorOfLastEvent(text) ?? errorOfLastLine(text) ?? errorOfLastElement(text);
  return ofPart ?? (/^\s*\{/.test(text) ? errorOf(judgeData(text, '')) : null);
}

/** Only the usage may follow the error. */
function errorOfLastEvent(text: string): string | null {
  const events = eventsIn(text).filter(({ data }) => !NO_RECORD.test(data));
  for (const { data, name } of events.toReversed()) {
    const judgement = judgeData(data, name);
    if (judgement !== 'prelude') return errorOf(judgement);
  }
  return null;
}

/** Data without a record: empty, or the end marker. */
const NO_RECORD = /^\s*(?:\[DONE\]\s*)?$/;

function errorOfLastLine(text: string): string | null {
  const line =
    text
      .trimEnd()
      .split(/[\r\n]/)
      .at(-1) ?? '';
  return line.startsWith('{') ? errorOf(judgeData(line, '')) : null;
}

/** An error element at any position of an array. */
const ELEMENTS = /[[,]\s*(?=\{\s*"error"\s*:)/g;

/** Finds the error in the last element of an array of records. Only the end of the array may follow it. */
function errorOfLastElement(text: string): string | null {
  const at = [...text.matchAll(ELEMENTS)].at(-1);
  if (at === undefined) return null;
  const { value, rest } = parseCutJson(text.slice(at.index + at[0].length));
  return rest !== null && /^\s*\]?\s*$/.test(rest) ? errorOf(judgeRecord(value)) : null;
}

function errorOf(judgement: Judgement): string | null {
  return typeof judgement === 'object' ? judgement.error : null;
}

/** Number of bytes kept from the end of a stream. The longest known error, from Gemini with its quotas, has 3 KB. */
const BYTES_MAX = 4_096;

/** The event of a failed response. It repeats the whole request after its error. */
const FAILED = '"response.failed"';

export interface LateError {
  readonly error: string;
  readonly isAfterContent: boolean;
}

/**
 * Keeps the end of a stream, which may contain an error. It receives bytes in batches, so no code runs for each chunk.
 */
export class StreamEnd {
  readonly #form: AnswerForm;
  readonly #isResponses: boolean;
  readonly #decoder = new TextDecoder();
  /** The last message of an Amazon event stream. null if the stream has another form. */
  readonly #messages: MessageJudge | null;
  /** null if the stream is not compressed. */
  readonly #copy: PackedCopy | null;
  #buffer: Uint8Array | null = null;
  #length = 0;
  #bytes = 0;
  /** The beginning of the event of a failed response. */
  #failed: string | null = null;

  constructor(form: AnswerForm, isResponses: boolean, packings: readonly Packing[] = []) {
    this.#form = form;
    this.#isResponses = isResponses;
    this.#messages = form === 'messages' ? new MessageJudge(BYTES_MAX) : null;
    this.#copy =
      packings.length === 0 ? null : new PackedCopy(packings, (bytes) => this.#take(bytes));
  }

  push(chunk: Uint8Array): void {
    if (this.#copy === null) this.#take(chunk);
    else this.#copy.push(chunk);
  }

  /** Resolves when all pushed bytes are read. Must be awaited before `read`. null if bytes are read immediately. */
  caughtUp(): Promise<void> | null {
    return this.#copy?.caughtUp() ?? null;
  }

  /** Returns the error at the end of the stream, or null. Nothing may be pushed afterwards. */
  read(): LateError | null {
    this.#copy?.close();
    const kept = this.#buffer?.subarray(0, this.#length) ?? new Uint8Array();
    const error = this.#errorIn(kept);
    if (error === null) return null;
    return { error, isAfterContent: this.#bytes > BYTES_MAX || isAfterContent(kept, this.#form) };
  }

  #take(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    if (this.#isResponses) this.#findFailed(chunk);
    this.#messages?.push(chunk);
    const buffer = (this.#buffer ??= new Uint8Array(BYTES_MAX));
    const last = chunk.length > BYTES_MAX ? chunk.subarray(-BYTES_MAX) : chunk;
    const kept = Math.min(this.#length, BYTES_MAX - last.length);
    if (kept < this.#length) buffer.copyWithin(0, this.#length - kept, this.#length);
    buffer.set(last, kept);
    this.#length = kept + last.length;
  }

  #errorIn(kept: Uint8Array): string | null {
    if (this.#messages === null) return errorAtEnd(this.#failed ?? this.#decoder.decode(kept));
    const judgement = this.#messages.judge();
    return typeof judgement === 'object' ? judgement.error : null;
  }

  #findFailed(chunk: Uint8Array): void {
    const text = this.#decoder.decode(chunk);
    const at = text.lastIndexOf(FAILED);
    const from = at < 0 ? -1 : text.lastIndexOf('{', at);
    if (from >= 0) this.#failed = text.slice(from, from + BYTES_MAX).split('\n')[0] ?? '';
  }
}

function isAfterContent(bytes: Uint8Array, form: AnswerForm): boolean {
  return new OpeningReader(form).push(bytes) === 'content';
}
