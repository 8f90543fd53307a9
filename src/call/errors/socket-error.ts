import type { ErrorReply } from '../../contract/reasons.ts';
import type { Dialect } from '../../contract/dialect.ts';
import { codeOf, errorBody, retryAfterMsOf, statusIn } from './wire-error.ts';

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
