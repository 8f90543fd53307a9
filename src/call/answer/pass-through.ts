import type { UploadPace } from '../../upstream/transfer/upload-pace.ts';
import type { AbortSource } from '../../runtime/async.ts';
import { fetchAnswer } from '../../upstream/transfer/fetch-answer.ts';
import { callerResponseHeaders } from '../../upstream/transfer/headers.ts';
import type { CallBody } from '../request/body.ts';
import {
  rejected,
  answered,
  unreachable,
  type Rejected,
  type Answered,
} from '../results/result.ts';
import type { AuthenticatedCall } from '../request/call.ts';
import { withOwnAddresses, droppedHeader, type CallTarget } from '../plan/target.ts';
import type { Candidate } from '../plan/plan.ts';
import { noterOf } from './hold-run.ts';
import { endRunOf, mayEndRun, lookForMade } from './end-run.ts';

/** Returns whether the runtime sends requests of this method only without a body. */
export function mayGoBare(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}

/**
 * Checks whether a call can be sent without a body, because the runtime sends none with a GET. Some clients declare a
 * length or use chunks for every request, even for an empty body. Rejects a body with bytes.
 */
export async function bareBody(
  method: string,
  body: CallBody,
  signal: AbortSource,
  pace: UploadPace | null = null,
): Promise<'bare' | 'with body' | Rejected> {
  if (!mayGoBare(method)) return 'with body';
  if (await isEmpty(body.open(pace), signal)) return 'bare';
  const message = `A ${method} request with a body cannot be forwarded. Send it without a body.`;
  return rejected({ reason: 'body_unreadable', message });
}

async function isEmpty(body: BodyInit | null, signal: AbortSource): Promise<boolean> {
  if (body instanceof Uint8Array) return body.length === 0;
  if (!(body instanceof ReadableStream)) return body === null;
  const reader = body.getReader();
  const { promise: left, reject } = Promise.withResolvers<never>();
  signal.addEventListener('abort', () => reject(new Error('left')));
  if (signal.aborted) throw new Error('left');
  // On Workers a read may stay pending forever after the client has left. Only the signal reports that.
  const { done } = await Promise.race([reader.read(), left]);
  reader.cancel().catch(() => {});
  return done;
}

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
