import { fetchAnswer } from '../upstream/transfer/fetch-answer.ts';
import { callerResponseHeaders } from '../upstream/transfer/headers.ts';
import { bareBody } from './bare.ts';
import type { AuthenticatedCall } from './call.ts';
import { withOwnAddresses } from './own-addresses.ts';
import { noterOf } from './made/note-made.ts';
import type { Candidate } from './plan.ts';
import { answered, rejected, type Answered, type Rejected } from './result.ts';
import { endRunOf, mayEndRun } from './runs/end-run.ts';
import { lookForMade } from './runs/look-for-made.ts';
import { droppedHeader, type CallTarget } from './target.ts';
import { unreachable } from './unreachable.ts';

/** Forwards a call that takes no slot. The runtime streams its body. */
export async function passThrough(
  candidate: Candidate,
  target: CallTarget,
): Promise<Answered | Rejected> {
  const { call, located } = candidate;
  const { url, headers, fetcher } = target;
  const { request, method, ctx, body } = call;
  ctx.waitUntil(body.sent);
  // The runtime does not forward the incoming signal to subrequests.
  const left = new AbortController();
  request.signal.addEventListener('abort', () => left.abort(), { once: true });
  body.onFault(() => left.abort());
  try {
    const bare = await bareBody(method, body, left.signal);
    if (typeof bare === 'object') return bare;
    const goesBare = bare === 'bare';
    const outgoing: RequestInit = {
      method,
      headers,
      body: goesBare ? null : body.open(),
      signal: left.signal,
      redirect: 'manual',
      encodeResponseBody: 'manual',
    };
    const endsRun = mayEndRun(call, located);
    if (endsRun) headers.set('accept-encoding', 'identity');
    const sent = await fetchAnswer(fetcher, url, outgoing, goesBare ? () => null : null);
    const ended = endsRun ? await endRunOf(call, located, sent) : sent;
    const note = noterOf(call, located);
    const noted = note === null ? ended : await lookForMade(call, ended, note);
    const received = withOwnAddresses(noted, candidate, target);
    if (received.kind === 'rejected') return received;
    const { answer } = received;
    const { status, statusText, headers: given } = answer;
    const init: ResponseInit = { status, statusText, headers: given, encodeBody: 'manual' };
    const response = new Response(whileSent(answer.body, body, ctx), init);
    callerResponseHeaders(response.headers);
    return answered(response, droppedHeader(target));
  } catch {
    const { fault } = body;
    return fault === null ? unreachable(located.upstream.id, null) : rejected(fault);
  }
}

/**
 * The body of an answer. If the call's own body is checked in transit, it is still sent while the answer arrives,
 * because some upstreams answer early.
 */
function whileSent(
  answer: ReadableStream | null,
  body: AuthenticatedCall['body'],
  ctx: AuthenticatedCall['ctx'],
): ReadableStream | null {
  if (!body.isWatched || answer === null) return answer;
  const { readable, writable } = new IdentityTransformStream();
  const passed = answer.pipeTo(writable).catch(() => {});
  ctx.waitUntil(passed);
  body.neededUntil(passed);
  return readable;
}
