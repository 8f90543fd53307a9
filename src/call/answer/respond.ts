import { putAnswerHeaders, type Dialect } from '../../contract/http.ts';
import { readErrorFields } from '../../upstream/refusal/error-fields.ts';
import { peekAnswer } from '../../upstream/transfer/fetch-answer.ts';
import { errorShape } from '../request/choose-path.ts';
import type { ProxyCall, FoundFacts, AuthenticatedCall } from '../request/call.ts';
import {
  waitedHeader,
  LEFT_STATUS,
  never,
  rejected,
  type FinalResult,
  type Rejected,
  type Answered,
} from '../results/result.ts';
import { errorResponse } from '../results/wire-error.ts';
import { traceError } from '../observe/trace.ts';
import { noteRefusal, type RefusedRequest } from '../observe/note-refusal.ts';
import { cureAt, cureBehindV1 } from '../request/base-url.ts';
import type { Located } from '../request/locate.ts';
import { addCors, rateHeaders } from './response-headers.ts';

/** The response to the caller. */

type Responding = Pick<ProxyCall, 'request' | 'url' | 'table' | 'env' | 'ctx' | 'found'>;

/** The response to a call: an upstream's answer, or an error in the caller's dialect, with Headgate's headers. */
export function respond(result: FinalResult, call: Responding, cors: Headers | null): Response {
  const response = responseOf(result, call);
  const { headers } = response;
  if (result.kind === 'answered') putAnswerHeaders(headers, result.ownHeaders);
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

const QUOTED_MAX = 300;

const NOT_SERVED: ReadonlySet<number> = new Set([404, 405]);

/**
 * Words of errors about something that a call names. An upstream looks such a name up only where it serves the route.
 */
const ABOUT_A_NAME =
  /model|deployment|engine|endpoints? found|file|image|response|conversation|\bitem|thread|assistant|prompt|agent|account|organi[sz]ation|project|session|voice|adapter|\bllm\b|access to|with id|模型/i;

/** Many upstreams repeat the path in their error, and it may contain `/models/`. */
const PATHS = /\/[^\s"]*/g;

/**
 * Names the right base URL if the upstream has no such route. The answer passes unchanged if it is about a model or
 * something else that the call names, because then the upstream serves the route.
 */
export async function withCure(
  result: Answered,
  call: AuthenticatedCall,
  { upstream, path, chosenBy }: Located,
): Promise<Answered | Rejected> {
  const { status } = result.response;
  if (!NOT_SERVED.has(status) || call.early.hasBegun) return result;
  const cure = chosenBy === null ? cureAt(call, upstream, path) : cureBehindV1(call);
  if (cure === null) return result;
  const { text, answer } = await peekAnswer(result.response, undefined, call.after);
  const { message } = readErrorFields(text, answer.headers);
  // An HTML page comes from an intermediate server, so its words give no information about the route.
  const words = text.trimStart().startsWith('<') ? '' : text.replace(PATHS, '');
  if (ABOUT_A_NAME.test(words)) return { ...result, response: answer };
  answer.body?.cancel().catch(() => {});
  const quoted = message === null ? '' : ` (${message.slice(0, QUOTED_MAX)})`;
  const what = `You called \`${call.url.pathname.slice(0, 100)}\`, and upstream \`${upstream.id}\` answered ${status}${quoted}.`;
  return rejected({ reason: 'upstream_unknown', message: `${what}${cure}` });
}
