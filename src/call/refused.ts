import { logEvent } from '../runtime/log.ts';
import type { LeaseOutcome } from '../core/words/outcome.ts';
import type { HeldCall } from '../upstream/transfer/held-call.ts';
import type { UpstreamRefusal } from '../upstream/refusal/classify-refusal.ts';
import { reportCut } from './acquire/report-cut.ts';
import { CallNamesReader } from './call-names.ts';
import { learnAccount } from './learn-account.ts';
import { groupsOf, placeOf, refusalFields } from './log-refusal.ts';
import { logEgressRefused } from './observe/egress-log.ts';
import { TRACED_MODEL_MAX, traceError } from './observe/trace.ts';
import { isLasting, keptAnswer } from './members/last-answer.ts';
import { firstTokenMsAt, hasMemberLeft, noteRefusedAt } from './members/where-next-member.ts';
import { isAboutKey, noAnswer, relay, reportAnswer, signature } from './relay.ts';
import {
  answered,
  type NotServed,
  type Answered,
  type Moved,
  type AttemptResult,
} from './result.ts';
import type { Sending } from './sending.ts';
import { canBeSentAgain, whereNext } from './where-next.ts';

/** Places a refused call again, in the pool of its account. Its slot goes back as unused. */
async function restarted(
  { candidate: { call }, admission }: Sending,
  held: HeldCall,
): Promise<Moved> {
  call.body.unspare();
  held.giveUp();
  const released = admission.release('unused');
  call.ctx.waitUntil(released);
  await released;
  return { kind: 'moved', configVersion: call.table.snapshot.version };
}

/** Reports a refusal to the call's groups. The call is retried where it can be, or its caller gets the upstream's answer. */
export async function refused(
  sending: Sending,
  held: HeldCall,
  refusal: UpstreamRefusal,
  answer: Response | null,
  waitMs: number,
): Promise<AttemptResult> {
  const { candidate, turn, admission, metering } = sending;
  const { call, members, member } = candidate;
  const { body } = call;
  const { tries: attempts } = turn;
  const { kind } = refusal.signal;
  if (kind === 'concurrency' && refusal.isOfApi && answer !== null && body.isKept) {
    // The account has too many concurrent calls, so the call waits in the account's pool and not in its key's. A refusal by a
    // proxy in front of the API proves nothing, because it has the same words for calls without a key.
    const isFound = await learnAccount(candidate, answer);
    if (isFound && candidate.routed.account?.kind === 'unproved') return restarted(sending, held);
  }
  await new CallNamesReader(candidate).readKept();
  if (kind === 'egress') logEgressRefused(candidate, answer);
  else logEvent('upstream_refused', refusalFields(sending, refusal, answer?.status ?? null));
  if (answer !== null) reportAnswer(sending, answer);
  const isRepeat = attempts.noteRefused(placeOf(candidate), refusal.signal);
  if (members !== null && member !== null && kind !== 'served') {
    noteRefusedAt(attempts, members, member, kind);
  }
  admission.report(refusal.signal, refusal.scope, isRepeat);
  const notServed = metering?.notServed;
  // What is refused for its own sake says nothing of the slot.
  const outcomeOf = (outcome: LeaseOutcome): LeaseOutcome =>
    refusal.isFinal ? 'refused' : outcome;
  const where = whereNext(candidate, turn, kind);
  if (where !== null || answer === null) {
    if (where !== null) body.unspare();
    if (where !== null && member !== null) await keepAnswer(sending, refusal, answer, waitMs);
    held.giveUp();
    // What the upstream said must be known to its group before the call asks again.
    const released = admission.release(outcomeOf('failed'), notServed);
    // A caller that leaves now does not spare the slot its hold.
    call.ctx.waitUntil(released);
    if (where === null) return noAnswer(candidate, held);
    await released;
    return { kind: 'again', where };
  }
  const response = await relay(sending, held, answer, null, (outcome) =>
    // The status of a refusal inside a 200 says nothing of it.
    admission.release(outcomeOf(answer.ok ? 'failed' : outcome), notServed),
  );
  if (response === null) return noAnswer(candidate, held);
  traceError(kind);
  return refusalAnswer(sending, refusal, response, waitMs);
}

/** Keeps the answer of a member that refused the call, which the caller gets if no other member has room. */
async function keepAnswer(
  sending: Sending,
  refusal: UpstreamRefusal,
  answer: Response | null,
  waitMs: number,
): Promise<void> {
  const { kind } = refusal.signal;
  if (answer === null || kind === 'served' || !isLasting(kind)) return;
  const kept = await keptAnswer(answer, sending.candidate.call.after);
  if (kept === null) return;
  const { tries } = sending.turn;
  tries.lastRefusal = { kind, answer: refusalAnswer(sending, refusal, kept, waitMs) };
}

/** The upstream's refusal as the answer to its caller. */
function refusalAnswer(
  sending: Sending,
  { signal: { kind }, isFinal }: UpstreamRefusal,
  response: Response,
  waitMs: number,
): Answered {
  const { candidate, turn } = sending;
  const said = signature(sending, waitMs, response.headers);
  // Another member may serve the next one.
  const isHopeless = isFinal && turn.tries.refusedMembers.waitable === null;
  const all = isHopeless ? { ...said, 'x-should-retry': 'false' } : said;
  const maySayOfKey = kind !== 'egress' && kind !== 'unauthorized';
  return answered(response, all, maySayOfKey && isAboutKey(candidate));
}

/** Leaves an upstream whose first content did not come in time. No group learns from that: the answer may be on its way. */
export async function tooSlow(sending: Sending): Promise<NotServed> {
  const { candidate, turn, admission } = sending;
  const { call, located, members, member } = candidate;
  logEvent('upstream_slow', {
    upstream: located.upstream.id,
    model: new CallNamesReader(candidate).model?.slice(0, TRACED_MODEL_MAX) ?? null,
    groups: groupsOf(admission),
    ...(member !== null && { member: member.id }),
    first_token_ms: firstTokenMsOf(sending),
  });
  call.body.unspare();
  reportCut(admission, SLOW_STATUS, 'slow');
  const released = admission.release('cancelled');
  call.ctx.waitUntil(released);
  // A group that the call is in elsewhere too must not count it twice.
  await released;
  if (member === null || members === null) return SLOW;
  const { tries } = turn;
  tries.refusedMembers.noteSlow(member.id);
  return hasMemberLeft(members, tries) ? { kind: 'again', where: 'here', isSlow: true } : SLOW;
}

/** The call is sent to another upstream. */
const SLOW: NotServed = { kind: 'again', where: 'elsewhere', isSlow: true };

/** The status that is reported of an attempt at a slow upstream. */
const SLOW_STATUS = 504;

/** Maximum time to the first content of a call that can go elsewhere, in milliseconds; null: none. */
export function firstTokenMsOf({ candidate, turn }: Sending): number | null {
  if (!canBeSentAgain(candidate)) return null;
  const { members, member } = candidate;
  const atMember =
    members === null || member === null ? null : firstTokenMsAt(members, member, turn.tries);
  return atMember ?? turn.firstTokenMs;
}
