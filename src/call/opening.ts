import type { FrameShape } from './errors/error-frame.ts';

const FIELD = 'data:';

/** An empty event, for a stream that does not begin with the line that was already started. */
const EMPTY_EVENT = '{}\n\n';

const encoder = new TextEncoder();

/**
 * The part of a stream before its first event. Most clients skip comments. Gemini's break at them, some at any line
 * before the first event, and chats lose an answer with an empty event. For Gemini the line of the first event is
 * therefore started early and extended with spaces, which the JSON parser ignores.
 */
export class Opening {
  readonly #beginsLine: boolean;
  #isBegun = false;
  /** The first bytes of the answer, while they are too few to determine how it begins. */
  #head: Uint8Array | null;

  constructor(shape: FrameShape) {
    this.#beginsLine = shape === 'gemini';
    this.#head = this.#beginsLine ? new Uint8Array() : null;
  }

  /** The next bytes that keep the stream alive. */
  filler(comment: string): Uint8Array {
    if (!this.#beginsLine) return encoder.encode(comment);
    const text = this.#isBegun ? ' ' : `${FIELD} `;
    this.#isBegun = true;
    return encoder.encode(text);
  }

  /** The answer's bytes that follow the fillers. Empty while too few have arrived. */
  join(chunk: Uint8Array): Uint8Array {
    if (this.#head === null) return chunk;
    const head = joined(this.#head, chunk);
    const isWhole = head.length >= FIELD.length;
    this.#head = isWhole ? null : head;
    return isWhole ? behindField(head) : new Uint8Array();
  }

  /** The remainder of an answer that ended before its beginning could be determined. */
  end(): Uint8Array {
    const head = this.#head;
    this.#head = null;
    return head === null ? new Uint8Array() : behindField(head);
  }
}

/** The line was already started. */
function behindField(head: Uint8Array): Uint8Array {
  const begins = new TextDecoder().decode(head.subarray(0, FIELD.length)) === FIELD;
  return begins ? head.subarray(FIELD.length) : joined(encoder.encode(EMPTY_EVENT), head);
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const whole = new Uint8Array(first.length + second.length);
  whole.set(first);
  whole.set(second, first.length);
  return whole;
}
