import { routingTable } from '../../config/snapshots.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import { pause } from '../../runtime/background.ts';
import { steadyClock } from '../../runtime/steady-clock.ts';
import type { Frame } from '../../upstream/socket/frame.ts';
import type { SocketEnd, SocketPipe } from '../../upstream/socket/socket-pipe.ts';
import {
  isCreate,
  isTelling,
  mayCreate,
  readClientMessage,
  readEvent,
  type ClientMessage,
  type CreateMessage,
} from '../../upstream/socket/responses-messages.ts';
import { estimateCall } from '../../upstream/usage/estimate.ts';
import { admit } from '../acquire/admit.ts';
import type { Admission, Ticket } from '../acquire/admission.ts';
import { newTicket } from '../acquire/ticket.ts';
import type { KnownCall } from '../call.ts';
import { UNCONFIRMED } from '../changed-since.ts';
import { errorEvent } from '../errors/socket-error.ts';
import { identify, type UpstreamKey } from '../identity/authenticate.ts';
import { comebacks } from '../isolate.ts';
import type { Located } from '../locate.ts';
import { Metering } from '../metering.ts';
import { forbiddenAt, planAt, type Candidate } from '../plan.ts';
import { Tries } from '../tries.ts';
import { Turn } from './turn.ts';

/** Maximum bytes of messages that wait behind a turn which waits for its slot. */
const BEHIND_BYTES_MAX = 1_048_576;

/** Maximum reroutes of a turn caused by moving groups before it is refused. */
const MOVES_MAX = 20;
const MOVE_PAUSE_MS = 100;

const encoder = new TextEncoder();

/** A turn that has its slots. */
interface Granted {
  readonly candidate: Candidate;
  readonly admission: Admission;
  readonly metering: Metering | null;
}

/**
 * The turns of one connection. Messages of the client pass on in their order: behind one that waits for its slot those of
 * the same stream wait. Each stream has one answer at a time, as the upstream would have it, so that it is known whose end an
 * end is.
 */
export class Turns {
  readonly #known: KnownCall;
  readonly #located: Located;
  readonly #key: UpstreamKey;
  readonly #over = new AbortController();
  readonly #running = new Map<string | null, Turn>();
  #pipe: SocketPipe | null = null;
  /** Messages that wait behind a turn, by the stream of both. */
  readonly #behind = new Map<string | null, ClientMessage[]>();
  #behindBytes = 0;

  /** @param located of the call that each turn is; @param key the one that the connection was made with */
  constructor(known: KnownCall, located: Located, key: UpstreamKey) {
    this.#known = known;
    this.#located = located;
    this.#key = key;
  }

  begin(pipe: SocketPipe): void {
    this.#pipe = pipe;
  }

  fromCaller(frame: Frame): void {
    if (this.#behind.size === 0 && !mayCreate(frame)) this.#pipe?.toUpstream(frame);
    else this.#take(readClientMessage(frame));
  }

  fromUpstream(frame: Frame): void {
    // Before its first event anything may be the answer to a turn.
    const mayTell = isTelling(frame) || this.#isOneUnanswered;
    const event = mayTell && this.#running.size > 0 ? readEvent(frame) : null;
    const turn = event === null ? null : this.#turnOf(event.streamId);
    if (event === null || turn === null) this.#pipe?.toCaller(frame);
    else turn.hear(event, frame as string);
  }

  /** Nothing passes any more: what waits for its slot need not wait. */
  noteEnd(): void {
    this.#over.abort();
  }

  /** The upstream holds the connection no longer. */
  async end(end: SocketEnd): Promise<void> {
    await Promise.all([...this.#running.values()].map((turn) => turn.cut(end)));
  }

  get #isOneUnanswered(): boolean {
    for (const turn of this.#running.values()) if (!turn.isAnswered) return true;
    return false;
  }

  /** An event that names no stream is of the only turn that there is. */
  #turnOf(streamId: string | null): Turn | null {
    const named = this.#running.get(streamId);
    if (named !== undefined) return named;
    const [only] = this.#running.values();
    return streamId === null && this.#running.size === 1 ? (only ?? null) : null;
  }

  #take(message: ClientMessage): void {
    const { frame, streamId, kind } = message;
    const behind = this.#behind.get(streamId);
    // What steers an answer that runs is about none that waits.
    if (behind !== undefined && kind !== 'steer') return this.#hold(message, behind);
    if (!isCreate(message)) return this.#pipe?.toUpstream(frame);
    this.#behind.set(streamId, []);
    this.#known.ctx.waitUntil(this.#run(message).finally(() => this.#goOn(streamId)));
  }

  #hold(message: ClientMessage, behind: ClientMessage[]): void {
    behind.push(message);
    this.#behindBytes += sizeOf(message.frame);
    if (this.#behindBytes > BEHIND_BYTES_MAX) this.#pipe?.cut('overfull');
  }

  /** Passes on what has waited behind a turn, up to the next one. */
  #goOn(streamId: string | null): void {
    const behind = this.#behind.get(streamId) ?? [];
    this.#behind.delete(streamId);
    for (const message of behind) {
      this.#behindBytes -= sizeOf(message.frame);
      this.#take(message);
    }
  }

  /** Runs a turn until its answer begins, or it is refused. */
  async #run(create: CreateMessage): Promise<void> {
    // Never rejects: what breaks ends the connection.
    try {
      await this.#running.get(create.streamId)?.ended;
      await this.#tryUntilAnswered(create);
    } catch {
      this.#pipe?.cut('body');
    }
  }

  async #tryUntilAnswered(create: CreateMessage): Promise<void> {
    const ticket = { ...newTicket(this.#known), kind: 'turn' } as const;
    const tries = new Tries(this.#known.request.headers);
    for (;;) {
      const granted = await this.#admit(create, ticket);
      const pipe = this.#pipe;
      if (granted === null || pipe === null) return;
      const asked = { listener: null, hasNext: false, firstByteMs: null, hasOtherPlace: false };
      const turn = new Turn(create, { ...granted, turn: { ticket, tries, ...asked }, pipe });
      this.#running.set(create.streamId, turn);
      turn.ended
        .then(() => {
          if (this.#running.get(create.streamId) === turn) this.#running.delete(create.streamId);
        })
        .catch(() => {});
      if (!pipe.isOpen) return turn.cut({ by: 'left', code: 1006 }, 'unused');
      turn.send();
      const where = await turn.answered;
      if (where === null) return;
      await turn.ended;
      if (where === 'here later') await pause(tries.pauseMs());
    }
  }

  /** Gets a turn its slots. Null: it was told why not, or nobody is there any more. */
  async #admit(create: CreateMessage, ticket: Ticket): Promise<Granted | null> {
    let version = 0;
    for (let moves = 0; moves < MOVES_MAX; moves += 1) {
      const candidate = await this.#plan(create, version);
      if (candidate === null) return null;
      const { call, rules, routed, placements } = candidate;
      const metering = rules.isMetered ? meteringOf(candidate.located, create) : null;
      const admitted = await admit(routed, { ...ticket, ...lanesOf(call) }, placements, {
        ...call,
        signal: this.#over.signal,
        team: call.caller.key?.team ?? null,
        listener: null,
        metering,
        members: null,
      });
      switch (admitted.kind) {
        case 'admitted':
          return { candidate, admission: admitted.admission, metering };
        case 'rejected':
          this.#refuse(create, admitted.reply);
          return null;
        case 'left':
          return null;
        case 'moved':
          version = admitted.configVersion;
          if (moves > 0) await pause(MOVE_PAUSE_MS);
      }
    }
    const message = 'The configuration of the group could not be read. Try again in a moment.';
    this.#refuse(create, { reason: 'limiter_unavailable', message });
    return null;
  }

  /** Plans a turn by the newest configuration: its key may be revoked by now. Null: it was refused. */
  async #plan(create: CreateMessage, version: number): Promise<Candidate | null> {
    const { env, ctx, request, query } = this.#known;
    const table = await routingTable(env, ctx, version);
    if (table === null) return this.#refuse(create, UNCONFIRMED);
    const identified = await identify(table, request.headers, query);
    if (identified.kind === 'rejected') {
      this.#refuse(create, identified.reply);
      this.#pipe?.cut('key_invalid');
      return null;
    }
    const upstream = table.upstreams.get(this.#located.upstream.id);
    const call = { ...this.#known, table, caller: identified.caller };
    const at = { ...this.#located, model: create.model, isProven: true };
    const planned = upstream === undefined ? null : await planAt(call, { ...at, upstream });
    if (planned?.kind === 'rejected') return this.#refuse(create, planned.reply);
    if (planned === null || !this.#isOfConnection(planned)) {
      // Another address, another key, or members: on a new connection it will be so.
      this.#pipe?.cut('restart');
      return null;
    }
    const forbidden = forbiddenAt(planned);
    return forbidden === null ? planned : this.#refuse(create, forbidden);
  }

  #isOfConnection({ located: { upstream }, key, members }: Candidate): boolean {
    const { baseUrl, via } = this.#located.upstream;
    const isSamePlace = upstream.baseUrl === baseUrl && upstream.via === via;
    return isSamePlace && members === null && key.fingerprint === this.#key.fingerprint;
  }

  #refuse({ streamId }: CreateMessage, reply: ErrorReply): null {
    const { caller } = this.#known;
    const spaced = comebacks.space(reply, caller.id, steadyClock.now());
    this.#pipe?.toCaller(errorEvent(this.#located.operation.shape, spaced, streamId));
    return null;
  }
}

function lanesOf({
  caller: { keyLanes, keyTimeoutMs },
}: KnownCall): Pick<Ticket, 'keyLanes' | 'keyTimeoutMs'> {
  return { keyLanes, keyTimeoutMs };
}

function meteringOf(located: Located, { frame }: CreateMessage): Metering {
  const bytes = encoder.encode(frame);
  const facts = { chunks: [bytes], contentLength: bytes.length, contentType: 'application/json' };
  return new Metering(located, estimateCall({ ...facts, contentEncoding: null }));
}

function sizeOf(frame: Frame): number {
  return typeof frame === 'string' ? frame.length : frame.byteLength;
}
