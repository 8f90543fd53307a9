import { isolateConfig } from '../../config/isolate-config.ts';
import type { Dialect } from '../../contract/dialect.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import { steadyClock } from '../../runtime/clock.ts';
import { sizeOf, type Frame } from '../../upstream/socket/frame.ts';
import {
  isCreate,
  isReporting,
  mayAsk,
  readClientMessage,
  readEvent,
  type ClientMessage,
} from '../../upstream/socket/responses-messages.ts';
import type { SocketEnd, SocketPipe } from '../../upstream/socket/socket-pipe.ts';
import { BoundWatch } from '../../upstream/transfer/bound-watch.ts';
import { idleMsAt } from '../call-rules.ts';
import { newTicket } from '../acquire/ticket.ts';
import type { AuthenticatedCall } from '../call.ts';
import { errorEvent } from '../errors/socket-error.ts';
import type { UpstreamKey } from '../identity/authenticate.ts';
import { returns } from '../isolate.ts';
import type { Located } from '../locate.ts';
import { noteRefusal } from '../refusals/note-refusal.ts';
import { CallAttempts } from '../attempts/call-attempts.ts';
import { attemptAt } from '../attempt-at.ts';
import { UNCONFIRMED } from '../changed-since.ts';
import { drive, identifiedBy } from '../drive.ts';
import type { Candidate } from '../plan.ts';
import {
  LEFT,
  rejected,
  type CallerLeft,
  type FinalResult,
  type NotServed,
  type Rejected,
} from '../result.ts';
import { planTurn, turnRequest, type TurnConnection, type TurnRequest } from './plan-turn.ts';
import { Turn, type TurnAnswered, type TurnParts } from './turn.ts';

const ANSWERED: TurnAnswered = { kind: 'answered' };

/** Maximum bytes of messages that wait behind a queued turn. */
const BEHIND_BYTES_MAX = 1_048_576;

/** Memory of each message in addition to its bytes. */
const MESSAGE_BYTES = 128;

const STEERS_NOTHING: ErrorReply = {
  reason: 'body_unreadable',
  message:
    'The message steers a response, but no response is running on its stream. Send `response.create` first, and steer the response while it runs.',
};

const UNREADABLE: ErrorReply = {
  reason: 'body_unreadable',
  message:
    'The message could not be read. Send one JSON object in UTF-8, with `type`, `model` and `stream_id` at most once each, in lower case.',
};

/**
 * The turns of one connection. Messages of the client are forwarded in order. Behind a queued turn, messages of the
 * same stream wait. Each stream has one answer at a time, as upstreams require, so that every end has its turn.
 */
export class Turns {
  readonly #known: AuthenticatedCall;
  readonly #shape: Dialect;
  readonly #upstream: Located['upstream'];
  readonly #over = new AbortController();
  readonly #connection: TurnConnection;
  readonly #running = new Map<string | null, Turn>();
  #pipe: SocketPipe | null = null;
  /** Longest silence between two turns, by the groups of the last turn. null if there is no limit. */
  #idleMs: number | null;
  /** null while a turn runs or is queued. */
  #idle: BoundWatch | null = null;
  /** Messages that wait behind a turn, by their common stream. */
  readonly #behind = new Map<string | null, ClientMessage[]>();
  #behindBytes = 0;
  /** Model of the last request. */
  #model: string | null = null;
  /** Messages sent that an error of the upstream may be about, instead of a turn. */
  #others = 0;
  /** How many of them the upstream has read. It reads in order, and the answer to a later message has begun. */
  #othersRead = 0;

  /** @param located of the call that each turn is @param key the key with which the connection was opened */
  constructor(known: AuthenticatedCall, located: Located, key: UpstreamKey) {
    // A turn is like a call whose body is JSON. Its signal ends with the connection.
    const headers = new Headers(known.request.headers);
    headers.set('content-type', 'application/json');
    headers.delete('content-encoding');
    const request = new Request(known.request, { headers });
    this.#known = { ...known, request, signal: this.#over.signal };
    this.#connection = { located, key };
    this.#shape = located.operation.shape;
    this.#upstream = located.upstream;
    this.#idleMs = idleMsAt(known.table, located.upstream);
  }

  begin(pipe: SocketPipe): void {
    this.#pipe = pipe;
    this.#rest();
  }

  fromCaller(frame: Frame): void {
    this.#idle?.begin();
    if (this.#behind.size === 0 && !mayAsk(frame)) this.#passOther(frame);
    else this.#read(frame);
  }

  fromUpstream(frame: Frame): Promise<void> | void {
    // Before its first event any frame may be the answer to a turn.
    const mayReport = isReporting(frame) || this.#isOneUnanswered;
    const event = mayReport && this.#running.size > 0 ? readEvent(frame) : null;
    const turn = event === null ? null : this.#turnOf(event.streamId);
    if (event !== null && turn !== null) return turn.receive(event, frame as string);
    this.#idle?.begin();
    this.#pipe?.toCaller(frame);
  }

  /** No more messages can be forwarded, so queued turns stop waiting. */
  noteEnd(): void {
    this.#over.abort();
    this.#wake();
  }

  /** Starts the idle timer of a connection without a running or queued turn. */
  #rest(): void {
    const { after } = this.#known;
    const pipe = this.#pipe;
    if (pipe === null || !pipe.isOpen || !this.isAtRest || this.#idleMs === null) return;
    this.#idle?.stop();
    this.#idle = new BoundWatch({ afterMs: this.#idleMs, onOver: () => pipe.cut('idle'), after });
    this.#idle.begin();
  }

  #wake(): void {
    this.#idle?.end();
    this.#idle?.stop();
    this.#idle = null;
  }

  /** The upstream has released the connection. */
  async end(end: SocketEnd): Promise<void> {
    await Promise.all([...this.#running.values()].map((turn) => turn.cut(end)));
  }

  /** Whether no turn runs or is queued. */
  get isAtRest(): boolean {
    return this.#running.size === 0 && this.#behind.size === 0;
  }

  get #isOneUnanswered(): boolean {
    for (const turn of this.#running.values()) if (!turn.isAnswered) return true;
    return false;
  }

  /** An event without a stream belongs to the only turn. */
  #turnOf(streamId: string | null): Turn | null {
    const named = this.#running.get(streamId);
    if (named !== undefined) return named;
    const [only] = this.#running.values();
    return streamId === null && this.#running.size === 1 ? (only ?? null) : null;
  }

  #read(frame: Frame): void {
    const message = readClientMessage(frame, this.#model);
    if (isCreate(message)) this.#model = message.model;
    this.#take(message);
  }

  #take(message: ClientMessage): void {
    const { frame, streamId, kind } = message;
    if (kind === 'unreadable') return this.#refuse(message, UNREADABLE);
    const behind = this.#behind.get(streamId);
    if (kind === 'steer') {
      // It is about the running answer, not about a queued one.
      if (this.#turnOf(streamId) === null) return this.#refuse(message, STEERS_NOTHING);
      return this.#passOther(frame);
    }
    if (behind !== undefined) return this.#hold(message, behind);
    if (!isCreate(message)) return this.#passOther(frame);
    this.#wake();
    this.#behind.set(streamId, []);
    this.#known.ctx.waitUntil(
      this.#run(turnRequest(message)).finally(() => this.#takeHeld(streamId)),
    );
  }

  /** Forwards a message that requests no response. Not every upstream accepts it. */
  #passOther(frame: Frame): void {
    this.#others += 1;
    this.#pipe?.toUpstream(frame);
  }

  #hold(message: ClientMessage, behind: ClientMessage[]): void {
    behind.push(message);
    this.#behindBytes += MESSAGE_BYTES + sizeOf(message.frame);
    if (this.#behindBytes > BEHIND_BYTES_MAX) this.#pipe?.cut('overfull');
  }

  /** Forwards messages that waited behind a turn, up to the next turn. */
  #takeHeld(streamId: string | null): void {
    const behind = this.#behind.get(streamId) ?? [];
    this.#behind.delete(streamId);
    for (const message of behind) {
      this.#behindBytes -= MESSAGE_BYTES + sizeOf(message.frame);
      this.#take(message);
    }
    this.#rest();
  }

  /** Runs a turn until its answer begins, or it is refused. */
  async #run(turn: TurnRequest): Promise<void> {
    // Never rejects: an error ends the connection.
    try {
      await this.#running.get(turn.streamId)?.ended;
      const result = await this.#drive(turn);
      if (result.kind !== 'rejected') return;
      this.#refuse(turn, result.reply);
      // The key of the whole connection is no longer valid.
      if (result.isOfKey === true) this.#pipe?.cut('key_invalid');
    } catch {
      this.#pipe?.cut('body');
    } finally {
      turn.body.end();
    }
  }

  /** Plans a turn by the newest configuration, in which its key may be revoked, and attempts it. */
  async #drive(turn: TurnRequest): Promise<FinalResult<TurnAnswered>> {
    const { env, ctx } = this.#known;
    const table = await isolateConfig.forPool(env, ctx);
    if (table === null) return rejected(UNCONFIRMED);
    const known = await identifiedBy(table, { ...this.#known, body: turn.body });
    if (known.kind === 'rejected') return known;
    const plan = (call: AuthenticatedCall) => this.#plan(call, turn);
    const first = await plan(known);
    if (first.kind !== 'planned') return first;
    const ticket = { ...newTicket(known), kind: 'turn' } as const;
    const tries = new CallAttempts<TurnAnswered>(known.request.headers);
    return drive(
      first,
      { ticket, tries, listener: null },
      {
        spills: false,
        untilAt: Infinity,
        plan,
        attempt: (candidate, attempt) =>
          attemptAt(
            candidate,
            attempt,
            (at, there, metering) => (admission) =>
              this.#send(turn, { candidate: at, turn: there, metering, admission }),
          ),
      },
    );
  }

  async #plan(
    call: AuthenticatedCall,
    turn: TurnRequest,
  ): Promise<Candidate | Rejected | CallerLeft> {
    const planned = await planTurn(call, this.#connection, turn);
    if (planned.kind !== 'elsewhere') return planned;
    this.#pipe?.cut('restart');
    return LEFT;
  }

  /** Sends a turn that has its slots, and waits until its answer begins. */
  async #send(
    request: TurnRequest,
    granted: Pick<TurnParts, 'candidate' | 'turn' | 'metering' | 'admission'>,
  ): Promise<TurnAnswered | NotServed | CallerLeft> {
    const { streamId } = request;
    const pipe = this.#pipe;
    if (pipe === null) throw new Error('a turn began before its connection');
    this.#idleMs = granted.candidate.rules.hold.idleMs;
    const turn = new Turn(request, { ...granted, pipe, ...this.#doubts() });
    this.#running.set(streamId, turn);
    turn.ended
      .then(() => {
        if (this.#running.get(streamId) === turn) this.#running.delete(streamId);
        this.#rest();
      })
      .catch(() => {});
    if (!pipe.isOpen) {
      await turn.cut({ by: 'left', code: 1006 }, 'unused');
      return LEFT;
    }
    turn.send();
    const where = await turn.answered;
    if (where === null) return ANSWERED;
    await turn.ended;
    return { kind: 'again', where };
  }

  /** Distinguishes errors of a turn that is about to be sent from those of other messages. */
  #doubts(): { readonly isOwnError: () => boolean; readonly onBegun: () => void } {
    const before = this.#others;
    return {
      isOwnError: () => this.#others === this.#othersRead,
      onBegun: () => {
        this.#othersRead = Math.max(this.#othersRead, before);
      },
    };
  }

  #refuse({ streamId, model }: Pick<ClientMessage, 'streamId' | 'model'>, reply: ErrorReply): void {
    const { caller } = this.#known;
    const located = { upstream: this.#upstream, model };
    noteRefusal(this.#known, reply, { caller, located, placements: [] });
    const spaced = returns.space(reply, caller.id, steadyClock.now());
    this.#pipe?.toCaller(errorEvent(this.#shape, spaced, streamId));
  }
}
