import { fetchAnswer } from '../upstream/transfer/fetch-answer.ts';
import { callerResponseHeaders } from '../upstream/transfer/response-headers.ts';
import type { KnownCall } from './call.ts';
import type { Located } from './locate.ts';
import { answered, rejected, type Answered, type Rejected } from './result.ts';
import type { Target } from './target.ts';
import { unreachable } from './unreachable.ts';

/** Passes on a call that takes no slot: the runtime carries its body by itself. */
export async function passThrough(
  { request, ctx, body }: KnownCall,
  { upstream }: Located,
  { url, headers, fetcher }: Target,
): Promise<Answered | Rejected> {
  ctx.waitUntil(body.sent);
  // The incoming signal does not reach subrequests by itself, so it is bridged.
  const left = new AbortController();
  request.signal.addEventListener('abort', () => left.abort(), { once: true });
  body.onFault(() => left.abort());
  try {
    const goesBare = request.method === 'GET' || request.method === 'HEAD';
    if (goesBare && !(await isEmpty(body.open(), left.signal))) {
      const message = `A ${request.method} cannot be passed on with a body.`;
      return rejected({ reason: 'body_unreadable', message });
    }
    const outgoing: RequestInit = {
      method: request.method,
      headers,
      body: goesBare ? null : body.open(),
      signal: left.signal,
      redirect: 'manual',
      encodeResponseBody: 'manual',
    };
    const answer = await fetchAnswer(fetcher, url, outgoing, goesBare ? () => null : null);
    const { status, statusText, headers: given } = answer;
    const init: ResponseInit = { status, statusText, headers: given, encodeBody: 'manual' };
    const response = new Response(whileSent(answer.body, body, ctx), init);
    callerResponseHeaders(response.headers);
    return answered(response);
  } catch {
    const { fault } = body;
    return fault === null ? unreachable(upstream.id, null) : rejected(fault);
  }
}

/**
 * Tells whether a body has no bytes. Clients that say the length of every body, or write each in chunks, do so for a
 * GET as well; the runtime has one then, and sends no GET with it.
 */
async function isEmpty(body: BodyInit | null, signal: AbortSignal): Promise<boolean> {
  if (!(body instanceof ReadableStream)) return body === null;
  const reader = body.getReader();
  const { promise: left, reject } = Promise.withResolvers<never>();
  signal.addEventListener('abort', () => reject(new Error('left')), { once: true });
  signal.throwIfAborted();
  // On Workers a read may stay open for ever when the client has left: only the signal tells.
  const { done } = await Promise.race([reader.read(), left]);
  reader.cancel().catch(() => {});
  return done;
}

/**
 * The body of an answer. The call's own, where it is looked through, goes out while that comes, for upstreams that
 * answer early.
 */
function whileSent(
  answer: ReadableStream | null,
  body: KnownCall['body'],
  ctx: KnownCall['ctx'],
): ReadableStream | null {
  if (!body.isWatched || answer === null) return answer;
  const { readable, writable } = new IdentityTransformStream();
  const passed = answer.pipeTo(writable).catch(() => {});
  ctx.waitUntil(passed);
  body.neededUntil(passed);
  return readable;
}
