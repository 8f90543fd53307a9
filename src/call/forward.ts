import { steadyClock } from '../runtime/steady-clock.ts';
import { logEvent } from '../runtime/log.ts';
import { putAnswerHeaders } from '../contract/answer-headers.ts';
import type { ErrorReply } from '../contract/reasons.ts';
import type { Outcome } from '../core/words/outcome.ts';
import type { UpstreamSignal } from '../core/words/signal.ts';
import { HeldCall, type CutReason } from '../upstream/transfer/held-call.ts';
import { keepBody } from '../upstream/body/kept-body.ts';
import type { UpstreamRefusal } from '../upstream/refusal/classify-refusal.ts';
import type { Admission, Ticket } from './acquire/admission.ts';
import type { CallRules } from './call-rules.ts';
import { countInFlight } from './calls-in-flight.ts';
import type { ProxyCall } from './call.ts';
import { bodyBudget, departures, retryBudgetOf } from './isolate.ts';
import { judge, nearlyEmpty, type Verdict } from './read-answer.ts';
import type { Located } from './locate.ts';
import type { Metering } from './metering.ts';
import type { Target } from './target.ts';
import { TRACED_MODEL_MAX, traceCall, traceError, traceUsage } from './observe/trace.ts';
import type { Tries } from './tries.ts';
import { noteLatency } from './observe/upstream-latency.ts';

/** A call that its upstream did not serve, with its body kept. All its slots are given back. */
export interface Again {
  readonly kind: 'again';
  readonly located: Located;
  /**
   * `here`: it takes its place in the queue once more, after a moment if the upstream failed. `elsewhere`:
   * at another upstream, if there is one.
   */
  readonly where: 'here' | 'here later' | 'elsewhere';
}

/** Bodies up to this size are kept without asking the budget: hundreds may be at their upstreams. */
const EXEMPT_BYTES = 32_768;

const UNSAID: Verdict = { refusal: null, answer: null };

/** A call that has its slots, and everything that it needs to be sent. */
export interface Sending {
  readonly call: ProxyCall;
  readonly located: Located;
  readonly target: Target;
  readonly ticket: Ticket;
  readonly tries: Tries;
  readonly rules: CallRules;
  readonly metering: Metering | null;
  /** Whether another upstream may be asked after an error of this one. */
  readonly hasNext: boolean;
  readonly admission: Admission;
}

/** Sends a call that holds its slots, and holds them until the last byte of the answer. */
export async function sendHeld(sending: Sending): Promise<Response | ErrorReply | Again | 'left'> {
  const { call, rules, target, tries, metering, admission, hasNext } = sending;
  const { request, ctx, after } = call;
  const waitMs = Math.round(steadyClock.now() - sending.ticket.enqueuedAt);
  const held = new HeldCall(call.signal, rules.hold, after);
  admission.keep(() => held.cut('revoked'));
  const mayBeNeeded = hasNext || (rules.mayWait && sending.ticket.maxWaitMs !== 0);
  const keptBytesMax = mayBeNeeded ? rules.retries.max_body_bytes : 0;
  const { body: asItCame } = sending.located;
  const kept = await keepBody(asItCame, keptBytesMax, bodyBudget, held.signal, EXEMPT_BYTES);
  if (kept === 'aborted') {
    held.giveUp();
    ctx.waitUntil(admission.release('unused'));
    return noAnswer(sending, held);
  }
  const located = kept === null ? sending.located : { ...sending.located, body: kept };
  const { body, upstream } = located;
  tries.noteSent();
  retryBudgetOf(upstream.id).noteCall();
  body.watch?.onFault(() => held.cut('body'));
  const open = (): BodyInit | null => metering?.injected ?? body.open();
  const init = { method: request.method, headers: target.headers, body: open() };
  const openAgain = (): BodyInit | null => {
    tries.noteSent();
    logEvent('upstream_not_http', { upstream: upstream.id });
    return open();
  };
  const sentAt = steadyClock.now();
  const again = 'bytes' in body ? openAgain : null;
  const sent = await held.send(target.fetcher, target.url, init, again);
  // A call that we cut says nothing of its upstream, unless that was silent for too long.
  const isCut = sent === null && held.cutBy !== null && held.cutBy !== 'idle';
  const { refusal, answer } = isCut ? UNSAID : await judge(sent, upstream);
  if (refusal !== null) return refused({ ...sending, located }, held, refusal, answer, waitMs);
  if (answer === null || held.cutBy === 'body') {
    body.discard();
    ctx.waitUntil(admission.release('cancelled'));
    return noAnswer(sending, held);
  }
  noteLatency(upstream.id, steadyClock.now() - sentAt);
  admission.reportStatus(answer.status);
  admission.reportServed(nearlyEmpty(answer, upstream, rules.feedForward));
  // It will not be sent again, so there is no need to hold it for as long as the answer takes.
  if ('bytes' in body) body.discard();
  const meter = metering?.meterFor(answer) ?? null;
  const { response, done } = await held.relay(answer, metering?.pipeFor(meter, answer) ?? null);
  const settle = (outcome: Outcome): Promise<void> => {
    body.discard();
    // What the upstream did not do because the call is wrong uses no tokens.
    const settlement = answer.ok ? metering?.settlement(meter) : metering?.notServed;
    const released = admission.release(outcome, settlement);
    const [placement] = admission.placements;
    if (placement !== undefined) traceUsage(settlement?.(placement).seen ?? null);
    return released;
  };
  keepUntil(done.then(settle), held, call);
  return response === null ? noAnswer(sending, held) : signed(response, sending, waitMs);
}

/** The upstream did not serve the call: its groups hear why, and the call goes on or its caller is told. */
async function refused(
  sending: Sending,
  held: HeldCall,
  refusal: UpstreamRefusal,
  answer: Response | null,
  waitMs: number,
): Promise<Response | ErrorReply | Again | 'left'> {
  const { call, located, tries, admission, metering } = sending;
  const { body } = located;
  const { kind, retryAfterMs } = refusal.signal;
  const model = located.model?.slice(0, TRACED_MODEL_MAX) ?? null;
  logEvent('upstream_refused', {
    upstream: located.upstream.id,
    model,
    groups: groupsOf(admission),
    status: answer?.status ?? null,
    kind,
    retry_after_ms: retryAfterMs,
    // The names that OpenTelemetry's GenAI conventions have for the same, for whoever joins it to traces.
    'gen_ai.provider.name': located.upstream.id,
    'gen_ai.request.model': model,
    'error.type': kind,
  });
  if (answer !== null) admission.reportStatus(answer.status);
  const isRepeat = tries.noteRefused(located.upstream.id, refusal.signal);
  admission.report(refusal.signal, refusal.scope, isRepeat);
  const notServed = metering?.notServed;
  const where = mayGoAgain(sending) ? whereTo(sending, kind) : null;
  if (where !== null || answer === null) {
    held.giveUp();
    // What the upstream said must be known to its group before the call asks again.
    const released = admission.release('failed', notServed);
    // A caller that leaves now does not spare the slot its hold.
    call.ctx.waitUntil(released);
    if (where !== null) {
      await released;
      return { kind: 'again', located, where };
    }
    body.discard();
    return noAnswer(sending, held);
  }
  const { response, done } = await held.relay(answer, null);
  const settle = (outcome: Outcome): Promise<void> => {
    body.discard();
    // What is refused for its own sake says nothing of the slot.
    return admission.release(refusal.isFinal ? 'refused' : outcome, notServed);
  };
  keepUntil(done.then(settle), held, call);
  if (response === null) return noAnswer(sending, held);
  traceError(kind);
  if (refusal.isFinal) putAnswerHeaders(response.headers, { 'x-should-retry': 'false' });
  return signed(response, sending, waitMs);
}

/** Counts the call until it is settled, and ends it before if its caller leaves. */
function keepUntil(settled: Promise<void>, held: HeldCall, { request, ctx }: ProxyCall): void {
  countInFlight(
    departures.watch(request, settled, () => held.cut('left')),
    ctx,
  );
}

/** Whether its body is there to be sent again. One may be kept for its tokens' sake alone, and too long. */
function mayGoAgain({ located: { body }, rules }: Sending): boolean {
  return 'bytes' in body && (body.contentLength ?? 0) <= rules.retries.max_body_bytes;
}

/** Where a call goes that was not served; null: to its caller. */
function whereTo(sending: Sending, kind: UpstreamSignal['kind']): Again['where'] | null {
  const { ticket, tries, rules, located, hasNext } = sending;
  switch (kind) {
    case 'concurrency':
    case 'requests':
    case 'tokens':
    case 'ramp':
    case 'unknown':
      if (rules.mayWait && ticket.maxWaitMs !== 0 && tries.mayReenter()) return 'here';
      return hasNext ? 'elsewhere' : null;
    case 'overload':
    case 'error': {
      const { max, budget } = rules.retries;
      const mayWait = rules.mayWait && ticket.maxWaitMs !== 0;
      if (mayWait && tries.mayRetry(max, retryBudgetOf(located.upstream.id), budget)) {
        return 'here later';
      }
      return hasNext ? 'elsewhere' : null;
    }
    case 'quota':
    case 'long_window':
      return hasNext ? 'elsewhere' : null;
    case 'never_fits':
    case 'served':
      return null;
  }
}

function signed(response: Response, sending: Sending, waitMs: number): Response {
  const { admission, tries, located } = sending;
  const groups = groupsOf(admission);
  traceCall({ located, groups, waitMs, tries: tries.sent });
  const { leaseIds } = admission;
  putAnswerHeaders(response.headers, {
    'headgate-groups': groups,
    'headgate-wait-ms': String(waitMs),
    'headgate-tries': String(tries.sent),
    ...(leaseIds.length > 0 && { 'headgate-lease': leaseIds.join(', ') }),
  });
  return response;
}

function groupsOf({ placements }: Admission): string {
  return placements.map(({ group }) => group).join(', ');
}

function noAnswer({ located }: Sending, { cutBy }: HeldCall): ErrorReply | 'left' {
  const fault = located.body.watch?.fault ?? null;
  if (fault !== null) return fault;
  return cutBy === 'left' ? 'left' : unreachable(located.upstream.id, cutBy);
}

/** The refusal of a call that its upstream gave no answer to. */
export function unreachable(upstreamId: string, cutBy: CutReason | null): ErrorReply {
  const why: Record<CutReason, string> = {
    left: 'the caller has gone',
    body: 'what was left of the body may not go out',
    revoked: 'the call was ended by the operator',
    idle: 'it sent nothing in time',
    stalled: 'the caller took nothing of it in time',
    max_hold: 'the call took longer than its group allows',
  };
  const because = cutBy === null ? 'the connection failed' : why[cutBy];
  const message = `The upstream ${upstreamId} gave no answer: ${because}.`;
  return { reason: 'upstream_unreachable', message };
}
