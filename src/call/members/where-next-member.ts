import type { RefusalKind, UpstreamSignal } from '../../core/words/signal.ts';
import { steadyClock } from '../../runtime/steady-clock.ts';
import { retryBudgetOf } from '../isolate.ts';
import type { Candidate } from '../plan.ts';
import type { NotServed } from '../result.ts';
import { isSamePlace, type CallAttempts, type CandidateAttempt } from '../call-attempts.ts';
import type { MemberRoute, MemberPlan } from './member-plan.ts';
import { isFailure } from './refused-members.ts';

/** Notes that a member has refused a call, for whatever it said; and, for where the call comes from, those that are reached alike. */
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
 * Tells what an answer proves: that the members are to blame which refused the same call, if it was served now. One to a
 * mistake of the caller proves nothing of any key.
 */
export function proofBy(
  isDone: boolean,
  plan: MemberPlan | null,
  { refusedMembers }: CallAttempts,
): Pick<UpstreamSignal, 'isMistake' | 'blamed'> {
  if (!isDone) return { isMistake: true };
  return plan === null ? {} : { blamed: refusedMembers.blamedIn(plan.group, steadyClock.now()) };
}

/** Members that a call is not to be granted at, by their ids. */
export interface ExcludedMembers {
  /** They cannot take it, or have refused it. */
  readonly excluded: readonly string[];
  /** Those of them that may take it soon. */
  readonly excludedForNow: readonly string[];
}

/** Lists the members that a call is not to be granted at. */
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

/** Tells whether a member is left that can take a call and has not refused it. */
export function hasMemberLeft({ places }: MemberPlan, { refusedMembers }: CallAttempts): boolean {
  return [...places.values()].some(
    ({ id, member }) => member.config.enabled && !refusedMembers.has(id),
  );
}

/** Returns the timeout for a member's first content. null if there is none, or no other member is left. */
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
 * Decides where a call goes that a member did not serve: at once to another, but no oftener than it may be retried where
 * one after the other fails; where all have refused it, once more to those for which a wait helps. Null: nowhere in its
 * group.
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
  const mayGoOn = (): boolean =>
    kind === 'served' || !isFailure(kind) || attempts.mayHop(max, budget, share);
  if (hasMemberLeft(plan, attempts)) return mayGoOn() ? 'here' : null;
  if (!rules.mayWait || ticket.maxWaitMs === 0) return null;
  if (refusedMembers.waitable !== null && mayGoOn() && mayAskWaitable(attempts)) return 'here';
  if (!refusedMembers.isRetriable || !attempts.mayRetry(max, budget, share)) return null;
  refusedMembers.forgetRetriable();
  return 'here later';
}

/** Tells whether a call may ask once more the members that refused it for what a wait helps; if so, they are forgotten. */
export function mayAskWaitable(tries: CallAttempts): boolean {
  const { waitable } = tries.refusedMembers;
  if (waitable === null || !tries.mayReenter(waitable)) return false;
  tries.refusedMembers.forgetWaitable();
  return true;
}
