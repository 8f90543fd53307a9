/** The syntax that a walk over JSON follows, and what it reports to its visitor. */

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
