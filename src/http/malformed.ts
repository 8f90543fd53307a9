import { SERVED_METHODS } from '../contract/methods.ts';
import type { ErrorReply, Reason } from '../contract/reasons.ts';

/**
 * Path to which `serve` sends malformed HTTP requests: it replaces the request by a call of this path with the fault, so that
 * the answer keeps its order. The path of the request follows, if there is one.
 */
export const MALFORMED_PATH = '/!malformed/';

const EXPECTED = {
  'request-line':
    'The request line: expected a method, a path that begins with /, and HTTP/1.1, with one space between them.',
  header:
    'A header: expected a name, a colon and a value without control characters, in one line that ends with CR LF.',
  host: 'The header Host: expected once, with the name of a host and perhaps a port.',
  'content-length': 'The header Content-Length: expected once at the most, with digits alone.',
  'transfer-encoding':
    'The header Transfer-Encoding: expected once at the most, with chunked alone, and no Content-Length beside it.',
  head: 'The request line and the headers: expected 64 KiB at the most.',
  late: 'The request line and the headers did not arrive in time. Send them at once.',
  chunk:
    'A chunk of the body: expected its size in hexadecimal digits without an extension, its bytes, and no trailers.',
} as const;

/** A malformed part of a request, or a method that no route serves. */
export type Malformed = keyof typeof EXPECTED | 'method';

const REASONS: ReadonlyMap<string, Reason> = new Map([
  ['chunk', 'body_unreadable'],
  ['late', 'request_timeout'],
]);

/** Tells whoever sent such a request what was expected. */
export function malformedReply(what: string): ErrorReply {
  if (what === 'method') return unservedMethod();
  const expected = Object.entries(EXPECTED).find(([name]) => name === what)?.[1];
  const reason = REASONS.get(what) ?? 'header_invalid';
  return { reason, message: expected ?? 'The request: expected HTTP/1.1.' };
}

/** The error reply to a method that no route serves. */
export function unservedMethod(): ErrorReply {
  const message = `No route serves this method. Use one of ${SERVED_METHODS.join(', ')}, in upper case.`;
  return { reason: 'method_unknown', message, allow: SERVED_METHODS };
}
