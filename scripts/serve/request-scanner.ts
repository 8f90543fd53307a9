import type { Malformed } from '../../src/http/malformed.ts';
import { ChunkedBody } from './chunked-body.ts';
import { readHead } from './request-head.ts';

/** Maximum bytes of request line and headers. workerd takes twice as much. */
const HEAD_BYTES_MAX = 65_536;

const [CR, LF] = [13, 10];
const HEAD_END = Buffer.from('\r\n\r\n');

/** Verdict on some bytes of a connection. */
export interface Scanned {
  /** Bytes that may be passed on. */
  readonly bytes: Buffer;
  /** Mistake behind them. Nothing more of the connection may be passed on. */
  readonly malformed: Malformed | null;
  /** Path of a request with a method that is not served, for the dialect of its answer. Empty: not known. */
  readonly path: string;
  /** Whether a part of the malformed request was passed on before. */
  readonly isUnderWay: boolean;
  /** Heads of the requests that begin in the bytes, as the client sent them. */
  readonly heads: readonly string[];
  /**
   * Bytes behind a request whose answer decides what becomes of them. A request for a WebSocket: they are frames, or
   * requests to scan. A large body: if workerd does not read it, it closes the connection, so a request behind it
   * needs another one. Null: there is no such request.
   */
  readonly behind: Buffer | null;
}

/** workerd reads and discards at most 65,536 bytes of a body that the Worker has not read. */
const LARGE_BODY_BYTES = 60_000;

/** A request that workerd may answer with 101: from there on the connection speaks no HTTP. */
const WEBSOCKET = /^GET [^\r]*\r\n(?:.*\r\n)*?upgrade:[\t ]*websocket[\t ]*\r\n/i;

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
  /** Bytes of the current body so far, sizes of chunks included. */
  #bodyBytes = 0;
  readonly #added: Buffer;

  /** `added` are header lines, each with its CR LF, that every request gets at the end of its own. */
  constructor(added = '') {
    this.#added = Buffer.from(added, 'latin1');
  }

  /** Whether all of the last request's body is there. The head of the next one may have begun. */
  get isBetween(): boolean {
    return this.#body === 0;
  }

  /** Whether workerd closes the connection if the Worker does not read the body of the last request. */
  get hasLargeBody(): boolean {
    return this.#bodyBytes >= LARGE_BODY_BYTES;
  }

  /** Whether a head has begun and is incomplete. */
  get isInHead(): boolean {
    return this.#held.length > 0;
  }

  /** Reads on in the body of a request that is already answered, and returns the bytes behind it. Null: it goes on. */
  skipBody(bytes: Buffer): Buffer | null | 'malformed' {
    const at = this.#readBody(bytes, 0);
    if (at === null) return 'malformed';
    return this.#body === 0 ? bytes.subarray(at) : null;
  }

  scan(arrived: Buffer): Scanned {
    const bytes = this.#held.length === 0 ? arrived : Buffer.concat([this.#held, arrived]);
    const seen = this.#held.length;
    this.#held = NOTHING;
    let at = 0;
    // Where the request begins that is not over; negative: before these bytes.
    let start = this.#body === 0 ? 0 : -1;
    const headEnds: number[] = [];
    const heads: string[] = [];
    const bad = (malformed: Malformed, path = ''): Scanned => {
      const isUnderWay = start < 0;
      const before = isUnderWay ? NOTHING : this.#withAdded(bytes.subarray(0, start), headEnds);
      return { bytes: before, malformed, path, isUnderWay, heads, behind: null };
    };
    const passed = (end: number, behind: Buffer | null): Scanned => {
      const all = end === bytes.length ? bytes : bytes.subarray(0, end);
      const upTo = this.#withAdded(all, headEnds);
      return { bytes: upTo, malformed: null, path: '', isUnderWay: false, heads, behind };
    };
    while (at < bytes.length) {
      if (this.#body === 0) {
        start = at;
        const end = bytes.indexOf(HEAD_END, Math.max(at, seen - HEAD_END.length + 1));
        if ((end < 0 ? bytes.length : end) - at > HEAD_BYTES_MAX) return bad('head');
        if (end < 0) {
          if (!this.#hold(bytes, at, seen)) return bad('header');
          return passed(at, null);
        }
        const head = bytes.toString('latin1', at, end + 2);
        const length = readHead(head);
        if (length === 'method') return bad(length, /^\S+ (\/\S*)/.exec(head)?.[1]);
        if (length !== 'chunked' && typeof length !== 'number') return bad(length);
        this.#body = length === 'chunked' ? new ChunkedBody() : length;
        this.#bodyBytes = 0;
        headEnds.push(end + 2);
        heads.push(head);
        at = end + HEAD_END.length;
        if (length === 0 && WEBSOCKET.test(head)) {
          return passed(at, bytes.subarray(at));
        }
      } else {
        const end = this.#readBody(bytes, at);
        if (end === null) return bad('chunk');
        at = end;
        if (this.#body === 0 && this.hasLargeBody) return passed(at, bytes.subarray(at));
      }
    }
    return passed(bytes.length, null);
  }

  /** Reads on in the body at `at`, and returns where it or `bytes` end. Null: it is malformed. */
  #readBody(bytes: Buffer, at: number): number | null {
    let end: number;
    if (typeof this.#body === 'number') {
      end = at + Math.min(this.#body, bytes.length - at);
      this.#body -= end - at;
    } else {
      const read = this.#body.read(bytes, at);
      if (read.state === 'bad') return null;
      if (read.state === 'done') this.#body = 0;
      end = read.at;
    }
    this.#bodyBytes += end - at;
    return end;
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
    const first = String.fromCharCode(bytes[at] ?? 0);
    if (!/[a-z]/i.test(first)) return false;
    this.#held = bytes.subarray(at);
    return true;
  }
}
