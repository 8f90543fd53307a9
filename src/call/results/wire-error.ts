import { putAnswerHeaders, type AnswerHeaders, type Dialect } from '../../contract/http.ts';
import { REASONS, type Reason, type ErrorReply } from '../../contract/reasons.ts';

/** Default of Retry-After for a temporary error without a better estimate. */
const RETRY_AFTER_DEFAULT_MS = 1_000;

/**
 * Writes an error reply in the caller's dialect, so that SDKs raise their own typed errors. `headgate-reason` marks it
 * as Headgate's. An upstream's error never has that header.
 */
export function errorResponse(dialect: Dialect, reply: ErrorReply): Response {
  const status = statusIn(dialect, reply.reason);
  const headers = new Headers({
    'content-type': dialect === 'opaque' ? 'application/problem+json' : 'application/json',
  });
  putAnswerHeaders(headers, {
    'headgate-reason': reply.reason,
    ...(reply.attempts !== undefined && { 'headgate-tries': String(reply.attempts) }),
    ...retryHeaders(reply),
    ...(dialect === 'bedrock' && { 'x-amzn-errortype': bedrockType(status) }),
  });
  if (reply.allow !== undefined) headers.set('allow', reply.allow.join(', '));
  return new Response(JSON.stringify(errorBody(dialect, reply, status)), { status, headers });
}

function retryHeaders(reply: ErrorReply): AnswerHeaders {
  const retryAfterMs = retryAfterMsOf(reply);
  const { endsInMs } = reply;
  if (retryAfterMs === null) {
    const ends =
      endsInMs === undefined ? {} : { 'retry-after': String(Math.ceil(endsInMs / 1_000)) };
    return { 'x-should-retry': 'false', ...ends };
  }
  return {
    'retry-after': String(Math.ceil(retryAfterMs / 1_000)),
    'retry-after-ms': String(retryAfterMs),
  };
}

/**
 * The status of a reason in a dialect. Claude Code treats every 413 as a body that is too large for Anthropic, and
 * asks its user to remove images. There a call that never fits is an invalid one.
 */
export function statusIn(dialect: Dialect, reason: Reason): number {
  return dialect === 'anthropic' && reason === 'never_fits' ? 400 : REASONS[reason].status;
}

/** When another attempt may succeed. null if none will. */
export function retryAfterMsOf({ reason, isPermanent, retryAfterMs }: ErrorReply): number | null {
  if (REASONS[reason].permanent || isPermanent === true) return null;
  return Math.ceil(retryAfterMs ?? RETRY_AFTER_DEFAULT_MS);
}

/** The code of an error. An upstream's limit has the API's own code, which clients know. */
export function codeOf(reason: Reason): string {
  return reason === 'upstream_limited' ? 'rate_limit_exceeded' : reason;
}

export function errorBody(dialect: Dialect, reply: ErrorReply, status: number): object {
  const { reason, message } = reply;
  switch (dialect) {
    case 'openai':
    case 'azure':
      return { error: { message, type: openaiType(status), param: null, code: codeOf(reason) } };
    case 'anthropic':
      return { type: 'error', error: { type: anthropicType(status), message } };
    case 'gemini':
      return geminiBody(reply, status);
    case 'bedrock':
      return { message };
    case 'ollama':
      return { error: message };
    case 'opaque':
      return { type: 'about:blank', title: reason, status, detail: message, reason };
  }
}

/** https://google.aip.dev/193: a canonical status, and machine-readable details. */
function geminiBody(reply: ErrorReply, status: number): object {
  const { reason, message, retryAfterMs = reply.endsInMs } = reply;
  const details: unknown[] = [
    { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: 'headgate' },
  ];
  if (retryAfterMs !== undefined) {
    const retryDelay = `${(retryAfterMs / 1_000).toFixed(3)}s`;
    details.push({ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay });
  }
  return { error: { code: status, message, status: geminiStatus(status), details } };
}

function openaiType(status: number): string {
  if (status === 429) return 'rate_limit_error';
  if (status === 401) return 'authentication_error';
  if (status === 403) return 'permission_error';
  return status >= 500 ? 'server_error' : 'invalid_request_error';
}

/** Never `overloaded_error`: Claude Code attributes a few of those to Anthropic's own capacity and gives up. */
function anthropicType(status: number): string {
  switch (status) {
    case 401:
      return 'authentication_error';
    case 403:
      return 'permission_error';
    case 404:
      return 'not_found_error';
    case 408:
      return 'timeout_error';
    case 429:
      return 'rate_limit_error';
    default:
      return status >= 500 ? 'api_error' : 'invalid_request_error';
  }
}

function geminiStatus(status: number): string {
  switch (status) {
    case 401:
      return 'UNAUTHENTICATED';
    case 403:
      return 'PERMISSION_DENIED';
    case 404:
      return 'NOT_FOUND';
    case 408:
      return 'DEADLINE_EXCEEDED';
    case 429:
      return 'RESOURCE_EXHAUSTED';
    case 501:
      return 'UNIMPLEMENTED';
    default:
      return status >= 500 ? 'UNAVAILABLE' : 'INVALID_ARGUMENT';
  }
}

function bedrockType(status: number): string {
  if (status === 429) return 'ThrottlingException';
  if (status === 401 || status === 403) return 'AccessDeniedException';
  if (status === 404) return 'ResourceNotFoundException';
  if (status === 408) return 'ModelTimeoutException';
  return status >= 500 ? 'ServiceUnavailableException' : 'ValidationException';
}

/**
 * A Headgate error as an event of Responses over WebSocket. The flat fields are those that the API documents for a
 * stream. The nested ones and the status are those of an error of the connection. Agents and SDKs read the retry delay
 * from the headers, in either place.
 */
export function errorEvent(shape: Dialect, reply: ErrorReply, streamId: string | null): string {
  const { reason, message } = reply;
  const status = statusIn(shape, reason);
  const retryAfterMs = retryAfterMsOf(reply);
  const { error } = errorBody('openai', reply, status) as { readonly error: object };
  const headers = {
    'headgate-reason': reason,
    ...(reply.endsInMs !== undefined && {
      'retry-after': String(Math.ceil(reply.endsInMs / 1_000)),
      'x-should-retry': 'false',
    }),
    ...(retryAfterMs !== null && {
      'retry-after': String(Math.ceil(retryAfterMs / 1_000)),
      'retry-after-ms': String(retryAfterMs),
    }),
  };
  return JSON.stringify({
    type: 'error',
    status,
    ...(streamId !== null && { stream_id: streamId }),
    code: codeOf(reason),
    message,
    param: null,
    error: { ...error, headers },
    headers,
  });
}
