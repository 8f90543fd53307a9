import { ChunkedBody } from './chunked-body.ts';

const HEAD_END = Buffer.from('\r\n\r\n');

/** Maximum of an answer's head that is waited for. */
const HEAD_BYTES_MAX = 262_144;
const NOTHING = Buffer.alloc(0);

/** A head that says, or whose version does, that the connection ends with this exchange. */
const CLOSES = /^connection:.*\bclose\b/im;
const OLD_REQUEST = / HTTP\/1\.0\r\n/;
const NO_BODY = new Set([204, 304]);

/** Facts about an answer that the head of its request decides. */
interface RequestHead {
  readonly isHead: boolean;
  /** The connection ends with its answer. */
  readonly isLast: boolean;
}

/** Rest of an answer's body: of a known length, or in chunks. */
type BodyRest = number | ChunkedBody;

/** Reads where the body ends that such a head announces; null: with the connection, or nobody knows. */
function bodyOf(head: string, isToHead: boolean): BodyRest | null {
  const status = Number(head.slice(9, 12));
  if (!head.startsWith('HTTP/1.') || status === 101) return null;
  if (isToHead || NO_BODY.has(status)) return 0;
  if (/^transfer-encoding:[\t ]*chunked[\t ]*\r$/im.test(head)) return new ChunkedBody();
  const length = /^content-length:[\t ]*(\d{1,15})[\t ]*\r$/im.exec(head)?.[1];
  return length === undefined ? null : Number(length);
}

/**
 * Follows the answers on a connection, so that it is known when all that was asked is answered. Of the bytes of a body
 * it looks at the sizes of chunks alone.
 */
export class AnswerReader {
  /** Requests without a whole answer, oldest first. */
  readonly #asked: RequestHead[] = [];
  /** The beginning of a head. */
  #held: Buffer = NOTHING;
  /** Null: no answer is under way. */
  #body: BodyRest | null = null;
  #canFollow = true;
  /** The answer under way says that the connection ends with it. */
  #isLast = false;
  #isOver = false;
  #isSwitched = false;
  #isRefusal = false;

  /** Takes note of a request by its head. */
  expect(head: string): void {
    const isLast = CLOSES.test(head) || OLD_REQUEST.test(head);
    this.#asked.push({ isHead: head.startsWith('HEAD '), isLast });
  }

  /** Whether all requests have whole answers, and the next one may go over another connection. */
  get isAtRest(): boolean {
    return this.#canFollow && this.#asked.length === 0 && this.#held.length === 0;
  }

  /** Whether the last answer of the connection is there, whole. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Whether the newest answer is none of success, so that the body of its request may be unread. */
  get isRefusal(): boolean {
    return this.#isRefusal;
  }

  /** Whether the connection speaks another protocol from here on. */
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
    const [asked] = this.#asked;
    if (asked === undefined || this.#held.length > HEAD_BYTES_MAX) {
      this.#canFollow = false;
      return bytes.length;
    }
    const rest = bytes.subarray(at);
    const begun = this.#held.length === 0 ? rest : Buffer.concat([this.#held, rest]);
    const end = begun.indexOf(HEAD_END);
    if (end < 0) {
      // The bytes are the reader's own only until the next read.
      this.#held = Buffer.from(begun);
      return bytes.length;
    }
    const next = at + end + HEAD_END.length - this.#held.length;
    this.#held = NOTHING;
    const head = begun.toString('latin1', 0, end + 2);
    // More is to come on the same request, after 103 or 100.
    if (/^HTTP\/1\.1 1(?!01)/.test(head)) return next;
    this.#isSwitched = head.startsWith('HTTP/1.1 101');
    this.#isLast = asked.isLast || CLOSES.test(head);
    this.#isRefusal = !head.startsWith('HTTP/1.1 2');
    this.#body = bodyOf(head, asked.isHead);
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
    this.#asked.shift();
    if (!this.#isLast) return;
    this.#isOver = true;
    this.#canFollow = false;
  }
}
