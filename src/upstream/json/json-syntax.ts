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
