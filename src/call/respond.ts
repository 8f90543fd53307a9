import type { Dialect } from '../contract/dialect.ts';
import { putAnswerHeaders } from '../contract/answer-headers.ts';
import { addCors } from './cors.ts';
import { errorShape } from './choose-path.ts';
import type { ProxyCall } from './call.ts';
import { waitedHeader } from './acquire/waited.ts';
import { errorResponse } from './errors/wire-error.ts';
import { traceError } from './observe/trace.ts';
import type { FoundFacts } from './refusals/found-facts.ts';
import { noteRefusal, type RefusedRequest } from './refusals/note-refusal.ts';
import { rateHeaders } from './rate-headers.ts';
import { LEFT_STATUS, never, type FinalResult, type Rejected } from './result.ts';

type Responding = Pick<ProxyCall, 'request' | 'url' | 'table' | 'env' | 'ctx' | 'found'>;

/** The response to a call: an upstream's answer, or an error in the caller's dialect, with Headgate's headers. */
export function respond(result: FinalResult, call: Responding, cors: Headers | null): Response {
  const response = responseOf(result, call);
  const { headers } = response;
  if (result.kind === 'answered') putAnswerHeaders(headers, result.said);
  if (cors !== null) addCors(headers, cors);
  if (isPageVisit(call.request)) headers.append('content-security-policy', 'sandbox');
  return response;
}

/**
 * The response to a call that Headgate rejects, with the remaining rate limits in its headers. Counts the rejection.
 */
export function rejectedResponse(
  dialect: Dialect,
  { reply, rates = [], waited = null }: Rejected,
  request: RefusedRequest,
  found?: FoundFacts,
): Response {
  noteRefusal(request, reply, found);
  traceError(reply.reason);
  const response = errorResponse(dialect, reply);
  putAnswerHeaders(response.headers, {
    ...rateHeaders(rates, response.headers),
    ...waitedHeader(waited),
  });
  return response;
}

function responseOf(result: FinalResult, call: Responding): Response {
  switch (result.kind) {
    case 'answered':
      return result.response;
    case 'rejected':
      return rejectedResponse(
        errorShape(call.request, call.url, call.table),
        result,
        call,
        call.found,
      );
    case 'left':
      return new Response(null, { status: LEFT_STATUS });
    default:
      return never(result);
  }
}

/**
 * Whether a browser opens the answer as a page. Upstreams share the dashboard's origin, so their scripts could act as
 * the user who is signed in there. The sandbox stops them. API clients do not send this header.
 */
function isPageVisit(request: Request): boolean {
  return request.headers.get('sec-fetch-mode') === 'navigate';
}
