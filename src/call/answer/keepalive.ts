import { mediaType } from '../../runtime/header-value.ts';
import type { WaitCause } from '../../core/parts/decision-log.ts';
import { keepaliveAfterMs, keepaliveForWaitMs } from '../../routing/placement.ts';
import { packingsOf, unpacked } from '../../upstream/body/packing.ts';
import { peekAnswer } from '../../upstream/transfer/fetch-answer.ts';
import { headerDelay } from '../../upstream/refusal/refusal-delay.ts';
import { pause, PlainAbort } from '../../runtime/async.ts';
import {
  frameShapeOf,
  errorReplyFrame,
  upstreamErrorFrame,
  Opening,
  type FrameShape,
} from '../results/error-frame.ts';
import type { PositionListener, PositionUpdate } from '../acquire/open-calls.ts';
import { departures, type ProxyCall } from '../request/call.ts';
import { noteRefusal } from '../observe/note-refusal.ts';
import type { Candidate } from '../plan/plan.ts';
import {
  answered,
  LEFT_STATUS,
  never,
  type Answered,
  type FinalResult,
} from '../results/result.ts';
import { traceError } from '../observe/trace.ts';

/** Time until a caller that requests comments gets the first one, and interval between two, if its groups set none. */
const REQUESTED_AFTER_MS = 15_000;
const EVERY_MS = 15_000;

const ERROR_CHARACTERS_MAX = 8_192;

const encoder = new TextEncoder();

interface Keepalive {
  readonly shape: FrameShape;
  readonly model: string | null;
  readonly afterMs: number;
  readonly everyMs: number;
}

/** How a call is kept alive while it is queued. null if it is not. */
export function keepaliveOf({ call, located, placements }: Candidate): Keepalive | null {
  const { isStream, operation, model } = located;
  const { wantsKeepalive } = call.headers;
  if (!isStream || !operation.limited) return null;
  const shape = frameShapeOf(operation);
  if (shape === null) return null;
  const ofKey = keepaliveForWaitMs(call.caller.keyTimeoutMs ?? 0);
  const kept = placements.flatMap(({ config }) => {
    const afterMs = config === null ? null : keepaliveAfterMs(config);
    return config === null || afterMs === null
      ? []
      : [{ afterMs, everyMs: config.queue.keepalive.every_ms }];
  });
  if (ofKey !== null) kept.push({ afterMs: ofKey, everyMs: EVERY_MS });
  if (wantsKeepalive && kept.length === 0) {
    return { shape, model, afterMs: REQUESTED_AFTER_MS, everyMs: EVERY_MS };
  }
  if (kept.length === 0) return null;
  const afterMs = Math.min(...kept.map((each) => each.afterMs));
  return { shape, model, afterMs, everyMs: Math.min(...kept.map((each) => each.everyMs)) };
}

/** Makes the attempts of a call. Its answer begins with comments if it is queued for long. */
export async function keptAlive(
  candidate: Candidate,
  keepalive: Keepalive,
  attempts: (candidate: Candidate, listener: PositionListener) => Promise<FinalResult>,
): Promise<FinalResult> {
  const { call } = candidate;
  const place = new LastPosition(keepalive.everyMs);
  const signal = new PlainAbort(call.signal);
  const answer = attempts({ ...candidate, call: { ...call, signal } }, place);
  const callOff = call.after(keepalive.afterMs, () => {
    const waiting = answerWaiting(keepalive, place, answer, call, () => signal.abort());
    call.early.begin(answered(waiting));
  });
  return answer.finally(callOff);
}

const A_SLOT = 'a slot';

const WAITED_FOR: Readonly<Record<WaitCause, string>> = {
  slots: A_SLOT,
  order: A_SLOT,
  member: A_SLOT,
  cap: 'a slot within the limit of its tenant or agent',
  rates: 'room in a rate limit',
  operator_pause: 'an operator to resume the group',
  upstream_pause: 'the upstream, which is backing off',
  breaker: 'the circuit breaker',
  members_out: 'a member, because all are ejected',
  settling: 'the group, which has just restarted',
  elsewhere: 'a slot in another group',
};

function estimateWords(estimateMs: number | null, quietMs: number | undefined): string {
  if (estimateMs !== null) return `about ${Math.ceil(estimateMs / 1_000)} s`;
  if (quietMs === undefined) return 'no estimate';
  return `no estimate: no call has ended for ${Math.floor(quietMs / 1_000)} s`;
}

export class LastPosition implements PositionListener {
  readonly everyMs: number;
  #text = `waiting for ${A_SLOT}`;

  constructor(everyMs: number) {
    this.everyMs = everyMs;
  }

  report({ position, estimateMs, waitsFor, quietMs }: PositionUpdate): void {
    const what = waitsFor === undefined ? A_SLOT : WAITED_FOR[waitsFor.cause];
    this.#text = `waiting for ${what}: ${position} ahead, ${estimateWords(estimateMs, quietMs)}`;
  }

  get comment(): string {
    return `: headgate ${this.#text}\n\n`;
  }
}

/**
 * Returns an event stream immediately and keeps it alive until there is an answer, whose body follows. The status is
 * sent by then, so an error is the last event, in the dialect of the caller. The body is copied by hand, because one
 * identity stream cannot be piped into another.
 *
 * `leave` is called when the caller has left. The runtime does not report that if a comment cannot be written.
 */
export function answerWaiting(
  keepalive: Keepalive,
  place: LastPosition,
  answer: Promise<FinalResult>,
  call: Pick<ProxyCall, 'request' | 'env' | 'ctx' | 'after' | 'found'>,
  leave: () => void,
): Response {
  const { request, ctx, after } = call;
  const { readable, writable } = new IdentityTransformStream();
  const writer = writable.getWriter();
  const opening = new Opening(keepalive.shape);
  const write = async (bytes: Uint8Array): Promise<void> => {
    if (bytes.length === 0) return;
    try {
      await writer.write(bytes);
    } catch (error) {
      leave();
      throw error;
    }
  };
  const feed = async (): Promise<void> => {
    try {
      const settled = answer.then(() => true);
      do await write(opening.filler(place.comment));
      while (!(await Promise.race([settled, pause(keepalive.everyMs, after).then(() => false)])));
      const result = await answer;
      if (result.kind === 'rejected') noteRefusal(call, result.reply, call.found);
      await report((bytes) => write(opening.join(bytes)), keepalive, result);
      await write(opening.end());
      await writer.close();
    } catch (error) {
      // The caller has left, or the upstream failed. A clean end would look like success.
      await writer.abort(error).catch(() => {});
    }
  };
  // The runtime considers the request answered by now.
  ctx.waitUntil(departures.watch(request, answer, leave).catch(() => {}));
  ctx.waitUntil(feed());
  const headers = {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
  };
  return new Response(readable, { headers });
}

/** Writes the answer as the remainder of the event stream. */
async function report(
  write: (bytes: Uint8Array) => Promise<void>,
  { shape, model }: Keepalive,
  result: FinalResult,
): Promise<void> {
  switch (result.kind) {
    case 'rejected':
      traceError(result.reply.reason);
      return write(encoder.encode(errorReplyFrame(shape, result.reply, model)));
    case 'left': {
      const failure = { status: LEFT_STATUS, text: '', retryAfterMs: null };
      return write(encoder.encode(upstreamErrorFrame(shape, failure, model)));
    }
    case 'answered':
      return reportAnswer(write, { shape, model }, result);
    default:
      return never(result);
  }
}

/** Writes an upstream's answer behind the comments. */
async function reportAnswer(
  write: (bytes: Uint8Array) => Promise<void>,
  { shape, model }: Pick<Keepalive, 'shape' | 'model'>,
  { response: answer, ownHeaders }: Answered,
): Promise<void> {
  const { status, headers } = answer;
  const packings = packingsOf(headers.get('content-encoding'));
  const isStream = mediaType(headers.get('content-type')) === 'text/event-stream';
  if (!answer.ok || !isStream || packings === null || answer.body === null) {
    const { text, answer: rest } = await peekAnswer(answer, ERROR_CHARACTERS_MAX);
    await rest.body?.cancel();
    const isHopeless = (ownHeaders['x-should-retry'] ?? headers.get('x-should-retry')) === 'false';
    const retryAfterMs = isHopeless ? null : headerDelay({ headers, now: Date.now() });
    const failure = { status, text, retryAfterMs };
    return write(encoder.encode(upstreamErrorFrame(shape, failure, model)));
  }
  // Some upstreams compress although Headgate requested plain bytes. The keepalive bytes were already sent
  // uncompressed.
  const reader = unpacked(answer.body, packings).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    await write(value);
  }
}
