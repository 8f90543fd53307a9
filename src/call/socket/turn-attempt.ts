import type { ErrorReply } from '../../contract/reasons.ts';
import { createJsonModelScan } from '../../upstream/body/json-model-scan.ts';
import { keptBytes } from '../../upstream/body/kept-body.ts';
import { referenceInPath } from '../../upstream/operation/operation.ts';
import {
  bytesOf,
  readFrameModels,
  type Frame,
  type CreateMessage,
} from '../../upstream/socket/messages.ts';
import { parseObject } from '../../upstream/json/json-syntax.ts';
import type { LeaseOutcome } from '../../core/words/outcome.ts';
import { CallBody, bodyBudget } from '../request/body.ts';
import type { AuthenticatedCall } from '../request/call.ts';
import type { Located } from '../request/locate.ts';
import { modelRule, referredPath } from '../request/find-model.ts';
import { sourceOf } from '../answer/sending.ts';
import { atMember, placeOf, planAt, type Candidate } from '../plan/plan.ts';
import { rejected, unreachable, type Rejected, type NotServed } from '../results/result.ts';
import { nextCandidate, planSpill } from '../drive/spill.ts';
import type { Admission } from '../acquire/admission.ts';
import type { CandidateAttempt } from '../attempts/call-attempts.ts';
import { hasMemberLeft, noteRefusedAt, proofBy, whereNext } from '../attempts/where-next.ts';
import { isLasting } from '../answer/refused.ts';
import type { Metering } from '../plan/metering.ts';
import { readAnswer } from '../answer/read-answer.ts';
import { unserved } from '../request/upgrade.ts';
import type { NoSide, RefusedConnection } from './turn-sides.ts';

/** One request for a response on a connection: as a call whose body is its message, and its attempt at an upstream. */

/** One request for a response on a connection, as a call whose body is its message. */
export interface TurnRequest extends Pick<
  CreateMessage,
  'model' | 'streamId' | 'previousId' | 'isAppend'
> {
  readonly body: CallBody;
  readonly isText: boolean;
}

export function turnRequest(message: CreateMessage): TurnRequest {
  const { frame, model, streamId, previousId, isAppend } = message;
  const bytes = bytesOf(frame);
  const body = new CallBody();
  // The message is in memory in any case, so a queued turn takes room from others.
  body.hold(keptBytes(bytes, bodyBudget.count(bytes.length)));
  return { model, streamId, previousId, isAppend, body, isText: typeof frame === 'string' };
}

/** The message of a turn in its current form. null if its memory was released. */
export function frameOf({ body, isText }: Pick<TurnRequest, 'body' | 'isText'>): Frame | null {
  const { bytes } = body;
  if (bytes === null) return null;
  return isText ? new TextDecoder().decode(bytes) : new Uint8Array(bytes).buffer;
}

/** Writes the model of a turn as its member calls it. Returns false if that is not possible. */
export function fitTurn({ member }: Candidate, { body, isAppend }: TurnRequest): boolean {
  if (member === null) return true;
  body.restore();
  const { bodyModel } = member;
  // A message that only continues a response names no model.
  return bodyModel === null || body.rename(bodyModel) || isAppend;
}

const UPSTREAM_GONE: ErrorReply = {
  reason: 'upstream_unknown',
  message:
    'The upstream of this connection was removed from the configuration. Connect to another one.',
};

const RESPONSE_GONE: ErrorReply = {
  reason: 'upstream_unknown',
  message:
    'The message continues a response whose upstream or member cannot serve this turn any more. Send the whole conversation instead.',
};

/**
 * Plans a turn by the configuration of `call`.
 *
 * @param located the call that each turn of the connection is
 * @param place the upstream or member that created the response that the turn continues, or null
 */
export async function planTurn(
  call: AuthenticatedCall,
  located: Located,
  turn: TurnRequest,
  place: string | null,
): Promise<Candidate | Rejected> {
  const upstream = call.table.upstreams.get(located.upstream.id);
  if (upstream === undefined) return rejected(UPSTREAM_GONE);
  const { isTrue, isWanted } = modelRule(call, upstream, located.path, located.operation);
  if (isTrue && isWanted) {
    const against = unreadableModel(turn);
    if (against !== null) return rejected(against);
    const stored = turn.model === null ? referenceInPath(located.path) : null;
    if (stored !== null) return rejected(referredPath(stored));
  }
  turn.body.restore();
  const planned = await planAt(call, { ...located, upstream, model: turn.model });
  if (planned.kind === 'rejected' || place === null) return planned;
  return (await boundTo(planned, place)) ?? rejected(RESPONSE_GONE);
}

/** The candidate of a turn that may only go to one place. null if the turn cannot go there. */
async function boundTo(planned: Candidate, place: string): Promise<Candidate | null> {
  const here = onlyAt(planned, place);
  if (here !== null) return here;
  const spill = await planSpill(planned);
  const next = spill.next.map((one) => onlyAt(one, place)).filter((one) => one !== null);
  const there = await nextCandidate({ ...spill, next }, planned);
  return there?.kind === 'next' ? there.candidate : null;
}

/** The same candidate without other members. null if it does not go to the place. */
function onlyAt<Each extends Candidate>(candidate: Each, place: string): Each | null {
  const { members } = candidate;
  if (members === null) return placeOf(candidate) === place ? candidate : null;
  const all = [...members.places.values()];
  const bound = all.find((one) => placeOf(atMember(candidate, one)) === place);
  if (bound === undefined) return null;
  const others = all.filter((one) => one !== bound).map(({ id }) => id);
  const impossible = [...members.impossible, ...others];
  const places = new Map([[bound.id, bound]]);
  return { ...candidate, members: { ...members, places, impossible } };
}

/** Checks the model like that of a request body. null if every upstream reads the same model from the message. */
function unreadableModel({ body, model }: TurnRequest): ErrorReply | null {
  const why = oddModel(body.bytes ?? new Uint8Array(), model);
  if (why === null) return null;
  const message = `The model could not be read from the message: ${why}. A group or the key of this call depends on it. Name the model once, as \`model\`.`;
  return { reason: 'body_unreadable', message };
}

function oddModel(bytes: Uint8Array, model: string | null): string | null {
  const scan = createJsonModelScan('thorough');
  scan.push(bytes);
  const state = scan.end();
  if (state.kind === 'twice') return 'it is named twice';
  if (state.kind === 'unreadable') return state.why;
  // A server with realtime routes may read the model of a `response` or a `session` in the message.
  const models = readFrameModels(new TextDecoder().decode(bytes));
  if (models.kind === 'unreadable') return models.why;
  return models.main.every((one) => one === model) ? null : 'it names several models';
}

/** The answer to a turn has begun, or its caller gets the error instead. */
export interface TurnAnswered {
  readonly kind: 'answered';
  /** The error event that its caller has not received yet. null if there is none. */
  readonly error: string | null;
}

/** An attempt of a turn that holds its slots. */
export interface GrantedAttempt {
  readonly candidate: Candidate;
  readonly admission: Admission;
  readonly metering: Metering | null;
  readonly turn: CandidateAttempt<TurnAnswered>;
}

/** Whether an attempt may end elsewhere than at its upstream. */
export function canMove({ candidate, turn }: Pick<GrantedAttempt, 'candidate' | 'turn'>): boolean {
  return candidate.members !== null || turn.hasNext;
}

/** What happens to a turn after an error of its upstream. */
interface RefusedTurn {
  /** Where the turn is retried. null if its client gets the error. */
  readonly where: NotServed['where'] | null;
  readonly outcome: LeaseOutcome;
}

/**
 * Handles an error of a turn like the HTTP answer that it would have been.
 *
 * @param answer null if the connection broke
 * @param frame the error event for the client. null if there is none
 */
export async function refuseTurn(
  { candidate, admission, turn }: GrantedAttempt,
  answer: Response | null,
  frame: string | null,
  mayRetry: boolean,
): Promise<RefusedTurn> {
  const { call, members, member } = candidate;
  const { attempts } = turn;
  const { refusal } = await readAnswer(answer, sourceOf({ candidate, admission }), call.after);
  if (refusal === null) {
    if (mayRetry) admission.reportServed(null, proofBy(false, members, attempts));
    return { where: null, outcome: 'success' };
  }
  const { signal, scope, isFinal } = refusal;
  const { kind } = signal;
  const isRepeat = noteRefusedAt(candidate, attempts, signal);
  admission.report(signal, scope, isRepeat);
  const where = mayRetry ? whereNext(candidate, turn, kind) : null;
  const isKept = where !== null && member !== null && kind !== 'served' && isLasting(kind);
  if (isKept && frame !== null) {
    attempts.lastRefusal = { kind, answer: { kind: 'answered', error: frame } };
  }
  return { where, outcome: isFinal ? 'refused' : 'failed' };
}

/** Ends the attempt of a turn for which its upstream has no connection. */
export async function notConnected(
  parts: GrantedAttempt,
  streamId: string | null,
  failed: NoSide,
): Promise<TurnAnswered | NotServed | Rejected> {
  const { candidate, admission, metering } = parts;
  const { located } = candidate;
  if (failed.kind === 'rejected') {
    await admission.release('refused', metering?.notServed);
    return failed;
  }
  if (failed.kind === 'unserved') {
    await admission.release('unused');
    return unservedAt(parts);
  }
  const isAnswered = failed.kind === 'refused';
  const answer = isAnswered ? new Response(failed.text, failed) : null;
  const frame = isAnswered ? errorOf(failed, streamId) : null;
  if (isAnswered) admission.reportAnswer(failed.status, undefined);
  const { where, outcome } = await refuseTurn(parts, answer, frame, true);
  // The group must receive the refusal before the turn asks it again.
  await admission.release(outcome, metering?.notServed);
  if (where !== null) return { kind: 'again', where };
  return frame === null
    ? unreachable(located.upstream.id, null)
    : { kind: 'answered', error: frame };
}

/** Tries another place, because this upstream has no WebSockets on the route. */
function unservedAt({ candidate, turn }: GrantedAttempt): NotServed | Rejected {
  const { call, members, member } = candidate;
  const { attempts, hasNext } = turn;
  if (member !== null) attempts.refusedMembers.note(member.id, 'never_fits');
  if (members !== null && hasMemberLeft(members, attempts)) return { kind: 'again', where: 'here' };
  return hasNext ? { kind: 'again', where: 'elsewhere' } : rejected(unserved(call.url));
}

/** The error event that stands for the answer to a request for a connection. */
function errorOf({ status, headers, text }: RefusedConnection, streamId: string | null): string {
  const error = parseObject(text)?.['error'];
  const retryAfter = headers.get('retry-after');
  return JSON.stringify({
    type: 'error',
    status,
    ...(streamId !== null && { stream_id: streamId }),
    error:
      typeof error === 'object' && error !== null
        ? error
        : { type: 'upstream_error', code: null, message: `The upstream answered ${status}.` },
    headers: retryAfter === null ? {} : { 'retry-after': retryAfter },
  });
}
