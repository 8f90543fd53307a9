import { parseObject } from '../../upstream/json/parse-json.ts';
import type { LeaseOutcome } from '../../core/words/outcome.ts';
import type { Admission } from '../acquire/admission.ts';
import { sourceOf, placeOf } from '../answer/sending.ts';
import type { CandidateAttempt } from '../attempts/call-attempts.ts';
import { hasMemberLeft, noteRefusedAt, proofBy, whereNext } from '../attempts/where-next.ts';
import { isLasting } from '../answer/refused.ts';
import type { Metering } from '../plan/metering.ts';
import type { Candidate } from '../plan/plan.ts';
import { readAnswer } from '../answer/read-answer.ts';
import { rejected, unreachable, type NotServed, type Rejected } from '../results/result.ts';
import type { NoSide, RefusedConnection } from './turn-sides.ts';
import { unserved } from '../request/upgrade.ts';

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
  const isRepeat = attempts.noteRefused(placeOf(candidate), signal);
  if (members !== null && member !== null && kind !== 'served') {
    noteRefusedAt(attempts, members, member, kind);
  }
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
