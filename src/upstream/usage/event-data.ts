const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
const LINE_BREAK = Uint8Array.of(LF);
const MARK = [0xef, 0xbb, 0xbf];
const DATA = new TextEncoder().encode('data');

/** Places within a line: in its field name, behind the colon, in the data, or in what is of no interest. */
const NAME = 0;
const VALUE = 1;
const IN_DATA = 2;
const SKIPPED = 3;

/**
 * Reads the data of server-sent events as it comes, whatever the borders of the chunks. Lines of data in one event are
 * joined by a line feed; comments and other fields are skipped. A line ends with CR, LF or both.
 */
export class EventData {
  readonly #onData: (piece: Uint8Array) => void;
  readonly #onEnd: () => void;
  #place: number = NAME;
  /** Bytes of this line so far, as far as they are needed. */
  #length = 0;
  #isAfterCr = false;
  #hasData = false;
  /** Bytes of the byte order mark that may stand at the beginning; 3: the stream is beyond it. */
  #mark = 0;

  /** `onData` gets parts of the chunks, which hold until it returns; `onEnd` is called behind each event with data. */
  constructor(onData: (piece: Uint8Array) => void, onEnd: () => void) {
    this.#onData = onData;
    this.#onEnd = onEnd;
  }

  push(chunk: Uint8Array): void {
    let at = this.#mark < MARK.length ? this.#passMark(chunk) : 0;
    while (at < chunk.length) {
      const byte = chunk[at] ?? 0;
      if (byte === LF && this.#isAfterCr) {
        this.#isAfterCr = false;
        at += 1;
        continue;
      }
      this.#isAfterCr = byte === CR;
      if (byte === LF || byte === CR) {
        this.#endLine();
        at += 1;
      } else {
        at = this.#readLine(chunk, at);
      }
    }
  }

  /** Takes what stands in a line up to its end, or the chunk's. */
  #readLine(chunk: Uint8Array, from: number): number {
    let at = from;
    while (this.#place === NAME && at < chunk.length) {
      const byte = chunk[at];
      if (byte === LF || byte === CR) return at;
      if (byte === COLON && this.#length === DATA.length) this.#beginData();
      else if (byte === DATA[this.#length]) this.#length += 1;
      else this.#place = SKIPPED;
      at += 1;
    }
    if (this.#place === VALUE && at < chunk.length) {
      this.#place = IN_DATA;
      if (chunk[at] === SPACE) at += 1;
    }
    const end = lineEnd(chunk, at);
    if (this.#place === IN_DATA && end > at) this.#onData(chunk.subarray(at, end));
    return end;
  }

  #beginData(): void {
    this.#place = VALUE;
    if (this.#hasData) this.#onData(LINE_BREAK);
    this.#hasData = true;
  }

  #endLine(): void {
    const isEmpty = this.#place === NAME && this.#length === 0;
    // A name alone is a field without a value.
    if (this.#place === NAME && this.#length === DATA.length) this.#beginData();
    this.#place = NAME;
    this.#length = 0;
    if (!isEmpty || !this.#hasData) return;
    this.#hasData = false;
    this.#onEnd();
  }

  #passMark(chunk: Uint8Array): number {
    let at = 0;
    while (at < chunk.length && this.#mark < MARK.length && chunk[at] === MARK[this.#mark]) {
      this.#mark += 1;
      at += 1;
    }
    if (at < chunk.length) this.#mark = MARK.length;
    return at;
  }
}

function lineEnd(chunk: Uint8Array, from: number): number {
  let at = from;
  while (at < chunk.length && chunk[at] !== LF && chunk[at] !== CR) at += 1;
  return at;
}
