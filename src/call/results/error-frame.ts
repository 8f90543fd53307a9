import type { Dialect } from '../../contract/http.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import { parseObject } from '../../upstream/json/json-syntax.ts';
import { codeOf, errorBody, retryAfterMsOf, statusIn } from './wire-error.ts';

/** Frames of event streams in each dialect: the beginning of a stream that is kept alive, and errors. */

/** The event streams that allow bytes before the first event and have a form for errors. */
export type FrameShape =
  | 'openai'
  | 'openai_responses'
  | 'anthropic'
  | 'gemini'
  | 'gemini_interactions';

interface FrameCall {
  readonly shape: Dialect;
  readonly name: string;
  readonly model: { readonly from: 'path' | 'body' | 'none' };
}

/**
 * The event stream of a call's answer. null if the answer is not an event stream, so nothing may be sent before the
 * upstream's first byte.
 */
export function frameShapeOf({ shape, name, model }: FrameCall): FrameShape | null {
  switch (shape) {
    case 'openai':
    case 'azure':
      return name === 'responses' ? 'openai_responses' : 'openai';
    case 'anthropic':
      return 'anthropic';
    case 'gemini':
      // Interactions name their model in the body, and have their own events.
      return model.from === 'body' ? 'gemini_interactions' : 'gemini';
    case 'bedrock':
    case 'ollama':
    case 'opaque':
      return null;
  }
}

interface ErrorBody {
  readonly type?: unknown;
  readonly error: object;
}

/**
 * An error as the last event of a stream whose status was already sent. Each SDK raises its own error from the frame of
 * its dialect. No end marker follows, because that would look like success.
 */
function errorFrame(shape: Exclude<FrameShape, 'openai_responses'>, body: ErrorBody): string {
  switch (shape) {
    case 'openai':
      return `data: ${JSON.stringify(body)}\n\n`;
    case 'gemini':
      return `data: ${JSON.stringify({ ...body, promptFeedback: feedbackOf(body) })}\n\n`;
    case 'anthropic':
      return `event: error\ndata: ${JSON.stringify(body)}\n\n`;
    case 'gemini_interactions':
      return `event: error\ndata: ${JSON.stringify({ event_type: 'error', ...body })}\n\n`;
  }
}

/** Older Gemini clients know no errors in a stream, but they report when a prompt was blocked. */
function feedbackOf({ error }: ErrorBody): object {
  const { message } = error as { message?: unknown };
  return { blockReason: 'OTHER', blockReasonMessage: message };
}

export function errorReplyFrame(
  shape: FrameShape,
  reply: ErrorReply,
  model: string | null,
): string {
  const dialect = dialectOf(shape);
  const body = errorBody(dialect, reply, statusIn(dialect, reply.reason)) as ErrorBody;
  if (shape !== 'openai_responses') return errorFrame(shape, body);
  const { reason, message } = reply;
  const retryAfterMs = retryAfterMsOf(reply);
  // Codex retries every failure except an invalid prompt and an exhausted quota.
  const isLimited = reason === 'upstream_limited';
  const final = isLimited ? 'insufficient_quota' : 'invalid_prompt';
  const failedCode = retryAfterMs === null ? final : 'rate_limit_exceeded';
  const failure = { message, code: codeOf(reason), failedCode, retryAfterMs, error: body.error };
  return responsesFrames(failure, model);
}

function dialectOf(shape: FrameShape): Dialect {
  if (shape === 'gemini_interactions') return 'gemini';
  return shape === 'openai_responses' ? 'openai' : shape;
}

/** An error response of an upstream. Its body may be anything. */
interface UpstreamError {
  readonly status: number;
  readonly text: string;
  readonly retryAfterMs: number | null;
}

export function upstreamErrorFrame(
  shape: FrameShape,
  { status, text, retryAfterMs }: UpstreamError,
  model: string | null,
): string {
  const body = upstreamBody(shape, status, text);
  if (shape !== 'openai_responses') return errorFrame(shape, body);
  const { error } = body;
  const fields = error as { message?: unknown; code?: unknown };
  const code = typeof fields.code === 'string' ? fields.code : null;
  const message = typeof fields.message === 'string' ? fields.message : statusMessage(status);
  const failedCode = code ?? failedCodeOf(status);
  return responsesFrames({ message, code, failedCode, retryAfterMs, error }, model);
}

/** The upstream's own error, or its status in the dialect. */
function upstreamBody(shape: FrameShape, status: number, text: string): ErrorBody {
  const body = parseObject(text);
  if (body !== null && typeof body['error'] === 'object' && body['error'] !== null) {
    return { ...body, error: body['error'] };
  }
  const message = statusMessage(status);
  if (shape === 'anthropic') {
    return { type: 'error', error: { type: 'api_error', message } };
  }
  return { error: { message, type: 'upstream_error', code: status } };
}

function statusMessage(status: number): string {
  return `The upstream answered ${status}.`;
}

function failedCodeOf(status: number): string {
  if (status === 429) return 'rate_limit_exceeded';
  return status >= 500 ? 'server_error' : 'invalid_prompt';
}

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

/** A failure of a Responses stream whose status was already sent. */
interface LateFailure {
  readonly message: string;
  /** The reason, or the upstream's own code. */
  readonly code: string | null;
  /** One of the codes that the API documents for a failed response, or the upstream's own. */
  readonly failedCode: string;
  /** When another attempt may succeed, if that is known. */
  readonly retryAfterMs: number | null;
  /** The `error` object of the answer that would have been sent in time. */
  readonly error: unknown;
}

/**
 * The last events of a Responses stream. Codex reads only `response.failed`, and waits as long as its message
 * indicates. OpenAI's SDKs raise their errors from `error`, and one of their helpers requires an earlier
 * `response.created`.
 */
function responsesFrames(failure: LateFailure, model: string | null): string {
  const { message, code, error } = failure;
  const response = {
    id: `resp_${crypto.randomUUID().replaceAll('-', '')}`,
    object: 'response',
    created_at: Math.floor(Date.now() / 1_000),
    status: 'in_progress',
    error: null,
    incomplete_details: null,
    instructions: null,
    metadata: {},
    model: model ?? '',
    output: [],
    parallel_tool_calls: true,
    temperature: null,
    tool_choice: 'auto',
    tools: [],
    top_p: null,
  };
  const failed = {
    ...response,
    status: 'failed',
    error: { code: failure.failedCode, message: withRetryTime(failure) },
  };
  const events = [
    { type: 'response.created', sequence_number: 0, response },
    { type: 'response.failed', sequence_number: 1, response: failed },
    // Older SDKs ignore the flat form that the API documents, and raise from the nested one.
    { type: 'error', sequence_number: 2, code, message, param: null, error },
  ];
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
}

/** The wording of OpenAI, which Codex parses. */
function withRetryTime({ message, retryAfterMs }: LateFailure): string {
  if (retryAfterMs === null || /try again in/i.test(message)) return message;
  return `${message} Please try again in ${Math.ceil(retryAfterMs / 1_000)}s.`;
}
