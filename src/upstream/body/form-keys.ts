import { isOverrideParameter } from '../operation/readings.ts';
import { isKeyInField, unescaped } from '../transfer/tokens.ts';
import { anyBoundary, mayBeMultipart, mayBeUrlencoded, lenientField } from './content-type.ts';
import { MORE, Capture, type ModelScan, type ScanState } from './model-scan.ts';

/** Finds gateway keys in the fields of forms, which some servers read like parameters of a query. */

/** A field of a form that contains a gateway key. `field` is its name, or null if the name itself is the key. */
export interface KeyFound {
  readonly field: string | null;
  /** Set if the field contains no key but overrides the request's method, as `_method` does. */
  readonly isMethod?: true;
}

/** Searches a form for gateway keys. The form may be split into chunks anywhere. */
interface KeyScan {
  /** Scans the next bytes. Returns null if no key was found so far. */
  push(chunk: Uint8Array): KeyFound | null;
  /** Called at the end of the form. */
  end(): KeyFound | null;
  /** Whether the form has reached its own end marker. */
  readonly isDone: boolean;
  /** Number of trailing bytes that belong to a field which may still contain a key. */
  readonly undecidedBytes: number;
}

/** Maximum length of a value that may hold a key. */
const VALUE_BYTES_MAX = 1_024;

/** Checks a field for a key. Returns null if there is none. */
function keyIn(name: string, value: string, own: string | null): KeyFound | null {
  if (isKeyInField(name, own)) return { field: null };
  if (isOverrideParameter(name)) return { field: name, isMethod: true };
  return isKeyInField(value, own) ? { field: name } : null;
}

/**
 * The key scan for a body of a content type, where `own` is the call's own key. Returns null if the body is not a form.
 * Only the fields of forms are scanned, because text in JSON may mention keys.
 */
export function keyScanFor(contentType: string, own: string | null): KeyScan | null {
  if (mayBeUrlencoded(contentType)) return createUrlencodedKeyScan(own);
  if (!mayBeMultipart(contentType)) return null;
  const boundary = anyBoundary(contentType);
  return boundary === null ? null : createMultipartKeyScan(boundary, own);
}

/** Whether the fields of a body of this type are scanned. */
export function isForm(contentType: string): boolean {
  return mayBeMultipart(contentType) || mayBeUrlencoded(contentType);
}

/** Searches for keys, and for the model if that is needed. */
export class KeyedScan implements ModelScan {
  readonly #model: ModelScan | null;
  readonly #keys: KeyScan;
  #state: ScanState = MORE;

  constructor(model: ModelScan | null, keys: KeyScan) {
    this.#model = model;
    this.#keys = keys;
  }

  get isStream(): boolean {
    return this.#model?.isStream === true;
  }

  get goesOn(): boolean {
    return this.#state.kind !== 'key' && (!this.#keys.isDone || this.#model?.goesOn === true);
  }

  get undecidedBytes(): number {
    return this.#keys.undecidedBytes;
  }

  push(chunk: Uint8Array): ScanState {
    return this.#take(this.#keys.push(chunk), (model) => model.push(chunk));
  }

  end(): ScanState {
    return this.#take(this.#keys.end(), (model) => model.end());
  }

  #take(found: KeyFound | null, scanned: (model: ModelScan) => ScanState): ScanState {
    if (this.#state.kind === 'key') return this.#state;
    if (found !== null) this.#state = { kind: 'key', ...found };
    else if (this.#model?.goesOn === true) this.#state = scanned(this.#model);
    return this.#state;
  }
}

const CR = 0x0d;
const LF = 0x0a;
const DASH = 0x2d;
const SPACE = 0x20;
const TAB = 0x09;

const HEADERS_BYTES_MAX = 8_192;

/**
 * Position of the next byte. The order is `skipped` (a file, or the text before the first part) → `boundary_end` →
 * `headers` → `value` or `skipped` … `end`.
 */
type KeyPosition = 'skipped' | 'boundary_end' | 'headers' | 'value' | 'end';

/**
 * Searches multipart/form-data for gateway keys in fields that are not files. It parses the form like the most lenient
 * parser, because a key must not be readable by any of them. Files are skipped at the speed of the engine's own search.
 */
function createMultipartKeyScan(boundary: string, own: string | null): KeyScan {
  return new MultipartKeyScan(boundary, own);
}

class MultipartKeyScan implements KeyScan {
  readonly #own: string | null;
  readonly #delimiter: Uint8Array;
  #place: KeyPosition = 'skipped';
  /** Number of delimiter bytes that match since the start of the line. -1 if the line does not match. */
  #matched = 0;
  /** Whether one `-` has followed the boundary. */
  #isDashed = false;
  /** Number of bytes of the current header line, without its end. */
  #lineBytes = 0;
  #partBytes = 0;
  #names: readonly string[] = [];
  readonly #headers = new Capture(HEADERS_BYTES_MAX);
  readonly #value: Capture;
  #found: KeyFound | null = null;

  constructor(boundary: string, own: string | null) {
    this.#own = own;
    this.#delimiter = new TextEncoder().encode(`--${boundary}`);
    // The delimiter is captured with the value that it ends.
    this.#value = new Capture(VALUE_BYTES_MAX + this.#delimiter.length);
  }

  get isDone(): boolean {
    return this.#place === 'end';
  }

  get undecidedBytes(): number {
    return this.#place === 'headers' || this.#place === 'value' ? this.#partBytes : 0;
  }

  push(chunk: Uint8Array): KeyFound | null {
    let at = 0;
    while (at < chunk.length && this.#found === null && this.#place !== 'end') {
      if (this.#place === 'skipped' && this.#matched < 0) {
        const lineEnd = chunk.indexOf(LF, at);
        if (lineEnd < 0) break;
        at = lineEnd;
      }
      this.#take(chunk[at] ?? 0);
      at += 1;
    }
    return this.#found;
  }

  end(): KeyFound | null {
    if (this.#place === 'value') this.#endValue(this.#value.length);
    return this.#found;
  }

  #take(byte: number): void {
    if (this.#place === 'boundary_end') {
      this.#boundaryEnd(byte);
      return;
    }
    this.#partBytes += 1;
    if (this.#place === 'headers') this.#header(byte);
    else if (this.#place === 'value') this.#valueByte(byte);
    this.#match(byte);
  }

  #match(byte: number): void {
    if (byte === LF) this.#matched = 0;
    else if (this.#matched >= 0 && byte === this.#delimiter[this.#matched]) this.#matched += 1;
    else this.#matched = -1;
    if (this.#matched < this.#delimiter.length) return;
    if (this.#place === 'value') this.#endValue(this.#value.length - this.#delimiter.length);
    this.#matched = -1;
    this.#isDashed = false;
    this.#place = 'boundary_end';
  }

  /**
   * A boundary is only valid if `--`, or blanks and the end of the line, follow it. Otherwise it is part of a longer
   * word.
   */
  #boundaryEnd(byte: number): void {
    if (byte === LF) {
      this.#place = 'headers';
      this.#headers.clear();
      this.#value.clear();
      this.#lineBytes = 0;
      this.#partBytes = 0;
      this.#matched = 0;
    } else if (byte === DASH) {
      this.#place = this.#isDashed ? 'end' : 'boundary_end';
      this.#isDashed = true;
    } else if (byte !== SPACE && byte !== TAB && byte !== CR) {
      this.#place = 'skipped';
    }
  }

  #header(byte: number): void {
    this.#headers.add(byte);
    if (byte === LF && this.#lineBytes === 0) this.#endHeaders();
    else if (byte === LF) this.#lineBytes = 0;
    else if (byte !== CR) this.#lineBytes += 1;
    if (this.#headers.isCut) this.#place = 'skipped';
  }

  #endHeaders(): void {
    const { names, isFile } = lenientField(new TextDecoder().decode(this.#headers.bytes));
    this.#names = names.length === 0 ? [''] : names;
    this.#place = isFile ? 'skipped' : 'value';
  }

  #valueByte(byte: number): void {
    this.#value.add(byte);
    // The part that was read is enough to decide whether it is a key.
    if (this.#value.isCut) this.#endValue(this.#value.length);
  }

  #endValue(bytes: number): void {
    const value = new TextDecoder().decode(this.#value.bytes.subarray(0, bytes));
    for (const name of this.#names) this.#found ??= keyIn(name, value, this.#own);
    this.#place = 'skipped';
  }
}

const AND = 0x26;
/** Some servers (Rack) also split a form at semicolons. */
const SEMICOLON = 0x3b;
const EQUALS = 0x3d;

/** Maximum bytes of a name, because each byte may be written as `%68`. */
const ESCAPED_BYTES_MAX = 3 * VALUE_BYTES_MAX;

/** Searches the fields of application/x-www-form-urlencoded for gateway keys. */
function createUrlencodedKeyScan(own: string | null): KeyScan {
  return new UrlencodedKeyScan(own);
}

class UrlencodedKeyScan implements KeyScan {
  /** The format has no end marker. */
  readonly isDone = false;
  readonly #own: string | null;
  readonly #name = new Capture(ESCAPED_BYTES_MAX);
  readonly #value = new Capture(ESCAPED_BYTES_MAX);
  #isValue = false;
  #found: KeyFound | null = null;

  constructor(own: string | null) {
    this.#own = own;
  }

  get undecidedBytes(): number {
    if (this.#value.isCut) return 0;
    const name = this.#name.isCut ? 0 : this.#name.length;
    return this.#isValue ? name + 1 + this.#value.length : name;
  }

  push(chunk: Uint8Array): KeyFound | null {
    for (const byte of chunk) {
      if (this.#found !== null) break;
      if (byte === AND || byte === SEMICOLON) this.#endField();
      else if (byte === EQUALS && !this.#isValue) this.#isValue = true;
      else this.#take(this.#isValue ? this.#value : this.#name, byte);
    }
    return this.#found;
  }

  end(): KeyFound | null {
    this.#endField();
    return this.#found;
  }

  #take(into: Capture, byte: number): void {
    if (into.isCut) return;
    into.add(byte);
    // The part that was read is enough to decide whether it is a key.
    if (into.isCut) this.#judge();
  }

  #endField(): void {
    this.#judge();
    this.#isValue = false;
    this.#name.clear();
    this.#value.clear();
  }

  #judge(): void {
    this.#found ??= keyIn(textOf(this.#name), textOf(this.#value), this.#own);
  }
}

function textOf(capture: Capture): string {
  return unescaped(new TextDecoder().decode(capture.bytes).replaceAll('+', ' '));
}
