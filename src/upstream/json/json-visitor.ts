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
