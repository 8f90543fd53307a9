/** The entry of a proxied call. README.md lists the steps that follow. */
import type { Env } from '../env.ts';
import type { ErrorReply, Reason } from '../contract/reasons.ts';
import { readCallerHeaders } from './request/caller-headers.ts';
import { isolateConfig } from '../config/isolate-config.ts';
import type { RoutingTable } from '../config/snapshots.ts';
import { PlainAbort, CallClock, steadyClock, type Background } from '../runtime/async.ts';
import { wrongPlace } from '../runtime/deployment.ts';
import { newTicket, ticketKeptAlive, sessionTicket } from './acquire/ticket.ts';
import { withCure, respond } from './answer/respond.ts';
import type { PositionListener } from './acquire/open-calls.ts';
import { CallAttempts } from './attempts/call-attempts.ts';
import { httpCalls } from './drive/attempt-at.ts';
import { drive } from './drive/drive.ts';
import { CallBody } from './request/body.ts';
import {
  UNCONFIRMED,
  calledUrl,
  splitPath,
  EarlyAnswer,
  nothingFound,
  countInFlight,
  type AuthenticatedCall,
  type ProxyCall,
} from './request/call.ts';
import { errorShape } from './request/choose-path.ts';
import { corsHeaders, preflightResponse } from './answer/response-headers.ts';
import { errorResponse } from './results/wire-error.ts';
import { changedMeanwhile } from './request/find-model.ts';
import { identify, missingKey, unsupported } from './identity/authenticate.ts';
import {
  delayNewKey,
  delayUnknownKey,
  namesAnywhere,
  NO_PLACE,
  noteKeyAnswer,
  takePlace,
} from './identity/new-keys.ts';
import { returns } from './acquire/rejections.ts';
import { keepaliveOf, keptAlive } from './answer/keepalive.ts';
import { locate, type Located } from './request/locate.ts';
import { answerModels } from './models/answer-models.ts';
import { modelsRequest, type ModelsRequest } from './request/operation-of.ts';
import { planAt, type Candidate } from './plan/plan.ts';
import { noteIfKeyless, noteRefusal } from './observe/note-refusal.ts';
import {
  rejected,
  type Answered,
  type EarlierRead,
  type FinalResult,
  type Rejected,
} from './results/result.ts';
import { openTurns } from './socket/open-turns.ts';
import { isUpgrade, overriddenUpgrade, unserved, UPGRADE_WITH_BODY } from './request/upgrade.ts';

/** Shared by all calls without a query. It is never changed. */
const NO_QUERY = new URLSearchParams();

/** Reasons that a newer configuration may remove, even if this copy is a second old. */
const NOT_THERE: ReadonlySet<Reason> = new Set(['upstream_unknown', 'model_unknown']);

/** Reasons that a newer configuration may remove. No pool was asked before them, so none has reported its version. */
const BY_CONFIG: ReadonlySet<Reason> = new Set([
  'key_missing',
  'key_invalid',
  'key_forbidden',
  'origin_forbidden',
  'model_ambiguous',
  'header_invalid',
  'body_unreadable',
  'secret_missing',
  'price_unknown',
  'too_many_groups',
]);

const SWITCHING_PROTOCOLS = 101;

/** Methods of calls that may ask a pool. */
const GENERATING: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

/** Answers a call to `/{upstream}/*` or to the unified `/v1/*`. */
export async function proxy(request: Request, env: Env, ctx: Background): Promise<Response> {
  const wrong = wrongPlace(env);
  if (wrong !== null) {
    return refusedWithoutTable(
      { request, env, ctx },
      { reason: 'setting_invalid', message: wrong },
    );
  }
  const { method } = request;
  const mayAskPool = GENERATING.has(method);
  const table = await (mayAskPool
    ? isolateConfig.forPool(env, ctx)
    : isolateConfig.confirmed(env, ctx));
  if (table === null) return refusedWithoutTable({ request, env, ctx }, UNCONFIRMED);
  const url = calledUrl(request.url, table);
  const preflight = preflightResponse(request, corsOf(request, table));
  if (preflight !== null) return preflight;
  const signal = new PlainAbort(request.signal);
  const { after } = new CallClock();
  const query = url.search === '' ? NO_QUERY : url.searchParams;
  const body = new CallBody();
  const early = new EarlyAnswer();
  const found = nothingFound();
  const call = { request, method, signal, url, query, env, ctx, table, after, body, early, found };
  const answering = answer(call, null)
    .then((result) => orByNewest(result, call))
    // Only this ends the body, whatever the result of the call.
    .finally(() => body.end());
  countInFlight(answering, ctx);
  const result = await Promise.race([answering, early.begun]);
  // The call may have received a newer configuration meanwhile.
  return respond(result, call, corsOf(request, isolateConfig.copy ?? table));
}

function refusedWithoutTable(
  call: Pick<ProxyCall, 'request' | 'env' | 'ctx'>,
  reply: ErrorReply,
): Response {
  const { request } = call;
  noteRefusal(call, reply);
  return errorResponse(errorShape(request, calledUrl(request.url, null), null), reply);
}

function corsOf(request: Request, { snapshot }: RoutingTable): Headers | null {
  return corsHeaders(request, snapshot.config.cors_origins);
}

/** Rejects a call because of its configuration only if the directory has no newer one. */
async function orByNewest(result: FinalResult, call: ProxyCall): Promise<FinalResult> {
  if (result.kind === 'answered') noteIfKeyless(call, call.found, result.response.status);
  if (result.kind !== 'rejected' || result.isByNewer === true) return result;
  const { reason } = result.reply;
  if (!NOT_THERE.has(reason) && !(BY_CONFIG.has(reason) && isolateConfig.mayBeOld(call.table))) {
    return result;
  }
  const { request, env, ctx, body, early } = call;
  if (early.hasBegun) return result;
  const table = await isolateConfig.recheck(env, ctx);
  if (table === null) return rejected(UNCONFIRMED);
  if (table === call.table) return result;
  const isGone = result.read === null && body.isTaken && request.body !== null;
  const url = calledUrl(request.url, table);
  return isGone ? changedMeanwhile() : answer({ ...call, url, table }, result.read);
}

/** Routes a call and answers it. `earlier` is what was read of its body for an older configuration. */
async function answer(call: ProxyCall, earlier: EarlierRead | null): Promise<FinalResult> {
  const known = await authenticateCall(call);
  if (known.kind === 'rejected') return known;
  const { found } = call;
  found.caller = known.caller;
  const ownKey = ownKeyOf(known);
  const place = ownKey === null ? NO_PLACE : takePlace(call, ownKey);
  if (place.kind === 'rejected') return place;
  try {
    const models = modelsRequestOf(known);
    if (models !== null) {
      if (ownKey !== null) await delayNewKey(call, ownKey, []);
      const listed = await answerModels(known, models);
      if (listed !== null) return listed;
    }
    // The ticket is made before the body is read, so that a slow upload counts as waiting.
    const isSocket = isUpgrade(call);
    const overridden = isSocket ? overriddenUpgrade(call.request.headers, call.query) : null;
    if (overridden !== null) return rejected(overridden);
    const ticket = isSocket ? sessionTicket(known) : newTicket(known);
    const located = await locate(known, earlier);
    if (located.kind !== 'located') return located;
    found.located = located;
    const { socket } = located.operation;
    if (socket === 'unserved') return rejected(unserved(call.url));
    if (socket === 'turns') return await turnsFor(known, located, ownKey);
    const candidate = await planAt(known, located);
    if (candidate.kind !== 'planned') return candidate;
    found.placements = candidate.placements;
    // On the unified routes the path does not determine the upstream of the key.
    const keyHere = `${located.upstream.id} ${candidate.key.fingerprint}`;
    if (ownKey !== null) await delayNewKey(call, keyHere, candidate.placements);
    const keepalive = keepaliveOf(candidate);
    const patient = keepalive === null ? ticket : ticketKeptAlive(ticket, known, keepalive);
    const attempts = new CallAttempts<Answered>(known.request.headers);
    const run = (at: Candidate, listener: PositionListener | null) =>
      drive(at, { ticket: patient, attempts, listener }, httpCalls).then((one) =>
        spaced(one, known),
      );
    const result = await (keepalive === null
      ? run(candidate, null)
      : keptAlive(candidate, keepalive, run));
    if (ownKey !== null && result.kind === 'answered' && result.isAboutKey) {
      const { status } = result.response;
      const names = [keyHere, ownKey, ...namesAnywhere(known.caller)];
      noteKeyAnswer(call, names, status, located.operation.limited);
    }
    return result.kind === 'answered' ? await withCure(result, known, located) : result;
  } finally {
    place.leave();
  }
}

/** Opens a connection for turns. Its turns take slots, so its key keeps its place until the connection closes. */
async function turnsFor(
  known: AuthenticatedCall,
  located: Located,
  ownKey: string | null,
): Promise<FinalResult> {
  if (ownKey === null) return openTurns(known, located, () => {});
  const keyThere = `${located.upstream.id} ${ownKey}`;
  await delayNewKey(known, keyThere, []);
  const place = takePlace(known, ownKey);
  if (place.kind === 'rejected') return place;
  let isOpen = false;
  try {
    const opened = await openTurns(known, located, place.leave);
    if (opened.kind !== 'answered') return opened;
    const { status } = opened.response;
    isOpen = status === SWITCHING_PROTOCOLS;
    // A successful connection does not prove that the key is valid.
    noteKeyAnswer(known, [keyThere], status, false);
    return opened;
  } finally {
    if (!isOpen) place.leave();
  }
}

/** Authenticates a call and parses its headers. Rejects what cannot be served. */
async function authenticateCall(call: ProxyCall): Promise<AuthenticatedCall | Rejected> {
  const { request, table, query } = call;
  const headers = readCallerHeaders(request.headers);
  if (!headers.ok) return rejected({ reason: 'header_invalid', message: headers.message });
  if (isUpgrade(call) && request.body !== null) return rejected(UPGRADE_WITH_BODY);
  const identified = await identify(table, request.headers, query);
  if (identified.kind === 'rejected') {
    if (identified.reply.reason === 'key_invalid') await delayUnknownKey(call);
    return identified;
  }
  const { caller } = identified;
  // Checked before the body is read. On the unified routes the upstream is not known yet.
  const upstream = table.upstreams.get(splitPath(call.url.pathname).id);
  const missing = upstream === undefined ? null : missingKey(upstream, caller, table);
  if (missing !== null) return missing;
  const reply = unsupported(caller);
  return reply === null
    ? { ...call, kind: 'known', caller, headers: headers.value }
    : rejected(reply);
}

/** The name of a provider key that the caller brought. null behind a gateway key, which is always verified. */
function ownKeyOf({ caller, table, url }: AuthenticatedCall): string | null {
  if (caller.gatewayKeyId !== null || caller.fingerprint === null) return null;
  const { id } = splitPath(url.pathname);
  return `${table.upstreams.has(id) ? id : 'v1'} ${caller.fingerprint}`;
}

/** The request of a call for the models of all upstreams. null if it requests something else, or names an upstream. */
function modelsRequestOf({
  request,
  url,
  headers,
  table,
}: AuthenticatedCall): ModelsRequest | null {
  return headers.upstream === null ? modelsRequest(request, url, table) : null;
}

function spaced(result: FinalResult, { caller }: AuthenticatedCall): FinalResult {
  if (result.kind !== 'rejected') return result;
  return { ...result, reply: returns.space(result.reply, caller.id, steadyClock.now()) };
}
