import { lenientField } from './form-field.ts';
import { keyIn, VALUE_BYTES_MAX } from './form-keys.ts';
import type { KeyFound, KeyScan } from './form-keys.ts';
import { Capture } from './model-scan.ts';

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
export function createMultipartKeyScan(boundary: string, own: string | null): KeyScan {
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
