import { isolateConfig } from '../../config/isolate-config.ts';
import type { Dialect } from '../../contract/http.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import { steadyClock } from '../../runtime/async.ts';
import {
  sizeOf,
  isCreate,
  isReporting,
  mayAsk,
  readClientMessage,
  readEvent,
  type Frame,
  type ClientMessage,
  type ResponsesEvent,
} from '../../upstream/socket/messages.ts';
import { SocketPipe } from '../../upstream/socket/socket-pipe.ts';
import { BoundWatch } from '../../upstream/transfer/watched-pipe.ts';
import { idleMsAt } from '../plan/call-rules.ts';
import { newTicket } from '../acquire/ticket.ts';
import { UNCONFIRMED, type AuthenticatedCall } from '../request/call.ts';
import { errorEvent } from '../results/wire-error.ts';
import { notRenamed } from '../answer/forward.ts';
import { retryBudgetOf, CallAttempts } from '../attempts/call-attempts.ts';
import { returns } from '../acquire/rejections.ts';
import type { Located } from '../request/locate.ts';
import { noterOf } from '../answer/hold-run.ts';
import { noteRefusal } from '../observe/note-refusal.ts';
import { attemptAt } from '../drive/attempt-at.ts';
import { drive, identifiedBy } from '../drive/drive.ts';
import {
  LEFT,
  rejected,
  unreachable,
  type AttemptResult,
  type FinalResult,
} from '../results/result.ts';
import {
  fitTurn,
  planTurn,
  turnRequest,
  canMove,
  notConnected,
  type TurnRequest,
  type GrantedAttempt,
  type TurnAnswered,
} from './turn-attempt.ts';
import { TurnSides, type TurnSide } from './turn-sides.ts';
import { Turn } from './turn.ts';

const ANSWERED: TurnAnswered = { kind: 'answered', error: null };

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

const MODEL_UNCLEAR: ErrorReply = {
  reason: 'body_unreadable',
  message:
    'The message continues a response without naming its model, and this connection has used several models. Name the model as `model`.',
};

const CONTINUES_NOTHING: ErrorReply = {
  reason: 'body_unreadable',
  message:
    'The message requests no response, and no upstream is connected that could receive it. Send `response.create` first.',
};

/**
 * The turns of one connection. Messages of the client are forwarded in order. Behind a queued turn, messages of the
 * same stream wait. Each stream has one answer at a time, as upstreams require, so that every end has its turn.
 */
export class Turns {
  readonly #known: AuthenticatedCall;
  readonly #shape: Dialect;
  readonly #located: Located;
  readonly #over = new AbortController();
  readonly pipe: SocketPipe;
  readonly sides: TurnSides;
  readonly #running = new Map<string | null, Turn>();
  /** Turns that are queued, and may be sent on another connection than those that are open. */
  readonly #movable = new Set<TurnRequest>();
  /** Longest silence between two turns, by the groups of the last turn. null if there is no limit. */
  #idleMs: number | null;
  /** null while a turn runs or is queued. */
  #idle: BoundWatch | null = null;
  /** Messages that wait behind a turn, by their common stream. */
  readonly #behind = new Map<string | null, ClientMessage[]>();
  #behindBytes = 0;
  /** Model of the last request. undefined before the first one. */
  #model: string | null | undefined;
  /** The model of a message without one is then unknown, because requests may have been refused or moved. */
  #hasSeveralModels = false;

  /** @param located of the call that each turn is @param caller our end of a socket pair, not accepted yet */
  constructor(known: AuthenticatedCall, located: Located, caller: WebSocket) {
    // A turn is like a call whose body is JSON. Its signal ends with the connection.
    const headers = new Headers(known.request.headers);
    headers.set('content-type', 'application/json');
    headers.delete('content-encoding');
    const request = new Request(known.request, { headers });
    const { signal } = this.#over;
    this.#known = { ...known, request, signal };
    this.#located = located;
    this.#shape = located.operation.shape;
    this.#idleMs = idleMsAt(known.table, located.upstream);
    this.pipe = new SocketPipe(caller, {
      after: known.after,
      idleMs: null,
      onCaller: (frame) => this.#fromCaller(frame),
      // No more messages can be forwarded, so queued turns stop waiting.
      onEnd: () => {
        this.#over.abort();
        this.#wake();
      },
    });
    this.sides = new TurnSides({ ...known, signal }, this.pipe, {
      onFrame: (side, frame) => this.#fromUpstream(side, frame),
      isOutlived: (side) => this.#isOutlived(side),
      onDone: (side, end) => {
        for (const turn of this.#turnsAt(side)) known.ctx.waitUntil(turn.cut(end));
      },
    });
    this.#rest();
  }

  #fromCaller(frame: Frame): void {
    this.#idle?.begin();
    const { only } = this.sides;
    if (this.#behind.size > 0 || mayAsk(frame) || only === null) this.#read(frame);
    else only.sendOther(frame);
  }

  #fromUpstream(side: TurnSide, frame: Frame): Promise<void> | void {
    const turns = this.#turnsAt(side);
    // Before its first event any frame may be the answer to a turn.
    const isKnown = isReporting(frame);
    const mayReport = isKnown || turns.some(({ isAnswered }) => !isAnswered);
    const event = mayReport ? readEvent(frame) : null;
    const turn = event === null ? null : turnOf(event.streamId, turns);
    if (event !== null && turn !== null) return turn.receive(event, frame as string);
    if (isKnown && event !== null && side.hasLeft(event.streamId)) return;
    this.#idle?.begin();
    this.pipe.toCaller(frame);
  }

  /** Decides whether the client stays connected although an upstream has closed its connection. */
  async #isOutlived(side: TurnSide): Promise<boolean> {
    const turns = this.#turnsAt(side);
    const isElsewhere = this.#running.size > turns.length;
    const ends = await Promise.all(turns.map((turn) => turn.broke()));
    const lost = turns.filter((_, at) => ends[at] === 'lost');
    const isNeeded = isElsewhere || ends.includes('retried') || this.#movable.size > 0;
    if (lost.length === 0) return isNeeded || side.isRetired || this.sides.hasOther(side);
    if (!isNeeded) return false;
    // The turns that run elsewhere must not end with the connection.
    for (const turn of lost) this.#refuse(turn.request, unreachable(turn.upstreamId, null).reply);
    return true;
  }

  #turnsAt(side: TurnSide): readonly Turn[] {
    return [...this.#running.values()].filter((turn) => turn.side === side);
  }

  /** Starts the idle timer of a connection without a running or queued turn. */
  #rest(): void {
    const { after } = this.#known;
    const pipe = this.pipe;
    if (!pipe.isOpen || !this.isAtRest || this.#idleMs === null) return;
    this.#idle?.stop();
    this.#idle = new BoundWatch({ afterMs: this.#idleMs, onOver: () => pipe.cut('idle'), after });
    this.#idle.begin();
  }

  #wake(): void {
    this.#idle?.end();
    this.#idle?.stop();
    this.#idle = null;
  }

  /** Resolves when no turn holds a slot any more. */
  async ended(): Promise<void> {
    await Promise.all([...this.#running.values()].map((turn) => turn.ended));
  }

  /** Whether no turn runs or is queued. */
  get isAtRest(): boolean {
    return this.#running.size === 0 && this.#behind.size === 0;
  }

  #read(frame: Frame): void {
    const before = this.#hasSeveralModels ? null : (this.#model ?? null);
    const message = readClientMessage(frame, before);
    if (isCreate(message)) {
      const { model, isAppend } = message;
      if (this.#hasSeveralModels && isAppend && model === null) {
        return this.#refuse(message, MODEL_UNCLEAR);
      }
      this.#hasSeveralModels ||= this.#model !== undefined && this.#model !== model;
      this.#model = model;
    }
    this.#take(message);
  }

  #take(message: ClientMessage): void {
    const { frame, streamId, kind } = message;
    if (kind === 'unreadable') return this.#refuse(message, UNREADABLE);
    const behind = this.#behind.get(streamId);
    if (kind === 'steer') {
      // It is about the running answer, not about a queued one.
      const steered = turnOf(streamId, [...this.#running.values()]);
      if (steered === null) return this.#refuse(message, STEERS_NOTHING);
      return steered.side.sendOther(frame);
    }
    if (behind !== undefined) return this.#hold(message, behind);
    if (!isCreate(message)) return this.#passOther(message);
    this.#wake();
    this.#behind.set(streamId, []);
    this.#known.ctx.waitUntil(
      this.#run(turnRequest(message)).finally(() => this.#takeHeld(streamId)),
    );
  }

  /** Forwards a message that requests no response, to the upstream of its stream. */
  #passOther(message: ClientMessage): void {
    const { frame, streamId } = message;
    const side = this.#running.get(streamId)?.side ?? this.sides.forOthers(streamId);
    if (side === null) this.#refuse(message, CONTINUES_NOTHING);
    else side.sendOther(frame);
  }

  #hold(message: ClientMessage, behind: ClientMessage[]): void {
    behind.push(message);
    this.#behindBytes += MESSAGE_BYTES + sizeOf(message.frame);
    if (this.#behindBytes > BEHIND_BYTES_MAX) this.pipe.cut('overfull');
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
      if (result.kind === 'answered' && result.error !== null) this.pipe.toCaller(result.error);
      if (result.kind !== 'rejected') return;
      this.#refuse(turn, result.reply);
      // The key of the whole connection is no longer valid.
      if (result.isOfKey === true) this.pipe.cut('key_invalid');
    } catch {
      this.pipe.cut('body');
    } finally {
      this.#movable.delete(turn);
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
    const place = this.sides.placeOf(turn);
    const plan = (call: AuthenticatedCall) => planTurn(call, this.#located, turn, place);
    const first = await plan(known);
    if (first.kind !== 'planned') return first;
    const ticket = { ...newTicket(known), kind: 'turn' } as const;
    const attempts = new CallAttempts<TurnAnswered>(known.request.headers);
    return drive(
      first,
      { ticket, attempts, listener: null },
      {
        spills: place === null,
        untilAt: Infinity,
        plan,
        attempt: (candidate, attempt) => {
          if (canMove({ candidate, turn: attempt })) this.#movable.add(turn);
          else this.#movable.delete(turn);
          return attemptAt(
            candidate,
            attempt,
            (at, there, metering) => (admission) =>
              this.#send(turn, { candidate: at, turn: there, metering, admission }),
          );
        },
      },
    );
  }

  /** Sends a turn that has its slots, and waits until its answer begins. */
  async #send(request: TurnRequest, granted: GrantedAttempt): Promise<AttemptResult<TurnAnswered>> {
    const { candidate, turn: attempt, admission } = granted;
    const { member, rules, located } = candidate;
    if (!fitTurn(candidate, request) && member !== null) {
      await admission.release('unused');
      return notRenamed(candidate, member, attempt);
    }
    attempt.attempts.noteSent();
    retryBudgetOf(located.upstream.id).noteCall();
    this.#idleMs = rules.hold.idleMs;
    // The connection may take seconds, in which its slots count and may be revoked.
    const { pipe } = this;
    admission.keep(() => pipe.cut('revoked'));
    const callOffHold = candidate.call.after(rules.hold.maxHoldMs, () => pipe.cut('max_hold'));
    const side = await this.sides.at(candidate);
    if (side.kind !== 'side' || !pipe.isOpen) callOffHold();
    if (!pipe.isOpen) {
      await admission.release('unused');
      return LEFT;
    }
    const result =
      side.kind === 'side'
        ? await this.#sendAt(side, request, granted, callOffHold)
        : await notConnected(granted, request.streamId, side);
    if (result.kind === 'again' && canMove(granted)) this.#movable.add(request);
    return result;
  }

  async #sendAt(
    side: TurnSide,
    request: TurnRequest,
    granted: GrantedAttempt,
    callOffHold: () => void,
  ): Promise<AttemptResult<TurnAnswered>> {
    const { streamId } = request;
    const { call, located } = granted.candidate;
    const onBegun = ({ responseId, isStored }: ResponsesEvent): void => {
      this.sides.noteBegun(side, streamId, responseId);
      const note = responseId !== null && isStored ? noterOf(call, located) : null;
      if (responseId !== null) note?.([responseId]).catch(() => {});
    };
    const turn = new Turn(request, { ...granted, pipe: this.pipe, side, callOffHold, onBegun });
    this.#running.set(streamId, turn);
    this.#movable.delete(request);
    turn.ended
      .then(() => {
        if (this.#running.get(streamId) === turn) this.#running.delete(streamId);
        this.#rest();
      })
      .catch(() => {});
    turn.send();
    const where = await turn.answered;
    if (where === null) return ANSWERED;
    await turn.ended;
    return { kind: 'again', where };
  }

  #refuse({ streamId, model }: Pick<ClientMessage, 'streamId' | 'model'>, reply: ErrorReply): void {
    const { caller } = this.#known;
    const located = { upstream: this.#located.upstream, model };
    noteRefusal(this.#known, reply, { caller, located, placements: [] });
    const spaced = returns.space(reply, caller.id, steadyClock.now());
    this.pipe.toCaller(errorEvent(this.#shape, spaced, streamId));
  }
}

/** The turn on a stream. An event without a stream belongs to the only turn. */
function turnOf(streamId: string | null, turns: readonly Turn[]): Turn | null {
  const named = turns.find(({ request }) => request.streamId === streamId);
  const [only] = turns;
  return named ?? (streamId === null && turns.length === 1 ? (only ?? null) : null);
}
