import { KeptBytes } from '../json/kept-bytes.ts';
import { parseObject } from '../json/parse-object.ts';
import { MessageStream, textHeaders } from '../events/message-stream.ts';
import { judgeRecord, type Judgement } from './judge-record.ts';

/** Maximum bytes of a message's headers that are kept. Amazon sends about 100. */
const HEADER_BYTES_MAX = 2_048;

/** Events of Bedrock that are content only if a part is not empty. */
const PARTS: ReadonlyMap<string, string> = new Map([
  ['contentBlockStart', 'start'],
  ['contentBlockDelta', 'delta'],
]);

/** Events of Bedrock that precede the first content. */
const PRELUDE: ReadonlySet<string> = new Set(['initial-response', 'messageStart']);

/**
 * Judges messages of `application/vnd.amazon.eventstream`, the format of Bedrock's streams. A client can only read
 * complete messages, so a part of one is never content.
 */
export class MessageJudge {
  readonly #messages: MessageStream;
  readonly #headers = new KeptBytes(HEADER_BYTES_MAX);
  readonly #payload: KeptBytes;
  readonly #onMessage: () => void;
  #isWhole = false;

  /**
   * @param payloadBytesMax maximum bytes of a message that are kept
   * @param onMessage called at the end of each message
   */
  constructor(payloadBytesMax: number, onMessage: () => void = () => {}) {
    this.#payload = new KeptBytes(payloadBytesMax);
    this.#onMessage = onMessage;
    this.#messages = new MessageStream(
      (piece) => this.#keep(this.#payload, piece),
      () => {
        this.#isWhole = true;
        this.#onMessage();
      },
      (piece) => this.#keep(this.#headers, piece),
    );
  }

  /** Whether the bytes are not valid messages. */
  get isLost(): boolean {
    return this.#messages.isLost;
  }

  push(chunk: Uint8Array): void {
    this.#messages.push(chunk);
  }

  judge(): Judgement {
    const headers = textHeaders(this.#headers.bytes);
    const text = new TextDecoder().decode(this.#payload.bytes);
    const kind = headers.get(':message-type') ?? 'event';
    return kind === 'event'
      ? judgeEvent(headers.get(':event-type') ?? '', parseObject(text))
      : { error: errorOf(headers, parseObject(text), text) };
  }

  #keep(kept: KeptBytes, piece: Uint8Array): void {
    if (this.#isWhole) {
      this.#headers.clear();
      this.#payload.clear();
    }
    this.#isWhole = false;
    kept.add(piece, 0, piece.length);
  }
}

/** Converts an exception to the JSON that the same error has as a separate response. */
function errorOf(
  headers: ReadonlyMap<string, string>,
  fields: Readonly<Record<string, unknown>> | null,
  text: string,
): string {
  const name = headers.get(':exception-type') ?? headers.get(':error-code') ?? 'exception';
  const message =
    fields?.['message'] ?? fields?.['Message'] ?? headers.get(':error-message') ?? text;
  return JSON.stringify({ __type: name, ...fields, message });
}

function judgeEvent(type: string, fields: Readonly<Record<string, unknown>> | null): Judgement {
  if (fields === null) return 'content';
  if (PRELUDE.has(type)) return 'prelude';
  const part = PARTS.get(type);
  if (part !== undefined) return isFilled(fields[part]) ? 'content' : 'prelude';
  const event = eventOfModel(fields['bytes']);
  return event === null ? 'content' : judgeRecord(event);
}

/** The model's event that Bedrock wraps. null if there is none. */
function eventOfModel(base64: unknown): Readonly<Record<string, unknown>> | null {
  if (typeof base64 !== 'string') return null;
  try {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    return parseObject(new TextDecoder().decode(bytes));
  } catch {
    return null;
  }
}

function isFilled(part: unknown): boolean {
  if (typeof part === 'string') return part !== '';
  return typeof part === 'object' && part !== null && Object.values(part).some(isFilled);
}
