import { logEvent } from '../../runtime/log.ts';
import type { LeaseOutcome } from '../../core/words/outcome.ts';
import type { HeldCall } from '../../upstream/transfer/held-call.ts';
import type { UpstreamRefusal } from '../../upstream/refusal/classify-refusal.ts';
import type { Reason } from '../../contract/reasons.ts';
import type { RefusalKind } from '../../core/words/signal.ts';
import type { Schedule } from '../../runtime/async.ts';
import { bytesWithin } from '../../upstream/body/bytes.ts';
import { callerResponseHeaders } from '../../upstream/transfer/headers.ts';
import { CallNamesReader } from '../plan/call-names.ts';
import { logEgressRefused, TRACED_MODEL_MAX, traceError } from '../observe/trace.ts';
import {
  firstTokenMsAt,
  hasMemberLeft,
  noteRefusedAt,
  canBeSentAgain,
  whereNext,
} from '../attempts/where-next.ts';
import {
  answered,
  type NotServed,
  type Answered,
  type Moved,
  type AttemptResult,
} from '../results/result.ts';
import { reportCut, learnAccount, groupsOf, refusalFields, type Sending } from './sending.ts';
import { isAboutKey, noAnswer, relay, reportAnswer, signature } from './relay.ts';

/**
 * Handles a refusal of the upstream. The call goes elsewhere, or its caller receives the answer, which is kept until
 * then.
 */

/** Plans a refused call again, in the pool of its account. Its slot is released as unused. */
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

/**
 * Reports a refusal to the call's groups. The call is retried if possible. Otherwise its caller receives the upstream's
 * answer.
 */
export async function refused(
  sending: Sending,
  held: HeldCall,
  refusal: UpstreamRefusal,
  answer: Response | null,
  waitMs: number,
): Promise<AttemptResult> {
  const { candidate, turn, admission, metering } = sending;
  const { call, member } = candidate;
  const { body } = call;
  const { attempts } = turn;
  const { kind } = refusal.signal;
  if (kind === 'concurrency' && refusal.isOfApi && answer !== null && body.isKept) {
    // The account has too many concurrent calls, so the call waits in the account's pool and not in its key's. A
    // refusal by a proxy in front of the API proves nothing, because it has the same words for calls without a key.
    const isFound = await learnAccount(candidate, answer);
    if (isFound && candidate.routed.account?.kind === 'unproved') return restarted(sending, held);
  }
  await new CallNamesReader(candidate).readKept();
  if (kind === 'egress') logEgressRefused(candidate, answer);
  else logEvent('upstream_refused', refusalFields(sending, refusal, answer?.status ?? null));
  if (answer !== null) reportAnswer(sending, answer);
  const isRepeat = noteRefusedAt(candidate, attempts, refusal.signal);
  admission.report(refusal.signal, refusal.scope, isRepeat);
  const notServed = metering?.notServed;
  // A final refusal is about the call and gives no information about the slot.
  const outcomeOf = (outcome: LeaseOutcome): LeaseOutcome =>
    refusal.isFinal ? 'refused' : outcome;
  const where = whereNext(candidate, turn, kind);
  if (where !== null || answer === null) {
    if (where !== null) body.unspare();
    if (where !== null && member !== null) await keepAnswer(sending, refusal, answer, waitMs);
    held.giveUp();
    // The group must receive the refusal before the call asks it again.
    const released = admission.release(outcomeOf('failed'), notServed);
    // A caller that leaves now must not shorten how long the slot is held.
    call.ctx.waitUntil(released);
    if (where === null) return noAnswer(candidate, held);
    await released;
    return { kind: 'again', where };
  }
  const response = await relay(sending, held, answer, null, (outcome) =>
    // The status of a refusal inside a 200 does not describe it.
    admission.release(outcomeOf(answer.ok ? 'failed' : outcome), notServed),
  );
  if (response === null) return noAnswer(candidate, held);
  traceError(kind);
  return refusalAnswer(sending, refusal, response, waitMs);
}

/** Keeps the answer of a member that refused the call. The caller gets it if no other member has room. */
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
  const { attempts } = sending.turn;
  attempts.lastRefusal = { kind, answer: refusalAnswer(sending, refusal, kept, waitMs) };
}

function refusalAnswer(
  sending: Sending,
  { signal: { kind }, isFinal }: UpstreamRefusal,
  response: Response,
  waitMs: number,
): Answered {
  const { candidate, turn } = sending;
  const signed = signature(sending, waitMs, response.headers);
  // Another member may serve the next attempt.
  const isHopeless = isFinal && turn.attempts.refusedMembers.waitable === null;
  const all = isHopeless ? { ...signed, 'x-should-retry': 'false' } : signed;
  const mayConcernKey = kind !== 'egress' && kind !== 'unauthorized';
  return answered(response, all, mayConcernKey && isAboutKey(candidate));
}

/**
 * Leaves an upstream whose first content did not come in time. The groups learn nothing from that, because the answer
 * may be in transit.
 */
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
  // A group that also counts the call at the next upstream must not count it twice.
  await released;
  if (member === null || members === null) return SLOW;
  const { attempts } = turn;
  attempts.refusedMembers.noteSlow(member.id);
  return hasMemberLeft(members, attempts) ? { kind: 'again', where: 'here', isSlow: true } : SLOW;
}

const SLOW: NotServed = { kind: 'again', where: 'elsewhere', isSlow: true };

const SLOW_STATUS = 504;

/** Timeout in milliseconds for the first content of a call that can be sent elsewhere. null if there is none. */
export function firstTokenMsOf({ candidate, turn }: Sending): number | null {
  if (!canBeSentAgain(candidate)) return null;
  const { members, member } = candidate;
  const atMember =
    members === null || member === null ? null : firstTokenMsAt(members, member, turn.attempts);
  return atMember ?? turn.firstTokenMs;
}

const BYTES_MAX = 32_768;

/** Timeout for the remainder of a refusal whose beginning was read. */
const READ_WAIT_MS = 1_000;

/**
 * Keeps the answer of a member that refused a call. If no other member accepts the call, the caller receives this
 * answer. null if it is too long or too slow.
 */
export async function keptAnswer(answer: Response, after: Schedule): Promise<Response | null> {
  const { promise: late, resolve } = Promise.withResolvers<null>();
  const callOff = after(READ_WAIT_MS, () => resolve(null));
  const bytes = await Promise.race([bytesWithin(answer, BYTES_MAX).catch(() => null), late]);
  callOff();
  if (bytes === null) return null;
  const { status, statusText, headers } = answer;
  const kept = new Response(bytes, { status, statusText, headers, encodeBody: 'manual' });
  callerResponseHeaders(kept.headers);
  return kept;
}

/**
 * Refusals that waiting does not help. For others the rejection by the group is more useful, because it has a retry
 * delay.
 */
const LASTING: ReadonlySet<RefusalKind> = new Set([
  'overload',
  'error',
  'unauthorized',
  'quota',
  'egress',
  'long_window',
  'never_fits',
]);

/** Returns whether a refusal stays true for its call, regardless of other calls' slots. */
export function isLasting(kind: RefusalKind): boolean {
  return LASTING.has(kind);
}

/** Reasons for which a group has no room for a call at its remaining members. */
const NO_ROOM: ReadonlySet<Reason> = new Set<Reason>([
  'queue_full',
  'queue_timeout',
  'busy',
  'infeasible',
  'paused',
  'upstream_limited',
  'never_fits',
  'breaker_open',
  'members_out',
  'budget_exhausted',
]);

/** Returns whether a group rejects a call because no other member accepts it. */
export function isForLackOfRoom(reason: Reason): boolean {
  return NO_ROOM.has(reason);
}
