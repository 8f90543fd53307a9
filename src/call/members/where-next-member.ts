import type { RefusalKind } from '../../core/words/signal.ts';
import { retryBudgetOf } from '../isolate.ts';
import type { Candidate } from '../plan.ts';
import type { Again } from '../result.ts';
import { isSamePlace, type Tries, type Turn } from '../tries.ts';
import type { MemberPlace, MemberPlan } from './member-plan.ts';

/** Notes that a member has refused a call, for whatever it said; and, for where the call comes from, those that are reached alike. */
export function noteRefusedAt(
  { refusedMembers }: Tries,
  { places }: MemberPlan,
  { id, located: { upstream } }: MemberPlace,
  kind: RefusalKind,
): void {
  refusedMembers.note(id, kind);
  if (kind !== 'egress') return;
  for (const other of places.values()) {
    if (isSamePlace(other.located.upstream, upstream)) refusedMembers.note(other.id, kind);
  }
}

/** Ids of the members that a call is not to be granted at: they cannot take it, or have refused it. */
export function excludedMembers(
  { places, impossible }: MemberPlan,
  { refusedMembers }: Tries,
): readonly string[] {
  return [...impossible, ...refusedMembers.ids.filter((id) => places.has(id))];
}

/** Tells whether a member is left that can take a call and has not refused it. */
export function hasMemberLeft({ places }: MemberPlan, { refusedMembers }: Tries): boolean {
  return [...places.values()].some(
    ({ id, member }) => member.config.enabled && !refusedMembers.has(id),
  );
}

/**
 * Decides where a call goes that a member did not serve: at once to another; where all have refused it, once more to
 * those for which a wait helps. Null: nowhere in its group.
 */
export function whereAfterMember(
  { rules, located }: Candidate,
  plan: MemberPlan,
  { ticket, tries }: Turn,
): Again['where'] | null {
  if (hasMemberLeft(plan, tries)) return 'here';
  if (!rules.mayWait || ticket.maxWaitMs === 0) return null;
  const { refusedMembers } = tries;
  if (mayAskWaitable(tries)) return 'here';
  const { max, budget } = rules.retries;
  if (!refusedMembers.isRetriable) return null;
  if (!tries.mayRetry(max, retryBudgetOf(located.upstream.id), budget)) return null;
  refusedMembers.forgetRetriable();
  return 'here later';
}

/** Tells whether a call may ask once more the members that refused it for what a wait helps; if so, they are forgotten. */
export function mayAskWaitable(tries: Tries): boolean {
  const { waitable } = tries.refusedMembers;
  if (waitable === null || !tries.mayReenter(waitable)) return false;
  tries.refusedMembers.forgetWaitable();
  return true;
}
