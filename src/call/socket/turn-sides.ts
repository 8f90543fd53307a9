import { BoundedMap } from '../../core/parts/bounded-map.ts';
import type { Frame } from '../../upstream/socket/messages.ts';
import type { PipedUpstream, SocketPipe } from '../../upstream/socket/socket-pipe.ts';
import { fetchAnswer } from '../../upstream/transfer/fetch-answer.ts';
import type { AuthenticatedCall } from '../request/call.ts';
import { keptAnswer } from '../answer/refused.ts';
import { withOwnAddresses, targetOf, type CallTarget } from '../plan/target.ts';
import { placeOf, type Candidate } from '../plan/plan.ts';
import type { Rejected } from '../results/result.ts';
import { isNotSwitched } from '../request/upgrade.ts';

/** Statuses of upstreams without WebSockets on the route. */
const NO_SOCKETS: ReadonlySet<number> = new Set([404, 405, 426, 501]);

/** How long an upstream may take to accept a connection for a turn that already holds its slots. */
const CONNECT_MS = 10_000;

/** Maximum responses and streams of a connection whose upstreams are remembered. */
const REMEMBERED_MAX = 100;

type SocketRequest = Pick<
  Candidate,
  'call' | 'located' | 'key' | 'spilledFrom' | 'members' | 'member'
>;

/** The answer to a request for a WebSocket. */
interface SocketAnswer {
  readonly kind: 'received';
  readonly answer: Response;
  /** Whether the route has no WebSockets there. */
  readonly hasNoSocket: boolean;
}

/** Requests a WebSocket from an upstream. null if there is no answer. */
export async function requestSocket(
  outgoing: SocketRequest,
  target: CallTarget,
  signal: AbortSignal,
): Promise<SocketAnswer | Rejected | null> {
  const { url, headers, fetcher } = target;
  const manual = { redirect: 'manual', encodeResponseBody: 'manual' } as const;
  try {
    const given = await fetchAnswer(fetcher, url, { headers, signal, ...manual }, null);
    const received = withOwnAddresses(given, outgoing, target);
    if (received.kind === 'rejected') return received;
    const { answer } = received;
    const isOther = isNotSwitched(outgoing.located.operation, answer);
    const hasNoSocket = answer.webSocket === null && (isOther || NO_SOCKETS.has(answer.status));
    return { ...received, hasNoSocket };
  } catch {
    return null;
  }
}

/** An upstream's answer to a request for a WebSocket, as several turns may read it. */
export interface RefusedConnection {
  readonly kind: 'refused';
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Why an upstream has no connection for a turn. */
export type NoSide =
  | { readonly kind: 'broken' }
  | { readonly kind: 'unserved' }
  | RefusedConnection
  | Rejected;

/** The connection to one upstream, with one key, behind the connection of a client. */
export class TurnSide {
  readonly kind = 'side';
  /** The upstream, or the member of a group. */
  readonly place: string;
  /** Address and key. Another configuration may give the place others. */
  readonly route: string;
  readonly #upstream: PipedUpstream;
  #turns = 0;
  #isRetired = false;
  /** Streams whose last turn went elsewhere. */
  readonly #left = new Set<string | null>();
  /** Messages sent that an error of the upstream may be about, instead of a turn. */
  #others = 0;
  /** How many of them the upstream has read. It reads in order, and the answer to a later message has begun. */
  #othersRead = 0;

  constructor(place: string, route: string, join: (side: TurnSide) => PipedUpstream) {
    this.place = place;
    this.route = route;
    this.#upstream = join(this);
  }

  get isOpen(): boolean {
    return this.#upstream.isOpen;
  }

  get isRetired(): boolean {
    return this.#isRetired;
  }

  get done(): PipedUpstream['done'] {
    return this.#upstream.done;
  }

  /** Counts a turn on it until the returned function is called. */
  use(): () => void {
    this.#turns += 1;
    return () => {
      this.#turns -= 1;
      this.#leaveIfUnused();
    };
  }

  /** Closes it once no turn runs on it, because another one has replaced it. */
  retire(): void {
    this.#isRetired = true;
    this.#leaveIfUnused();
  }

  #leaveIfUnused(): void {
    if (this.#isRetired && this.#turns === 0 && this.isOpen) this.#upstream.leave();
  }

  send(frame: Frame): void {
    this.#upstream.send(frame);
  }

  sendTurn(frame: Frame, streamId: string | null): void {
    this.#left.delete(streamId);
    this.send(frame);
  }

  /** Notes that a turn goes elsewhere, so that its client receives nothing more from here about it. */
  noteLeft(streamId: string | null): void {
    if (this.#left.size >= REMEMBERED_MAX) this.#left.clear();
    this.#left.add(streamId);
  }

  hasLeft(streamId: string | null): boolean {
    return this.#left.has(streamId);
  }

  /** Forwards a message that requests no response. Not every upstream accepts it. */
  sendOther(frame: Frame): void {
    this.#others += 1;
    this.send(frame);
  }

  /** Distinguishes errors of a turn that is about to be sent from those of other messages. */
  doubts(): { readonly isOwnError: () => boolean; readonly noteBegun: () => void } {
    const before = this.#others;
    return {
      isOwnError: () => this.#others === this.#othersRead,
      noteBegun: () => {
        this.#othersRead = Math.max(this.#othersRead, before);
      },
    };
  }
}

interface TurnSidesListener {
  readonly onFrame: (side: TurnSide, frame: Frame) => Promise<void> | void;
  readonly isOutlived: (side: TurnSide) => Promise<boolean>;
  /** Its upstream has released the connection. */
  readonly onDone: (side: TurnSide, end: Awaited<PipedUpstream['done']>) => void;
}

/**
 * The connections to upstreams behind the connection of a client: one for each upstream or member that has had a turn.
 * A response is known only to the place that created it, so turns that continue it return there.
 */
export class TurnSides {
  readonly #known: AuthenticatedCall;
  readonly #pipe: SocketPipe;
  readonly #listener: TurnSidesListener;
  readonly #sides = new Map<string, TurnSide>();
  readonly #opening = new Map<string, Promise<TurnSide | NoSide>>();
  readonly #responses = new BoundedMap<string, string>(REMEMBERED_MAX);
  readonly #streams = new BoundedMap<string | null, string>(REMEMBERED_MAX);
  #last: TurnSide | null = null;

  /** @param known the upgrade of the client */
  constructor(known: AuthenticatedCall, pipe: SocketPipe, listener: TurnSidesListener) {
    this.#known = known;
    this.#pipe = pipe;
    this.#listener = listener;
  }

  /** Adds the connection of an upstream, which replaces the one of the same place. */
  join(outgoing: SocketRequest, socket: WebSocket, breakUpstream: () => void): TurnSide {
    const { onFrame, isOutlived, onDone } = this.#listener;
    const place = placeOf(outgoing);
    const side = new TurnSide(place, routeOf(outgoing), (joined) =>
      this.#pipe.join(socket, {
        breakUpstream,
        onUpstream: (frame) => onFrame(joined, frame),
        isOutlived: () => isOutlived(joined),
      }),
    );
    this.#sides.get(place)?.retire();
    this.#sides.set(place, side);
    if (this.#last?.isOpen !== true) this.#last = side;
    const forget = (end: Awaited<typeof side.done>): void => {
      if (this.#sides.get(place) === side) this.#sides.delete(place);
      onDone(side, end);
    };
    side.done.then(forget).catch(() => {});
    return side;
  }

  /** Returns the connection of a turn, and opens it if there is none yet. */
  async at(candidate: Candidate): Promise<TurnSide | NoSide> {
    const route = routeOf(candidate);
    const side = this.#sides.get(placeOf(candidate));
    if (side?.isOpen === true && side.route === route) return side;
    const name = `${placeOf(candidate)}\n${route}`;
    const before = this.#opening.get(name);
    if (before !== undefined) return before;
    const opening = this.#open(candidate).finally(() => this.#opening.delete(name));
    this.#opening.set(name, opening);
    return opening;
  }

  async #open(candidate: Candidate): Promise<TurnSide | NoSide> {
    const { request, signal, after } = this.#known;
    const outgoing = { ...candidate, call: { ...candidate.call, request } };
    const stop = new AbortController();
    const abort = (): void => stop.abort();
    signal.addEventListener('abort', abort);
    const callOff = after(CONNECT_MS, abort);
    const target = targetOf(outgoing);
    target.headers.set('accept-encoding', 'identity');
    const received = await requestSocket(outgoing, target, stop.signal);
    callOff();
    signal.removeEventListener('abort', abort);
    if (received === null) return { kind: 'broken' };
    if (received.kind === 'rejected') return received;
    const { answer, hasNoSocket } = received;
    if (answer.webSocket !== null && this.#pipe.isOpen) {
      return this.join(candidate, answer.webSocket, abort);
    }
    const kept = answer.webSocket === null && !hasNoSocket ? await keptAnswer(answer, after) : null;
    stop.abort();
    if (answer.webSocket !== null) return { kind: 'broken' };
    if (hasNoSocket) return { kind: 'unserved' };
    const { status, headers } = answer;
    return { kind: 'refused', status, headers, text: (await kept?.text()) ?? '' };
  }

  /** Whether another connection than this one is open, or about to be. */
  hasOther(side: TurnSide): boolean {
    return (
      this.#opening.size > 0 || [...this.#sides.values()].some((one) => one !== side && one.isOpen)
    );
  }

  /** The only connection. null if there are none, or several. */
  get only(): TurnSide | null {
    const [first, second] = this.#sides.values();
    return second === undefined ? (first ?? null) : null;
  }

  /** The connection for messages of a stream that request no response. null if there is none. */
  forOthers(streamId: string | null): TurnSide | null {
    const place = this.#streams.get(streamId);
    const side = place === undefined ? this.#last : this.#sides.get(place);
    return side?.isOpen === true ? side : null;
  }

  /** Notes that an answer has begun. */
  noteBegun(side: TurnSide, streamId: string | null, responseId: string | null): void {
    this.#last = side;
    this.#streams.set(streamId, side.place);
    if (responseId !== null) this.#responses.set(responseId, side.place);
  }

  /** The place of the response that a turn continues. null if it continues none that was created here. */
  placeOf(turn: {
    readonly streamId: string | null;
    readonly previousId: string | null;
    readonly isAppend: boolean;
  }): string | null {
    const { streamId, previousId, isAppend } = turn;
    if (previousId !== null) return this.#responses.get(previousId) ?? null;
    if (!isAppend) return null;
    return this.#streams.get(streamId) ?? this.#last?.place ?? null;
  }
}

function routeOf({ located: { upstream, path }, key }: SocketRequest): string {
  return JSON.stringify([upstream.baseUrl, upstream.via, path, key.injected, key.fingerprint]);
}
