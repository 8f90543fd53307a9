import { NOT_BUILT, readAsset, wrongPlace } from '../../runtime/deployment.ts';
import { isolateConfig } from '../../config/isolate-config.ts';
import type { RoutingTable } from '../../config/snapshots.ts';
import {
  leaseRequestSchema,
  releaseRequestSchema,
  reportRequestSchema,
  type RenewalAnswer,
} from '../../contract/caller-api.ts';
import { READING_METHODS } from '../../contract/http.ts';
import type { Env } from '../../env.ts';
import { PlainAbort, steadyClock, type Background } from '../../runtime/async.ts';
import { foreignChange, unsupportedBody } from '../../runtime/origin.ts';
import { explainIssues } from '../../config/explain-issues.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import { BODY_BROKEN, readOwnBody } from '../../upstream/body/bytes.ts';
import { addCors, corsHeaders, preflightResponse } from '../answer/response-headers.ts';
import {
  UNCONFIRMED,
  nothingFound,
  countInFlight,
  departures,
  type AuthenticatedCall,
} from '../request/call.ts';
import { returns } from '../acquire/rejections.ts';
import { noteIfKeyless } from '../observe/note-refusal.ts';
import { rejectedResponse } from '../answer/respond.ts';
import { LEFT_STATUS, rejected, type Rejected } from '../results/result.ts';
import { cancelAll, releaseAll, renewAll } from './held-pools.ts';
import {
  answerAs,
  holdExceeded,
  notReported,
  openLeaseOf,
  routeReply,
  unknownToken,
  type LeaseRouteAnswer,
  type LeaseCallRequest,
} from './lease-call.ts';
import { openTicket, sealLease } from './lease-token.ts';
import { expiry, keepLeasePlace, postLease } from './post-lease.ts';
import { forbiddenHold, planHeld } from './plan-lease.ts';
import { patchLease, settleBy } from './report-lease.ts';

/**
 * Leases that clients request themselves. `lease-routes.ts` takes and parses a request, and `lease-call.ts`
 * authenticates it. `post-lease.ts` acquires a lease through `plan-lease.ts`, `admit-lease.ts` and `ask-by-id.ts`.
 * `report-lease.ts` processes the result of its call, and `held-pools.ts` sends messages to its pools. The Worker keeps
 * no state between two requests: the token of a lease (`lease-token.ts`) has all of it.
 */

export async function leases(request: Request, env: Env, ctx: Background): Promise<Response> {
  const wrong = wrongPlace(env);
  if (wrong !== null) {
    const refused = rejected({ reason: 'setting_invalid', message: wrong });
    return rejectedResponse('opaque', refused, { request, env, ctx });
  }
  const table = await isolateConfig.forPool(env, ctx);
  if (table === null) {
    return rejectedResponse('opaque', rejected(UNCONFIRMED), { request, env, ctx });
  }
  const cors = corsHeaders(request, table.snapshot.config.cors_origins);
  const preflight = preflightResponse(request, cors);
  if (preflight !== null) return preflight;
  const response = await respond({ request, env, ctx }, table);
  response.headers.set('cache-control', 'no-store');
  if (cors !== null) addCors(response.headers, cors);
  return response;
}

async function respond(
  { request, env, ctx }: Omit<LeaseCallRequest, 'signal' | 'found'>,
  table: RoutingTable,
): Promise<Response> {
  const refused =
    foreignChange(request, table.snapshot.config.cors_origins) ?? (await unsupportedBody(request));
  if (refused !== null) {
    return rejectedResponse('opaque', rejected(refused), { request, env, ctx });
  }
  const signal = new PlainAbort(request.signal);
  const incoming = { request, signal, env, ctx, found: nothingFound() };
  const answering = route(incoming, table);
  countInFlight(
    departures.watch(request, answering, () => signal.abort()),
    ctx,
  );
  const answer = await answering;
  if (answer.kind === 'reply') noteIfKeyless(incoming, incoming.found, answer.status);
  return responseTo(answer, incoming);
}

type LeaseRoute = (call: AuthenticatedCall) => Promise<LeaseRouteAnswer>;

async function route(incoming: LeaseCallRequest, table: RoutingTable): Promise<LeaseRouteAnswer> {
  const found = await routeOf(incoming);
  return typeof found === 'function' ? answerAs(incoming, table, found) : found;
}

/** The built OpenAPI document: the same for all callers, and free of details of this deployment. */
async function description(env: Env): Promise<LeaseRouteAnswer> {
  const file = await readAsset(env, '/leases-openapi.json');
  return file === null
    ? routeReply(503, { detail: NOT_BUILT })
    : routeReply(200, await file.json());
}

/** Finds the handler of a request. The body is read once, so that a newer configuration can decide again. */
async function routeOf({ request, env }: LeaseCallRequest): Promise<LeaseRoute | LeaseRouteAnswer> {
  const segments = new URL(request.url).pathname.split('/').filter((each) => each !== '');
  const [place = '', token = '', ...more] = segments;
  const isDescription = place === 'leases' && token === 'openapi.json';
  const below = token === '' ? '' : isDescription ? `/${token}` : '/*';
  const path = more.length > 0 ? `/${place}/*/*` : `/${place}${below}`;
  switch (`${request.method} ${path}`) {
    case 'GET /leases/openapi.json':
    case 'HEAD /leases/openapi.json':
      return description(env);
    case 'POST /leases': {
      const read = await readJson(request, leaseRequestSchema);
      return read.kind === 'rejected' ? read : (call) => spaced(call, postLease(call, read.value));
    }
    case 'PUT /leases/*':
      return (call) => putLease(call, token);
    case 'PATCH /leases/*': {
      const read = await readJson(request, reportRequestSchema);
      return read.kind === 'rejected' ? read : (call) => patchLease(call, token, read.value);
    }
    case 'DELETE /leases/*': {
      const read = await readJson(request, releaseRequestSchema, true);
      if (read.kind === 'rejected') return read;
      const { outcome = 'success', usage } = read.value;
      return async (call) => {
        const lease = await openLeaseOf(call, token);
        if (lease === null) return unknownToken('lease');
        const settled = settleBy(call, lease, usage);
        const end = { outcome, status: null, settle: settled?.settle };
        const left = await releaseAll(call, lease, end);
        if (left.length > 0) return notReported(left);
        return routeReply(204, null, settled === null ? {} : { 'headgate-usage': settled.counts });
      };
    }
    case 'DELETE /tickets/*':
      return (call) => deleteTicket(call, token);
    default:
      return unserved(request.method, path);
  }
}

/** Renews a lease, unless it has been held for the maximum time of its groups. */
async function putLease(call: AuthenticatedCall, token: string): Promise<LeaseRouteAnswer> {
  const sentAt = steadyClock.now();
  const { fingerprintKey } = call.table.snapshot;
  const lease = await openLeaseOf(call, token);
  if (lease === null) return unknownToken('lease');
  const forbidden = forbiddenHold(call, lease);
  if (forbidden !== null) return forbidden;
  const { maxHoldMs } = planHeld(call, lease).rules.hold;
  const holdLeftMs = lease.grantedAt + maxHoldMs - sentAt;
  if (holdLeftMs <= 0) return holdExceeded(maxHoldMs);
  const renewed = await renewAll(call, lease);
  switch (renewed.kind) {
    case 'ok': {
      const { pools } = renewed;
      const expiresAt = Math.min(...pools.map((hold) => hold.expiresAt));
      keepLeasePlace(call, lease.upstream, expiresAt);
      const body: RenewalAnswer = {
        lease: await sealLease(fingerprintKey, { ...lease, pools }),
        ...expiry(expiresAt, sentAt, holdLeftMs),
      };
      return routeReply(200, body);
    }
    case 'revoking': {
      const message = 'The operator revoked this lease. Stop the work and release the lease.';
      return rejected({ reason: 'lease_revoked', message });
    }
    case 'gone': {
      const message = 'This lease has ended, or was not renewed in time. Stop the work.';
      return rejected({ reason: 'lease_gone', message });
    }
    case 'unreachable':
      return notReported([renewed.group]);
  }
}

async function deleteTicket(call: AuthenticatedCall, token: string): Promise<LeaseRouteAnswer> {
  const ticket = await openTicket(call.table.snapshot.fingerprintKey, call.caller.id, token);
  if (ticket === null) return unknownToken('ticket');
  const left = await cancelAll(call, ticket.ticketId, ticket.pools);
  return left.length > 0 ? notReported(left) : routeReply(204, null);
}

const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  '/leases': ['POST'],
  '/leases/openapi.json': READING_METHODS,
  '/leases/*': ['PUT', 'PATCH', 'DELETE'],
  '/tickets/*': ['DELETE'],
};

function unserved(method: string, path: string): Rejected {
  const allow = ALLOWED[path];
  const message = `There is no route \`${method} ${path.replaceAll('*', '…')}\`. Use \`POST /leases\`, \`PUT\`, \`PATCH\` or \`DELETE /leases/{lease}\`, or \`DELETE /tickets/{ticket}\`.`;
  return rejected(
    allow === undefined
      ? { reason: 'route_unknown', message }
      : { reason: 'method_unknown', message, allow },
  );
}

/** Spaces the retries of a caller that waits for an unknown time. */
async function spaced(
  { caller }: AuthenticatedCall,
  answering: Promise<LeaseRouteAnswer>,
): Promise<LeaseRouteAnswer> {
  const answer = await answering;
  if (answer.kind !== 'rejected') return answer;
  return { ...answer, reply: returns.space(answer.reply, caller.id, steadyClock.now()) };
}

function responseTo(answer: LeaseRouteAnswer, incoming: LeaseCallRequest): Response {
  switch (answer.kind) {
    case 'reply': {
      const { status, body, headers } = answer;
      return body === null
        ? new Response(null, { status, headers })
        : Response.json(body, { status, headers });
    }
    case 'rejected':
      return rejectedResponse('opaque', answer, incoming, incoming.found);
    case 'left':
      return new Response(null, { status: LEFT_STATUS });
  }
}

/** Maximum size of a body. A report contains the headers and the error of a provider. */
const BYTES_MAX = 131_072;

type JsonRead<T> =
  | { readonly kind: 'read'; readonly value: T }
  | { readonly kind: 'rejected'; readonly reply: ErrorReply; readonly read: null };

/** Reads the JSON body of a request. With `isOptional`, an empty body counts as an empty object. */
async function readJson<T>(
  request: Request,
  schema: { safeParse(value: unknown): SafeParsed<T> } & Parameters<typeof explainIssues>[1],
  isOptional = false,
): Promise<JsonRead<T>> {
  const body = await readOwnBody(request, BYTES_MAX);
  if (body.kind === 'broken') return unreadable(BODY_BROKEN);
  if (body.kind === 'too long') return unreadable(`The body is larger than ${BYTES_MAX} bytes.`);
  const text = new TextDecoder().decode(body.bytes);
  let value: unknown;
  try {
    value = isOptional && text.trim() === '' ? {} : JSON.parse(text);
  } catch {
    return unreadable('The body is not valid JSON. Send a JSON object.');
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return { kind: 'read', value: parsed.data };
  const [first] = explainIssues(parsed.error, schema, value);
  const where = first === undefined || first.path === '' ? 'the body' : first.path;
  const message = `${where}: ${first?.message ?? 'not valid'}.`;
  return { kind: 'rejected', reply: { reason: 'field_invalid', message }, read: null };
}

type SafeParsed<T> =
  | { readonly success: true; readonly data: T }
  | { readonly success: false; readonly error: Parameters<typeof explainIssues>[0] };

function unreadable(message: string): JsonRead<never> {
  return { kind: 'rejected', reply: { reason: 'body_unreadable', message }, read: null };
}
