export type ValueKind = 'object' | 'array' | 'string' | 'scalar';

/**
 * Wishes of a visitor for a value.
 * - `walk`: nothing; the values in a container are told one by one.
 * - `skip`: nothing, and what is in a container is not told either.
 * - `keep`: its bytes as they are written, up to a bound; those of a string without the quotes.
 * - `count`: the length of a string's text.
 * - `sample`: that length, and the first bytes of the string as in `keep`.
 */
export type Want = 'walk' | 'skip' | 'keep' | 'count' | 'sample';

/** Where a walk over JSON stands, and what it has of the value there. */
export interface WalkedValue {
  /** Containers around the value. 1: it stands in a top-level object. */
  readonly depth: number;
  /**
   * The key at a level on the way to the value; `key(depth)` is its own. Empty: it is an element of an
   * array, or not one of the keys that are told apart.
   */
  key(level: number): string;
  /** The last key as it is written, between its quotes; null: it is longer than what is kept of keys. */
  readonly keyBytes: Uint8Array | null;
  /** The value's first byte, quote or bracket included. */
  readonly firstByte: number;
  /** Position of the value's first byte, quote or bracket included. */
  readonly start: number;
  /** Position behind the last byte of the value that has ended. */
  readonly end: number;
  /** Position of the opening brace of the current or last top-level object. */
  readonly recordStart: number;
  /** UTF-8 bytes of the text that was counted, as if it had no escapes. */
  readonly textBytes: number;
  /** Number of words in the counted text. */
  readonly words: number;
  /** The bytes that were kept of the value that has ended. Holds until the visitor returns. */
  readonly kept: Uint8Array;
  /** Ends the walk over what is left of the record. The visitor is told no more of it, its end included. */
  leave(): void;
}

/** Is told of the values of a JSON text as their bytes pass by. */
export interface JsonVisitor {
  /** A value inside a top-level object begins. */
  begin(value: WalkedValue, kind: ValueKind): Want;
  /** A key has ended, and its value has not begun. */
  key?(value: WalkedValue): void;
  /** A value that was to be kept or counted has ended. */
  end(value: WalkedValue, kind: ValueKind): void;
  /** A top-level object has ended, or has turned out to be broken. */
  record(isWhole: boolean, value: WalkedValue): void;
  /** Something stands before or behind the object, where the form has one alone. Ends the walk. */
  stray?(): void;
}
