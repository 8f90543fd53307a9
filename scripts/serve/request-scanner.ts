import type { Malformed } from '../../src/http/malformed.ts';
import { ChunkedBody } from './chunked-body.ts';
import { readHead } from './request-head.ts';

/** Maximum bytes of the request line and the headers. workerd accepts twice as much. */
const HEAD_BYTES_MAX = 65_536;

const [CR, LF] = [13, 10];
const HEAD_END = Buffer.from('\r\n\r\n');

export interface Scanned {
  /** Bytes to forward. */
  readonly bytes: Buffer;
  /** The fault after these bytes, after which nothing more of the connection may be forwarded. */
  readonly malformed: Malformed | null;
  /** Path of a request with an unsupported method, which determines the dialect of its response. Empty if unknown. */
  readonly path: string;
  /** Whether a part of the malformed request was already forwarded. */
  readonly isUnderWay: boolean;
  /** Heads of the requests that begin in the bytes, as the client sent them. */
  readonly heads: readonly string[];
  /**
   * Bytes after a request whose response determines how they are handled. After a WebSocket request they are frames or
   * requests. After a large body they may need another connection, because workerd closes this one if the body is not
   * read. null if there is no such request.
   */
  readonly behind: Buffer | null;
}

/** workerd reads and discards at most 65,536 bytes of a body that the Worker has not read. */
const LARGE_BODY_BYTES = 60_000;

/** A request that workerd may answer with 101, after which the connection no longer carries HTTP. */
const WEBSOCKET = /^GET [^\r]*\r\n(?:.*\r\n)*?upgrade:[\t ]*websocket[\t ]*\r\n/i;

const NOTHING = Buffer.alloc(0);

/**
 * Follows the requests of one connection, so that only valid ones are forwarded. Heads are held back until they are
 * complete, and the bytes of bodies are counted.
 */
export class RequestScanner {
  /** Incomplete head of a request. */
  #held: Buffer = NOTHING;
  /** Remaining body. 0 between two requests. */
  #body: ChunkedBody | number = 0;
  /** Bytes of the current body so far, sizes of chunks included. */
  #bodyBytes = 0;
  readonly #added: Buffer;

  /** `added` are header lines, each with its CR LF, that are appended to the headers of every request. */
  constructor(added = '') {
    this.#added = Buffer.from(added, 'latin1');
  }

  /** Whether the body of the last request is complete. The head of the next one may have begun. */
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

  /** Skips the body of an answered request and returns the bytes after it. null if the body continues. */
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
    // Start of the incomplete request. Negative if it began before these bytes.
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

  /** Reads the body from `at` on, and returns the end of the body or of `bytes`. null if the body is malformed. */
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

  /** Inserts the added headers. `headEnds` are the ends of all header lines, including those beyond `bytes`. */
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

  /** Holds an incomplete head. Returns false if it cannot become a valid head. */
  #hold(bytes: Buffer, at: number, seen: number): boolean {
    // A client that ends lines with LF only, or that uses another protocol, would otherwise wait forever.
    for (let lf = bytes.indexOf(LF, Math.max(at, seen)); lf >= 0; lf = bytes.indexOf(LF, lf + 1)) {
      if (lf === at || bytes[lf - 1] !== CR) return false;
    }
    const first = String.fromCharCode(bytes[at] ?? 0);
    if (!/[a-z]/i.test(first)) return false;
    this.#held = bytes.subarray(at);
    return true;
  }
}
