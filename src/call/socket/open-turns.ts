import { classify } from '../../upstream/operation/operation.ts';
import { SocketPipe } from '../../upstream/socket/socket-pipe.ts';
import { fetchAnswer } from '../../upstream/transfer/fetch-answer.ts';
import { callerResponseHeaders } from '../../upstream/transfer/response-headers.ts';
import { unreadBody } from '../../upstream/body/request-body.ts';
import { closedRoute, forbiddenUpstream } from '../../routing/key-access.ts';
import { hasMembers } from '../../routing/members.ts';
import type { KnownCall } from '../call.ts';
import { countInFlight } from '../calls-in-flight.ts';
import { departures } from '../isolate.ts';
import { keyFor, type UpstreamKey } from '../identity/authenticate.ts';
import type { Located } from '../locate.ts';
import { goesByMembers } from '../members/goes-by-members.ts';
import { answered, LEFT, rejected, type Answered, type Left, type Rejected } from '../result.ts';
import { targetOf } from '../target.ts';
import { unreachable } from '../unreachable.ts';
import { dropWhenUnread } from './drop-unread.ts';
import { whyEnd } from './may-go-on.ts';
import { openSockets } from './open-sockets.ts';
import { socketPair, switched } from './session.ts';
import { Turns } from './turns.ts';
import { isNotSwitched, unserved } from './upgrade.ts';

/** Statuses by which an upstream says that it knows no WebSocket there. */
const KNOWS_NONE: ReadonlySet<number> = new Set([404, 405, 426, 501]);

/** A connection holds no slot, so no group ends it. */
const NO_GROUPS: ReadonlySet<string> = new Set();

/**
 * Connects a caller to an upstream for Responses over WebSocket. The connection takes no slot: each request for a response on it
 * is a call of its own. `onEnd` is called when a connection that was opened has ended.
 */
export async function openTurns(
  known: KnownCall,
  located: Located,
  onEnd: () => void,
): Promise<Answered | Rejected | Left> {
  const { request, query, ctx, after, caller, table, env, url } = known;
  const { upstream, path } = located;
  // A turn goes where its connection does: to have it go by members its caller uses HTTP.
  if (mayGoByMembers(known, located)) return rejected(unserved(url));
  const found = await keyFor(upstream, caller, table, env);
  if (found.kind === 'rejected') return found;
  const shut = closedFor(known, located, found.key);
  if (shut !== null) return shut;
  known.body.hold(unreadBody(request));
  const stop = new AbortController();
  request.signal.addEventListener('abort', () => stop.abort(), { once: true });
  const connection = { call: known, located, key: found.key, spilledFrom: null, member: null };
  const answer = await upgrade(connection, stop.signal);
  if (answer === null) return request.signal.aborted ? LEFT : unreachable(upstream.id, null);
  const { webSocket } = answer;
  if (webSocket === null) {
    const knowsNone = KNOWS_NONE.has(answer.status) || isNotSwitched(located.operation, answer);
    if (!knowsNone) return refusal(answer);
    stop.abort();
    return rejected(unserved(url));
  }
  const { client, server } = socketPair();
  const operation = {
    ...classify('POST', path, query, upstream.dialect),
    socket: 'turns',
  } as const;
  const turns = new Turns(known, { ...located, operation, isProven: true }, found.key);
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
      whyEnd: () => whyEnd(known, NO_GROUPS),
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
  return answered(switched(answer, client));
}

type Connection = Parameters<typeof targetOf>[0];

/** Asks the upstream for a WebSocket. Null: there is no answer. */
async function upgrade(connection: Connection, signal: AbortSignal): Promise<Response | null> {
  const { url, headers, fetcher } = targetOf(connection);
  const manual = { redirect: 'manual', encodeResponseBody: 'manual' } as const;
  try {
    return await fetchAnswer(fetcher, url, { headers, signal, ...manual }, null);
  } catch {
    return null;
  }
}

function refusal(answer: Response): Answered {
  const { status, statusText, headers, body } = answer;
  const response = new Response(body, { status, statusText, headers, encodeBody: 'manual' });
  callerResponseHeaders(response.headers);
  return answered(response);
}

function mayGoByMembers({ caller, table }: KnownCall, { upstream }: Located): boolean {
  const { routes, snapshot } = table;
  if (!routes.hasMembers || !goesByMembers(caller, upstream)) return false;
  const names = new Set(routes.groupsOf(upstream));
  return snapshot.config.groups.some((group) => hasMembers(group) && names.has(group.name));
}

/** Rejects a connection that its gateway key does not open; null: it does, as far as no model is known. */
function closedFor(
  { caller: { key }, request, query, table }: KnownCall,
  located: Located,
  { injected }: UpstreamKey,
): Rejected | null {
  if (key === null) return null;
  const shut =
    (injected === null ? null : closedRoute(key, located, request, query)) ??
    forbiddenUpstream(key, located.upstream, table.routes);
  return shut === null ? null : rejected(shut);
}
