import { EventData } from '../event-streams.ts';
import { isLineEnd } from '../json/json-string.ts';
import { KeptBytes } from '../body/bytes.ts';

/**
 * Removes the member `usage` from an OpenAI chat stream whose caller did not request it. Streams have a chunk for each
 * token, so nothing is parsed. The number of brackets that are closed after a member shows its depth.
 */

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** Maximum bytes of an event that is inspected. Most events have a few hundred. Longer events pass unchanged. */
const EVENT_BYTES_MAX = 16_384;

export interface ByteFilter {
  /**
   * Filters the next bytes and returns those to pass on. The result may share memory with the chunk, so it must be used
   * before the next call.
   */
  push(chunk: Uint8Array): Uint8Array;
  /** Returns the rest when the stream ends. */
  end(): Uint8Array;
}

/**
 * Removes the additions of OpenAI to an event stream whose call requests usage: the chunk with `choices: []` and usage,
 * and `usage: null` in all other chunks. Some servers, such as Gemini's, send the usage in a chunk with choices
 * instead, so the member is removed whatever its value. All other bytes pass unchanged. Each event is passed on as soon
 * as it is complete, because clients cannot use a part of an event.
 *
 * The usage of upstreams that send it without a request is removed as well.
 */
export function createUsageDrop(): ByteFilter {
  return new UsageDrop();
}

class UsageDrop implements ByteFilter {
  /** Bytes of the current event from earlier chunks. */
  readonly #held = new KeptBytes(EVENT_BYTES_MAX);
  #isLong = false;
  #isLineEmpty = true;
  /** What happened to an event that ended with a carriage return. A line feed after it is a part of the event. */
  #beforeLf: 'passed' | 'dropped' | null = null;
  #isAfterCr = false;
  /** Whether the event contains an empty array. Most events do not, and need no further check. */
  #hasEmptyArray = false;
  #isAfterBracket = false;

  push(chunk: Uint8Array): Uint8Array {
    const out = new Pieces(chunk);
    let start = 0;
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at] ?? 0;
      const before = this.#beforeLf;
      this.#beforeLf = null;
      if (byte === LF && before !== null) {
        if (before === 'passed') out.add(start, at + 1);
        start = at + 1;
        continue;
      }
      if (!this.#endsEvent(byte)) continue;
      const isDropped = this.#takeOut(chunk, start, at + 1, out);
      if (byte === CR) this.#beforeLf = isDropped ? 'dropped' : 'passed';
      this.#beginEvent();
      start = at + 1;
    }
    this.#hold(chunk, start, out);
    return out.joined();
  }

  /**
   * Filters a last event without an empty line after it, because clients that read line by line accept it as complete.
   */
  end(): Uint8Array {
    const nothing = new Uint8Array();
    const out = new Pieces(nothing);
    this.#takeOut(nothing, 0, 0, out);
    return out.joined();
  }

  /**
   * Passes on an event that ends in a part of a chunk, without its usage. Returns whether the whole event was removed.
   */
  #takeOut(chunk: Uint8Array, from: number, to: number, out: Pieces): boolean {
    const held = this.#held.bytes;
    const event = this.#isLong ? null : concatenated(held, chunk.subarray(from, to));
    if (event !== null && this.#hasEmptyArray && isUsageEvent(event)) return true;
    const member = event === null ? null : usageMember(event);
    if (event === null || member === null) {
      out.addCopy(held);
      out.add(from, to);
    } else if (held.length === 0) {
      out.add(from, from + member.start);
      out.add(from + member.end, to);
    } else {
      out.addCopy(event.subarray(0, member.start));
      out.addCopy(event.subarray(member.end));
    }
    return false;
  }

  /** Whether the event ends with this byte, the end of an empty line. */
  #endsEvent(byte: number): boolean {
    if (byte === LF && this.#isAfterCr) {
      this.#isAfterCr = false;
      return false;
    }
    this.#isAfterCr = byte === CR;
    if (isLineEnd(byte)) {
      const isEnd = this.#isLineEmpty;
      this.#isLineEmpty = true;
      return isEnd;
    }
    this.#isLineEmpty = false;
    if (byte === OPEN_BRACKET) this.#isAfterBracket = true;
    else if (byte !== SPACE) {
      if (byte === CLOSE_BRACKET && this.#isAfterBracket) this.#hasEmptyArray = true;
      this.#isAfterBracket = false;
    }
    return false;
  }

  #beginEvent(): void {
    this.#held.clear();
    this.#isLong = false;
    this.#isAfterCr = false;
    this.#hasEmptyArray = false;
    this.#isAfterBracket = false;
  }

  /** Keeps the beginning of an incomplete event, unless it is too long to contain only usage. */
  #hold(chunk: Uint8Array, start: number, out: Pieces): void {
    const held = this.#held.bytes;
    if (held.length + chunk.length - start > EVENT_BYTES_MAX) this.#isLong = true;
    if (this.#isLong) {
      out.addCopy(held);
      out.add(start, chunk.length);
      this.#held.clear();
    } else {
      this.#held.add(chunk, start, chunk.length);
    }
  }
}

function isUsageEvent(event: Uint8Array): boolean {
  const decoder = new TextDecoder();
  let json = '';
  const data = new EventData(
    (piece) => (json += decoder.decode(piece, { stream: true })),
    () => {},
  );
  data.push(event);
  return isUsageChunk(json);
}

function isUsageChunk(json: string): boolean {
  let chunk: unknown;
  try {
    chunk = JSON.parse(json);
  } catch {
    return false;
  }
  if (typeof chunk !== 'object' || chunk === null) return false;
  if (!('choices' in chunk) || !('usage' in chunk)) return false;
  const { choices, usage } = chunk;
  return (
    Array.isArray(choices) && choices.length === 0 && typeof usage === 'object' && usage !== null
  );
}

/** Parts of a chunk and of earlier bytes. Adjacent parts are merged. */
class Pieces {
  readonly #chunk: Uint8Array;
  readonly #done: Uint8Array[] = [];
  #from = 0;
  #to = 0;

  constructor(chunk: Uint8Array) {
    this.#chunk = chunk;
  }

  add(from: number, to: number): void {
    if (from !== this.#to) {
      this.#flush();
      this.#from = from;
    }
    this.#to = to;
  }

  addCopy(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#flush();
    this.#from = this.#to;
    this.#done.push(bytes.slice());
  }

  joined(): Uint8Array {
    this.#flush();
    const [only = new Uint8Array()] = this.#done;
    if (this.#done.length <= 1) return only;
    const whole = new Uint8Array(this.#done.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const piece of this.#done) {
      whole.set(piece, at);
      at += piece.length;
    }
    return whole;
  }

  #flush(): void {
    if (this.#to > this.#from) this.#done.push(this.#chunk.subarray(this.#from, this.#to));
    this.#from = this.#to;
  }
}

export function filterWhole(filter: ByteFilter, bytes: Uint8Array): Uint8Array {
  const first = filter.push(bytes).slice();
  return concatenated(first, filter.end());
}

/** The bytes of both, without a copy if the first is empty. */
function concatenated(first: Uint8Array, last: Uint8Array): Uint8Array {
  if (first.length === 0) return last;
  const whole = new Uint8Array(first.length + last.length);
  whole.set(first);
  whole.set(last, first.length);
  return whole;
}

const TAB = 0x09;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

const encoder = new TextEncoder();
const FIELD = encoder.encode('data:');
const CHOICES = encoder.encode('"choices"');
const USAGE = encoder.encode('"usage"');
const NULL = encoder.encode('null');

/** A part of an event, from its first byte to the position after its last one. */
interface EventPart {
  readonly start: number;
  readonly end: number;
}

/**
 * Maximum number of occurrences of `"usage"` in an event that are checked. Each check may scan to the end of the event.
 */
const CANDIDATES_MAX = 16;

/**
 * Finds the last member `usage` of an event that is not inside another value, with the comma that separates it from
 * another member. Returns null if the event is not one line, has no such member, or its value is neither an object nor
 * null.
 */
function usageMember(event: Uint8Array): EventPart | null {
  let start = lastOf(event, USAGE, event.length);
  for (let checked = 0; start >= 0 && checked < CANDIDATES_MAX; checked += 1) {
    const member = memberAt(event, start);
    if (member !== null) return member;
    start = lastOf(event, USAGE, start);
  }
  return null;
}

/** The member whose name is at a position. null if it is not a member of the chunk itself. */
function memberAt(event: Uint8Array, start: number): EventPart | null {
  const colonAt = blanksFrom(event, start + USAGE.length);
  // A quote after a backslash is inside a string.
  if (event[colonAt] !== COLON || event[start - 1] === BACKSLASH) return null;
  const valueAt = blanksFrom(event, colonAt + 1);
  const isObject = event[valueAt] === OPEN_BRACE;
  if (!isObject && !holds(event, valueAt, NULL)) return null;
  const end = isObject ? skip(event, valueAt, 0) : valueAt + NULL.length;
  if (end < 0 || !isLastLevel(event, end) || !isOfChunk(event, start)) return null;
  let before = start;
  while (isBlank(event[before - 1])) before -= 1;
  if (event[before - 1] === COMMA) return { start: before - 1, end };
  const next = blanksFrom(event, end);
  return { start, end: event[next] === COMMA ? blanksFrom(event, next + 1) : end };
}

/** Whether a position is in a data line that begins with an object, and the event has choices. */
function isOfChunk(event: Uint8Array, position: number): boolean {
  let lineAt = position;
  while (lineAt > 0 && !isLineEnd(event[lineAt - 1])) lineAt -= 1;
  if (!holds(event, lineAt, FIELD)) return false;
  if (event[blanksFrom(event, lineAt + FIELD.length)] !== OPEN_BRACE) return false;
  return lastOf(event, CHOICES, event.length) >= 0;
}

/** The last position of a text that begins with a quote and ends before another position. -1 if there is none. */
function lastOf(event: Uint8Array, text: Uint8Array, before: number): number {
  for (let at = before - text.length; at >= 0; at -= 1) {
    if (event[at] === QUOTE && holds(event, at, text)) return at;
  }
  return -1;
}

/** Whether exactly one object is open at a position, and its end is the end of the line. */
function isLastLevel(event: Uint8Array, position: number): boolean {
  const end = skip(event, position, 1);
  if (end < 0 || event[end - 1] !== CLOSE_BRACE) return false;
  const next = blanksFrom(event, end);
  return next === event.length || isLineEnd(event[next]);
}

/**
 * The position after the bracket that closes the given levels and all levels opened in between. -1 if this line has
 * none.
 */
function skip(event: Uint8Array, from: number, levels: number): number {
  let open = levels;
  let at = from;
  while (at < event.length) {
    const byte = event[at];
    if (isLineEnd(byte)) return -1;
    at = byte === QUOTE ? behindString(event, at) : at + 1;
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) open += 1;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      open -= 1;
      if (open === 0) return at;
    }
  }
  return -1;
}

function behindString(event: Uint8Array, from: number): number {
  let at = from + 1;
  while (at < event.length && event[at] !== QUOTE) at += event[at] === BACKSLASH ? 2 : 1;
  return at + 1;
}

function blanksFrom(event: Uint8Array, from: number): number {
  let at = from;
  while (isBlank(event[at])) at += 1;
  return at;
}

function isBlank(byte: number | undefined): boolean {
  return byte === SPACE || byte === TAB;
}

function holds(event: Uint8Array, at: number, text: Uint8Array): boolean {
  for (let index = 0; index < text.length; index += 1) {
    if (event[at + index] !== text[index]) return false;
  }
  return true;
}
