import { classifyTurn } from '../../upstream/operation/upgrades.ts';
import { acceptedSubprotocol } from '../../upstream/transfer/tokens.ts';
import { callerResponseHeaders } from '../../upstream/transfer/headers.ts';
import { unreadBody } from '../../upstream/body/request-body.ts';
import type { AuthenticatedCall } from '../call.ts';
import { countInFlight } from '../calls-in-flight.ts';
import { foreignPage } from '../foreign-page.ts';
import type { UpstreamKey } from '../identity/authenticate.ts';
import { departures } from '../isolate.ts';
import type { Located } from '../locate.ts';
import {
  answered,
  LEFT,
  rejected,
  type Answered,
  type CallerLeft,
  type Rejected,
} from '../result.ts';
import { droppedHeader, targetOf, type CallTarget } from '../target.ts';
import { unreachable } from '../unreachable.ts';
import { connectionKey } from './connection-key.ts';
import { dropWhenUnread } from './drop-unread.ts';
import { connectionLook } from './may-go-on.ts';
import { openConnections } from './open-connections.ts';
import { openSockets } from './open-sockets.ts';
import { socketPair, switched } from './session.ts';
import { requestSocket } from './turn-sides.ts';
import { Turns } from './turns.ts';
import { unserved } from './upgrade.ts';

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
