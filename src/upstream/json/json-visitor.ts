export type ValueKind = 'object' | 'array' | 'string' | 'scalar';

/**
 * What is wanted of a value.
 * - `walk`: nothing; the values in a container are told one by one.
 * - `skip`: nothing, and what is in a container is not told either.
 * - `keep`: its bytes as they are written, up to a bound; those of a string without the quotes.
 * - `count`: the length of a string's text.
 */
export type Want = 'walk' | 'skip' | 'keep' | 'count';

/** Where a walk over JSON stands, and what it has of the value there. */
export interface WalkedValue {
  /** Containers around the value. 1: it stands in a top-level object. */
  readonly depth: number;
  /**
   * The key at a level on the way to the value; `key(depth)` is its own. Empty: it is an element of an
   * array, or not one of the keys that are told apart.
   */
  key(level: number): string;
  /** Position of the value's first byte, quote or bracket included. */
  readonly start: number;
  /** Position behind the last byte of the value that has ended. */
  readonly end: number;
  /** Position of the opening brace of the current or last top-level object. */
  readonly recordStart: number;
  /** UTF-8 bytes of the text that was counted, as if it had no escapes. */
  readonly textBytes: number;
  /** What was kept of the value that has ended. Holds until the visitor returns. */
  readonly kept: Uint8Array;
}

/** Is told of the values of a JSON text as their bytes pass by. */
export interface JsonVisitor {
  /** A value inside a top-level object begins. */
  begin(value: WalkedValue, kind: ValueKind): Want;
  /** A value that was to be kept or counted has ended. */
  end(value: WalkedValue, kind: ValueKind): void;
  /** A top-level object has ended, or has turned out to be broken. */
  record(isWhole: boolean): void;
}
