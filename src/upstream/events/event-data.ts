import { KeptBytes } from '../body/bytes.ts';

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
const LINE_BREAK = Uint8Array.of(LF);
const MARK = [0xef, 0xbb, 0xbf];
const DATA = new TextEncoder().encode('data');
const EVENT = new TextEncoder().encode('event');

const NAME_BYTES_MAX = 64;

/** Positions within a line: in the field name, after the colon, in the value, or in a part that is skipped. */
const FIELD = 0;
const BEFORE_VALUE = 1;
const IN_VALUE = 2;
const SKIPPED = 3;

/**
 * Reads the data and names of server-sent events across chunks. The data lines of one event are joined by a line feed.
 * Comments and other fields are skipped. A line ends with CR, LF or both.
 */
export class EventData {
  readonly #onData: (piece: Uint8Array) => void;
  readonly #onEnd: () => void;
  readonly #name = new KeptBytes(NAME_BYTES_MAX);
  #place: number = FIELD;
  /** The field that the current line may contain. */
  #field: Uint8Array = DATA;
  /** Number of bytes of the field name that have matched so far. */
  #length = 0;
  #isAfterCr = false;
  #hasData = false;
  /** Number of bytes read of a byte order mark at the beginning. 3 once it has been read or ruled out. */
  #mark = 0;

  /**
   * `onData` receives parts of the chunks, which are valid until it returns. `onEnd` is called after each event with
   * data.
   */
  constructor(onData: (piece: Uint8Array) => void, onEnd: () => void) {
    this.#onData = onData;
    this.#onEnd = onEnd;
  }

  /** The name of the current event, or of the ended event in `onEnd`. Empty if it has none. */
  get name(): string {
    return new TextDecoder().decode(this.#name.bytes).trim();
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

  /** Reads the rest of a line, up to its end or the end of the chunk. */
  #readLine(chunk: Uint8Array, from: number): number {
    let at = from;
    while (this.#place === FIELD && at < chunk.length) {
      const byte = chunk[at];
      if (byte === LF || byte === CR) return at;
      if (byte === COLON && this.#length === this.#field.length) this.#beginValue();
      else if (!this.#isOfField(byte)) this.#place = SKIPPED;
      at += 1;
    }
    if (this.#place === BEFORE_VALUE && at < chunk.length) {
      this.#place = IN_VALUE;
      if (chunk[at] === SPACE) at += 1;
    }
    const end = lineEnd(chunk, at);
    if (this.#place === IN_VALUE && end > at) {
      if (this.#field === DATA) this.#onData(chunk.subarray(at, end));
      else this.#name.add(chunk, at, end);
    }
    return end;
  }

  /** Whether a byte continues a field name. The first byte decides which field the line may contain. */
  #isOfField(byte: number | undefined): boolean {
    if (this.#length === 0) this.#field = byte === EVENT[0] ? EVENT : DATA;
    if (byte !== this.#field[this.#length]) return false;
    this.#length += 1;
    return true;
  }

  #beginValue(): void {
    this.#place = BEFORE_VALUE;
    if (this.#field === EVENT) return this.#name.clear();
    if (this.#hasData) this.#onData(LINE_BREAK);
    this.#hasData = true;
  }

  #endLine(): void {
    const isEmpty = this.#place === FIELD && this.#length === 0;
    // A line with only a name is a field without a value.
    if (this.#place === FIELD && !isEmpty && this.#length === this.#field.length) {
      this.#beginValue();
    }
    this.#place = FIELD;
    this.#length = 0;
    if (!isEmpty) return;
    if (this.#hasData) {
      this.#hasData = false;
      this.#onEnd();
    }
    this.#name.clear();
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

/** An event. At the end of the text it may be cut off. */
interface TextEvent {
  readonly name: string;
  readonly data: string;
}

export function eventsIn(text: string): readonly TextEvent[] {
  const found: TextEvent[] = [];
  const decoder = new TextDecoder();
  let data = '';
  const take = (): void => {
    if (data !== '') found.push({ name: events.name, data });
    data = '';
  };
  const events = new EventData((piece) => {
    data += decoder.decode(piece);
  }, take);
  events.push(new TextEncoder().encode(text));
  take();
  return found;
}

function lineEnd(chunk: Uint8Array, from: number): number {
  let at = from;
  while (at < chunk.length && chunk[at] !== LF && chunk[at] !== CR) at += 1;
  return at;
}
