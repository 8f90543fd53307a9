import { SERVED_METHODS } from '../contract/http.ts';
import type { ErrorReply, Reason } from '../contract/reasons.ts';

/**
 * Path to which `serve` sends malformed HTTP requests. It replaces the request by a call of this path with the fault,
 * so that responses keep their order. The path of the request follows, if there is one.
 */
export const MALFORMED_PATH = '/!malformed/';

const EXPECTED = {
  'request-line':
    'Invalid request line. Expected a method, a path that begins with /, and HTTP/1.1, separated by single spaces.',
  header:
    'Invalid header. Expected a name, a colon and a value without control characters, in one line that ends with CR LF.',
  host: 'Invalid header `Host`. Expected it once, with a host name and optionally a port.',
  'content-length': 'Invalid header `Content-Length`. Expected it at most once, with only digits.',
  'transfer-encoding':
    'Invalid header `Transfer-Encoding`. Expected it at most once, with only `chunked`, and without `Content-Length`.',
  head: 'The request line and the headers are too large. Expected at most 64 KiB.',
  late: 'The request line and the headers did not arrive in time. Send them without delay.',
  chunk:
    'Invalid chunk of the body. Expected its size in hexadecimal digits without an extension, its bytes, and no trailers.',
} as const;

/** Malformed part of a request, or a method that no route serves. */
export type Malformed = keyof typeof EXPECTED | 'method';

const REASONS: ReadonlyMap<string, Reason> = new Map([
  ['chunk', 'body_unreadable'],
  ['late', 'request_timeout'],
]);

export function malformedReply(what: string): ErrorReply {
  if (what === 'method') return unservedMethod();
  const expected = Object.entries(EXPECTED).find(([name]) => name === what)?.[1];
  const reason = REASONS.get(what) ?? 'header_invalid';
  return { reason, message: expected ?? 'Invalid request. Expected HTTP/1.1.' };
}

export function unservedMethod(): ErrorReply {
  const message = `No route supports this method. Use one of ${SERVED_METHODS.join(', ')}, in upper case.`;
  return { reason: 'method_unknown', message, allow: SERVED_METHODS };
}
