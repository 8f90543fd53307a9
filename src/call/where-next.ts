import type { UpstreamSignal } from '../core/words/signal.ts';
import { retryBudgetOf } from './isolate.ts';
import { whereAfterMember } from './members/where-next-member.ts';
import type { Candidate } from './plan.ts';
import type { NotServed } from './result.ts';
import type { CandidateAttempt } from './call-attempts.ts';

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
  turn: CandidateAttempt,
  kind: UpstreamSignal['kind'],
): NotServed['where'] | null {
  return canBeSentAgain(candidate) ? whereNextIfKept(candidate, turn, kind) : null;
}

/** The same for a call that can be sent again. */
export function whereNextIfKept(
  candidate: Candidate,
  turn: CandidateAttempt,
  kind: UpstreamSignal['kind'],
): NotServed['where'] | null {
  const { ticket, tries: attempts, hasNext, hasOtherPlace } = turn;
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
