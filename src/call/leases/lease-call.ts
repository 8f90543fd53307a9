import type { Reason } from '../../contract/reasons.ts';
import { readCallerHeaders } from '../request/caller-headers.ts';
import { isolateConfig } from '../../config/isolate-config.ts';
import type { RoutingTable } from '../../config/snapshots.ts';
import type { Env } from '../../env.ts';
import { CallClock, type Background, type AbortSource } from '../../runtime/async.ts';
import { CallBody } from '../request/body.ts';
import { EarlyAnswer, type AuthenticatedCall, type FoundFacts } from '../request/call.ts';
import { identify } from '../identity/authenticate.ts';
import { delayUnknownKey } from '../identity/new-keys.ts';
import { openLease, type LeaseToken } from './lease-token.ts';
import { rejected, type CallerLeft, type Rejected } from '../results/result.ts';

export interface RouteReply {
  readonly kind: 'reply';
  readonly status: number;
  readonly body: object | null;
  readonly headers: Readonly<Record<string, string>>;
}

export type LeaseRouteAnswer = RouteReply | Rejected | CallerLeft;

/** A request whose caller is not authenticated yet. */
export interface LeaseCallRequest {
  readonly request: Request;
  readonly signal: AbortSource;
  readonly env: Env;
  readonly ctx: Background;
  readonly found: FoundFacts;
}

/** Reasons that a newer configuration may remove. The first ones may be removed even if this copy is a second old. */
const NOT_THERE: ReadonlySet<Reason> = new Set<Reason>(['upstream_unknown', 'group_unknown']);
const BY_CONFIG: ReadonlySet<Reason> = new Set<Reason>([
  'key_missing',
  'key_invalid',
  'key_forbidden',
  'secret_missing',
  'price_unknown',
  'too_many_groups',
]);

/** Answers a request for its authenticated caller, and again if a newer configuration may give another answer. */
export async function answerAs(
  incoming: LeaseCallRequest,
  table: RoutingTable,
  answer: (call: AuthenticatedCall) => Promise<LeaseRouteAnswer>,
): Promise<LeaseRouteAnswer> {
  const first = await answerBy(incoming, table, answer);
  if (first.kind !== 'rejected') return first;
  const { reason } = first.reply;
  if (!NOT_THERE.has(reason) && !(BY_CONFIG.has(reason) && isolateConfig.mayBeOld(table))) {
    return first;
  }
  const newer = await isolateConfig.recheck(incoming.env, incoming.ctx);
  return newer === null || newer === table ? first : answerBy(incoming, newer, answer);
}

async function answerBy(
  incoming: LeaseCallRequest,
  table: RoutingTable,
  answer: (call: AuthenticatedCall) => Promise<LeaseRouteAnswer>,
): Promise<LeaseRouteAnswer> {
  const { request } = incoming;
  const headers = readCallerHeaders(request.headers);
  if (!headers.ok) return rejected({ reason: 'header_invalid', message: headers.message });
  const url = new URL(request.url);
  // A key in the query is ignored, because URLs end up in logs.
  const query = new URLSearchParams();
  const identified = await identify(table, request.headers, query);
  if (identified.kind === 'rejected') {
    if (identified.reply.reason === 'key_invalid') await delayUnknownKey(incoming);
    return identified;
  }
  const { after } = new CallClock();
  const { caller } = identified;
  incoming.found.caller = caller;
  const { method } = request;
  const parts = { method, url, query, table, after, caller, headers: headers.value };
  return answer({
    kind: 'known',
    ...incoming,
    ...parts,
    body: new CallBody(),
    early: new EarlyAnswer(),
  });
}

/** Opens the token of a lease. null if it was not issued, or to another caller. */
export async function openLeaseOf(
  call: AuthenticatedCall,
  token: string,
): Promise<LeaseToken | null> {
  const lease = await openLease(call.table.snapshot.fingerprintKey, call.caller.id, token);
  if (lease !== null) {
    const { upstream: id, wanted, pools } = lease;
    call.found.located = locatedOf(call, id, wanted.model);
    call.found.placements = pools.map((hold) => hold.lease);
  }
  return lease;
}

/** The upstream and the model of a lease, as refusals count them. */
export function locatedOf({ table }: Pick<AuthenticatedCall, 'table'>, id: string, model?: string) {
  const upstream = table.upstreams.get(id);
  return upstream === undefined ? null : { upstream, model: model ?? null };
}

export function routeReply(
  status: number,
  body: object | null,
  headers: RouteReply['headers'] = {},
): RouteReply {
  return { kind: 'reply', status, body, headers };
}

/** The rejection of a token that was not issued, or to another caller. */
export function unknownToken(what: 'lease' | 'ticket'): Rejected {
  const message = `This ${what} was not issued to this key. Send the ${what} exactly as it was returned.`;
  return rejected({ reason: 'lease_unknown', message });
}

/** The rejection of a lease that was held for the maximum time of its groups. */
export function holdExceeded(maxHoldMs: number): Rejected {
  const message = `This lease was held for ${maxHoldMs} ms, the maximum in its groups (\`holds.max_hold_ms\`). Stop the work and release the lease.`;
  return rejected({ reason: 'hold_exceeded', message });
}

/** The rejection if pools could not be reached. They receive the same message from the retry. */
export function notReported(groups: readonly string[]): Rejected {
  const message = `${groups.length === 1 ? 'Group' : 'Groups'} ${groups.map((group) => `\`${group}\``).join(', ')} cannot be reached at the moment. Send the same request again shortly.`;
  return rejected({ reason: 'limiter_unavailable', message });
}
