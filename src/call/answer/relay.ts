import type { UploadPace, PipeMetering } from '../../upstream/transfer/watched-pipe.ts';
import { whenQuiet, type AbortSource } from '../../runtime/async.ts';
import { fetchAnswer } from '../../upstream/transfer/fetch-answer.ts';
import { callerResponseHeaders } from '../../upstream/transfer/headers.ts';
import type { AnswerHeaders } from '../../contract/http.ts';
import { REASONS } from '../../contract/reasons.ts';
import type { LeaseOutcome } from '../../core/words/outcome.ts';
import type { HeldCall } from '../../upstream/transfer/held-call.ts';
import { logEvent } from '../../runtime/log.ts';
import { formOf, StreamEnd } from '../../upstream/opening/opening-reader.ts';
import { packingsOf } from '../../upstream/body/packing.ts';
import type { CallBody } from '../request/body.ts';
import {
  rejected,
  answered,
  unreachable,
  waitedHeader,
  LEFT,
  uploadTooSlow,
  type Rejected,
  type Answered,
  type CallerLeft,
} from '../results/result.ts';
import { countInFlight, departures, type AuthenticatedCall } from '../request/call.ts';
import { withOwnAddresses, droppedHeader, type CallTarget } from '../plan/target.ts';
import { placeOf, type Candidate } from '../plan/plan.ts';
import type { Admission } from '../acquire/admission.ts';
import { traceCall } from '../observe/trace.ts';
import { CallNamesReader } from '../plan/call-names.ts';
import type { Located } from '../request/locate.ts';
import { noterOf, type CheckedAnswer } from './hold-run.ts';
import { endRunOf, mayEndRun, lookForMade } from './end-run.ts';
import { reportCut, groupsOf, sourceOf, refusalFields, type Sending } from './sending.ts';
import { rateHeaders, requestIdOf } from './response-headers.ts';
import { readLateError } from './read-answer.ts';

/** Forwards answers of upstreams: of calls that hold slots, and of calls that take none. */

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

/**
 * Forwards the upstream's answer, and settles the call at its last byte. Until then the call counts as in flight, and
 * is cut if its caller disconnects. Returns null if the connection failed before any of the answer was forwarded.
 */
export async function relay(
  { candidate: { call }, admission }: Sending,
  held: HeldCall,
  answer: Response,
  pipe: PipeMetering | null,
  settle: (outcome: LeaseOutcome) => Promise<void>,
  { events, isOwn }: Partial<CheckedAnswer> = {},
): Promise<Response | null> {
  const { body, request, ctx } = call;
  body.answered();
  const { response, done, isWhole } = await held.relay(answer, pipe);
  const settled = done.then(settle);
  // An error at the end of the answer may concern names in the body.
  body.neededUntil(settled);
  countInFlight(
    departures.watch(request, settled, () => held.cut('left')),
    ctx,
  );
  // The run is held before its caller learns of it, so its end cannot be reported before that.
  if (isWhole && isOwn === true) await events?.caughtUp?.();
  if (isWhole && isOwn === true && events?.reportedRun?.state === 'goes on') await settled;
  // The slot is free by now, so queued calls start first. The extra turn of the event loop costs CPU, so calls without
  // a queue skip it.
  if (isWhole && admission.hasWaiters) await whenQuiet();
  return response;
}

/** Makes Headgate's own headers of an answer. `theirs` are the upstream's headers. */
export function signature(
  { candidate: { located, member }, turn: { attempts }, target, admission }: Sending,
  waitMs: number,
  theirs: Headers,
): AnswerHeaders {
  const groups = groupsOf(admission);
  const memberId = member?.id ?? null;
  traceCall({ located, groups, member: memberId, waitMs, attempts: attempts.sent });
  const { leaseIds, rates, waited } = admission;
  return {
    ...(rates.length > 0 && rateHeaders(rates, theirs)),
    'headgate-groups': groups,
    'headgate-wait-ms': String(waitMs),
    ...waitedHeader(waited),
    'headgate-tries': String(attempts.sent),
    ...(memberId !== null && { 'headgate-member': memberId }),
    ...(leaseIds.length > 0 && { 'headgate-lease': leaseIds.join(', ') }),
    ...(target.dropped.length > 0 && droppedHeader(target)),
  };
}

/** Counts a call that was cut before its answer because its caller sent the body too slowly. */
export function reportSlow(admission: Admission, { cutBy }: HeldCall): void {
  if (cutBy === 'request_timeout') reportCut(admission, REASONS.request_timeout.status, cutBy);
}

export function noAnswer(
  { call, located, rules }: Candidate,
  { cutBy }: HeldCall,
): Rejected | CallerLeft {
  const { fault } = call.body;
  if (fault !== null) return rejected(fault);
  if (cutBy === 'request_timeout') return uploadTooSlow(rules.hold);
  return cutBy === 'left' ? LEFT : unreachable(located.upstream.id, cutBy);
}

export function reportAnswer(
  { candidate: { located }, turn: { attempts }, admission }: Sending,
  { status, headers }: Response,
): void {
  const requestId = requestIdOf(headers, located.upstream);
  const isAgain = attempts.sent > 1;
  const notes =
    requestId === null && !isAgain
      ? undefined
      : { ...(requestId !== null && { requestId }), ...(isAgain && { sent: attempts.sent }) };
  admission.reportAnswer(status, notes);
}

/** Whether an answer may be about the caller's key, which is sent only to the upstream that the caller chose. */
export function isAboutKey({ spilledFrom }: Candidate): boolean {
  return spilledFrom === null;
}

/** Gemini's route that streams an array. */
const LIST = ':streamGenerateContent';

/**
 * Keeps the end of a stream, to find an error there. null if the answer is not a stream. `isRead` if the whole answer
 * was read and holds no error, unless it is a stream. `isOpen` if no content came in time, so a whole error may follow.
 */
export function streamEndOf(
  answer: Response,
  { operation: { name }, path, isStream }: Located,
  isRead: boolean,
  isOpen = false,
): StreamEnd | null {
  const isLong = isStream || isOpen || path.endsWith(LIST);
  // Header look-ups call into the runtime, so they are made only when needed.
  if (isRead && !isLong) return null;
  const { ok, body, headers } = answer;
  if (!ok || body === null) return null;
  const form = formOf(headers.get('content-type'));
  if (form === null || (!isLong && (form === 'json' || form === 'text'))) return null;
  const packings = packingsOf(headers.get('content-encoding'));
  return packings === null ? null : new StreamEnd(form, name === 'responses', packings);
}

/** Copies the bytes of a pipe to the reader of the stream's end. */
export function withStreamEnd(
  end: StreamEnd | null,
  pipe: PipeMetering | null,
): PipeMetering | null {
  if (end === null) return pipe;
  const push = (chunk: Uint8Array): void => {
    pipe?.meter.push(chunk);
    end.push(chunk);
  };
  return { meter: { push }, filter: pipe?.filter ?? null };
}

/**
 * Counts an error at the end of a stream as a failure of the upstream. The caller has received it, so the call is not
 * retried. Returns the outcome of the call.
 */
export async function countLateError(
  sending: Sending,
  answer: Response,
  end: StreamEnd,
  outcome: LeaseOutcome,
): Promise<LeaseOutcome> {
  await end.caughtUp();
  const late = end.read();
  if (late === null || outcome !== 'success') return outcome;
  const { candidate, turn, admission } = sending;
  const refusal = readLateError(late, answer, sourceOf(sending));
  if (refusal === null) return outcome;
  await new CallNamesReader(candidate).read();
  logEvent('upstream_refused', refusalFields(sending, refusal, answer.status));
  const isRepeat = turn.attempts.noteRefused(placeOf(candidate), refusal.signal);
  admission.report(refusal.signal, refusal.scope, isRepeat);
  return refusal.isFinal ? 'refused' : 'failed';
}
