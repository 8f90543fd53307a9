import type { Dialect } from '../../contract/dialect.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import { parseObject } from '../../upstream/json/parse-json.ts';
import { responsesFrames } from './responses-frames.ts';
import { codeOf, errorBody, retryAfterMsOf, statusIn } from './wire-error.ts';

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
export interface UpstreamError {
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
