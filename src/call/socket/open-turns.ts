import { classify } from '../../upstream/operation/operation.ts';
import { SocketPipe } from '../../upstream/socket/socket-pipe.ts';
import { fetchAnswer } from '../../upstream/transfer/fetch-answer.ts';
import { callerResponseHeaders } from '../../upstream/transfer/response-headers.ts';
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
import { withOwnAddresses } from '../own-addresses.ts';
import { droppedHeader, targetOf, type CallTarget } from '../target.ts';
import { unreachable } from '../unreachable.ts';
import { connectionKey } from './connection-key.ts';
import { dropWhenUnread } from './drop-unread.ts';
import { connectionLook } from './may-go-on.ts';
import { openConnections } from './open-connections.ts';
import { openSockets } from './open-sockets.ts';
import { socketPair, switched } from './session.ts';
import { Turns } from './turns.ts';
import { isNotSwitched, unserved } from './upgrade.ts';

const NO_SOCKETS: ReadonlySet<number> = new Set([404, 405, 426, 501]);

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
  const foreign = foreignPage(known, located.upstream, found.key.injected);
  if (foreign !== null) return foreign;
  const added = openConnections.add(located.upstream, known.caller);
  if (added.kind === 'rejected') return added;
  let isOpen = false;
  try {
    const opened = await connect(known, located, found.key, () => {
      added.remove();
      onEnd();
    });
    isOpen = opened.kind === 'answered' && opened.response.webSocket !== null;
    return opened;
  } finally {
    if (!isOpen) added.remove();
  }
}

/** Connects both sides. `onEnd` is called only if both are connected. */
async function connect(
  known: AuthenticatedCall,
  located: Located,
  key: UpstreamKey,
  onEnd: () => void,
): Promise<Answered | Rejected | CallerLeft> {
  const { request, query, ctx, after, url } = known;
  const { upstream, path } = located;
  known.body.hold(unreadBody(request));
  const stop = new AbortController();
  request.signal.addEventListener('abort', () => stop.abort(), { once: true });
  const connection = { call: known, located, key, spilledFrom: null, member: null };
  const target = targetOf(connection);
  const received = await upgrade(connection, target, stop.signal);
  if (received === null) return request.signal.aborted ? LEFT : unreachable(upstream.id, null);
  if (received.kind === 'rejected') return received;
  const { answer } = received;
  const { webSocket } = answer;
  if (webSocket === null) {
    const hasNoSocket = NO_SOCKETS.has(answer.status) || isNotSwitched(located.operation, answer);
    if (!hasNoSocket) return refusal(answer, target);
    stop.abort();
    return rejected(unserved(url));
  }
  const { client, server } = socketPair();
  const operation = {
    ...classify('POST', path, query, upstream.dialect),
    socket: 'turns',
  } as const;
  const turns = new Turns(known, { ...located, operation, isProven: true }, key);
  const pipe = new SocketPipe(server, webSocket, {
    after,
    breakUpstream: () => stop.abort(),
    idleMs: null,
    onCaller: (frame) => turns.fromCaller(frame),
    onUpstream: (frame) => turns.fromUpstream(frame),
    onEnd: () => turns.noteEnd(),
  });
  turns.begin(pipe);
  const stopLooking = openSockets.watch(
    {
      cut: (reason) => pipe.cut(reason),
      whyEnd: connectionLook(known, located, key),
      isAtRest: () => turns.isAtRest,
    },
    after,
  );
  const done = pipe.done.then(async (end) => {
    stopLooking();
    onEnd();
    await turns.end(end);
    dropWhenUnread(pipe, ctx, after);
  });
  countInFlight(
    departures.watch(request, done, () => pipe.cut('left')),
    ctx,
  );
  return answered(switched(answer, client), droppedHeader(target));
}

type TargetCall = Parameters<typeof targetOf>[0];

/** Requests a WebSocket from the upstream. null if there is no answer. */
async function upgrade(
  connection: TargetCall,
  target: CallTarget,
  signal: AbortSignal,
): Promise<ReturnType<typeof withOwnAddresses> | null> {
  const { url, headers, fetcher } = target;
  const manual = { redirect: 'manual', encodeResponseBody: 'manual' } as const;
  try {
    const answer = await fetchAnswer(fetcher, url, { headers, signal, ...manual }, null);
    return withOwnAddresses(answer, connection, target);
  } catch {
    return null;
  }
}

function refusal(answer: Response, target: CallTarget): Answered {
  const { status, statusText, headers, body } = answer;
  const response = new Response(body, { status, statusText, headers, encodeBody: 'manual' });
  callerResponseHeaders(response.headers);
  return answered(response, droppedHeader(target));
}
