import type { LeaseOutcome } from '../../core/words/outcome.ts';
import type { ReportedRun } from '../../upstream/operation/runs.ts';
import { isFailure, type SocketEnd, type SocketPipe } from '../../upstream/socket/socket-pipe.ts';
import type { ResponsesEvent } from '../../upstream/socket/messages.ts';
import { BoundWatch } from '../../upstream/transfer/watched-pipe.ts';
import type { Settle, NotServed } from '../results/result.ts';
import { sourceOf } from '../answer/sending.ts';
import { placeOf } from '../plan/plan.ts';
import { readFailedEvent } from '../answer/read-answer.ts';
import { keepForRun } from '../answer/hold-run.ts';
import { proofBy } from '../attempts/where-next.ts';
import {
  frameOf,
  canMove,
  refuseTurn,
  type TurnRequest,
  type GrantedAttempt,
} from './turn-attempt.ts';
import { SocketUsage } from '../answer/session.ts';
import type { TurnSide } from './turn-sides.ts';

/** Timeout of the first event of an answer if the group sets none. */
const FIRST_EVENT_MS = 600_000;

/** How long an answer with accepted input may take to continue. No event is sent between its parts. */
const CONTINUE_MS = 5_000;

/** How long an answer may take to begin after an error that may be about another message. */
const IN_DOUBT_MS = 10_000;

/** Statuses of an upstream without room. They always refuse a turn. */
const NO_ROOM: ReadonlySet<number> = new Set([429, 503, 529]);

export interface TurnParts extends GrantedAttempt {
  readonly pipe: SocketPipe;
  /** The connection of the upstream that it is sent to. */
  readonly side: TurnSide;
  /** Stops the limit of the time for which it may hold its slots. */
  readonly callOffHold: () => void;
  /** Called when its answer has begun. */
  readonly onBegun: (event: ResponsesEvent) => void;
}

/**
 * One request for a response on a connection while it holds its slots: from its message to the event that ends the
 * answer.
 */
export class Turn {
  readonly #request: TurnRequest;
  readonly #parts: TurnParts;
  readonly #doubts: ReturnType<TurnSide['doubts']>;
  readonly #answered = Promise.withResolvers<NotServed['where'] | null>();
  readonly #ended = Promise.withResolvers<void>();
  readonly #idle: BoundWatch;
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
    this.#doubts = parts.side.doubts();
    this.ended.then(parts.side.use()).catch(() => {});
    this.#usage = new SocketUsage(parts.candidate.located.operation.shape);
    const { candidate, pipe } = parts;
    const { after } = candidate.call;
    const { hold } = candidate.rules;
    const onOver = (): void => pipe.cut('idle');
    this.#idle = new BoundWatch({ afterMs: hold.idleMs ?? FIRST_EVENT_MS, onOver, after });
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

  get request(): TurnRequest {
    return this.#request;
  }

  get upstreamId(): string {
    return this.#parts.candidate.located.upstream.id;
  }

  get side(): TurnSide {
    return this.#parts.side;
  }

  send(): void {
    this.#idle.begin();
    const frame = frameOf(this.#request);
    if (frame !== null) this.side.sendTurn(frame, this.#request.streamId);
  }

  /** Its upstream has closed the connection. Returns whether the turn is retried, which its client does not notice. */
  async broke(): Promise<'retried' | 'lost' | 'ended'> {
    const { metering, pipe } = this.#parts;
    if (this.#hasEnded) return this.#isRetried ? 'retried' : 'ended';
    if (this.#isAnswered || !canMove(this.#parts)) return 'lost';
    const { where, outcome } = await refuseTurn(this.#parts, null, null, pipe.isOpen);
    if (where === null) return 'lost';
    this.#endRefused(where, outcome, metering?.notServed);
    return 'retried';
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
        this.#doubts.noteBegun();
        this.#parts.onBegun(event);
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
    return (!this.#hasBegun && NO_ROOM.has(status)) || this.#doubts.isOwnError();
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
    const { admission, turn, candidate } = this.#parts;
    const { sent } = turn.attempts;
    admission.reportAnswer(200, sent > 1 ? { sent } : undefined);
    admission.reportServed(null, proofBy(true, candidate.members, turn.attempts));
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

  /** Reports to the groups why an answer failed after the caller had received its beginning. */
  #reportFailed(frame: string): void {
    const { candidate, admission, turn } = this.#parts;
    const refusal = readFailedEvent(frame, sourceOf(this.#parts));
    if (refusal === null) return;
    const isRepeat = turn.attempts.noteRefused(placeOf(candidate), refusal.signal);
    admission.report(refusal.signal, refusal.scope, isRepeat);
  }

  /** Reads an error as the HTTP answer that it would have been, and handles it like that. */
  async #refused(
    { status, headers }: Extract<ResponsesEvent['means'], { kind: 'error' }>,
    frame: string,
  ): Promise<void> {
    const { admission, metering, pipe } = this.#parts;
    const response = new Response(frame, { status, headers });
    const isPossible = this.side.isOpen || canMove(this.#parts);
    const mayRetry = !this.#isAnswered && pipe.isOpen && isPossible;
    this.#isAnswered = true;
    admission.reportAnswer(status, undefined);
    const { where, outcome } = await refuseTurn(this.#parts, response, frame, mayRetry);
    if (where === null) pipe.toCaller(frame);
    this.#endRefused(where, outcome, metering?.notServed);
  }

  #endRefused(where: NotServed['where'] | null, outcome: LeaseOutcome, settle?: Settle): void {
    this.#isRetried = where !== null;
    if (this.#isRetried) this.side.noteLeft(this.#request.streamId);
    this.#parts.candidate.call.ctx.waitUntil(this.#end(outcome, settle));
    this.#answered.resolve(where);
  }

  async #end(outcome: LeaseOutcome, settle?: Settle): Promise<void> {
    if (this.#hasEnded) return this.ended;
    this.#hasEnded = true;
    this.#idle.stop();
    this.#parts.callOffHold();
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
