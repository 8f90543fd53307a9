import type { LeaseOutcome } from '../../core/words/outcome.ts';
import type { ReportedRun } from '../../upstream/operation/runs.ts';
import { isFailure } from '../../upstream/socket/close.ts';
import type { ResponsesEvent } from '../../upstream/socket/responses-messages.ts';
import type { SocketEnd, SocketPipe } from '../../upstream/socket/socket-pipe.ts';
import { BoundWatch } from '../../upstream/transfer/bound-watch.ts';
import type { Admission, Settle } from '../acquire/admission.ts';
import { retryBudgetOf } from '../isolate.ts';
import type { Metering } from '../metering.ts';
import type { Candidate } from '../plan.ts';
import { sourceOf, type AnswerSource } from '../answer-source.ts';
import { placeOf } from '../log-refusal.ts';
import { readAnswer, readFailedEvent } from '../read-answer.ts';
import type { NotServed } from '../result.ts';
import { keepForRun } from '../runs/hold-run.ts';
import type { CandidateAttempt } from '../attempts/call-attempts.ts';
import { whereNext } from '../attempts/where-next.ts';
import { frameOf, type TurnRequest } from './plan-turn.ts';
import { SocketUsage } from './socket-usage.ts';

/** Timeout of the first event of an answer if the group sets none. */
const FIRST_EVENT_MS = 600_000;

/** How long an answer with accepted input may take to continue. No event is sent between its parts. */
const CONTINUE_MS = 5_000;

/** How long an answer may take to begin after an error that may be about another message. */
const IN_DOUBT_MS = 10_000;

/** Statuses of an upstream without room. They always refuse a turn. */
const NO_ROOM: ReadonlySet<number> = new Set([429, 503, 529]);

/** The answer to a turn has begun, or its caller has received the error instead. */
export interface TurnAnswered {
  readonly kind: 'answered';
}

export interface TurnParts {
  readonly candidate: Candidate;
  readonly admission: Admission;
  readonly metering: Metering | null;
  readonly turn: CandidateAttempt<TurnAnswered>;
  readonly pipe: SocketPipe;
  /** Whether an error certainly concerns the turn. It may be about another message of its client. */
  readonly isOwnError: () => boolean;
  /** Called when its answer has begun. */
  readonly onBegun: () => void;
}

/**
 * One request for a response on a connection while it holds its slots: from its message to the event that ends the
 * answer.
 */
export class Turn {
  readonly #request: TurnRequest;
  readonly #parts: TurnParts;
  readonly #answered = Promise.withResolvers<NotServed['where'] | null>();
  readonly #ended = Promise.withResolvers<void>();
  readonly #idle: BoundWatch;
  #callOffHold = (): void => {};
  readonly #usage: SocketUsage;
  /** Ends the turn whose answer has ended but may continue. null if it has not ended. */
  #endNow: (() => void) | null = null;
  #isAnswered = false;
  #hasBegun = false;
  #hasEnded = false;
  /** The turn was refused and is retried, so the remainder of this answer is discarded. */
  #isRetried = false;
  /** Latest state of the background run that the answer is. null if it is not a run. */
  #run: ReportedRun | null = null;
  /** Inputs that the upstream has accepted and will continue with. */
  #steers = 0;

  constructor(request: TurnRequest, parts: TurnParts) {
    this.#request = request;
    this.#parts = parts;
    this.#usage = new SocketUsage(parts.candidate.located.operation.shape);
    const { candidate, admission, pipe } = parts;
    const { after } = candidate.call;
    const { hold } = candidate.rules;
    const onOver = (): void => pipe.cut('idle');
    this.#idle = new BoundWatch({ afterMs: hold.idleMs ?? FIRST_EVENT_MS, onOver, after });
    this.#callOffHold = after(hold.maxHoldMs, () => pipe.cut('max_hold'));
    admission.keep(() => pipe.cut('revoked'));
  }

  /** null if the answer has begun, or is an error that its caller received. Otherwise where the turn is retried. */
  get answered(): Promise<NotServed['where'] | null> {
    return this.#answered.promise;
  }

  /** Resolves when the slots are released. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  get isAnswered(): boolean {
    return this.#isAnswered;
  }

  send(): void {
    const { pipe, turn, candidate } = this.#parts;
    turn.tries.noteSent();
    retryBudgetOf(candidate.located.upstream.id).noteCall();
    this.#idle.begin();
    const frame = frameOf(this.#request);
    if (frame !== null) pipe.toUpstream(frame);
  }

  /**
   * Receives an event of its answer, and forwards it unless the turn is retried. Later frames must wait for the
   * promise, because an error is not forwarded before it is classified.
   */
  receive(event: ResponsesEvent, frame: string): Promise<void> | void {
    const { pipe } = this.#parts;
    if (this.#isRetried) return;
    this.#noteEvent();
    const { means, run } = event;
    this.#run = run ?? this.#run;
    if (means.kind === 'error' && !this.#hasEnded) {
      return this.#isTurnError(means.status)
        ? this.#refused(means, frame)
        : this.#passOtherError(frame);
    }
    if (!this.#isAnswered) this.#begun();
    pipe.toCaller(frame);
    switch (means.kind) {
      case 'begun':
        this.#hasBegun = true;
        this.#parts.onBegun();
        this.#steers = 0;
        this.#endNow = null;
        break;
      case 'steered':
        this.#steers = Math.max(0, this.#steers + (means.isTaken ? 1 : -1));
        if (this.#steers === 0) this.#endNow?.();
        break;
      case 'ended':
        this.#endedBy(means.isFailed ? 'failed' : 'success', frame);
        break;
      case 'error':
      case 'other':
    }
  }

  #isTurnError(status: number): boolean {
    return (!this.#hasBegun && NO_ROOM.has(status)) || this.#parts.isOwnError();
  }

  /**
   * Forwards an error that may be about another message. Such messages must not release the slot while the answer
   * continues, so it is held until that ends, or nothing more arrives.
   */
  #passOtherError(frame: string): void {
    const { pipe, candidate } = this.#parts;
    this.#idle.begin();
    pipe.toCaller(frame);
    if (this.#hasBegun) return;
    candidate.call.after(IN_DOUBT_MS, () => {
      if (!this.#hasBegun && !this.#hasEnded) pipe.cut('idle');
    });
  }

  cut({ by, code }: SocketEnd, outcome: LeaseOutcome | null = null): Promise<void> {
    const isBroken = by === 'upstream' && isFailure(code);
    if (by !== 'upstream' && by !== 'caller' && by !== 'left') {
      this.#parts.admission.reportAnswer(200, { cut: by });
    }
    // The end of the connection does not end the run, unless its lease was revoked.
    if (by === 'revoked' || by === 'max_hold') this.#run = null;
    return this.#end(outcome ?? (isBroken ? 'failed' : 'cancelled'));
  }

  #noteEvent(): void {
    const { hold } = this.#parts.candidate.rules;
    if (hold.idleMs === null) this.#idle.end();
    else this.#idle.begin();
  }

  #begun(): void {
    this.#isAnswered = true;
    // A long answer must not keep a long request.
    this.#request.body.answered();
    const { admission, turn } = this.#parts;
    const { sent } = turn.tries;
    admission.reportAnswer(200, sent > 1 ? { sent } : undefined);
    admission.reportServed(null, {});
    this.#answered.resolve(null);
  }

  #endedBy(outcome: LeaseOutcome, frame: string): void {
    const { metering, candidate } = this.#parts;
    const { ctx, after } = candidate.call;
    this.#usage.read(frame);
    if (outcome === 'failed') this.#reportFailed(frame);
    const end = (): void => {
      const settle = this.#usage.isKnown ? metering?.settlement(this.#usage) : undefined;
      ctx.waitUntil(this.#end(outcome, settle));
    };
    if (this.#steers === 0) return end();
    // The answer continues with the accepted input, on the same slot.
    this.#endNow = end;
    after(CONTINUE_MS, () => {
      if (this.#endNow === end) end();
    });
  }

  get #source(): AnswerSource {
    return { ...sourceOf(this.#parts), isOfMember: false };
  }

  /** Reports to the groups why an answer failed after the caller had received its beginning. */
  #reportFailed(frame: string): void {
    const { candidate, admission, turn } = this.#parts;
    const refusal = readFailedEvent(frame, this.#source);
    if (refusal === null) return;
    const isRepeat = turn.tries.noteRefused(placeOf(candidate), refusal.signal);
    admission.report(refusal.signal, refusal.scope, isRepeat);
  }

  /** Reads an error as the HTTP answer that it would have been, and handles it like that. */
  async #refused(
    { status, headers }: Extract<ResponsesEvent['means'], { kind: 'error' }>,
    frame: string,
  ): Promise<void> {
    const { candidate, admission, metering, turn, pipe } = this.#parts;
    const response = new Response(frame, { status, headers });
    const { refusal } = await readAnswer(response, this.#source, candidate.call.after);
    const wasAnswered = this.#isAnswered;
    this.#isAnswered = true;
    admission.reportAnswer(status, undefined);
    let where: NotServed['where'] | null = null;
    let outcome: LeaseOutcome = 'success';
    if (refusal !== null) {
      const { signal, scope, isFinal } = refusal;
      const isRepeat = turn.tries.noteRefused(placeOf(candidate), signal);
      admission.report(signal, scope, isRepeat);
      outcome = isFinal ? 'refused' : 'failed';
      const mayRetry = !wasAnswered && pipe.isOpen;
      where = mayRetry ? whereNext(candidate, turn, signal.kind) : null;
    }
    if (where === null) pipe.toCaller(frame);
    this.#isRetried = where !== null;
    candidate.call.ctx.waitUntil(this.#end(outcome, metering?.notServed));
    this.#answered.resolve(where);
  }

  async #end(outcome: LeaseOutcome, settle?: Settle): Promise<void> {
    if (this.#hasEnded) return this.ended;
    this.#hasEnded = true;
    this.#idle.stop();
    this.#callOffHold();
    if (await this.#isHeldByRun()) this.#parts.admission.letGo();
    else await this.#parts.admission.release(outcome, settle);
    this.#answered.resolve(null);
    this.#ended.resolve();
  }

  /** Transfers the slots to the run that continues after the turn. Returns false if there is no run. */
  async #isHeldByRun(): Promise<boolean> {
    const { candidate, admission } = this.#parts;
    if (this.#run?.state !== 'goes on' || candidate.rules.hold.maxRunMs === 0) return false;
    return keepForRun(candidate, admission, this.#run.id, 200);
  }
}
