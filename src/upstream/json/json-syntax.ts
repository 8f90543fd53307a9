/**
 * The syntax of JSON: as a walk follows it, with what it reports to its visitor, and in texts that are parsed whole or
 * end too early.
 */

/**
 * Kinds of text, and how much of their syntax is checked.
 * - `document`: one JSON value, over any number of lines. In an array, each object is a record.
 * - `lines`: event streams and JSON lines. Every provider writes the JSON of a record in one line. The rest of the
 *   line, such as `data:`, is ignored, and a malformed record ends with its line.
 * - `object`: one JSON object. Content next to it is reported, and invalid content at its top level makes it malformed.
 * - `strict_object`: the same, and invalid content outside of strings makes it malformed at any depth. Some parsers
 *   skip comments or accept other quotes, so what they read would be hidden from the walk.
 */
export type WalkForm = 'document' | 'lines' | 'object' | 'strict_object';

/** Classes of the bytes between keys and values. */
const OTHER = 0;
/** Bytes of numbers, `true`, `false` and `null`: digits, letters, sign and point. */
export const WORD = 1;
const BLANK = 2;
export const LINE_END = 3;

/** A byte at which skipping a container fails. */
export const BREAK = 2;

export interface Syntax {
  /** Class of each byte between keys and values. */
  readonly between: Uint8Array;
  /** The change of depth by each byte outside of strings in a skipped container, or `BREAK`. */
  readonly inside: Int8Array;
}

const BLANKS = ' \t\r\n';
const LINE_ENDS = '\r\n';
const PUNCTUATION = '"{}[],:';

const CHARACTERS = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte));

function between(classOf: (character: string) => number): Uint8Array {
  return Uint8Array.from(CHARACTERS, classOf);
}

function inside(breaks: (character: string) => boolean): Int8Array {
  return Int8Array.from(CHARACTERS, (character) =>
    breaks(character) ? BREAK : Number('{['.includes(character)) - Number('}]'.includes(character)),
  );
}

function isWord(character: string): boolean {
  return /[\w.+-]/.test(character) && character !== '_';
}

function lenientClass(character: string): number {
  if (character <= ' ') return BLANK;
  return ',}]'.includes(character) ? OTHER : WORD;
}

function strictClass(character: string): number {
  if (BLANKS.includes(character)) return BLANK;
  return isWord(character) ? WORD : OTHER;
}

const lenient = inside(() => false);
const strict = between(strictClass);

const FORMS: Readonly<Record<WalkForm, Syntax>> = {
  document: { between: between(lenientClass), inside: lenient },
  lines: {
    between: between((character) =>
      LINE_ENDS.includes(character) ? LINE_END : lenientClass(character),
    ),
    inside: inside((character) => LINE_ENDS.includes(character)),
  },
  object: { between: strict, inside: lenient },
  strict_object: {
    between: strict,
    inside: inside(
      (character) => !isWord(character) && !`${BLANKS}${PUNCTUATION}`.includes(character),
    ),
  },
};

/** Whether a byte may belong to a number, `true`, `false` or `null`. */
export function isWordByte(byte: number): boolean {
  return strict[byte] === WORD;
}

export function syntaxOf(form: WalkForm): Syntax {
  return FORMS[form];
}

export type ValueKind = 'object' | 'array' | 'string' | 'scalar';

/**
 * What a visitor wants of a value.
 * - `walk`: nothing of the value itself. The values in a container are reported one by one.
 * - `skip`: nothing, including the values in a container.
 * - `keep`: its bytes as written, up to a maximum. Those of a string exclude the quotes.
 * - `count`: the length of a string's text.
 * - `sample`: that length, and the first bytes of the string as in `keep`.
 */
export type Want = 'walk' | 'skip' | 'keep' | 'count' | 'sample';

/** The position of a walk over JSON, and what is known of the value there. */
export interface WalkedValue {
  /** Number of containers around the value. 1 for a value in a top-level object. */
  readonly depth: number;
  /**
   * The key at a level on the path to the value. `key(depth)` is its own. Empty if the value is an element of an array,
   * or the key is not one of those that are distinguished.
   */
  key(level: number): string;
  /** The last key as written, between its quotes. null if it is longer than the maximum for keys. */
  readonly keyBytes: Uint8Array | null;
  /** The value's first byte, including a quote or bracket. */
  readonly firstByte: number;
  /** Position of the value's first byte, including a quote or bracket. */
  readonly start: number;
  /** Position after the last byte of the value that has ended. */
  readonly end: number;
  /** Position of the opening brace of the current or last top-level object. */
  readonly recordStart: number;
  /** UTF-8 bytes of the counted text without its escapes. */
  readonly textBytes: number;
  readonly words: number;
  /** The kept bytes of the value that has ended. Valid until the visitor returns. */
  readonly kept: Uint8Array;
  /** Ends the walk over the rest of the record. The visitor receives nothing more of it, including its end. */
  leave(): void;
}

/** Receives the values of a JSON text while its bytes pass. */
export interface JsonVisitor {
  /** Called when a value inside a top-level object begins. */
  begin(value: WalkedValue, kind: ValueKind): Want;
  /** Called when a key has ended, before its value. */
  key?(value: WalkedValue): void;
  /** Called when a value that is kept or counted has ended. */
  end(value: WalkedValue, kind: ValueKind): void;
  /** Called when a top-level object has ended, or is malformed. */
  record(isWhole: boolean, value: WalkedValue): void;
  /** Called for content before or after the object, in forms with exactly one object. Ends the walk. */
  stray?(): void;
}

/** The state at the end of an incomplete JSON text. */
interface OpenEnd {
  /** Brackets that close the open containers, outermost first. */
  readonly closers: readonly string[];
  readonly isInString: boolean;
  /** Position of the last escape in a string. -1 if there was none. */
  readonly escapeAt: number;
  /** The last position at which the text can be cut between two members, and the number of open containers there. */
  readonly seamAt: number;
  readonly seamDepth: number;
}

const HALF_ESCAPE = /^\\(?:u[0-9a-f]{0,3})?$/i;

interface CutJson {
  /**
   * undefined if there is none. A string that was cut keeps its beginning. A key, number or word that was cut is
   * dropped.
   */
  readonly value: unknown;
  /** The text after the value. null if the value was cut. */
  readonly rest: string | null;
}

/** Parses the first JSON value of a text that may have been cut anywhere. */
export function parseCutJson(text: string): CutJson {
  const end = scan(text);
  if (typeof end === 'number') {
    return { value: tryParse(text.slice(0, end)), rest: text.slice(end) };
  }
  const { closers, seamAt, seamDepth } = end;
  const whole = tryParse(closeString(text, end) + closers.toReversed().join(''));
  if (whole !== undefined || seamAt < 0) return { value: whole, rest: null };
  const seam = text.slice(0, seamAt) + closers.slice(0, seamDepth).toReversed().join('');
  return { value: tryParse(seam), rest: null };
}

function closeString(text: string, end: OpenEnd): string {
  if (!end.isInString) return text;
  const isHalf = end.escapeAt >= 0 && HALF_ESCAPE.test(text.slice(end.escapeAt));
  return `${isHalf ? text.slice(0, end.escapeAt) : text}"`;
}

/** Returns the end of the first value, or the state at the end of the text. */
function scan(text: string): number | OpenEnd {
  const closers: string[] = [];
  let isInString = false;
  let escapeAt = -1;
  let seamAt = -1;
  let seamDepth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (isInString) {
      if (char === '\\') {
        escapeAt = at;
        at += 1;
      } else if (char === '"') isInString = false;
      continue;
    }
    if (char === '"') isInString = true;
    if (char === '{' || char === '[') closers.push(char === '{' ? '}' : ']');
    else if (char === '}' || char === ']') closers.pop();
    else if (char !== ',') continue;
    if (closers.length === 0) return at + 1;
    seamAt = char === ',' ? at : at + 1;
    seamDepth = closers.length;
  }
  return { closers, isInString, escapeAt, seamAt, seamDepth };
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Parses a text as a JSON object. Returns null if it is not one. */
export function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
