import type { Dialect } from '../contract/dialect.ts';
import type { Env } from '../env.ts';
import type { ErrorReply } from '../contract/reasons.ts';
import { readCallerHeaders, type CallerHeaders } from '../contract/request-headers.ts';
import { steadyClock } from '../runtime/steady-clock.ts';
import { errorResponse } from './errors/wire-error.ts';
import { CallClock } from '../runtime/call-clock.ts';
import { classify } from '../upstream/operation/operation.ts';
import type { Ticket } from './acquire/admission.ts';
import { identify, keyFor, type Caller } from './identity/authenticate.ts';
import type { ProxyCall } from './call.ts';
import { countInFlight } from './calls-in-flight.ts';
import { addCors, corsHeaders, preflightResponse } from './cors.ts';
import { answerWaiting, keepaliveOf, LastPlace } from './keepalive.ts';
import { comebacks } from './isolate.ts';
import { journey } from './attempts.ts';
import type { Leg } from './candidate.ts';
import {
  changedMeanwhile,
  locateDirect,
  locateUnified,
  readOf,
  splitPath,
  unifiedShape,
  type Incoming,
  type Located,
  type Misplaced,
} from './locate.ts';
import { delayNewKey, delayUnknownKey, noteKeyAnswer, takePlace } from './identity/new-keys.ts';
import { listModels } from './list-models.ts';
import { routedCall } from './send.ts';
import { newerTable, routingTable, type RoutingTable } from '../config/snapshots.ts';
import { ticketTime } from './acquire/ticket-time.ts';
import { traceError } from './observe/trace.ts';
import type { Background } from '../runtime/background.ts';

/** Bounds of the wait for a body: uploads take their time, even of callers who do not want to queue. */
const BODY_WAIT_MIN_MS = 10_000;
const BODY_WAIT_MAX_MS = 240_000;

/** Shared by all calls without a query: nobody adds to it. */
const NO_QUERY = new URLSearchParams();

/** What a newer configuration may have. */
const NOT_THERE: ReadonlySet<ErrorReply['reason']> = new Set(['upstream_unknown', 'model_unknown']);

/** The status of an answer that nobody is left to read. */
const LEFT_STATUS = 499;

/** A call to `/{upstream}/*` or to the unified `/v1/*`. */
export async function proxy(request: Request, env: Env, ctx: Background): Promise<Response> {
  const url = new URL(request.url);
  const table = await routingTable(env, ctx);
  if (table === null) {
    const message = 'The configuration cannot be reached yet. Try again in a moment.';
    return errorResponse(shapeOf(request, url, null), {
      reason: 'limiter_unavailable',
      message,
    });
  }
  const cors = corsHeaders(request, table.snapshot.config.cors_origins);
  const preflight = preflightResponse(request, cors);
  if (preflight !== null) return preflight;
  const { after } = new CallClock();
  const query = url.search === '' ? NO_QUERY : url.searchParams;
  const answering = answerByNewest({
    request,
    signal: request.signal,
    earlier: null,
    url,
    query,
    env,
    ctx,
    table,
    after,
  });
  countInFlight(answering, ctx);
  const answer = await answering;
  const isOurs = !(answer instanceof Response);
  if (isOurs) traceError(answer.reason);
  const response = isOurs ? errorResponse(shapeOf(request, url, table), answer) : answer;
  if (cors !== null) addCors(response.headers, cors);
  if (isPageVisit(request)) response.headers.append('content-security-policy', 'sandbox');
  return response;
}

/** Says that something is not there only where the directory does not know it either. */
async function answerByNewest(call: ProxyCall): Promise<Response | ErrorReply> {
  const answer = await answerTo(call);
  if (answer instanceof Response) return answer;
  const earlier = readOf(answer);
  const table = NOT_THERE.has(answer.reason) ? await newerTable(call.env, call.ctx) : null;
  const isNewer = table !== null && table !== call.table;
  const again = isNewer ? await answerAgain({ ...call, table, earlier }) : answer;
  if (!(again instanceof Response)) earlier?.body.discard();
  return again;
}

function answerAgain(call: ProxyCall): Promise<Response | ErrorReply> | ErrorReply {
  return call.earlier === null && call.request.bodyUsed ? changedMeanwhile() : answerTo(call);
}

/**
 * A browser opens the answer as a page. Upstreams share the dashboard's origin, so a script of theirs could
 * do what whoever is signed in there may do: it does not run. No client of an API says this of itself.
 */
function isPageVisit(request: Request): boolean {
  return request.headers.get('sec-fetch-mode') === 'navigate';
}

async function answerTo(call: ProxyCall): Promise<Response | ErrorReply | Misplaced> {
  const { request, url, query, table } = call;
  const read = readCallerHeaders(request.headers);
  if (!read.ok) return { reason: 'header_invalid', message: read.message };
  const caller = await identify(table, request.headers, query);
  if ('reason' in caller) {
    if (caller.reason === 'key_invalid') await delayUnknownKey(call);
    return caller;
  }
  const early = refuseEarly(request, url, caller);
  if (early !== null) return early;
  // Behind a gateway key nobody is unknown.
  if (caller.gatewayKeyId !== null || caller.fingerprint === null) {
    return answerCaller(call, caller, read.value, null);
  }
  const { id } = splitPath(url.pathname);
  const name = `${table.upstreams.has(id) ? id : 'v1'} ${caller.fingerprint}`;
  const leave = takePlace(call, name);
  if ('reason' in leave) return leave;
  const ownKey = { name, travels: false, leave };
  try {
    return await answerCaller(call, caller, read.value, ownKey);
  } finally {
    if (!ownKey.travels) leave();
  }
}

function answerCaller(
  call: ProxyCall,
  caller: Caller,
  headers: CallerHeaders,
  ownKey: OwnKey | null,
): Promise<Response | ErrorReply | Misplaced> {
  return isModelList(call.request, call.url) && headers.upstream === null
    ? listModels(call, caller)
    : sendLocated(call, caller, headers, ownKey);
}

/** A provider key that the caller brought, with the place of its call among those of such keys. */
interface OwnKey {
  readonly name: string;
  /** Set once the call is on its journey, at whose end it leaves by itself. */
  travels: boolean;
  readonly leave: () => void;
}

/** Sends the call where it belongs; a stream that waits for long is answered with comments meanwhile. */
async function sendLocated(
  call: ProxyCall,
  caller: Caller,
  headers: CallerHeaders,
  ownKey: OwnKey | null,
): Promise<Response | ErrorReply | Misplaced> {
  const { request, earlier, url, query, env, table, after } = call;
  const bodyWaitMs = Math.max(headers.maxWaitMs ?? BODY_WAIT_MAX_MS, BODY_WAIT_MIN_MS);
  const common = { request, earlier, url, query, headers, caller, bodyWaitMs, after };
  const ticket = newTicket(headers, caller);
  const located = await locate({ ...common, table });
  if (located === 'left') return nobodyListens();
  if ('reason' in located) return located;
  const key = await keyFor(located.upstream, caller, table, env);
  if ('reason' in key) {
    located.body.discard();
    return key;
  }
  const leg: Leg = { call, caller, located, key, spilledFrom: null };
  const placed = () => table.routes.place(routedCall(call, located, caller, key));
  // On the unified routes the path does not say whose key it is.
  const keyHere = `${located.upstream.id} ${key.fingerprint}`;
  if (ownKey !== null) await delayNewKey(call, keyHere, placed);
  const travel = async (from: Leg, listener: LastPlace | null): Promise<Response | ErrorReply> => {
    if (ownKey !== null) ownKey.travels = true;
    const arrived = await journey(from, ticket, common, listener).finally(ownKey?.leave);
    if (ownKey !== null && arrived instanceof Response) {
      const { status } = arrived;
      noteKeyAnswer(call, [keyHere, ownKey.name], status, located.operation.limited);
    }
    if (arrived === 'left') return nobodyListens();
    return arrived instanceof Response
      ? arrived
      : comebacks.space(arrived, caller.id, steadyClock.now());
  };
  if (!located.isStream || !located.operation.limited) return travel(leg, null);
  const keepalive = keepaliveOf(located, headers, placed());
  if (keepalive === null) return travel(leg, null);
  const place = new LastPlace(keepalive.everyMs);
  const gone = new AbortController();
  const signal = AbortSignal.any([call.signal, gone.signal]);
  const answer = travel({ ...leg, call: { ...call, signal } }, place);
  const early = Promise.withResolvers<null>();
  const callOff = after(keepalive.afterMs, () => early.resolve(null));
  const sent = await Promise.race([answer, early.promise]);
  callOff();
  return sent ?? answerWaiting(keepalive, place, answer, call, () => gone.abort());
}

async function locate(incoming: Incoming): Promise<Located | ErrorReply | Misplaced | 'left'> {
  const { url, table } = incoming;
  if (isUnified(url)) return locateUnified(incoming);
  const { id, rest } = splitPath(url.pathname);
  const upstream = table.upstreams.get(id);
  if (upstream === undefined) {
    const message =
      id === 'v1'
        ? '/v1 is a base URL: a route stands behind it, such as /v1/chat/completions or /v1/models.'
        : `There is no upstream ${id}. The path begins with the id of one, or with /v1.`;
    return { reason: 'upstream_unknown', message };
  }
  return locateDirect(incoming, upstream, rest);
}

function newTicket(said: CallerHeaders, { keyLanes }: Caller): Ticket {
  const { maxWaitMs, lane, weight, agent, agentStartedAt, parents } = said;
  const id = crypto.randomUUID();
  const enqueuedAt = ticketTime();
  const slots = weight;
  const of = { lane, keyLanes, slots, agent, agentStartedAt, parents };
  return { id, enqueuedAt, maxWaitMs, ...of, rounds: { next: 1 } };
}

function nobodyListens(): Response {
  return new Response(null, { status: LEFT_STATUS });
}

/** What no upstream could do anything about. */
function refuseEarly(request: Request, url: URL, caller: Caller): ErrorReply | null {
  if (request.headers.get('upgrade')?.toLowerCase() === 'websocket') {
    // Coding agents go on with HTTP at once on 426. Its header `Upgrade` would not get through: the runtime
    // keeps what is of the connection for itself.
    if (/\/responses\/*$/.test(url.pathname)) {
      const message = `Responses are not served over WebSocket here. Use HTTP: POST ${url.pathname}.`;
      return { reason: 'http_required', message };
    }
    const message = 'WebSocket calls are not supported yet. Use the HTTP routes.';
    return { reason: 'websocket_unsupported', message };
  }
  if (caller.credentials.sigV4) {
    const message =
      'A call signed with SigV4 is bound to its host, so it cannot pass through another one. Use a Bedrock API key as a bearer token instead.';
    return { reason: 'key_invalid', message };
  }
  return null;
}

function isUnified(url: URL): boolean {
  return url.pathname.startsWith('/v1/');
}

function isModelList(request: Request, url: URL): boolean {
  return request.method === 'GET' && url.pathname === '/v1/models';
}

/** The dialect in which the caller expects an error. */
function shapeOf(request: Request, url: URL, table: RoutingTable | null): Dialect {
  if (isUnified(url)) return unifiedShape(url.pathname);
  const { id, rest } = splitPath(url.pathname);
  const dialect = table?.upstreams.get(id)?.dialect ?? 'openai';
  return classify(request.method, rest, url.searchParams, dialect).shape;
}
