import type { ExcludedMembers } from '../acquire/slot-request.ts';
import type { UpstreamSignal } from '../../core/words/signal.ts';
import { steadyClock } from '../../runtime/async.ts';
import type { CallTicket } from '../acquire/admission.ts';
import {
  retryBudgetOf,
  isSamePlace,
  isFailure,
  type CallAttempts,
  type CandidateAttempt,
} from './call-attempts.ts';
import type { MemberRoute, MemberPlan } from '../plan/member-plan.ts';
import { placeOf, type Candidate } from '../plan/plan.ts';
import type { NotServed } from '../results/result.ts';

/** What decides where a refused call goes next. */
type RefusedAt = Pick<Candidate, 'rules' | 'located' | 'members'>;
type RefusedAttempt = Pick<CandidateAttempt<unknown>, 'attempts' | 'hasNext' | 'hasOtherPlace'> & {
  readonly ticket: Pick<CallTicket, 'maxWaitMs'>;
};

/**
 * Returns whether a call can be sent again. Its body must be kept, and small enough, because metering may keep larger
 * ones.
 */
export function canBeSentAgain({ call: { body }, rules }: Candidate): boolean {
  return body.isKept && (body.contentLength ?? 0) <= rules.retries.max_body_bytes;
}

/** Where a call goes that its upstream did not serve. null if its caller gets that answer. */
export function whereNext(
  candidate: Candidate,
  turn: CandidateAttempt<unknown>,
  kind: UpstreamSignal['kind'],
): NotServed['where'] | null {
  return canBeSentAgain(candidate) ? whereNextIfKept(candidate, turn, kind) : null;
}

/** The same for a call that can be sent again. */
export function whereNextIfKept(
  candidate: RefusedAt,
  turn: RefusedAttempt,
  kind: UpstreamSignal['kind'],
): NotServed['where'] | null {
  const { ticket, attempts, hasNext, hasOtherPlace } = turn;
  const { rules, located, members } = candidate;
  const { max, budget } = rules.retries;
  const elsewhere = hasNext ? 'elsewhere' : null;
  if (members !== null) {
    const where = whereAfterMember(candidate, members, turn, kind) ?? elsewhere;
    const mayReturn = where === null && kind !== 'served';
    return mayReturn && attempts.refusedMembers.forgetSlow() ? 'here' : where;
  }
  const mayWait = rules.mayWait && ticket.maxWaitMs !== 0;
  switch (kind) {
    case 'concurrency':
    case 'requests':
    case 'tokens':
    case 'ramp':
    case 'unknown':
      return mayWait && attempts.mayReenter(kind) ? 'here' : elsewhere;
    case 'overload':
    case 'error': {
      const mayRetry =
        mayWait && attempts.mayRetry(max, retryBudgetOf(located.upstream.id), budget);
      return mayRetry ? 'here later' : elsewhere;
    }
    case 'egress':
      return hasOtherPlace ? 'other place' : null;
    case 'quota':
    case 'unauthorized':
    case 'long_window':
    case 'never_fits': // Another upstream may have more room, or a longer context.
      return elsewhere;
    case 'served':
      return null;
  }
}

/**
 * Notes that an upstream or a member has refused a call. A refusal of the network address also counts for all members
 * with the same address and egress. Returns true if the call has stopped the group there before.
 */
export function noteRefusedAt(
  candidate: Pick<Candidate, 'located' | 'members' | 'member'>,
  attempts: CallAttempts<unknown>,
  signal: UpstreamSignal,
): boolean {
  const { members, member } = candidate;
  const { kind } = signal;
  const isRepeat = attempts.noteRefused(placeOf(candidate), signal);
  if (members === null || member === null || kind === 'served') return isRepeat;
  const { refusedMembers } = attempts;
  refusedMembers.note(member.id, kind);
  refusedMembers.noteSaid(members.group, member.id, kind, steadyClock.now());
  if (kind !== 'egress') return isRepeat;
  for (const other of members.places.values()) {
    if (isSamePlace(other.located.upstream, member.located.upstream)) {
      refusedMembers.note(other.id, kind);
    }
  }
  return isRepeat;
}

/**
 * What an answer proves: if the call was served, the members that refused it before are to blame. An answer to a
 * mistake of the caller proves nothing about keys.
 */
export function proofBy(
  isDone: boolean,
  plan: MemberPlan | null,
  { refusedMembers }: CallAttempts<unknown>,
): Pick<UpstreamSignal, 'isMistake' | 'blamed'> {
  if (!isDone) return { isMistake: true };
  return plan === null ? {} : { blamed: refusedMembers.blamedIn(plan.group, steadyClock.now()) };
}

export function excludedMembers(
  { places, impossible }: MemberPlan,
  { refusedMembers: { ids, idsForNow } }: CallAttempts<unknown>,
): ExcludedMembers {
  const isHere = (id: string): boolean => places.has(id);
  return {
    excluded: [...impossible, ...ids.filter(isHere)],
    excludedForNow: idsForNow.filter(isHere),
  };
}

/** Returns whether a member is left that can serve a call and has not refused it. */
export function hasMemberLeft(
  { places }: MemberPlan,
  { refusedMembers }: CallAttempts<unknown>,
): boolean {
  return [...places.values()].some(
    ({ id, member }) => member.config.enabled && !refusedMembers.has(id),
  );
}

/**
 * Returns the timeout in milliseconds for a member's first content. null if there is none, or no other member is left.
 */
export function firstTokenMsAt(
  plan: MemberPlan,
  { id, member }: MemberRoute,
  { refusedMembers }: CallAttempts<unknown>,
): number | null {
  const firstTokenMs = member.config.first_token_ms ?? null;
  if (firstTokenMs === null || refusedMembers.isPatient) return null;
  const hasOther = [...plan.places.values()].some(
    (other) => other.id !== id && other.member.config.enabled && !refusedMembers.has(other.id),
  );
  return hasOther ? firstTokenMs : null;
}

/**
 * Where a call goes that a member did not serve. It goes to another member immediately, but after failures only as
 * often as it may be retried. Once all have refused it, it returns to those that waiting may help. null if there is
 * nowhere to go in its group.
 */
function whereAfterMember(
  { rules, located }: RefusedAt,
  plan: MemberPlan,
  { ticket, attempts }: RefusedAttempt,
  kind: UpstreamSignal['kind'],
): NotServed['where'] | null {
  const { refusedMembers } = attempts;
  const { max, budget: share } = rules.retries;
  const budget = retryBudgetOf(located.upstream.id);
  const mayTryNext = (): boolean =>
    kind === 'served' || !isFailure(kind) || attempts.mayHop(max, budget, share);
  if (hasMemberLeft(plan, attempts)) return mayTryNext() ? 'here' : null;
  if (!rules.mayWait || ticket.maxWaitMs === 0) return null;
  if (refusedMembers.waitable !== null && mayTryNext() && mayAskWaitable(attempts)) return 'here';
  if (!refusedMembers.isRetriable || !attempts.mayRetry(max, budget, share)) return null;
  refusedMembers.forgetRetriable();
  return 'here later';
}

/** Returns whether a call may ask the members with temporary refusals again, and forgets those refusals if so. */
export function mayAskWaitable(attempts: CallAttempts<unknown>): boolean {
  const { waitable } = attempts.refusedMembers;
  if (waitable === null || !attempts.mayReenter(waitable)) return false;
  attempts.refusedMembers.forgetWaitable();
  return true;
}
