import { ChunkedBody } from './chunked-body.ts';

const HEAD_END = Buffer.from('\r\n\r\n');

const HEAD_BYTES_MAX = 262_144;
const NOTHING = Buffer.alloc(0);

/** Heads after whose exchange the connection is closed. */
const CLOSES = /^connection:.*\bclose\b/im;
const OLD_REQUEST = / HTTP\/1\.0\r\n/;
const NO_BODY = new Set([204, 304]);

/** Properties of a response that the head of its request determines. */
interface RequestHead {
  readonly isHead: boolean;
  /** Whether the connection is closed after the response. */
  readonly isLast: boolean;
}

type BodyRest = number | ChunkedBody;

/**
 * Returns the body that a response head announces. null if the end of the connection ends the body, or it is unknown.
 */
function bodyOf(head: string, isToHead: boolean): BodyRest | null {
  const status = Number(head.slice(9, 12));
  if (!head.startsWith('HTTP/1.') || status === 101) return null;
  if (isToHead || NO_BODY.has(status)) return 0;
  if (/^transfer-encoding:[\t ]*chunked[\t ]*\r$/im.test(head)) return new ChunkedBody();
  const length = /^content-length:[\t ]*(\d{1,15})[\t ]*\r$/im.exec(head)?.[1];
  return length === undefined ? null : Number(length);
}

/**
 * Follows the responses on a connection to detect when all requests have been answered. It only parses heads and the
 * sizes of chunks.
 */
export class AnswerReader {
  /** Requests without a complete response, oldest first. */
  readonly #pending: RequestHead[] = [];
  /** Incomplete head of a response. */
  #held: Buffer = NOTHING;
  /** null if no response is in progress. */
  #body: BodyRest | null = null;
  #canFollow = true;
  /** Whether the connection is closed after the response in progress. */
  #isLast = false;
  #isOver = false;
  #isSwitched = false;
  #isRefusal = false;

  /** Registers a request by its head. */
  expect(head: string): void {
    const isLast = CLOSES.test(head) || OLD_REQUEST.test(head);
    this.#pending.push({ isHead: head.startsWith('HEAD '), isLast });
  }

  /** Whether all requests have complete responses, so that the next one may use another connection. */
  get isAtRest(): boolean {
    return this.#canFollow && this.#pending.length === 0 && this.#held.length === 0;
  }

  /** Whether the last response of the connection is complete. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Whether the latest response is not a success, so that the body of its request may be unread. */
  get isRefusal(): boolean {
    return this.#isRefusal;
  }

  /** Whether the connection has switched to another protocol. */
  get isSwitched(): boolean {
    return this.#isSwitched;
  }

  follow(bytes: Buffer): void {
    let at = 0;
    while (this.#canFollow && at < bytes.length) {
      at = this.#body === null ? this.#readHead(bytes, at) : this.#readBody(this.#body, bytes, at);
    }
  }

  #readHead(bytes: Buffer, at: number): number {
    const [request] = this.#pending;
    if (request === undefined || this.#held.length > HEAD_BYTES_MAX) {
      this.#canFollow = false;
      return bytes.length;
    }
    const rest = bytes.subarray(at);
    const begun = this.#held.length === 0 ? rest : Buffer.concat([this.#held, rest]);
    const end = begun.indexOf(HEAD_END);
    if (end < 0) {
      // The buffer is reused by the next read, so the bytes are copied.
      this.#held = Buffer.from(begun);
      return bytes.length;
    }
    const next = at + end + HEAD_END.length - this.#held.length;
    this.#held = NOTHING;
    const head = begun.toString('latin1', 0, end + 2);
    // Another response to the same request follows 100 and 103.
    if (/^HTTP\/1\.1 1(?!01)/.test(head)) return next;
    this.#isSwitched = head.startsWith('HTTP/1.1 101');
    this.#isLast = request.isLast || CLOSES.test(head);
    this.#isRefusal = !head.startsWith('HTTP/1.1 2');
    this.#body = bodyOf(head, request.isHead);
    if (this.#body === null) this.#canFollow = false;
    if (this.#body === 0) this.#end();
    return next;
  }

  #readBody(body: BodyRest, bytes: Buffer, at: number): number {
    if (typeof body === 'number') {
      const taken = Math.min(body, bytes.length - at);
      this.#body = body - taken;
      if (this.#body === 0) this.#end();
      return at + taken;
    }
    const read = body.read(bytes, at);
    if (read.state === 'bad') this.#canFollow = false;
    if (read.state === 'done') this.#end();
    return read.at;
  }

  #end(): void {
    this.#body = null;
    this.#pending.shift();
    if (!this.#isLast) return;
    this.#isOver = true;
    this.#canFollow = false;
  }
}
