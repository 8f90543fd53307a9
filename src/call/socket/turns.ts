import type { Dialect } from '../../contract/dialect.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import { pause } from '../../runtime/background.ts';
import { steadyClock } from '../../runtime/steady-clock.ts';
import type { Reservation } from '../../upstream/body/body-budget.ts';
import { sizeOf, type Frame } from '../../upstream/socket/frame.ts';
import {
  isCreate,
  isReporting,
  mayAsk,
  readClientMessage,
  readEvent,
  type ClientMessage,
  type CreateMessage,
} from '../../upstream/socket/responses-messages.ts';
import type { SocketEnd, SocketPipe } from '../../upstream/socket/socket-pipe.ts';
import { BoundWatch } from '../../upstream/transfer/bound-watch.ts';
import { idleMsAt } from '../call-rules.ts';
import type { CallTicket } from '../acquire/admission.ts';
import { newTicket } from '../acquire/ticket.ts';
import type { AuthenticatedCall } from '../call.ts';
import { errorEvent } from '../errors/socket-error.ts';
import type { UpstreamKey } from '../identity/authenticate.ts';
import { bodyBudget, returns } from '../isolate.ts';
import type { Located } from '../locate.ts';
import { noteRefusal } from '../refusals/note-refusal.ts';
import { CallAttempts } from '../call-attempts.ts';
import { Turn } from './turn.ts';
import { TurnAdmission, type GrantedTurnSlots } from './turn-admission.ts';

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
  readonly #admission: TurnAdmission;
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
    this.#known = known;
    this.#shape = located.operation.shape;
    this.#upstream = located.upstream;
    this.#idleMs = idleMsAt(known.table, located.upstream);
    this.#admission = new TurnAdmission({ known, located, key, signal: this.#over.signal });
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
    this.#known.ctx.waitUntil(this.#run(message).finally(() => this.#takeHeld(streamId)));
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
  async #run(create: CreateMessage): Promise<void> {
    // Never rejects: an error ends the connection.
    try {
      await this.#running.get(create.streamId)?.ended;
      await this.#tryUntilAnswered(create);
    } catch {
      this.#pipe?.cut('body');
    }
  }

  async #tryUntilAnswered(create: CreateMessage): Promise<void> {
    // The message is in memory in any case, so a queued turn takes room from others.
    const room = bodyBudget.count(sizeOf(create.frame));
    try {
      await this.#tryWithin(room, create);
    } finally {
      room.release();
    }
  }

  async #tryWithin(room: Reservation, create: CreateMessage): Promise<void> {
    const { streamId } = create;
    const ticket = { ...newTicket(this.#known), kind: 'turn' } as const;
    const attempts = new CallAttempts(this.#known.request.headers);
    for (;;) {
      const granted = await this.#admit(create, ticket, room);
      const pipe = this.#pipe;
      if (granted === null || pipe === null) return;
      const alone = { listener: null, hasNext: false, firstTokenMs: null, hasOtherPlace: false };
      const turn = new Turn(create, {
        ...granted,
        turn: { ticket, tries: attempts, ...alone },
        pipe,
        ...this.#doubts(),
      });
      this.#running.set(streamId, turn);
      turn.ended
        .then(() => {
          if (this.#running.get(streamId) === turn) this.#running.delete(streamId);
          this.#rest();
        })
        .catch(() => {});
      if (!pipe.isOpen) return turn.cut({ by: 'left', code: 1006 }, 'unused');
      turn.send();
      const where = await turn.answered;
      if (where === null) return;
      await turn.ended;
      if (where === 'here later') await pause(attempts.pauseMs(), this.#known.after);
    }
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

  /** Acquires the slots of a turn. null if it was refused, or its caller has left. */
  async #admit(
    create: CreateMessage,
    ticket: CallTicket,
    room: Reservation,
  ): Promise<GrantedTurnSlots | null> {
    const admitted = await this.#admission.admit(create, ticket, room);
    switch (admitted.kind) {
      case 'granted':
        this.#idleMs = admitted.candidate.rules.hold.idleMs;
        return admitted;
      case 'rejected':
        this.#refuse(create, admitted.reply);
        // The key of the whole connection is no longer valid.
        if (admitted.isOfKey) this.#pipe?.cut('key_invalid');
        return null;
      case 'elsewhere':
        this.#pipe?.cut('restart');
        return null;
      case 'left':
        return null;
    }
  }

  #refuse({ streamId, model }: ClientMessage, reply: ErrorReply): void {
    const { caller } = this.#known;
    const located = { upstream: this.#upstream, model };
    noteRefusal(this.#known, reply, { caller, located, placements: [] });
    const spaced = returns.space(reply, caller.id, steadyClock.now());
    this.#pipe?.toCaller(errorEvent(this.#shape, spaced, streamId));
  }
}
