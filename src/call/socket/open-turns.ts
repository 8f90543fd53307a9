import { classifyTurn } from '../../upstream/operation/upgrades.ts';
import { acceptedSubprotocol } from '../../upstream/transfer/tokens.ts';
import { callerResponseHeaders } from '../../upstream/transfer/headers.ts';
import { unreadBody } from '../../upstream/body/request-body.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { plural } from '../../core/words/figures.ts';
import { logEvent } from '../../runtime/log.ts';
import { steadyClock } from '../../runtime/async.ts';
import { foreignPage, countInFlight, departures, type AuthenticatedCall } from '../request/call.ts';
import type { UpstreamKey, Caller } from '../identity/authenticate.ts';
import type { Located } from '../request/locate.ts';
import {
  answered,
  LEFT,
  rejected,
  unreachable,
  type Answered,
  type CallerLeft,
  type Rejected,
} from '../results/result.ts';
import { droppedHeader, targetOf, type CallTarget } from '../plan/target.ts';
import { connectionKey, connectionLook } from '../answer/may-go-on.ts';
import { dropWhenUnread, openSockets, socketPair, switched } from '../answer/session.ts';
import { unserved } from '../request/upgrade.ts';
import { requestSocket } from './turn-sides.ts';
import { Turns } from './turns.ts';

/**
 * Connects a caller to an upstream for Responses over WebSocket. The connection takes no slot, because each request for
 * a response on it is a separate call. `onEnd` is called when an open connection has ended.
 */
export async function openTurns(
  known: AuthenticatedCall,
  located: Located,
  onEnd: () => void,
): Promise<Answered | Rejected | CallerLeft> {
  const found = await connectionKey(known, located);
  if (found.kind === 'rejected') return found;
  const { key } = found;
  // Turns that go to members are checked there.
  const foreign = key === null ? null : foreignPage(known, located.upstream, key.injected);
  if (foreign !== null) return foreign;
  const added = openConnections.add(located.upstream, known.caller);
  if (added.kind === 'rejected') return added;
  let isOpen = false;
  try {
    const opened = await connect(known, located, key, () => {
      added.remove();
      onEnd();
    });
    isOpen = opened.kind === 'answered' && opened.response.webSocket !== null;
    return opened;
  } finally {
    if (!isOpen) added.remove();
  }
}

/** Connects the caller, and its upstream if its key is known. `onEnd` is called only if both are connected. */
async function connect(
  known: AuthenticatedCall,
  located: Located,
  key: UpstreamKey | null,
  onEnd: () => void,
): Promise<Answered | Rejected | CallerLeft> {
  const { request, url } = known;
  known.body.hold(unreadBody(request));
  if (key === null) {
    // Each member is connected when a turn goes there.
    const { client } = carryTurns(known, located, key, onEnd);
    const subprotocol = acceptedSubprotocol(request.headers);
    const headers = subprotocol === null ? {} : { 'sec-websocket-protocol': subprotocol };
    return answered(new Response(null, { status: 101, webSocket: client, headers }));
  }
  const stop = new AbortController();
  request.signal.addEventListener('abort', () => stop.abort(), { once: true });
  const connection = { call: known, located, key, spilledFrom: null, members: null, member: null };
  const target = targetOf(connection);
  const received = await requestSocket(connection, target, stop.signal);
  const { id } = located.upstream;
  if (received === null) return request.signal.aborted ? LEFT : unreachable(id, null);
  if (received.kind === 'rejected') return received;
  const { answer, hasNoSocket } = received;
  const { webSocket } = answer;
  if (webSocket === null) {
    if (!hasNoSocket) return refusal(answer, target);
    stop.abort();
    return rejected(unserved(url));
  }
  const { turns, client } = carryTurns(known, located, key, onEnd);
  turns.sides.join(connection, webSocket, () => stop.abort());
  return answered(switched(answer, client), droppedHeader(target));
}

/** Begins to carry the turns of a caller, and returns the caller's end of the connection. */
function carryTurns(
  known: AuthenticatedCall,
  located: Located,
  key: UpstreamKey | null,
  onEnd: () => void,
): { readonly turns: Turns; readonly client: WebSocket } {
  const { request, query, ctx, after } = known;
  const { upstream, path } = located;
  const { client, server } = socketPair();
  const operation = classifyTurn(path, query, upstream);
  const turns = new Turns(known, { ...located, operation, isProven: true }, server);
  const { pipe } = turns;
  const stopLooking = openSockets.watch(
    {
      cut: (reason) => pipe.cut(reason),
      whyEnd: connectionLook(known, located, key),
      isAtRest: () => turns.isAtRest,
    },
    after,
  );
  const done = pipe.done.then(async () => {
    stopLooking();
    onEnd();
    await turns.ended();
    dropWhenUnread(pipe, ctx, after);
  });
  countInFlight(
    departures.watch(request, done, () => pipe.cut('left')),
    ctx,
  );
  return { turns, client };
}

function refusal(answer: Response, target: CallTarget): Answered {
  const { status, statusText, headers, body } = answer;
  const response = new Response(body, { status, statusText, headers, encodeBody: 'manual' });
  callerResponseHeaders(response.headers);
  return answered(response, droppedHeader(target));
}

/** Minimum time between two log lines about the same upstream. */
const SILENT_MS = 60_000;

/** Retry delay of a refused caller. An unused connection closes after minutes, and others at any time. */
const RETRY_AFTER_MS = 30_000;

/**
 * Counts the connections for turns of this isolate by caller and upstream. They take no slot, so no group limits them.
 */
class OpenConnections {
  readonly #counts = new Map<string, number>();
  /** When a refusal was last logged, by upstream. */
  readonly #loggedAt = new Map<string, number>();

  /** Counts one more connection until the returned function is called. Rejects it if the caller has too many. */
  add(
    { id: upstream, turnConnectionsEach: max }: Upstream,
    { id: caller }: Caller,
  ): AddedConnection | Rejected {
    const name = `${upstream} ${caller}`;
    const before = this.#counts.get(name) ?? 0;
    if (before >= max) {
      this.#log(upstream, caller, max);
      return rejected(tooMany(upstream, max));
    }
    this.#counts.set(name, before + 1);
    let isRemoved = false;
    const remove = (): void => {
      if (isRemoved) return;
      isRemoved = true;
      const left = (this.#counts.get(name) ?? 1) - 1;
      if (left === 0) this.#counts.delete(name);
      else this.#counts.set(name, left);
    };
    return { kind: 'added', remove };
  }

  /** Logs a refusal, because no group counts it. */
  #log(upstream: string, caller: string, max: number): void {
    const now = steadyClock.now();
    if (now - (this.#loggedAt.get(upstream) ?? -Infinity) < SILENT_MS) return;
    this.#loggedAt.set(upstream, now);
    logEvent('too_many_connections', { upstream, caller, turn_connections_each: max });
  }
}

interface AddedConnection {
  readonly kind: 'added';
  readonly remove: () => void;
}

function tooMany(upstream: string, max: number): Rejected['reply'] {
  const message = `This caller already has ${plural(max, 'open connection')} for turns to upstream \`${upstream}\`, which is the maximum. Close one, use HTTP, or ask the operator to raise \`turn_connections_each\` of the upstream.`;
  return { reason: 'too_many_connections', message, retryAfterMs: RETRY_AFTER_MS };
}

const openConnections = new OpenConnections();
