import { logEvent } from '../runtime/log.ts';
import { steadyClock } from '../runtime/steady-clock.ts';
import type { LeaseOutcome } from '../core/words/outcome.ts';
import type { UpstreamSignal } from '../core/words/signal.ts';
import { isPlain } from '../upstream/body/packing.ts';
import { HeldCall } from '../upstream/transfer/held-call.ts';
import type { UsageMeter } from '../upstream/usage/usage-meter.ts';
import type { PipeMetering } from '../upstream/usage/metered-pipe.ts';
import { reportCut } from './acquire/report-cut.ts';
import { limitedAt, limitsOf, sourceOf } from './answer-source.ts';
import { bareBody, mayGoBare } from './bare.ts';
import { retryBudgetOf } from './isolate.ts';
import { learnAccount, moveToAccount } from './learn-account.ts';
import { traceUsage } from './observe/trace.ts';
import { newsOfLimits } from './limit-news.ts';
import { noteUnderWay } from './limit-windows.ts';
import type { MemberRoute } from './members/member-plan.ts';
import { hasMemberLeft, proofBy } from './members/where-next-member.ts';
import { withOwnAddresses } from './own-addresses.ts';
import type { Candidate } from './plan.ts';
import { RENAMED_BYTES_MAX } from './renamed-body.ts';
import {
  hasUnknownHeaders,
  hintsIn,
  nearlyEmpty,
  readAnswer,
  readInside,
  type AnswerRead,
} from './read-answer.ts';
import { countLateError, streamEndOf, withStreamEnd } from './late-error.ts';
import { firstTokenMsOf, refused, tooSlow } from './refused.ts';
import { isAboutKey, noAnswer, relay, reportAnswer, reportSlow, signature } from './relay.ts';
import {
  answered,
  rejected,
  type NotServed,
  type CallerLeft,
  type Rejected,
  type AttemptResult,
} from './result.ts';
import { keepForRun, mayStartRun, type CheckedAnswer } from './runs/hold-run.ts';
import { isRunStream } from './runs/run-stream.ts';
import { watchRun, type RunWatch } from './runs/watch-run.ts';
import type { Sending } from './sending.ts';
import { notSwitched, passSession } from './socket/pass-session.ts';
import { isNotSwitched } from './socket/upgrade.ts';
import type { CandidateAttempt } from './call-attempts.ts';

const UNSAID: AnswerRead = { refusal: null, answer: null };

/** Sends a call that holds its slots, and holds them until the last byte of the answer. */
export async function forward(sending: Sending): Promise<AttemptResult> {
  const { candidate, turn, target, metering, admission } = sending;
  const { call, rules, located, members, member } = candidate;
  const { ticket, tries: attempts, hasNext } = turn;
  const { request, method, ctx, after, body } = call;
  const { upstream } = located;
  const waitMs = Math.round(steadyClock.now() - ticket.enqueuedAt);
  const held = new HeldCall(call.signal, rules.hold, after);
  admission.keep(() => held.cut('revoked'));
  const mayBeNeeded = hasNext || members !== null || (rules.mayWait && ticket.maxWaitMs !== 0);
  const neededBytesMax = mayBeNeeded ? rules.retries.max_body_bytes : 0;
  const model = member?.bodyModel ?? null;
  const keptBytesMax = model === null ? neededBytesMax : RENAMED_BYTES_MAX;
  // At the last member it may have had another name.
  if (member !== null) body.restore();
  const pace = body.isComing ? held.pace() : null;
  // Each promise that a small call waits for costs it CPU, and the body of most is kept by now.
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
  // What it says of a run must be readable.
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
  const read = inside.answer === null && isCutByUs(held) ? UNSAID : inside;
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
  admission.reportServed(warningIn(answer, sending), proofBy(isDone, members, turn.tries));
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
  const said = signature(sending, waitMs, response.headers);
  return answered(response, said, isAboutKey(candidate));
}

/** Reads what came of a call that was sent: its answer, or why there is none. */
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
  // What a call reads of something is that, and no refusal of the call.
  if (isBare) return { refusal: null, answer: sent };
  return readInside(sent, sourceOf(sending), held);
}

/** Whether we cut the call, which says nothing of its upstream, unless that was silent for too long. */
function isCutByUs({ cutBy }: HeldCall): boolean {
  return cutBy !== null && cutBy !== 'idle';
}

/** Looks for a run in an answer of which the beginning may have been read. */
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

/** Shows what a pipe passes to whoever reads the events of a run besides. */
function readingRun({ events }: CheckedAnswer, pipe: PipeMetering | null): PipeMetering | null {
  if (events === undefined) return pipe;
  const push = (chunk: Uint8Array): void => {
    pipe?.meter.push(chunk);
    events.push(chunk);
  };
  return { meter: { push }, filter: pipe?.filter ?? null };
}

/** Tells what becomes of the slots of a call that is over: a run may hold them, now or then. */
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
    const { said } = events;
    // A caller that leaves the stream of a run does not end the run.
    const isOver = held.cutBy === 'revoked' || held.cutBy === 'max_hold';
    const goesOn = said?.state === 'goes on' && !isOver;
    const isKept = goesOn && (await keepForRun(candidate, admission, said.id, answer.status));
    return isKept ? leaving(sending)(outcome) : settle(outcome);
  };
}

/** Settles a call that is over, and gives its slots back. */
function settling(
  { admission, metering }: Sending,
  held: HeldCall,
  answer: Response,
  meter: UsageMeter | null,
): SettleCall {
  const end: SettleCall = (outcome) => {
    // What the upstream did not do because the call is wrong uses no tokens.
    const settlement = answer.ok ? metering?.settlement(meter) : metering?.notServed;
    reportCut(admission, answer.status, held.cutBy);
    const released = admission.release(outcome, settlement);
    const [placement] = admission.placements;
    if (placement !== undefined) traceUsage(() => settlement?.(placement).seen ?? null);
    return released;
  };
  // Each promise that a small call waits for costs it CPU.
  const caughtUp = meter?.caughtUp;
  return caughtUp === undefined ? end : (outcome) => caughtUp().then(() => end(outcome));
}

/** Leaves the slots of a call to its run: until that has ended it counts as what was reserved for it. */
function leaving({ admission }: Sending): SettleCall {
  return () => {
    admission.letGo();
    return Promise.resolve();
  };
}

/** Looks whether the call goes out without a body. What cannot go out gives its slots back. */
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

/** Ends a call whose upstream redirects it to another host. It was not served and gives no information about the limit. */
function redirected(
  { candidate: { call }, admission, metering }: Sending,
  held: HeldCall,
  redirect: Rejected,
): Rejected {
  held.giveUp();
  call.ctx.waitUntil(admission.release('refused', metering?.notServed));
  return redirect;
}

/** Reads what the headers of a served call tell its group; null: nothing that it must hear of. */
function warningIn(answer: Response, sending: Sending): UpstreamSignal | null {
  const { upstream } = sending.candidate.located;
  const hints = hintsIn(answer, upstream);
  if (hints.length === 0) return null;
  const limits = limitsOf(sending);
  const warning = nearlyEmpty(hints, upstream, limits);
  if (warning !== null || hasUnknownHeaders(upstream)) return warning;
  return newsOfLimits(hints, limits.place);
}

/** Learns from the answer to a call whose its key is, and counts the call there. */
async function learnFrom({ candidate, admission }: Sending, answer: Response): Promise<void> {
  if (await learnAccount(candidate, answer)) moveToAccount(candidate, admission);
}

/** Decompresses a body before its model is renamed: a name inside compressed bytes cannot be changed. */
async function sendPlain({ candidate: { call }, target: { headers } }: Sending): Promise<void> {
  const unpacked = await call.body.unpack(call.request, (bytes) => bytes);
  if (unpacked === 'done') headers.delete('content-encoding');
}

/** Tries another member, because the body cannot name the model as this one calls it. Rejects the call if none is left. */
function notRenamed(
  { members }: Candidate,
  { id, bodyModel }: MemberRoute,
  { tries }: CandidateAttempt,
): NotServed | Rejected {
  tries.refusedMembers.note(id, 'never_fits');
  if (members !== null && hasMemberLeft(members, tries)) return { kind: 'again', where: 'here' };
  const message = `The model in the body could not be renamed to ${bodyModel ?? ''}, as the member ${id} calls it.`;
  return rejected({ reason: 'body_unreadable', message });
}
