import type { Schedule, Background } from '../../runtime/async.ts';
import type { CutReason, LeaseOutcome } from '../../core/words/outcome.ts';
import type { HeldCall } from '../../upstream/transfer/held-call.ts';
import {
  isFailure,
  NO_FRAME,
  SocketPipe,
  type SocketEnd,
} from '../../upstream/socket/socket-pipe.ts';
import { callerResponseHeaders } from '../../upstream/transfer/headers.ts';
import type { Dialect } from '../../contract/http.ts';
import { frameText, type Frame } from '../../upstream/socket/messages.ts';
import { tiersInUsage, reportedTier, type ServiceTiers } from '../../upstream/usage/tiers.ts';
import { usageFromJson, type TokenUsage } from '../../upstream/usage/usage.ts';
import type { MeteredUsage } from '../../upstream/usage/usage-meter.ts';
import { countInFlight, departures } from '../request/call.ts';
import { rejected, type Rejected } from '../results/result.ts';
import { unserved } from '../request/upgrade.ts';
import type { Candidate } from '../plan/plan.ts';
import { reportCut, type Sending } from './sending.ts';
import { sessionLook, sessionGuard } from './may-go-on.ts';

/** WebSocket sessions, which hold their slots until they close, and the open WebSockets of this isolate. */

/** How often an open WebSocket is checked. By then a change has reached every isolate. */
const LOOK_MS = 5_000;

interface OpenSocket {
  readonly cut: (reason: CutReason) => void;
  /** Why it must end. null if it may stay open. */
  readonly whyEnd: () => Promise<CutReason | null>;
  /** Whether it is idle. Absent if it is in use for as long as it is open. */
  readonly isAtRest?: () => boolean;
}

/** How often a WebSocket that has to end once idle is checked. */
const REST_LOOK_MS = 100;

/** The WebSockets of this isolate. Changes of a key or a group must reach them too, long after their upgrade. */
class OpenSockets {
  readonly #stops = new Set<() => void>();
  readonly #stopsAtRest = new Set<() => void>();

  /** Watches a WebSocket until the returned function is called. */
  watch({ cut, whyEnd, isAtRest }: OpenSocket, after: Schedule): () => void {
    let hasEnded = false;
    const look = async (): Promise<void> => {
      const reason = await whyEnd().catch(() => null);
      if (hasEnded) return;
      // A running turn is a call, which ends before its connection is replaced.
      const isLater = reason === 'restart' && isAtRest?.() === false;
      if (reason === null || isLater) after(LOOK_MS, () => void look());
      else cut(reason);
    };
    const lookForRest = (): void => {
      if (hasEnded) return;
      if (isAtRest?.() === true) cut('restart');
      else after(REST_LOOK_MS, lookForRest);
    };
    const forget = [
      onSignal(this.#stops, () => cut('restart')),
      onSignal(this.#stopsAtRest, lookForRest),
    ];
    after(LOOK_MS, () => void look());
    return () => {
      hasEnded = true;
      for (const end of forget) end();
    };
  }

  /** Ends idle WebSockets now and others once they are idle, because the process is about to end. */
  stopAtRest(): void {
    for (const report of this.#stopsAtRest) report();
  }

  /** Ends all of them, because the process ends. */
  stop(): void {
    for (const report of this.#stops) report();
  }
}

/** Runs a function once on a signal. The returned function cancels that. */
function onSignal(reported: Set<() => void>, then: () => void): () => void {
  // A promise, because a socket belongs to another request than the one that signals the end.
  const { promise, resolve } = Promise.withResolvers<void>();
  promise.then(then).catch(() => {});
  reported.add(resolve);
  return () => reported.delete(resolve);
}

export const openSockets = new OpenSockets();

/** How long a caller may take to read what was sent before the close. */
const UNREAD_MS = 10_000;

/** The method of a request's context that ends it with all its resources, if the runtime has it. */
interface Abortable {
  abort?(reason: Error): void;
}

/**
 * Breaks the connection of a caller that does not read a closed WebSocket to its end. The close is queued behind the
 * unread messages, which would stay in memory until the caller leaves.
 */
export function dropWhenUnread(
  pipe: { readonly unsentBytes: number },
  ctx: Background & Abortable,
  after: Schedule,
): void {
  if (pipe.unsentBytes === 0) return;
  after(UNREAD_MS, () => {
    if (pipe.unsentBytes > 0) ctx.abort?.(new Error('the caller does not read'));
  });
}

/**
 * Starts a session between both sides, and settles it once the upstream has released it. Returns the 101 for its
 * caller.
 */
export function passSession({ candidate, metering, admission }: Sending, opened: Opened): Response {
  const { call, located } = candidate;
  const { held, answer } = opened;
  call.body.answered();
  const usage = metering === null ? null : new SocketUsage(located.operation.shape);
  const { response, done } = carrySession(opened, candidate, usage);
  const settled = done.then(({ outcome, cutBy }) => {
    reportCut(admission, answer.status, cutBy);
    const settle = usage?.isKnown === true ? metering?.settlement(usage) : undefined;
    return admission.release(outcome, settle);
  });
  countInFlight(
    departures.watch(call.request, settled, () => held.cut('left')),
    call.ctx,
  );
  return response;
}

/**
 * Refuses a session whose upstream has answered it like a GET, because the caller may not be allowed to read that
 * answer.
 */
export function notSwitched(
  { candidate: { call }, admission }: Sending,
  held: HeldCall,
  answer: Response,
): Rejected {
  held.giveUp();
  call.ctx.waitUntil(Promise.allSettled([answer.body?.cancel(), admission.release('refused')]));
  return rejected(unserved(call.url));
}

interface Opened {
  readonly held: HeldCall;
  readonly answer: Response;
  readonly socket: WebSocket;
}

interface SocketSession {
  /** The 101 for its caller. */
  readonly response: Response;
  /** Resolves once the upstream has released it. */
  readonly done: Promise<SessionEnd>;
}

interface SessionEnd {
  readonly outcome: LeaseOutcome;
  /** Why Headgate ended it. null if one of its sides did. */
  readonly cutBy: CutReason | null;
}

/**
 * Carries a session between its caller and its upstream while it holds its slot. `usage` is null if usage is not
 * counted.
 */
function carrySession(
  { held, answer, socket }: Opened,
  candidate: Candidate,
  usage: SocketUsage | null,
): SocketSession {
  const { call, rules } = candidate;
  const { after, ctx } = call;
  const guard = sessionGuard(candidate);
  const { client, server } = socketPair();
  const pipe = new SocketPipe(server, {
    after,
    idleMs: rules.hold.idleMs,
    onCaller: (frame) => {
      const objection = guard === null ? null : guard(frame);
      if (objection === null) upstream.send(frame);
      else pipe.cut(objection.reason, objection.why);
    },
  });
  const upstream = pipe.join(socket, {
    breakUpstream: () => held.giveUp(),
    ...(usage !== null && {
      onUpstream: (frame) => {
        usage.read(frame);
        pipe.toCaller(frame);
      },
    }),
  });
  held.endWith((reason) => pipe.cut(reason));
  const stopLooking = openSockets.watch(
    { cut: (reason) => held.cut(reason), whyEnd: sessionLook(candidate) },
    after,
  );
  const done = pipe.done.then((end) => {
    stopLooking();
    held.giveUp();
    dropWhenUnread(pipe, ctx, after);
    return readEnd(end);
  });
  return { response: switched(answer, client), done };
}

/** The 101 that gives a caller its end of a pair. */
export function switched(answer: Response, webSocket: WebSocket): Response {
  const headers = callerResponseHeaders(new Headers(answer.headers));
  return new Response(null, { status: 101, webSocket, headers });
}

/** Makes two connected sockets. One is returned with the answer, and the other one is used here. */
export function socketPair(): { readonly client: WebSocket; readonly server: WebSocket } {
  const { 0: client, 1: server } = new WebSocketPair();
  return { client, server };
}

function readEnd({ by, code }: SocketEnd): SessionEnd {
  if (by === 'upstream') return { outcome: isFailure(code) ? 'failed' : 'success', cutBy: null };
  if (by !== 'caller') return { outcome: 'cancelled', cutBy: by };
  return { outcome: code === NO_FRAME ? 'cancelled' : 'success', cutBy: null };
}

/** Recognizes messages that may report usage, without parsing them. */
const MAY_REPORT = /"usage(?:Metadata)?"\s*:/;

/** The usage of a session or a turn. The upstream reports it once for each answer, and the reports are added up. */
export class SocketUsage {
  readonly #shape: Dialect;
  #sum: TokenUsage | null = null;
  /** The tiers of the last answer. */
  #tiers: ServiceTiers = {};

  constructor(shape: Dialect) {
    this.#shape = shape;
  }

  read(frame: Frame): void {
    const text = frameText(frame);
    if (!MAY_REPORT.test(text)) return;
    const { usage, tiers } = reportIn(text);
    this.#add(usageFromJson(this.#shape, usage));
    this.#tiers = { ...this.#tiers, ...tiers };
  }

  get isKnown(): boolean {
    return this.#sum !== null;
  }

  end(): MeteredUsage {
    const seen = { usage: this.#sum, outputTokensSeen: this.#sum?.outputTokens ?? 0 };
    return { ...seen, tiers: this.#tiers };
  }

  #add(usage: TokenUsage | null): void {
    if (usage === null) return;
    const before = this.#sum;
    this.#sum = before === null ? usage : sumOf(before, usage);
  }
}

function sumOf(one: TokenUsage, other: TokenUsage): TokenUsage {
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    cacheReadTokens: one.cacheReadTokens + other.cacheReadTokens,
    cacheWriteTokens: one.cacheWriteTokens + other.cacheWriteTokens,
    outputTokens: one.outputTokens + other.outputTokens,
  };
}

/** OpenAI reports with the event that ends an answer or a transcription, Gemini in a separate field. */
function reportIn(text: string): { readonly usage: unknown; readonly tiers: ServiceTiers } {
  try {
    const message = JSON.parse(text) as {
      readonly response?: { readonly usage?: unknown; readonly service_tier?: unknown } | null;
      readonly usageMetadata?: unknown;
      readonly usage?: unknown;
    };
    const usage = message.response?.usage ?? message.usageMetadata ?? message.usage;
    const tier = reportedTier('service_tier', message.response?.service_tier);
    return { usage, tiers: { ...tiersInUsage(usage), ...tier } };
  } catch {
    return { usage: null, tiers: {} };
  }
}
