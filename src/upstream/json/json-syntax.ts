/**
 * Kinds of text, and how much of their syntax is checked.
 * - `document`: one JSON value, over any number of lines; of an array, each object is a record.
 * - `lines`: event streams and JSON lines. Every provider writes the JSON of a record in one line; the
 *   rest of the line, as `data:`, is of no interest, and a broken record ends with its line.
 * - `object`: one JSON object. What stands beside it is told, and what its top level cannot hold breaks it.
 * - `strict_object`: the same, and what JSON does not have outside of strings breaks it at any depth. Some
 *   parsers pass over comments, or know other quotes: what they read would be hidden from the walk.
 */
export type WalkForm = 'document' | 'lines' | 'object' | 'strict_object';

/** Classes of the bytes that stand between keys and values. */
const OTHER = 0;
/** Digits, letters, sign and point: what numbers, `true`, `false` and `null` are made of. */
export const WORD = 1;
const BLANK = 2;
export const LINE_END = 3;

/** A byte over which a container cannot be stepped. */
export const BREAK = 2;

/** The meaning of each byte. */
export interface Syntax {
  /** Its class between keys and values. */
  readonly between: Uint8Array;
  /** By how much it changes the depth in a container that is stepped over, outside of strings; or `BREAK`. */
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

/** Whether a byte may be one of a number, `true`, `false` or `null`. */
export function isWordByte(byte: number): boolean {
  return strict[byte] === WORD;
}

export function syntaxOf(form: WalkForm): Syntax {
  return FORMS[form];
}
