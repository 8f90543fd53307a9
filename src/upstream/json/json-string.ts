/** Strings of JSON as bytes, and the names of its members. */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const LETTER_U = 0x75;
const LF = 0x0a;
const CR = 0x0d;

/** The last bytes of the escapes for control characters: `\b`, `\f`, `\n`, `\r` and `\t`. */
const BLANK_ESCAPES = new Set([0x62, 0x66, 0x6e, 0x72, 0x74]);

/**
 * Bytes that are searched in a loop before the engine's own search is called. Most strings are shorter, and a call of
 * the search is expensive.
 */
const NEAR_BYTES = 64;

/** Whether a byte ends a line. It does so in an event stream as well. */
export function isLineEnd(byte: number | undefined): boolean {
  return byte === LF || byte === CR;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Decodes a string from its bytes between the quotes. Returns null if they are invalid. */
export function textOf(bytes: Uint8Array): string | null {
  try {
    return String(JSON.parse(`"${utf8.decode(bytes)}"`));
  } catch {
    return null;
  }
}

/** Finds the end of a JSON string that arrives in chunks, starting after its opening quote. */
export class JsonString {
  /** A line end cannot occur in a string. If records are lines, it shows that the string is malformed. */
  readonly #endsWithLine: boolean;
  #isEscaped = false;
  /** Number of digits that are left of a `\u` escape, and its value so far. */
  #hexLeft = 0;
  #hex = 0;
  #textBytes = 0;
  #words = 0;
  #isInWord = false;
  #isOpen = true;
  #hasEnded = false;

  constructor(endsWithLine: boolean) {
    this.#endsWithLine = endsWithLine;
  }

  /** Whether the next bytes belong to the string. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Whether it ended with its quote, and not because it is malformed. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** UTF-8 bytes of the text so far without its escapes, if the text is counted. */
  get textBytes(): number {
    return this.#textBytes;
  }

  /** Number of words so far, separated by spaces and control characters, if the text is counted. */
  get words(): number {
    return this.#words + (this.#isInWord ? 1 : 0);
  }

  /** Starts at the first byte of a string. */
  begin(): void {
    this.#isEscaped = false;
    this.#hexLeft = 0;
    this.#textBytes = 0;
    this.#words = 0;
    this.#isInWord = false;
    this.#isOpen = true;
    this.#hasEnded = false;
  }

  /**
   * Skips the string's next bytes. Returns the index after its closing quote, the index of the byte that made it
   * malformed, or the length of the chunk. `isOpen` and `hasEnded` show which.
   */
  skip(chunk: Uint8Array, from: number): number {
    let at = from;
    if (this.#isEscaped && at < chunk.length) {
      this.#isEscaped = false;
      at += 1;
    }
    for (;;) {
      const end = this.#endsWithLine ? nextQuoteInLine(chunk, at) : nextQuote(chunk, at);
      let first = end;
      while (first > at && chunk[first - 1] === BACKSLASH) first -= 1;
      const isEscaped = (end - first) % 2 === 1;
      if (end === chunk.length) {
        this.#isEscaped = isEscaped;
        return end;
      }
      if (chunk[end] !== QUOTE) return this.#broken(end);
      at = end + 1;
      if (!isEscaped) {
        this.#isOpen = false;
        this.#hasEnded = true;
        return at;
      }
    }
  }

  /** As `skip`, and counts the text. */
  count(chunk: Uint8Array, from: number): number {
    for (let at = from; at < chunk.length; at += 1) {
      const byte = chunk[at] ?? 0;
      if (this.#hexLeft > 0) {
        this.#takeHexDigit(byte);
      } else if (this.#isEscaped) {
        this.#isEscaped = false;
        if (byte === LETTER_U) {
          this.#hexLeft = 4;
          this.#hex = 0;
        } else {
          this.#textBytes += 1;
          this.#countWord(!BLANK_ESCAPES.has(byte));
        }
      } else if (byte === BACKSLASH) {
        this.#isEscaped = true;
      } else if (byte === QUOTE) {
        this.#isOpen = false;
        this.#hasEnded = true;
        return at + 1;
      } else if (byte < SPACE && this.#endsWithLine && isLineEnd(byte)) {
        return this.#broken(at);
      } else {
        this.#textBytes += 1;
        this.#countWord(byte > SPACE);
      }
    }
    return chunk.length;
  }

  #countWord(isInWord: boolean): void {
    if (this.#isInWord && !isInWord) this.#words += 1;
    this.#isInWord = isInWord;
  }

  #takeHexDigit(byte: number): void {
    this.#hex = this.#hex * 16 + (byte <= 0x39 ? byte - 0x30 : (byte & 0x5f) - 0x37);
    this.#hexLeft -= 1;
    if (this.#hexLeft > 0) return;
    const isSurrogate = this.#hex >= 0xd800 && this.#hex < 0xe000;
    this.#countWord(this.#hex > SPACE);
    // A surrogate pair counts as four bytes, two for each half.
    if (this.#hex >= 0x800 && !isSurrogate) this.#textBytes += 3;
    else this.#textBytes += this.#hex < 0x80 ? 1 : 2;
  }

  #broken(at: number): number {
    this.#isOpen = false;
    return at;
  }
}

/** Index of the next quote, or the chunk's length. */
function nextQuote(chunk: Uint8Array, from: number): number {
  const near = Math.min(from + NEAR_BYTES, chunk.length);
  for (let at = from; at < near; at += 1) {
    if (chunk[at] === QUOTE) return at;
  }
  return indexOf(chunk, QUOTE, near);
}

/** Index of the next quote or line end, whichever is first. */
function nextQuoteInLine(chunk: Uint8Array, from: number): number {
  const near = Math.min(from + NEAR_BYTES, chunk.length);
  for (let at = from; at < near; at += 1) {
    const byte = chunk[at] ?? 0;
    if (byte === QUOTE || (byte < SPACE && isLineEnd(byte))) return at;
  }
  // The search stops at the quote, because a line may contain many strings, and its end may be far away.
  const upToQuote = chunk.subarray(0, indexOf(chunk, QUOTE, near));
  return Math.min(indexOf(upToQuote, LF, near), indexOf(upToQuote, CR, near));
}

function indexOf(chunk: Uint8Array, byte: number, from: number): number {
  const at = chunk.indexOf(byte, from);
  return at === -1 ? chunk.length : at;
}

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
