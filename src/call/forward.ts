import type { AnswerHeaders } from '../contract/answer-headers.ts';
import { REASONS } from '../contract/reasons.ts';
import { logEvent } from '../runtime/log.ts';
import { steadyClock } from '../runtime/steady-clock.ts';
import { whenQuiet } from '../runtime/when-quiet.ts';
import type { Outcome } from '../core/words/outcome.ts';
import type { UpstreamSignal } from '../core/words/signal.ts';
import { HeldCall } from '../upstream/transfer/held-call.ts';
import type { UpstreamRefusal } from '../upstream/refusal/classify-refusal.ts';
import type { UsageMeter } from '../upstream/usage/usage-meter.ts';
import type { Metering as PipeMetering } from '../upstream/usage/metered-pipe.ts';
import type { Admission } from './acquire/admission.ts';
import { reportCut } from './acquire/report-cut.ts';
import { limitedAt, limitsOf, sourceOf } from './answer-source.ts';
import { bareBody, mayGoBare } from './bare.ts';
import { CallNames } from './call-names.ts';
import { countInFlight } from './calls-in-flight.ts';
import { departures, retryBudgetOf } from './isolate.ts';
import { learnAccount, moveToAccount } from './learn-account.ts';
import { groupsOf, placeOf, refusalFields } from './log-refusal.ts';
import { logEgressRefused } from './observe/egress-log.ts';
import { TRACED_MODEL_MAX, traceCall, traceError, traceUsage } from './observe/trace.ts';
import { newsOfLimits } from './limit-news.ts';
import { noteUnderWay } from './limit-windows.ts';
import { isLasting, keptAnswer } from './members/last-answer.ts';
import type { MemberPlace } from './members/member-plan.ts';
import {
  firstTokenMsAt,
  hasMemberLeft,
  noteRefusedAt,
  proofBy,
} from './members/where-next-member.ts';
import { withOwnAddresses } from './own-addresses.ts';
import type { Candidate } from './plan.ts';
import { rateHeaders } from './rate-headers.ts';
import { RENAMED_BYTES_MAX } from './renamed-body.ts';
import { requestIdOf } from './request-id.ts';
import {
  hasUnknownHeaders,
  hintsIn,
  nearlyEmpty,
  readAnswer,
  readInside,
  type AnswerRead,
} from './read-answer.ts';
import { countLateError, streamEndOf, withStreamEnd } from './late-error.ts';
import {
  answered,
  LEFT,
  rejected,
  type Again,
  type Answered,
  type Left,
  type Moved,
  type Rejected,
} from './result.ts';
import { keepForRun, mayStartRun, type Looked } from './runs/hold-run.ts';
import { isRunStream } from './runs/run-stream.ts';
import { watchRun, type RunWatch } from './runs/watch-run.ts';
import type { Sending } from './sending.ts';
import { notSwitched, passSession } from './socket/pass-session.ts';
import { isNotSwitched } from './socket/upgrade.ts';
import { unreachable, uploadTooSlow } from './unreachable.ts';
import { saidOfDropped } from './target.ts';
import type { Turn } from './tries.ts';
import { canBeSentAgain, whereNext } from './where-next.ts';

const UNSAID: AnswerRead = { refusal: null, answer: null };

type Forwarded = Answered | Rejected | Again | Moved | Left;

/** Sends a call that holds its slots, and holds them until the last byte of the answer. */
export async function forward(sending: Sending): Promise<Forwarded> {
  const { candidate, turn, target, metering, admission } = sending;
  const { call, rules, located, members, member } = candidate;
  const { ticket, tries, hasNext } = turn;
  const { request, ctx, after, body } = call;
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
  if (member !== null && model !== null && !body.rename(model)) {
    held.giveUp();
    await admission.release('unused');
    return notRenamed(candidate, member, turn);
  }
  const isBare = mayGoBare(request.method);
  const bare = isBare ? await bareOf(sending, held) : 'with body';
  if (typeof bare === 'object') return bare;
  const watchesRun = watchRun(candidate);
  // What it says of a run must be readable.
  if (watchesRun !== null) target.headers.set('accept-encoding', 'identity');
  tries.noteSent();
  retryBudgetOf(upstream.id).noteCall();
  body.onFault(() => held.cut('body'));
  const open = (): BodyInit | null => (bare === 'bare' ? null : body.open(pace, metering?.asking));
  const init = { method: request.method, headers: target.headers, body: open() };
  const openAgain = (): BodyInit | null => {
    tries.noteSent();
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
  const sent = received?.answer ?? null;
  const inside = await readSent(sending, held, sent, isBare);
  if (held.cutBy === 'slow') return tooSlow(sending);
  const read = inside.answer === null && isCutByUs(held) ? UNSAID : inside;
  const { refusal, answer, isMistake } = read;
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
  const looked: Looked = watched ?? { answer, isHeld: false };
  const meter = metering?.meterFor(answer) ?? null;
  const end = streamEndOf(answer, located, held.hasWhole);
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
): Promise<Looked> {
  const isReadAsItPasses = isRunStream(answer) && mayStartRun(candidate);
  const unread = isReadAsItPasses ? answer : held.unread(answer);
  return watchesRun(admission, unread, held.takesWhole(unread));
}

type SettleCall = (outcome: Outcome) => Promise<void>;

/** Shows what a pipe passes to whoever reads the events of a run besides. */
function readingRun({ events }: Looked, pipe: PipeMetering | null): PipeMetering | null {
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
  { answer, isHeld, events, isOwn }: Looked,
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
    if (placement !== undefined) traceUsage(settlement?.(placement).seen ?? null);
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
): Promise<'bare' | 'with body' | Rejected | Left> {
  const { call } = candidate;
  const looking = bareBody(call.request.method, call.body, held.signal, held.pace());
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

/** Tells the groups of the call what is noted of an answer. */
function reportAnswer(
  { candidate: { located }, turn: { tries }, admission }: Sending,
  { status, headers }: Response,
): void {
  const requestId = requestIdOf(headers, located.upstream);
  const isAgain = tries.sent > 1;
  const notes =
    requestId === null && !isAgain
      ? undefined
      : { ...(requestId !== null && { requestId }), ...(isAgain && { sent: tries.sent }) };
  admission.reportAnswer(status, notes);
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

/** Whether an answer may say something of the caller's key: it goes nowhere but where the call was made. */
function isAboutKey({ spilledFrom }: Candidate): boolean {
  return spilledFrom === null;
}

/** Learns from the answer to a call whose its key is, and counts the call there. */
async function learnFrom({ candidate, admission }: Sending, answer: Response): Promise<void> {
  if (await learnAccount(candidate, answer)) moveToAccount(candidate, admission);
}

/** Goes on to another member, as the body cannot name the model as this one calls it; there may be none. */
function notRenamed(
  { members }: Candidate,
  { id, bodyModel }: MemberPlace,
  { tries }: Turn,
): Again | Rejected {
  tries.refusedMembers.note(id, 'never_fits');
  if (members !== null && hasMemberLeft(members, tries)) return { kind: 'again', where: 'here' };
  const message = `The model in the body could not be renamed to ${bodyModel ?? ''}, as the member ${id} calls it.`;
  return rejected({ reason: 'body_unreadable', message });
}

/** Leaves an upstream that has said nothing in time, of which no group learns: it may be on its way. */
async function tooSlow(sending: Sending): Promise<Again> {
  const { candidate, turn, admission } = sending;
  const { call, located, members, member } = candidate;
  logEvent('upstream_slow', {
    upstream: located.upstream.id,
    model: located.model?.slice(0, TRACED_MODEL_MAX) ?? null,
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

/** The way of a call that leaves a slow upstream. */
const SLOW: Again = { kind: 'again', where: 'elsewhere', isSlow: true };

/** The status of an attempt that was left for another place. */
const SLOW_STATUS = 504;

/** How long the first content of a call may take, where the call can go elsewhere; null: any time. */
function firstTokenMsOf({ candidate, turn }: Sending): number | null {
  if (!canBeSentAgain(candidate)) return null;
  const { members, member } = candidate;
  const atMember =
    members === null || member === null ? null : firstTokenMsAt(members, member, turn.tries);
  return atMember ?? turn.firstTokenMs;
}

/** Has a call placed anew that was refused. Nothing was said of the slot that it had, which nobody needs any more. */
async function begunAnew(
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

/** Tells its groups why the upstream did not serve the call, which goes on or gets the upstream's answer. */
async function refused(
  sending: Sending,
  held: HeldCall,
  refusal: UpstreamRefusal,
  answer: Response | null,
  waitMs: number,
): Promise<Forwarded> {
  const { candidate, turn, admission, metering } = sending;
  const { call, members, member } = candidate;
  const { body } = call;
  const { tries } = turn;
  const { kind } = refusal.signal;
  if (kind === 'concurrency' && refusal.isOfApi && answer !== null && body.isKept) {
    // It is the account that has too many calls under way: the call waits in the pool of that, and not of its key. What stands
    // before an API refuses with the same words whoever has no key at all.
    const isFound = await learnAccount(candidate, answer);
    if (isFound && candidate.routed.account?.kind === 'unproved') return begunAnew(sending, held);
  }
  if (kind === 'egress') logEgressRefused(candidate, answer);
  else logEvent('upstream_refused', refusalFields(sending, refusal, answer?.status ?? null));
  if (answer !== null) reportAnswer(sending, answer);
  const isRepeat = tries.noteRefused(placeOf(candidate), refusal.signal);
  if (members !== null && member !== null && kind !== 'served') {
    noteRefusedAt(tries, members, member, kind);
  }
  await new CallNames(candidate).readKept();
  admission.report(refusal.signal, refusal.scope, isRepeat);
  const notServed = metering?.notServed;
  // What is refused for its own sake says nothing of the slot.
  const outcomeOf = (outcome: Outcome): Outcome => (refusal.isFinal ? 'refused' : outcome);
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

/** Keeps the answer of a member that refused the call, for the case that no other one has room for it. */
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

/**
 * Passes the upstream's answer on, and settles the call at its last byte. Until then it counts as in flight, and
 * is cut if its caller leaves. Null: the connection broke before anything of the answer was passed on.
 */
async function relay(
  { candidate: { call }, admission }: Sending,
  held: HeldCall,
  answer: Response,
  pipe: PipeMetering | null,
  settle: (outcome: Outcome) => Promise<void>,
  { events, isOwn }: Partial<Looked> = {},
): Promise<Response | null> {
  const { body, request, ctx } = call;
  body.answered();
  const { response, done, isWhole } = await held.relay(answer, pipe);
  const settled = done.then(settle);
  // An error at its end may be about what the body names.
  body.neededUntil(settled);
  countInFlight(
    departures.watch(request, settled, () => held.cut('left')),
    ctx,
  );
  // The run is held before its caller learns of it, so its end cannot be reported before that.
  if (isWhole && isOwn === true) await events?.caughtUp?.();
  if (isWhole && isOwn === true && events?.said?.state === 'goes on') await settled;
  // The slot is free by now: whoever waits for it goes first. One turn of the loop, which costs more CPU than it is worth
  // where nobody waits.
  if (isWhole && admission.hasWaiters) await whenQuiet();
  return response;
}

/** The headers by which Headgate tells of the call on its answer. `theirs`: those of the upstream. */
function signature(
  { candidate: { located, member }, turn: { tries }, target, admission }: Sending,
  waitMs: number,
  theirs: Headers,
): AnswerHeaders {
  const groups = groupsOf(admission);
  const memberId = member?.id ?? null;
  traceCall({ located, groups, member: memberId, waitMs, tries: tries.sent });
  const { leaseIds, rates } = admission;
  return {
    ...(rates.length > 0 && rateHeaders(rates, theirs)),
    'headgate-groups': groups,
    'headgate-wait-ms': String(waitMs),
    'headgate-tries': String(tries.sent),
    ...(memberId !== null && { 'headgate-member': memberId }),
    ...(leaseIds.length > 0 && { 'headgate-lease': leaseIds.join(', ') }),
    ...(target.dropped.length > 0 && saidOfDropped(target)),
  };
}

/** Counts a call that was cut before its answer, because its caller sent too slowly. */
function reportSlow(admission: Admission, { cutBy }: HeldCall): void {
  if (cutBy === 'request_timeout') reportCut(admission, REASONS.request_timeout.status, cutBy);
}

function noAnswer({ call, located, rules }: Candidate, { cutBy }: HeldCall): Rejected | Left {
  const { fault } = call.body;
  if (fault !== null) return rejected(fault);
  if (cutBy === 'request_timeout') return uploadTooSlow(rules.hold);
  return cutBy === 'left' ? LEFT : unreachable(located.upstream.id, cutBy);
}
