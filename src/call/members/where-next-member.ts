import type { RefusalKind, UpstreamSignal } from '../../core/words/signal.ts';
import { steadyClock } from '../../runtime/steady-clock.ts';
import { retryBudgetOf } from '../isolate.ts';
import type { Candidate } from '../plan.ts';
import type { NotServed } from '../result.ts';
import { isSamePlace, type CallAttempts, type CandidateAttempt } from '../call-attempts.ts';
import type { MemberRoute, MemberPlan } from './member-plan.ts';
import { isFailure } from './refused-members.ts';

/**
 * Notes that a member has refused a call. A refusal of the network address also counts for all members with the same
 * address and egress.
 */
export function noteRefusedAt(
  { refusedMembers }: CallAttempts,
  { group, places }: MemberPlan,
  { id, located: { upstream } }: MemberRoute,
  kind: RefusalKind,
): void {
  refusedMembers.note(id, kind);
  refusedMembers.noteSaid(group, id, kind, steadyClock.now());
  if (kind !== 'egress') return;
  for (const other of places.values()) {
    if (isSamePlace(other.located.upstream, upstream)) refusedMembers.note(other.id, kind);
  }
}

/**
 * What an answer proves: if the call was served, the members that refused it before are to blame. An answer to a
 * mistake of the caller proves nothing about keys.
 */
export function proofBy(
  isDone: boolean,
  plan: MemberPlan | null,
  { refusedMembers }: CallAttempts,
): Pick<UpstreamSignal, 'isMistake' | 'blamed'> {
  if (!isDone) return { isMistake: true };
  return plan === null ? {} : { blamed: refusedMembers.blamedIn(plan.group, steadyClock.now()) };
}

/** Ids of members at which a call must not be granted. */
export interface ExcludedMembers {
  /** They cannot serve it, or have refused it. */
  readonly excluded: readonly string[];
  /** Those of them that may serve it soon. */
  readonly excludedForNow: readonly string[];
}

export function excludedMembers(
  { places, impossible }: MemberPlan,
  { refusedMembers: { ids, idsForNow } }: CallAttempts,
): ExcludedMembers {
  const isHere = (id: string): boolean => places.has(id);
  return {
    excluded: [...impossible, ...ids.filter(isHere)],
    excludedForNow: idsForNow.filter(isHere),
  };
}

/** Returns whether a member is left that can serve a call and has not refused it. */
export function hasMemberLeft({ places }: MemberPlan, { refusedMembers }: CallAttempts): boolean {
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
  { refusedMembers }: CallAttempts,
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
export function whereAfterMember(
  { rules, located }: Candidate,
  plan: MemberPlan,
  { ticket, tries: attempts }: CandidateAttempt,
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
export function mayAskWaitable(attempts: CallAttempts): boolean {
  const { waitable } = attempts.refusedMembers;
  if (waitable === null || !attempts.mayReenter(waitable)) return false;
  attempts.refusedMembers.forgetWaitable();
  return true;
}
