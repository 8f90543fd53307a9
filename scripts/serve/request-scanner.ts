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
   * Bytes behind a request that asks for a WebSocket: its answer tells whether they are frames, or requests that are to
   * be scanned. Null: none asks for one.
   */
  readonly behind: Buffer | null;
}

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
  readonly #added: Buffer;

  /** `added` are header lines, each with its CR LF, that every request gets at the end of its own. */
  constructor(added = '') {
    this.#added = Buffer.from(added, 'latin1');
  }

  /** Whether all of the last request's body is there. The head of the next one may have begun. */
  get isBetween(): boolean {
    return this.#body === 0;
  }

  /** Whether a head has begun and is incomplete. */
  get isInHead(): boolean {
    return this.#held.length > 0;
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
    while (at < bytes.length) {
      if (this.#body === 0) {
        start = at;
        const end = bytes.indexOf(HEAD_END, Math.max(at, seen - HEAD_END.length + 1));
        if ((end < 0 ? bytes.length : end) - at > HEAD_BYTES_MAX) return bad('head');
        if (end < 0) {
          if (!this.#hold(bytes, at, seen)) return bad('header');
          const before = this.#withAdded(bytes.subarray(0, at), headEnds);
          return {
            bytes: before,
            malformed: null,
            path: '',
            isUnderWay: false,
            heads,
            behind: null,
          };
        }
        const head = bytes.toString('latin1', at, end + 2);
        const length = readHead(head);
        if (length === 'method') return bad(length, /^\S+ (\/\S*)/.exec(head)?.[1]);
        if (length !== 'chunked' && typeof length !== 'number') return bad(length);
        this.#body = length === 'chunked' ? new ChunkedBody() : length;
        headEnds.push(end + 2);
        heads.push(head);
        at = end + HEAD_END.length;
        if (length === 0 && WEBSOCKET.test(head)) {
          const before = this.#withAdded(bytes.subarray(0, at), headEnds);
          const behind = bytes.subarray(at);
          return { bytes: before, malformed: null, path: '', isUnderWay: false, heads, behind };
        }
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
    const all = this.#withAdded(bytes, headEnds);
    return { bytes: all, malformed: null, path: '', isUnderWay: false, heads, behind: null };
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
