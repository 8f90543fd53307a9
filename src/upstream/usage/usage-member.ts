/**
 * Finds the member `usage` of a chunk of an OpenAI chat stream. Streams have a chunk for each token, so nothing is
 * parsed. The number of brackets that are closed after a member shows its depth.
 */

import { isLineEnd } from '../json/json-string.ts';

const TAB = 0x09;
const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
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
export function usageMember(event: Uint8Array): EventPart | null {
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
