import type { Reason } from '../../contract/reasons.ts';
import { readCallerHeaders } from '../../contract/request-headers.ts';
import { mayBeOld, newerTable, type RoutingTable } from '../../config/snapshots.ts';
import type { Env } from '../../env.ts';
import type { Background } from '../../runtime/background.ts';
import { CallClock } from '../../runtime/call-clock.ts';
import { CallBody } from '../body.ts';
import type { AuthenticatedCall } from '../call.ts';
import { EarlyAnswer } from '../early-answer.ts';
import { identify } from '../identity/authenticate.ts';
import { delayUnknownKey } from '../identity/new-keys.ts';
import type { FoundFacts } from '../refusals/found-facts.ts';
import { openLease, type LeaseToken } from './lease-token.ts';
import { rejected, type CallerLeft, type Rejected } from '../result.ts';
import type { AbortSource } from '../../runtime/plain-abort.ts';

/** The answer of a route of ours. */
export interface RouteReply {
  readonly kind: 'said';
  readonly status: number;
  readonly body: object | null;
  readonly headers: Readonly<Record<string, string>>;
}

export type LeaseRouteAnswer = RouteReply | Rejected | CallerLeft;

/** A request as it came, before it is known who makes it. */
export interface LeaseCallRequest {
  readonly request: Request;
  readonly signal: AbortSource;
  readonly env: Env;
  readonly ctx: Background;
  /** Facts found so far, by which a refusal is counted. */
  readonly found: FoundFacts;
}

/** Reasons that a newer configuration may do away with; the first ones even if the copy is a second old. */
const NOT_THERE: ReadonlySet<Reason> = new Set<Reason>(['upstream_unknown', 'group_unknown']);
const BY_CONFIG: ReadonlySet<Reason> = new Set<Reason>([
  'key_missing',
  'key_invalid',
  'key_forbidden',
  'secret_missing',
  'price_unknown',
  'too_many_groups',
]);

/** Answers a request by who makes it, and once more where only a newer configuration knows the answer. */
export async function answerAs(
  asked: LeaseCallRequest,
  table: RoutingTable,
  answer: (call: AuthenticatedCall) => Promise<LeaseRouteAnswer>,
): Promise<LeaseRouteAnswer> {
  const first = await answerBy(asked, table, answer);
  if (first.kind !== 'rejected') return first;
  const { reason } = first.reply;
  if (!NOT_THERE.has(reason) && !(BY_CONFIG.has(reason) && mayBeOld(table))) return first;
  const newer = await newerTable(asked.env, asked.ctx);
  return newer === null || newer === table ? first : answerBy(asked, newer, answer);
}

async function answerBy(
  asked: LeaseCallRequest,
  table: RoutingTable,
  answer: (call: AuthenticatedCall) => Promise<LeaseRouteAnswer>,
): Promise<LeaseRouteAnswer> {
  const { request } = asked;
  const headers = readCallerHeaders(request.headers);
  if (!headers.ok) return rejected({ reason: 'header_invalid', message: headers.message });
  const url = new URL(request.url);
  // A key in the query is none: addresses end up in logs.
  const query = new URLSearchParams();
  const identified = await identify(table, request.headers, query);
  if (identified.kind === 'rejected') {
    if (identified.reply.reason === 'key_invalid') await delayUnknownKey(asked);
    return identified;
  }
  const { after } = new CallClock();
  const { caller } = identified;
  asked.found.caller = caller;
  const { method } = request;
  const parts = { method, url, query, table, after, caller, headers: headers.value };
  return answer({
    kind: 'known',
    ...asked,
    ...parts,
    body: new CallBody(),
    early: new EarlyAnswer(),
  });
}

/** Opens the token of a lease of a caller. null: it was never given out, or to another caller. */
export async function openLeaseOf(
  call: AuthenticatedCall,
  token: string,
): Promise<LeaseToken | null> {
  const lease = await openLease(call.table.snapshot.fingerprintKey, call.caller.id, token);
  if (lease !== null) {
    const { upstream: id, wanted, pools } = lease;
    call.found.located = locatedOf(call, id, wanted.model);
    call.found.placements = pools;
  }
  return lease;
}

/** The upstream and the model of a lease, as refusals count them. */
export function locatedOf({ table }: Pick<AuthenticatedCall, 'table'>, id: string, model?: string) {
  const upstream = table.upstreams.get(id);
  return upstream === undefined ? null : { upstream, model: model ?? null };
}

/** Makes an answer. */
export function said(
  status: number,
  body: object | null,
  headers: RouteReply['headers'] = {},
): RouteReply {
  return { kind: 'said', status, body, headers };
}

/** The answer to what is sent back and was never given out, or to another caller. */
export function unknownToken(what: 'lease' | 'ticket'): Rejected {
  const message = `The ${what} is not one that was given to this key: send it as it was answered.`;
  return rejected({ reason: 'lease_unknown', message });
}

/** The answer where pools could not be told, who hear it the next time. */
export function notReported(groups: readonly string[]): Rejected {
  const message = `The group ${groups.join(', ')} cannot be reached at the moment. Send the same again shortly.`;
  return rejected({ reason: 'limiter_unavailable', message });
}
