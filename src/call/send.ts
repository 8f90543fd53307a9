import type { ErrorReply } from '../contract/reasons.ts';
import { fetchAnswer } from '../upstream/transfer/fetch-answer.ts';
import type { OutgoingBody } from '../upstream/body/request-body.ts';
import { callerResponseHeaders } from '../upstream/transfer/response-headers.ts';
import type { RoutedCall } from '../routing/placement.ts';
import type { Ticket } from './acquire/admission.ts';
import { admit } from './acquire/admit.ts';
import type { PlaceListener } from './acquire/ask.ts';
import type { Caller, UpstreamKey } from './identity/authenticate.ts';
import { callRules } from './call-rules.ts';
import type { ProxyCall } from './call.ts';
import { closedRoute, forbiddenFor, forbiddenUpstream } from '../routing/key-access.ts';
import type { Leg } from './candidate.ts';
import type { Located } from './locate.ts';
import { measure } from './metering.ts';
import { sendHeld, unreachable, type Again } from './forward.ts';
import { targetOf, type Target } from './target.ts';
import type { Tries } from './tries.ts';

/**
 * What became of a call: an answer, nobody to answer, or something that may still change, with the call as
 * it is by then.
 */
export type Sent =
  | Response
  | 'left'
  | Again
  | { readonly kind: 'refused'; readonly refusal: ErrorReply; readonly located: Located }
  /** Route the call again, no earlier than by that version of the configuration. */
  | { readonly kind: 'moved'; readonly configVersion: number; readonly located: Located };

/** A call at one upstream. */
export interface Stop extends Leg {
  readonly ticket: Ticket;
  readonly tries: Tries;
  readonly listener: PlaceListener | null;
  /** Whether another upstream may be asked if this one does not serve the call. */
  readonly hasNext: boolean;
}

/** Sends a call to its upstream, after it has waited for its slot if it needs one. */
export async function send(stop: Stop): Promise<Sent> {
  const { call, caller, key, ticket, tries, listener, hasNext } = stop;
  const target = targetOf(call, stop.located, caller, key, stop.spilledFrom !== null);
  // What may come behind comments of ours cannot be compressed.
  if (listener !== null) target.headers.set('accept-encoding', 'identity');
  const { request, signal, env, ctx, table, after } = call;
  const { upstream, operation } = stop.located;
  // Only behind a gateway key the operator's goes out.
  const shut =
    key.injected === null || caller.key === null
      ? null
      : closedRoute(caller.key, stop.located, request);
  if (shut !== null) return { kind: 'refused', refusal: shut, located: stop.located };
  if (!operation.limited) {
    const barred = caller.key && forbiddenUpstream(caller.key, upstream, table.routes);
    if (barred !== null) return { kind: 'refused', refusal: barred, located: stop.located };
    return passThrough(call, stop.located, target);
  }
  const routed = routedCall(call, stop.located, caller, key);
  const placed = table.routes.place(routed);
  const barred = caller.key && forbiddenFor(caller.key, placed);
  if (barred !== null) return { kind: 'refused', refusal: barred, located: stop.located };
  const rules = callRules(placed);
  const measured = rules.isMetered ? await measure(call, stop.located) : null;
  if (measured === 'left') return measured;
  if (measured !== null && 'reason' in measured) {
    return { kind: 'refused', refusal: measured, located: stop.located };
  }
  const { located, metering } = measured ?? { located: stop.located, metering: null };
  // Tokens are counted on their way through, which compressed ones are not.
  if (metering !== null) target.headers.set('accept-encoding', 'identity');
  const context = { env, table, ctx, signal, after, listener, metering };
  const admitted = await admit(routed, ticket, placed, context);
  switch (admitted.kind) {
    case 'admitted': {
      const { admission } = admitted;
      const of = { call, located, target, ticket, tries, rules, metering, hasNext };
      try {
        const sent = await sendHeld({ ...of, admission });
        return sent instanceof Response || sent === 'left' || 'kind' in sent
          ? sent
          : { kind: 'refused', refusal: sent, located };
      } catch (error) {
        await admission.release('failed'); // a bug of ours must not cost a slot
        located.body.discard();
        throw error;
      }
    }
    case 'moved':
    case 'refused':
      return { ...admitted, located };
    case 'left':
      located.body.discard();
      return 'left';
  }
}

/** The call as groups see it. */
export function routedCall(
  { request }: ProxyCall,
  { upstream, operation, model }: Located,
  caller: Caller,
  key: UpstreamKey,
): RoutedCall {
  return {
    upstream,
    operation: operation.name,
    model,
    caller: caller.id,
    keyIds: caller.keyIds,
    keyFingerprint: key.fingerprint,
    header: (name) => request.headers.get(name),
  };
}

/**
 * Whether a body has no bytes. Clients that say the length of every body, or write each in chunks, do so for a
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

/** A call that takes no slot: the runtime passes its body on by itself. */
async function passThrough(
  { request, ctx }: ProxyCall,
  located: Located,
  { url, headers, fetcher }: Target,
): Promise<Sent> {
  const { body, upstream } = located;
  ctx.waitUntil(body.sent);
  // The incoming signal does not reach subrequests by itself, so it is bridged.
  const left = new AbortController();
  request.signal.addEventListener('abort', () => left.abort(), { once: true });
  body.watch?.onFault(() => left.abort());
  try {
    const goesBare = request.method === 'GET' || request.method === 'HEAD';
    if (goesBare && !(await isEmpty(body.open(), left.signal))) {
      const message = `A ${request.method} cannot be passed on with a body.`;
      return { kind: 'refused', refusal: { reason: 'body_unreadable', message }, located };
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
    const response = new Response(untilSent(answer.body, body, ctx), init);
    callerResponseHeaders(response.headers);
    return response;
  } catch {
    body.discard();
    const refusal = body.watch?.fault ?? unreachable(upstream.id, null);
    return { kind: 'refused', refusal, located };
  }
}

/**
 * The body of an answer. The call's own goes out while that comes, for upstreams that answer early, and is
 * given up at its end.
 */
function untilSent(
  answer: ReadableStream | null,
  body: OutgoingBody,
  ctx: ProxyCall['ctx'],
): ReadableStream | null {
  if (body.watch === null || answer === null) {
    body.discard();
    return answer;
  }
  const { readable, writable } = new IdentityTransformStream();
  const passed = answer.pipeTo(writable).catch(() => {});
  ctx.waitUntil(passed.then(() => body.discard()));
  return readable;
}
