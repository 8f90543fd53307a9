import {
  ABSENT,
  Capture,
  foundAt,
  goesOn,
  MODEL_BYTES_MAX,
  ModelNames,
  MORE,
  unreadable,
} from '../body/model-scan.ts';
import type { Depth, ModelScan, ScanState } from '../body/model-scan.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const LETTER_N = 0x6e;
const LETTER_T = 0x74;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

const MALFORMED = unreadable('the JSON is malformed');

/**
 * What the next byte belongs to, at the top level of the object: `start` → `key` → (`in_key`) →
 * `colon` → `value` → `in_nested`, `in_string` or `in_model` → `after` → `key` … `end`
 */
type Place =
  | 'start'
  | 'key'
  | 'in_key'
  | 'colon'
  | 'value'
  | 'in_nested'
  | 'in_string'
  | 'in_model'
  | 'after'
  | 'end';

/**
 * Finds the string under the key `model` at the top level of a JSON object. It checks no more of the
 * syntax than it must: what is inside other values is stepped over, and is the upstream's to judge.
 *
 * Parsers take the last of several `model` keys, and some take `Model` for one. Where nothing but the caller's own
 * turn goes by the model, the first one will do, and the rest of the body need not be read; a thorough scan
 * reads on.
 */
export function createJsonModelScan(depth: Depth = 'first'): ModelScan {
  return new JsonModelScan(false, depth);
}

/** The same, and whether `stream` is true: a model counts as found only when both are known. */
export function createJsonStreamScan(depth: Depth = 'first'): ModelScan {
  return new JsonModelScan(true, depth);
}

class JsonModelScan implements ModelScan {
  readonly depth: Depth;
  readonly undecidedBytes = 0;
  #state: ScanState = MORE;
  #place: Place = 'start';
  /** Open brackets inside the value that is stepped over. */
  #depth = 0;
  /** Whether the last byte stood inside a string of that value. */
  #inString = false;
  /** Whether the byte before the next one was a backslash that escapes it. */
  #isEscaped = false;
  #sawEscape = false;
  #isModelKey = false;
  #isStreamKey = false;
  #isStream = false;
  /** Whether `stream` is still to be found. */
  #wantsStream: boolean;
  /** The model, while `stream` is still looked for. */
  #found: ScanState | null = null;
  #modelStart = 0;
  /** Bytes in the chunks before this one. */
  #offset = 0;
  readonly #capture = new Capture(MODEL_BYTES_MAX);
  /** Null: the first model will do. */
  readonly #names: ModelNames | null;

  constructor(wantsStream: boolean, depth: Depth) {
    this.depth = depth;
    this.#wantsStream = wantsStream;
    this.#names = depth === 'thorough' ? new ModelNames() : null;
  }

  get isStream(): boolean {
    return this.#isStream;
  }

  get goesOn(): boolean {
    return goesOn(this.#state, this.depth);
  }

  push(chunk: Uint8Array): ScanState {
    let at = 0;
    while (at < chunk.length && this.goesOn) at = this.#advance(chunk, at);
    this.#offset += chunk.length;
    return this.#state;
  }

  end(): ScanState {
    if (!this.goesOn) return this.#state;
    const isWhole = this.#place === 'start' || this.#place === 'end';
    const found = isWhole || this.#names === null ? this.#found : null;
    const absent = isWhole ? (this.#names?.end() ?? ABSENT) : unreadable('the JSON ends too early');
    this.#state = found ?? absent;
    return this.#state;
  }

  /** The object is closed. Another value behind it would be one that some parsers read. */
  #endObject(): void {
    if (this.#names === null) this.#state = this.#found ?? ABSENT;
    else this.#place = 'end';
  }

  /** Takes one byte, or a run of them; the answer is the index behind it. */
  #advance(chunk: Uint8Array, at: number): number {
    switch (this.#place) {
      case 'in_nested':
        return this.#skipNested(chunk, at);
      case 'in_string': {
        const end = this.#skipString(chunk, at);
        if (!this.#inString) this.#place = 'after';
        return end;
      }
      case 'in_key':
      case 'in_model':
        return this.#readString(chunk, at);
      case 'start':
      case 'key':
      case 'colon':
      case 'value':
      case 'after':
      case 'end':
        this.#structure(chunk[at] ?? 0, at);
        return at + 1;
    }
  }

  #structure(byte: number, at: number): void {
    if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) return;
    if (this.#place === 'start') {
      if (byte === OPEN_BRACE) this.#place = 'key';
      // Some parsers, Python's among them, pass over a byte order mark.
      else if (byte !== BYTE_ORDER_MARK[this.#offset + at]) this.#state = this.#noObject();
    } else if (this.#place === 'key') {
      if (byte === QUOTE) this.#beginString('in_key');
      else if (byte === CLOSE_BRACE) this.#endObject();
      else this.#state = MALFORMED;
    } else if (this.#place === 'colon') {
      if (byte === COLON) this.#place = 'value';
      else this.#state = MALFORMED;
    } else if (this.#place === 'value') {
      this.#beginValue(byte, at);
    } else if (this.#place === 'end') {
      this.#state = unreadable('something follows the JSON');
    } else if (byte === COMMA) {
      this.#place = 'key';
    } else if (byte === CLOSE_BRACE) {
      this.#endObject();
    } else if (!isScalarByte(byte)) {
      this.#state = MALFORMED;
    }
  }

  /** UTF-16 and other encodings, forms that do not say so, or no object at all. */
  #noObject(): ScanState {
    return this.#names === null ? ABSENT : unreadable('it is no JSON object in UTF-8');
  }

  #beginValue(byte: number, at: number): void {
    // Null is as good as none.
    if (this.#isModelKey && byte !== QUOTE && byte !== LETTER_N) this.#names?.takeNoText();
    if (this.#isModelKey && byte === QUOTE) {
      this.#modelStart = this.#offset + at + 1;
      this.#beginString('in_model');
    } else if (this.#isModelKey && this.#names === null) {
      this.#state = ABSENT;
    } else if (byte === QUOTE) {
      this.#inString = true;
      this.#place = 'in_string';
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      this.#depth = 1;
      this.#place = 'in_nested';
    } else if (isScalarByte(byte)) {
      this.#place = 'after';
      if (this.#isStreamKey) this.#endStream(byte === LETTER_T);
    } else {
      this.#state = MALFORMED;
    }
  }

  #beginString(place: 'in_key' | 'in_model'): void {
    this.#place = place;
    this.#sawEscape = false;
    this.#capture.clear();
  }

  #skipNested(chunk: Uint8Array, from: number): number {
    const length = chunk.length;
    let at = this.#inString ? this.#skipString(chunk, from) : from;
    let depth = this.#depth;
    while (at < length) {
      const byte = chunk[at] ?? 0;
      at += 1;
      if (byte === QUOTE) {
        this.#inString = true;
        at = this.#skipString(chunk, at);
      } else if (byte >= OPEN_BRACKET) {
        if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
          depth += 1;
        } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
          depth -= 1;
          if (depth === 0) {
            this.#place = 'after';
            break;
          }
        }
      }
      // Some parsers pass over comments, or know other quotes: what they read would be hidden from this scan.
      if (this.#names !== null && OUTSIDE_STRINGS[byte] === 0) {
        this.#state = MALFORMED;
        break;
      }
    }
    this.#depth = depth;
    return at;
  }

  /**
   * Steps over the rest of a string. Only quotes are looked for, by the engine's own search; the
   * backslashes before one tell whether it ends the string.
   */
  #skipString(chunk: Uint8Array, from: number): number {
    let at = from;
    if (this.#isEscaped) {
      this.#isEscaped = false;
      at += 1;
    }
    for (;;) {
      const quote = nextQuote(chunk, at);
      const end = quote === -1 ? chunk.length : quote;
      let first = end;
      while (first > at && chunk[first - 1] === BACKSLASH) first -= 1;
      const isEscaped = (end - first) % 2 === 1;
      if (quote === -1) {
        this.#isEscaped = isEscaped;
        return end;
      }
      at = quote + 1;
      if (!isEscaped) {
        this.#inString = false;
        return at;
      }
    }
  }

  /** Takes the bytes of a key or of the model's value, up to the closing quote. */
  #readString(chunk: Uint8Array, from: number): number {
    for (let at = from; at < chunk.length; at += 1) {
      const byte = chunk[at] ?? 0;
      if (this.#isEscaped) {
        this.#isEscaped = false;
      } else if (byte === BACKSLASH) {
        this.#isEscaped = true;
        this.#sawEscape = true;
      } else if (byte === QUOTE) {
        if (this.#place === 'in_key') this.#endKey();
        else this.#endModel(this.#offset + at);
        return at + 1;
      }
      this.#capture.add(byte);
    }
    return chunk.length;
  }

  #endKey(): void {
    this.#place = 'colon';
    const { length, isCut } = this.#capture;
    const mayMatch = this.#sawEscape || length === 'model'.length || length === 'stream'.length;
    const key = (mayMatch || this.#names !== null) && !isCut ? this.#decoded() : null;
    this.#isModelKey = key === 'model' && this.#found === null;
    this.#isStreamKey = key === 'stream' && this.#wantsStream;
    if (this.#names === null || isCut) return;
    const against = key === null ? unreadable('a key is no JSON text') : this.#names.take(key);
    if (against !== null) this.#state = against;
  }

  #endStream(isStream: boolean): void {
    this.#isStream = isStream;
    this.#wantsStream = false;
    if (this.#found !== null) this.#state = this.#found;
  }

  #endModel(end: number): void {
    const model = this.#capture.isCut ? null : this.#decoded();
    if (model === null) {
      this.#state = unreadable(`its value is not a JSON text of at most ${MODEL_BYTES_MAX} bytes`);
      return;
    }
    this.#found = foundAt(model, this.#modelStart, end, this.depth);
    if (!this.#wantsStream) this.#state = this.#found;
    this.#place = 'after';
  }

  #decoded(): string | null {
    const text = this.#capture.text();
    if (text === null) return null;
    try {
      const value: unknown = JSON.parse(`"${text}"`);
      return typeof value === 'string' ? value : null;
    } catch {
      return null;
    }
  }
}

/** Index of the next quote, or -1. Most strings are short, and a call of the engine's search is not. */
function nextQuote(chunk: Uint8Array, from: number): number {
  const near = Math.min(from + 24, chunk.length);
  for (let at = from; at < near; at += 1) {
    if (chunk[at] === QUOTE) return at;
  }
  return chunk.indexOf(QUOTE, near);
}

/** Digits, letters, sign and point: what numbers, `true`, `false` and `null` are made of. */
function isScalarByte(byte: number): boolean {
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    (byte >= 0x41 && byte <= 0x5a) ||
    (byte >= 0x61 && byte <= 0x7a) ||
    byte === 0x2d ||
    byte === 0x2b ||
    byte === 0x2e
  );
}

/** 1 for every byte that may stand outside of strings. */
const OUTSIDE_STRINGS = Uint8Array.from({ length: 256 }, (_, byte) =>
  Number(isScalarByte(byte) || ' \t\r\n"{}[],:'.includes(String.fromCharCode(byte))),
);
