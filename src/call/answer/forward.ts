import { logEvent } from '../../runtime/log.ts';
import { steadyClock } from '../../runtime/async.ts';
import type { LeaseOutcome } from '../../core/words/outcome.ts';
import type { UpstreamSignal } from '../../core/words/signal.ts';
import { isPlain } from '../../upstream/body/packing.ts';
import { HeldCall } from '../../upstream/transfer/held-call.ts';
import type { UsageMeter } from '../../upstream/usage/usage-meter.ts';
import type { PipeMetering } from '../../upstream/transfer/watched-pipe.ts';
import { retryBudgetOf, type CandidateAttempt } from '../attempts/call-attempts.ts';
import { traceUsage } from '../observe/trace.ts';
import { RENAMED_BYTES_MAX, type MemberRoute } from '../plan/member-plan.ts';
import { hasMemberLeft, proofBy } from '../attempts/where-next.ts';
import { withOwnAddresses } from '../plan/target.ts';
import type { Candidate } from '../plan/plan.ts';
import {
  answered,
  rejected,
  type NotServed,
  type CallerLeft,
  type Rejected,
  type AttemptResult,
} from '../results/result.ts';
import { isNotSwitched } from '../request/upgrade.ts';
import {
  reportCut,
  limitedAt,
  limitsOf,
  sourceOf,
  learnAccount,
  moveToAccount,
  type Sending,
} from './sending.ts';
import {
  bareBody,
  mayGoBare,
  countLateError,
  streamEndOf,
  withStreamEnd,
  isAboutKey,
  noAnswer,
  relay,
  reportAnswer,
  reportSlow,
  signature,
} from './relay.ts';
import { newsOfLimits, noteUnderWay } from './limit-windows.ts';
import {
  hasUnknownHeaders,
  hintsIn,
  nearlyEmpty,
  readAnswer,
  readInside,
  type AnswerRead,
} from './read-answer.ts';
import { firstTokenMsOf, refused, tooSlow } from './refused.ts';
import { keepForRun, mayStartRun, isRunStream, type CheckedAnswer } from './hold-run.ts';
import { watchRun, type RunWatch } from './end-run.ts';
import { notSwitched, passSession } from './session.ts';

const NOTHING_READ: AnswerRead = { refusal: null, answer: null };

/** Sends a call that holds its slots, and keeps them until the last byte of the answer. */
export async function forward(sending: Sending): Promise<AttemptResult> {
  const { candidate, turn, target, metering, admission } = sending;
  const { call, rules, located, members, member } = candidate;
  const { ticket, attempts, hasNext } = turn;
  const { request, method, ctx, after, body } = call;
  const { upstream } = located;
  const waitMs = Math.round(steadyClock.now() - ticket.enqueuedAt);
  const held = new HeldCall(call.signal, rules.hold, after);
  admission.keep(() => held.cut('revoked'));
  const mayBeNeeded = hasNext || members !== null || (rules.mayWait && ticket.maxWaitMs !== 0);
  const neededBytesMax = mayBeNeeded ? rules.retries.max_body_bytes : 0;
  const model = member?.bodyModel ?? null;
  const keptBytesMax = model === null ? neededBytesMax : RENAMED_BYTES_MAX;
  // The body may have been renamed for the previous member.
  if (member !== null) body.restore();
  const pace = body.isComing ? held.pace() : null;
  // Each awaited promise costs a small call CPU, and most bodies are kept by now.
  if (!body.isKept && (await body.keep(keptBytesMax, held.signal, { pace })) === 'aborted') {
    held.giveUp();
    reportSlow(admission, held);
    ctx.waitUntil(admission.release('unused'));
    return noAnswer(candidate, held);
  }
  const isPacked = model !== null && !isPlain(body.encodingIn(request.headers));
  if (isPacked) await sendPlain(sending);
  if (member !== null && model !== null && !body.rename(model)) {
    held.giveUp();
    await admission.release('unused');
    return notRenamed(candidate, member, turn);
  }
  const isBare = mayGoBare(method);
  const bare = isBare ? await bareOf(sending, held) : 'with body';
  if (typeof bare === 'object') return bare;
  const watchesRun = watchRun(candidate);
  // Headgate has to read what the answer reports about a run.
  if (watchesRun !== null) target.headers.set('accept-encoding', 'identity');
  attempts.noteSent();
  retryBudgetOf(upstream.id).noteCall();
  body.onFault(() => held.cut('body'));
  const open = (): BodyInit | null => (bare === 'bare' ? null : body.open(pace, metering?.asking));
  const init = { method, headers: target.headers, body: open() };
  const openAgain = (): BodyInit | null => {
    attempts.noteSent();
    logEvent('upstream_not_http', { upstream: upstream.id });
    return open();
  };
  // Every failed upgrade looks like a broken connection, so only `retries` repeats it.
  const mayBeSpoilt = body.isKept && located.operation.socket === undefined;
  const again = mayBeSpoilt ? openAgain : null;
  let given: Response | null = null;
  const noteAnswered = noteUnderWay(limitedAt(candidate), Date.now());
  try {
    const firstTokenMs = firstTokenMsOf(sending);
    given = await held.send(target.fetcher, target.url, init, { again, firstTokenMs });
  } finally {
    noteAnswered();
  }
  if (given === null && held.cutBy === 'slow') return tooSlow(sending);
  const received = given === null ? null : withOwnAddresses(given, candidate, target);
  if (received?.kind === 'rejected') return redirected(sending, held, received);
  const arrived = received?.answer ?? null;
  const sent = arrived === null ? null : (metering?.withoutPacking(arrived) ?? arrived);
  const inside = await readSent(sending, held, sent, isBare);
  if (held.cutBy === 'slow') return tooSlow(sending);
  const read = inside.answer === null && isCutByUs(held) ? NOTHING_READ : inside;
  const { refusal, answer, isMistake, isOpen } = read;
  if (refusal !== null) return refused(sending, held, refusal, answer, waitMs);
  if (answer === null || held.cutBy === 'body') {
    reportSlow(admission, held);
    ctx.waitUntil(admission.release('cancelled'));
    return noAnswer(candidate, held);
  }
  reportAnswer(sending, answer);
  if (candidate.routed.account !== null) ctx.waitUntil(learnFrom(sending, answer));
  const isDone = answer.ok && isMistake !== true;
  admission.reportServed(warningIn(answer, sending), proofBy(isDone, members, turn.attempts));
  if (isNotSwitched(located.operation, answer)) return notSwitched(sending, held, answer);
  if (answer.webSocket !== null) {
    const switched = passSession(sending, { held, answer, socket: answer.webSocket });
    return answered(switched, signature(sending, waitMs, switched.headers), isAboutKey(candidate));
  }
  const watched = watchesRun === null ? null : await lookForRun(watchesRun, sending, held, answer);
  const looked: CheckedAnswer = watched ?? { answer, isHeld: false };
  const meter = metering?.meterFor(answer) ?? null;
  const end = streamEndOf(answer, located, held.hasWhole, isOpen);
  const pipe = withStreamEnd(end, readingRun(looked, metering?.pipeFor(meter, answer) ?? null));
  const settled = settlingOf(sending, held, looked, isDone ? meter : null);
  const settle: SettleCall =
    end === null
      ? settled
      : async (outcome) => settled(await countLateError(sending, answer, end, outcome));
  const response = await relay(sending, held, looked.answer, pipe, settle, looked);
  if (response === null) return noAnswer(candidate, held);
  const signed = signature(sending, waitMs, response.headers);
  return answered(response, signed, isAboutKey(candidate));
}

function readSent(
  sending: Sending,
  held: HeldCall,
  sent: Response | null,
  isBare: boolean,
): AnswerRead | Promise<AnswerRead> {
  const { call } = sending.candidate;
  if (sent === null || sent.status !== 200) {
    held.noteContent();
    return readAnswer(sent, sourceOf(sending), call.after);
  }
  // The answer to a read is data, and not a refusal of the call.
  if (isBare) return { refusal: null, answer: sent };
  return readInside(sent, sourceOf(sending), held);
}

/**
 * Whether Headgate cut the call. Such a cut gives no information about the upstream, unless it was silent for too long.
 */
function isCutByUs({ cutBy }: HeldCall): boolean {
  return cutBy !== null && cutBy !== 'idle';
}

/** Looks for a run in an answer whose beginning may already be read. */
function lookForRun(
  watchesRun: RunWatch,
  { candidate, admission }: Sending,
  held: HeldCall,
  answer: Response,
): Promise<CheckedAnswer> {
  const isReadAsItPasses = isRunStream(answer) && mayStartRun(candidate);
  const unread = isReadAsItPasses ? answer : held.unread(answer);
  return watchesRun(admission, unread, held.takesWhole(unread));
}

type SettleCall = (outcome: LeaseOutcome) => Promise<void>;

/** Copies the bytes of a pipe to the reader of a run's events. */
function readingRun({ events }: CheckedAnswer, pipe: PipeMetering | null): PipeMetering | null {
  if (events === undefined) return pipe;
  const push = (chunk: Uint8Array): void => {
    pipe?.meter.push(chunk);
    events.push(chunk);
  };
  return { meter: { push }, filter: pipe?.filter ?? null };
}

/** Decides what happens to the slots of a call that ends. A run may hold them now, or once the stream ends. */
function settlingOf(
  sending: Sending,
  held: HeldCall,
  { answer, isHeld, events, isOwn }: CheckedAnswer,
  meter: UsageMeter | null,
): SettleCall {
  if (isHeld) return leaving(sending);
  const settle = settling(sending, held, answer, meter);
  if (events === undefined || isOwn !== true) return settle;
  const { candidate, admission } = sending;
  return async (outcome) => {
    await events.caughtUp?.();
    const { reportedRun } = events;
    // A caller that leaves the stream of a run does not end the run.
    const isOver = held.cutBy === 'revoked' || held.cutBy === 'max_hold';
    const continues = reportedRun?.state === 'goes on' && !isOver;
    const isKept =
      continues && (await keepForRun(candidate, admission, reportedRun.id, answer.status));
    return isKept ? leaving(sending)(outcome) : settle(outcome);
  };
}

function settling(
  { admission, metering }: Sending,
  held: HeldCall,
  answer: Response,
  meter: UsageMeter | null,
): SettleCall {
  const end: SettleCall = (outcome) => {
    // An upstream uses no tokens for a call that it rejects as invalid.
    const settlement = answer.ok ? metering?.settlement(meter) : metering?.notServed;
    reportCut(admission, answer.status, held.cutBy);
    const released = admission.release(outcome, settlement);
    const [placement] = admission.placements;
    if (placement !== undefined) traceUsage(() => settlement?.(placement).seen ?? null);
    return released;
  };
  // Each awaited promise costs a small call CPU.
  const caughtUp = meter?.caughtUp;
  return caughtUp === undefined ? end : (outcome) => caughtUp().then(() => end(outcome));
}

/** Leaves the slots of a call to its run. Until the run ends, the call counts with its reservation. */
function leaving({ admission }: Sending): SettleCall {
  return () => {
    admission.letGo();
    return Promise.resolve();
  };
}

/** Checks whether the call is sent without a body, and releases the slots of a call that cannot be sent. */
async function bareOf(
  { candidate, admission }: Sending,
  held: HeldCall,
): Promise<'bare' | 'with body' | Rejected | CallerLeft> {
  const { call } = candidate;
  const looking = bareBody(call.method, call.body, held.signal, held.pace());
  const bare = await looking.catch(() => noAnswer(candidate, held));
  if (typeof bare !== 'object') return bare;
  held.giveUp();
  reportSlow(admission, held);
  call.ctx.waitUntil(admission.release('unused'));
  return bare;
}

/**
 * Ends a call whose upstream redirects it to another host. It was not served and gives no information about the limit.
 */
function redirected(
  { candidate: { call }, admission, metering }: Sending,
  held: HeldCall,
  redirect: Rejected,
): Rejected {
  held.giveUp();
  call.ctx.waitUntil(admission.release('refused', metering?.notServed));
  return redirect;
}

/** The signal that the headers of a served call give its group. null if they contain nothing that the group needs. */
function warningIn(answer: Response, sending: Sending): UpstreamSignal | null {
  const { upstream } = sending.candidate.located;
  const hints = hintsIn(answer, upstream);
  if (hints.length === 0) return null;
  const limits = limitsOf(sending);
  const warning = nearlyEmpty(hints, upstream, limits);
  if (warning !== null || hasUnknownHeaders(upstream)) return warning;
  return newsOfLimits(hints, limits.place);
}

/** Learns the account of the key from the answer, and moves the call to that account's pool. */
async function learnFrom({ candidate, admission }: Sending, answer: Response): Promise<void> {
  if (await learnAccount(candidate, answer)) moveToAccount(candidate, admission);
}

/** Decompresses a body before its model is renamed, because a name inside compressed bytes cannot be changed. */
async function sendPlain({ candidate: { call }, target: { headers } }: Sending): Promise<void> {
  const unpacked = await call.body.unpack(call.request, (bytes) => bytes);
  if (unpacked === 'done') headers.delete('content-encoding');
}

/**
 * Tries another member, because the model in the body cannot be renamed for this one. Rejects the call if none is left.
 */
export function notRenamed(
  { members }: Candidate,
  { id, bodyModel }: MemberRoute,
  { attempts }: CandidateAttempt<unknown>,
): NotServed | Rejected {
  attempts.refusedMembers.note(id, 'never_fits');
  if (members !== null && hasMemberLeft(members, attempts)) return { kind: 'again', where: 'here' };
  const message = `The model in the body could not be renamed to \`${bodyModel ?? ''}\`, its name at member \`${id}\`. Send a smaller body, uncompressed.`;
  return rejected({ reason: 'body_unreadable', message });
}
