import { PackedCopy } from '../body/packed-copy.ts';
import type { Packing } from '../body/packing.ts';
import { MessageJudge } from './message-judge.ts';
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
  /** The last of Amazon's messages; null: the stream has another form. */
  readonly #messages: MessageJudge | null;
  /** Null: the stream is plain. */
  readonly #copy: PackedCopy | null;
  #buffer: Uint8Array | null = null;
  #length = 0;
  #bytes = 0;
  /** The beginning of the event of a failed response. */
  #failed: string | null = null;

  constructor(form: AnswerForm, isResponses: boolean, packings: readonly Packing[] = []) {
    this.#form = form;
    this.#isResponses = isResponses;
    this.#messages = form === 'messages' ? new MessageJudge(BYTES_MAX) : null;
    this.#copy =
      packings.length === 0 ? null : new PackedCopy(packings, (bytes) => this.#take(bytes));
  }

  push(chunk: Uint8Array): void {
    if (this.#copy === null) this.#take(chunk);
    else this.#copy.push(chunk);
  }

  /** Waits until all that was pushed is read, before `read`. Null: it is read at once. */
  caughtUp(): Promise<void> | null {
    return this.#copy?.caughtUp() ?? null;
  }

  /** Returns the error with which the stream has ended; null: there is none. Nothing may be pushed afterwards. */
  read(): LateError | null {
    this.#copy?.close();
    const kept = this.#buffer?.subarray(0, this.#length) ?? new Uint8Array();
    const error = this.#errorIn(kept);
    if (error === null) return null;
    return { error, isAfterContent: this.#bytes > BYTES_MAX || isAfterContent(kept, this.#form) };
  }

  #take(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    if (this.#isResponses) this.#findFailed(chunk);
    this.#messages?.push(chunk);
    const buffer = (this.#buffer ??= new Uint8Array(BYTES_MAX));
    const last = chunk.length > BYTES_MAX ? chunk.subarray(-BYTES_MAX) : chunk;
    const kept = Math.min(this.#length, BYTES_MAX - last.length);
    if (kept < this.#length) buffer.copyWithin(0, this.#length - kept, this.#length);
    buffer.set(last, kept);
    this.#length = kept + last.length;
  }

  #errorIn(kept: Uint8Array): string | null {
    if (this.#messages === null) return errorAtEnd(this.#failed ?? this.#decoder.decode(kept));
    const judgement = this.#messages.judge();
    return typeof judgement === 'object' ? judgement.error : null;
  }

  #findFailed(chunk: Uint8Array): void {
    const text = this.#decoder.decode(chunk);
    const at = text.lastIndexOf(FAILED);
    const from = at < 0 ? -1 : text.lastIndexOf('{', at);
    if (from >= 0) this.#failed = text.slice(from, from + BYTES_MAX).split('\n')[0] ?? '';
  }
}

function isAfterContent(bytes: Uint8Array, form: AnswerForm): boolean {
  return new OpeningReader(form).push(bytes) === 'content';
}
