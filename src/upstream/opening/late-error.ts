import { PackedCopy } from '../body/packed-copy.ts';
import type { Packing } from '../body/packing.ts';
import { MessageJudge } from './message-judge.ts';
import { errorAtEnd, OpeningReader, type AnswerForm } from './opening-reader.ts';

/** Number of bytes kept from the end of a stream. The longest known error, from Gemini with its quotas, has 3 KB. */
const BYTES_MAX = 4_096;

/** The event of a failed response. It repeats the whole request after its error. */
const FAILED = '"response.failed"';

export interface LateError {
  readonly error: string;
  readonly isAfterContent: boolean;
}

/**
 * Keeps the end of a stream, which may contain an error. It receives bytes in batches, so no code runs for each chunk.
 */
export class StreamEnd {
  readonly #form: AnswerForm;
  readonly #isResponses: boolean;
  readonly #decoder = new TextDecoder();
  /** The last message of an Amazon event stream. null if the stream has another form. */
  readonly #messages: MessageJudge | null;
  /** null if the stream is not compressed. */
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

  /** Resolves when all pushed bytes are read. Must be awaited before `read`. null if bytes are read immediately. */
  caughtUp(): Promise<void> | null {
    return this.#copy?.caughtUp() ?? null;
  }

  /** Returns the error at the end of the stream, or null. Nothing may be pushed afterwards. */
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
