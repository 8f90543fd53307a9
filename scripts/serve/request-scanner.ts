import type { Malformed } from '../../src/http/malformed.ts';
import { readHead } from './request-head.ts';

/** Maximum bytes of request line and headers. workerd takes twice as much. */
const HEAD_BYTES_MAX = 65_536;

/** Maximum digits of a chunk's size: 2^48 bytes, in hexadecimal. */
const SIZE_DIGITS_MAX = 12;

const [CR, LF] = [13, 10];
const HEAD_END = Buffer.from('\r\n\r\n');

/** Part of a chunked body that comes next: digits of a size, the LF after them, bytes, and what ends these. */
type Part = 'size' | 'size-lf' | 'data' | 'data-cr' | 'data-lf' | 'end-cr' | 'end-lf';

function digitOf(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const letter = byte | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
}

/** Finds out where the bytes of a chunked body end. */
class ChunkedBody {
  #part: Part = 'size';
  #digits = 0;
  #left = 0;

  /** Goes on at `at`. Answers where the body ends or `bytes` do, or that it is malformed. */
  read(
    bytes: Buffer,
    at: number,
  ): { readonly at: number; readonly state: 'done' | 'more' | 'bad' } {
    let next = at;
    while (next < bytes.length) {
      if (this.#part === 'data') {
        const taken = Math.min(this.#left, bytes.length - next);
        next += taken;
        this.#left -= taken;
        if (this.#left === 0) this.#part = 'data-cr';
        continue;
      }
      const isEnd = this.#part === 'end-lf';
      if (!this.#step(bytes[next] ?? 0)) return { at: next, state: 'bad' };
      next += 1;
      if (isEnd) return { at: next, state: 'done' };
    }
    return { at: next, state: 'more' };
  }

  /** Takes one byte between those of the body; false: another one was expected. */
  #step(byte: number): boolean {
    switch (this.#part) {
      case 'size':
        return this.#readSize(byte);
      case 'size-lf':
        this.#part = this.#left === 0 ? 'end-cr' : 'data';
        return byte === LF;
      case 'data-cr':
        this.#part = 'data-lf';
        return byte === CR;
      case 'data-lf':
        this.#part = 'size';
        this.#digits = 0;
        return byte === LF;
      case 'end-cr':
        this.#part = 'end-lf';
        return byte === CR;
      case 'end-lf':
      case 'data':
        return byte === LF;
    }
  }

  #readSize(byte: number): boolean {
    const digit = digitOf(byte);
    if (digit < 0) {
      this.#part = 'size-lf';
      return byte === CR && this.#digits > 0;
    }
    this.#left = this.#left * 16 + digit;
    this.#digits += 1;
    return this.#digits <= SIZE_DIGITS_MAX;
  }
}

/** Verdict on some bytes of a connection. */
export interface Scanned {
  /** Bytes that may be passed on. */
  readonly bytes: Buffer;
  /** Mistake behind them. Nothing more of the connection may be passed on. */
  readonly malformed: Malformed | null;
  /** Whether a part of the malformed request was passed on before. */
  readonly isUnderWay: boolean;
}

const NOTHING = Buffer.alloc(0);

/**
 * Follows the requests of one connection, so that only proper ones are passed on. Heads are held back
 * until they are whole; bytes of bodies are counted.
 */
export class RequestScanner {
  /** The beginning of a head. */
  #held: Buffer = NOTHING;
  /** Rest of a body, or nothing between two requests. */
  #body: ChunkedBody | number = 0;
  readonly #added: Buffer;

  /** `added` are header lines, each with its CR LF, that every request gets at the end of its own. */
  constructor(added = '') {
    this.#added = Buffer.from(added, 'latin1');
  }

  scan(arrived: Buffer): Scanned {
    const bytes = this.#held.length === 0 ? arrived : Buffer.concat([this.#held, arrived]);
    const seen = this.#held.length;
    this.#held = NOTHING;
    let at = 0;
    // Where the request begins that is not over; negative: before these bytes.
    let start = this.#body === 0 ? 0 : -1;
    const headEnds: number[] = [];
    const bad = (malformed: Malformed): Scanned => {
      const isUnderWay = start < 0;
      const before = isUnderWay ? NOTHING : this.#withAdded(bytes.subarray(0, start), headEnds);
      return { bytes: before, malformed, isUnderWay };
    };
    while (at < bytes.length) {
      if (this.#body === 0) {
        start = at;
        const end = bytes.indexOf(HEAD_END, Math.max(at, seen - HEAD_END.length + 1));
        if ((end < 0 ? bytes.length : end) - at > HEAD_BYTES_MAX) return bad('head');
        if (end < 0) {
          if (!this.#hold(bytes, at, seen)) return bad('header');
          const before = this.#withAdded(bytes.subarray(0, at), headEnds);
          return { bytes: before, malformed: null, isUnderWay: false };
        }
        const length = readHead(bytes.toString('latin1', at, end + 2));
        if (length !== 'chunked' && typeof length !== 'number') return bad(length);
        this.#body = length === 'chunked' ? new ChunkedBody() : length;
        headEnds.push(end + 2);
        at = end + HEAD_END.length;
      } else if (typeof this.#body === 'number') {
        const taken = Math.min(this.#body, bytes.length - at);
        this.#body -= taken;
        at += taken;
      } else {
        const read = this.#body.read(bytes, at);
        if (read.state === 'bad') return bad('chunk');
        if (read.state === 'done') this.#body = 0;
        at = read.at;
      }
    }
    return { bytes: this.#withAdded(bytes, headEnds), malformed: null, isUnderWay: false };
  }

  /** `headEnds`: behind the header lines of every head in the bytes, and of those that are not passed on. */
  #withAdded(bytes: Buffer, headEnds: readonly number[]): Buffer {
    if (headEnds.length === 0 || this.#added.length === 0) return bytes;
    const parts: Buffer[] = [];
    let from = 0;
    for (const end of headEnds) {
      if (end > bytes.length) break;
      parts.push(bytes.subarray(from, end), this.#added);
      from = end;
    }
    parts.push(bytes.subarray(from));
    return Buffer.concat(parts);
  }

  /** Waits for the rest of a head. False: it never becomes one. */
  #hold(bytes: Buffer, at: number, seen: number): boolean {
    // Whoever ends lines by LF alone would wait for ever; so would who speaks another protocol.
    for (let lf = bytes.indexOf(LF, Math.max(at, seen)); lf >= 0; lf = bytes.indexOf(LF, lf + 1)) {
      if (lf === at || bytes[lf - 1] !== CR) return false;
    }
    const first = bytes[at] ?? 0;
    if (first < 65 || first > 90) return false;
    this.#held = bytes.subarray(at);
    return true;
  }
}
