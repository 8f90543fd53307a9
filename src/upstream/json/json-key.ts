import { isLineEnd, textOf } from './json-string.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;

/**
 * Maximum bytes of a key that is kept. Names of up to ten bytes are found even if every character is escaped. Longer
 * keys belong to callers' own data.
 */
export const KEY_BYTES_MAX = 64;

/** A power of two. */
const BUCKETS = 256;

interface Name {
  readonly text: string;
  readonly bytes: Uint8Array;
}

/** The keys that a walk distinguishes, by their bytes. Created once, because every call creates a walk. */
export class KeyNames {
  readonly #names: ReadonlySet<string>;
  readonly #buckets: readonly Name[][] = Array.from({ length: BUCKETS }, () => []);

  /** Names must be ASCII. */
  constructor(names: Iterable<string>) {
    this.#names = new Set(names);
    for (const text of this.#names) {
      const bytes = new TextEncoder().encode(text);
      this.#buckets[bucketOf(bytes, bytes.length)]?.push({ text, bytes });
    }
  }

  /** Returns the name in the first `length` bytes, or an empty text if it is none of them. */
  find(bytes: Uint8Array, length: number, hasEscapes: boolean): string {
    if (hasEscapes) {
      const text = unescaped(bytes.subarray(0, length));
      return this.#names.has(text) ? text : '';
    }
    for (const name of this.#buckets[bucketOf(bytes, length)] ?? []) {
      if (begins(bytes, name.bytes, length)) return name.text;
    }
    return '';
  }
}

/** Reads the keys of a JSON text that arrives in chunks, without building strings. */
export class JsonKey {
  readonly #names: KeyNames;
  readonly #endsWithLine: boolean;
  readonly #bytesMax: number;
  readonly #bytes: Uint8Array;
  #length = 0;
  #isEscaped = false;
  #hasEscapes = false;
  #isOpen = true;
  #hasEnded = false;

  constructor(names: KeyNames, endsWithLine: boolean, bytesMax = KEY_BYTES_MAX) {
    this.#names = names;
    this.#endsWithLine = endsWithLine;
    this.#bytesMax = bytesMax;
    this.#bytes = new Uint8Array(bytesMax);
  }

  /** Whether the next bytes belong to the key. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Whether it ended with its quote, and not because it is malformed. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Starts at the first byte of a key. */
  begin(): void {
    this.#length = 0;
    this.#isEscaped = false;
    this.#hasEscapes = false;
    this.#isOpen = true;
    this.#hasEnded = false;
  }

  /** Reads the key's next bytes. Returns the index after its quote, or of the byte that made it malformed. */
  read(chunk: Uint8Array, from: number): number {
    for (let at = from; at < chunk.length; at += 1) {
      const byte = chunk[at] ?? 0;
      if (this.#isEscaped) {
        this.#isEscaped = false;
      } else if (byte === BACKSLASH) {
        this.#isEscaped = true;
        this.#hasEscapes = true;
      } else if (byte === QUOTE) {
        this.#isOpen = false;
        this.#hasEnded = true;
        return at + 1;
      } else if (byte < SPACE && this.#endsWithLine && isLineEnd(byte)) {
        this.#isOpen = false;
        return at;
      }
      if (this.#length < this.#bytesMax) this.#bytes[this.#length] = byte;
      this.#length += 1;
    }
    return chunk.length;
  }

  /** The last key, as written. null if it is too long. The next key changes it. */
  get bytes(): Uint8Array | null {
    return this.#length > this.#bytesMax ? null : this.#bytes.subarray(0, this.#length);
  }

  /** The last key, or an empty text if it is none of the names. */
  name(): string {
    if (this.#length > this.#bytesMax) return '';
    return this.#names.find(this.#bytes, this.#length, this.#hasEscapes);
  }
}

function bucketOf(bytes: Uint8Array, length: number): number {
  return (length * 31 + (bytes[0] ?? 0) * 7 + (bytes[length - 1] ?? 0)) & (BUCKETS - 1);
}

function begins(bytes: Uint8Array, name: Uint8Array, length: number): boolean {
  if (name.length !== length) return false;
  for (let at = 0; at < length; at += 1) {
    if (bytes[at] !== name[at]) return false;
  }
  return true;
}

function unescaped(bytes: Uint8Array): string {
  return textOf(bytes) ?? '';
}
