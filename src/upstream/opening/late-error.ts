import { errorAtEnd, OpeningReader, type AnswerForm } from './opening-reader.ts';

/** Bytes that are kept of a stream's end. The longest error that was seen, Gemini's with its quotas, has 3 KB. */
const BYTES_MAX = 4_096;

/** The event of a failed response, which repeats the whole request behind its error. */
const FAILED = '"response.failed"';

/** An error with which a stream has ended. */
export interface LateError {
  /** The error as JSON. */
  readonly error: string;
  /** Whether content came before it. */
  readonly isAfterContent: boolean;
}

/**
 * Keeps the end of a stream, in which an error may stand. It is shown what has passed now and then, so nothing runs for a
 * chunk.
 */
export class StreamEnd {
  readonly #form: AnswerForm;
  readonly #isResponses: boolean;
  readonly #decoder = new TextDecoder();
  #buffer: Uint8Array | null = null;
  #length = 0;
  #bytes = 0;
  /** The beginning of the event of a failed response. */
  #failed: string | null = null;

  constructor(form: AnswerForm, isResponses: boolean) {
    this.#form = form;
    this.#isResponses = isResponses;
  }

  push(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    if (this.#isResponses) this.#findFailed(chunk);
    const buffer = (this.#buffer ??= new Uint8Array(BYTES_MAX));
    const last = chunk.length > BYTES_MAX ? chunk.subarray(-BYTES_MAX) : chunk;
    const kept = Math.min(this.#length, BYTES_MAX - last.length);
    if (kept < this.#length) buffer.copyWithin(0, this.#length - kept, this.#length);
    buffer.set(last, kept);
    this.#length = kept + last.length;
  }

  /** Returns the error with which the stream has ended; null: there is none. */
  read(): LateError | null {
    const text = this.#decoder.decode(this.#buffer?.subarray(0, this.#length));
    const error = errorAtEnd(this.#failed ?? text);
    if (error === null) return null;
    return { error, isAfterContent: this.#bytes > BYTES_MAX || isAfterContent(text, this.#form) };
  }

  #findFailed(chunk: Uint8Array): void {
    const text = this.#decoder.decode(chunk);
    const at = text.lastIndexOf(FAILED);
    const from = at < 0 ? -1 : text.lastIndexOf('{', at);
    if (from >= 0) this.#failed = text.slice(from, from + BYTES_MAX).split('\n')[0] ?? '';
  }
}

function isAfterContent(text: string, form: AnswerForm): boolean {
  const reader = new OpeningReader(form);
  const judgement = reader.push(new TextEncoder().encode(text));
  return judgement === 'content';
}
