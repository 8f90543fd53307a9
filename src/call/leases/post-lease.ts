import { listItems, parameterOf, parseHeaderValue } from '../../runtime/header-value.ts';
import { isolateConfig } from '../../config/isolate-config.ts';
import type { LeaseAnswer, LeaseRequestBody, TicketAnswer } from '../../contract/caller-api.ts';
import { attemptOf } from '../../core/words/ids.ts';
import type { Placement } from '../../routing/placement.ts';
import { steadyClock } from '../../runtime/async.ts';
import type { CallTicket } from '../acquire/admission.ts';
import { CallAttempts, NO_ATTEMPTS, retryBudgetOf } from '../attempts/call-attempts.ts';
import { drive } from '../drive/drive.ts';
import { ticketTime } from '../acquire/ticket.ts';
import { waitedHeader, rejected, type AttemptResult, type Rejected } from '../results/result.ts';
import type { AuthenticatedCall } from '../request/call.ts';
import { identify } from '../identity/authenticate.ts';
import { delayNewKey, keepPlace, NO_PLACE, takeLeasePlace } from '../identity/new-keys.ts';
import type { Candidate } from '../plan/plan.ts';
import { rateHeaders } from '../answer/response-headers.ts';
import { admitLease, type LeaseAdmitted } from './admit-lease.ts';
import { renewWithinMs } from './held-pools.ts';
import { routeReply, unknownToken, type LeaseRouteAnswer, type RouteReply } from './lease-call.ts';
import { openTicket, sealLease, sealTicket, ticketIdOf, type TicketToken } from './lease-token.ts';
import { forbiddenIn, NOWHERE, meteringOf, planLease, upstreamFor } from './plan-lease.ts';

/** Maximum time for which a request is parked. Clients and intermediate proxies give up after 30 s. */
const PARKED_MAX_MS = 25_000;

/** Minimum time between two requests with one ticket, unless the first was parked for that long. */
const ASK_EVERY_MS = 1_000;

/** An earlier grant was decided by the configuration that its request was read with. */
const CHECK_AFTER_MS = 500;

const IDEMPOTENCY_LENGTH_MAX = 256;

/** Maximum length of a lease's id. A longer text is a lease token, which begins with the id. */
const LEASE_ID_LENGTH_MAX = 100;

/** Answers `POST /leases`. An unverified provider key needs a place for it, as for a call. */
export async function postLease(
  call: AuthenticatedCall,
  wanted: LeaseRequestBody,
): Promise<LeaseRouteAnswer> {
  const ownKey = ownKeyAt(call, (upstreamFor(call, wanted) ?? NOWHERE).id);
  const place = ownKey === null ? NO_PLACE : takeLeasePlace(call, ownKey);
  if (place.kind === 'rejected') return place;
  try {
    return await askForLease(call, wanted, ownKey);
  } finally {
    place.leave();
  }
}

/** The name of the provider key of a caller without a gateway key, as calls at that upstream use it. */
function ownKeyAt({ caller }: AuthenticatedCall, upstream: string): string | null {
  const { gatewayKeyId, fingerprint } = caller;
  return gatewayKeyId === null && fingerprint !== null ? `${upstream} ${fingerprint}` : null;
}

export function keepLeasePlace(call: AuthenticatedCall, upstream: string, expiresAt: number): void {
  const ownKey = ownKeyAt(call, upstream);
  if (ownKey !== null) keepPlace(ownKey, expiresAt);
}

/** @param ownKey the name of the provider key if it may be unverified. null for a gateway key, or without a key */
async function askForLease(
  call: AuthenticatedCall,
  wanted: LeaseRequestBody,
  ownKey: string | null,
): Promise<LeaseRouteAnswer> {
  const receivedAt = steadyClock.now();
  const past = await pastOf(call, wanted);
  if (past.kind === 'rejected') return past;
  const { isKept, ticket } = past;
  const parkUntil = receivedAt + parkedMs(call.request);
  const first = await planLease(call, wanted);
  if (first.kind === 'rejected') return first;
  if (ownKey !== null) await delayNewKey(call, ownKey, first.placements);
  const attempts = new CallAttempts<Replied>(call.request.headers, ticket.past);
  const result = await drive(
    first,
    { ticket: ticketFor(call, wanted, ticket), attempts, listener: null },
    {
      spills: false,
      untilAt: parkUntil,
      plan: (newer) => planLease(newer, wanted),
      attempt: async (plan, attempt): Promise<AttemptResult<Replied>> => {
        const now = { ...ticket, past: attempts.past };
        const admitted = await admitLease({
          plan,
          parkUntil,
          isKept,
          ticket: attempt.ticket,
          attempts,
          metering: meteringOf(plan, wanted),
          refusedNow: (placements) => refusedNow(plan.call, wanted, placements, receivedAt),
        });
        if (admitted.kind === 'admitted') {
          return replied(await leased(plan, wanted, now, admitted, receivedAt));
        }
        if (admitted.kind !== 'parked') return admitted;
        return replied(await parked(plan.call, now, admitted, receivedAt));
      },
    },
  );
  if (result.kind === 'answered') return result.reply;
  if (result.kind === 'left') return result;
  // Headgate sends nothing for a lease, so its reply has no number of attempts.
  const { attempts: _, ...reply } = result.reply;
  return { ...result, reply };
}

interface Replied {
  readonly kind: 'answered';
  readonly reply: RouteReply;
}

function replied(reply: RouteReply): Replied {
  return { kind: 'answered', reply };
}

/**
 * Checks the key of a request that has waited against the configuration in force. Its group does not change when its
 * key loses a right, so no pool reports that.
 */
async function refusedNow(
  { env, ctx, request, query }: AuthenticatedCall,
  { group }: LeaseRequestBody,
  placements: readonly Placement[],
  receivedAt: number,
): Promise<Rejected | null> {
  if (steadyClock.now() - receivedAt < CHECK_AFTER_MS) return null;
  const table = await isolateConfig.confirmed(env, ctx);
  if (table === null) return null;
  const identified = await identify(table, request.headers, query);
  if (identified.kind === 'rejected') return identified;
  return forbiddenIn({ caller: identified.caller, table }, placements, group);
}

/** How long a request may be parked. `Prefer: wait=10` (RFC 7240) sets less, in seconds. */
export function parkedMs({ headers }: Pick<Request, 'headers'>): number {
  const waits = listItems(headers.get('prefer') ?? '').map(
    (item) => parameterOf(parseHeaderValue(`;${item}`), 'wait')?.value ?? '',
  );
  const seconds = waits.find((value) => /^\d{1,6}$/.test(value)) ?? Infinity;
  return Math.min(PARKED_MAX_MS, Number(seconds) * 1_000);
}

/** A repeated request, or the first of its call. */
interface EarlierRequest {
  readonly kind: 'past';
  readonly ticket: TicketToken;
  readonly isKept: boolean;
}

async function pastOf(
  { request, caller, table, headers }: AuthenticatedCall,
  wanted: LeaseRequestBody,
): Promise<EarlierRequest | Rejected> {
  const { fingerprintKey } = table.snapshot;
  if (wanted.ticket !== undefined) {
    const ticket = await openTicket(fingerprintKey, caller.id, wanted.ticket);
    return ticket === null ? unknownToken('ticket') : { kind: 'past', ticket, isKept: true };
  }
  const name = request.headers.get('idempotency-key');
  if (name !== null && (name === '' || name.length > IDEMPOTENCY_LENGTH_MAX)) {
    const message = `idempotency-key: expected 1 to ${IDEMPOTENCY_LENGTH_MAX} characters.`;
    return rejected({ reason: 'header_invalid', message });
  }
  const { group, upstream, model, slots = headers.weight } = wanted;
  const same = JSON.stringify([caller.id, name, group, upstream, model, slots]);
  const ticketId = name === null ? crypto.randomUUID() : await ticketIdOf(fingerprintKey, same);
  const first = { attempt: 1, enqueuedAt: ticketTime(), past: NO_ATTEMPTS, pools: [] };
  const ticket = { caller: caller.id, ticketId, slots, ...first };
  return { kind: 'past', ticket, isKept: name !== null };
}

/** The ticket for the pools. Headers supply what the body omits. */
function ticketFor(
  { caller, headers }: AuthenticatedCall,
  wanted: LeaseRequestBody,
  { ticketId, attempt, enqueuedAt, slots }: TicketToken,
): CallTicket {
  const { keyLanes, keyTimeoutMs } = caller;
  return {
    enqueuedAt,
    maxWaitMs: wanted.max_wait_ms ?? headers.maxWaitMs,
    lane: wanted.lane ?? headers.lane,
    keyLanes,
    keyTimeoutMs,
    slots,
    agent: wanted.agent ?? headers.agent,
    agentStartedAt: wanted.agent_started_at ?? headers.agentStartedAt,
    parents: wanted.parents?.map(leaseIdIn) ?? headers.parents,
    // Its pools count the attempts of a ticket that is held by its id.
    rounds: { begin: () => ({ ticketId, attempt }), noteCancelled: () => {} },
    kind: 'lease',
    byId: true,
  };
}

function leaseIdIn(text: string): string {
  return text.length <= LEASE_ID_LENGTH_MAX ? text : text.split('.').slice(0, 2).join('.');
}

async function leased(
  { call, located, rules }: Candidate,
  wanted: LeaseRequestBody,
  ticket: TicketToken,
  { holds, member, grantedAt, rates, waited }: Extract<LeaseAdmitted, { kind: 'admitted' }>,
  receivedAt: number,
): Promise<RouteReply> {
  const now = steadyClock.now();
  retryBudgetOf(located.upstream.id).noteCall();
  const { pools: _, ...history } = ticket;
  const attempt = Math.max(ticket.attempt, ...holds.map((hold) => attemptOf(hold.lease.leaseId)));
  const callTicket = ticketFor(call, wanted, ticket);
  const { group, upstream, model, estimate } = wanted;
  const lease = await sealLease(call.table.snapshot.fingerprintKey, {
    ...history,
    attempt,
    wanted: {
      ...(group !== undefined && { group }),
      ...(upstream !== undefined && { upstream }),
      ...(model !== undefined && { model }),
      ...(estimate !== undefined && { estimate }),
    },
    upstream: located.upstream.id,
    mayWait: rules.mayWait && callTicket.maxWaitMs !== 0,
    grantedAt,
    member,
    pools: holds,
  });
  const expiresAt = Math.min(...holds.map((hold) => hold.expiresAt));
  keepLeasePlace(call, located.upstream.id, expiresAt);
  const groups = holds.map((hold) => hold.lease.group);
  const leaseIds = holds.map((hold) => hold.lease.leaseId);
  const waitedMs = Math.round(now - ticket.enqueuedAt);
  const body: LeaseAnswer = {
    lease,
    lease_ids: leaseIds,
    groups,
    member,
    ...expiry(expiresAt, receivedAt, grantedAt + rules.hold.maxHoldMs - now),
    waited_ms: Math.max(0, waitedMs),
  };
  return routeReply(201, body, {
    ...rateHeaders(rates, new Headers()),
    'headgate-groups': groups.join(', '),
    'headgate-lease': leaseIds.join(', '),
    'headgate-wait-ms': String(body.waited_ms),
    ...waitedHeader(waited),
    ...(member !== null && { 'headgate-member': member }),
  });
}

/** When a lease expires, and how soon it must be renewed. `sentAt` must not be later than when its request was sent. */
export function expiry(
  expiresAt: number,
  sentAt: number,
  holdLeftMs: number,
): Pick<LeaseAnswer, 'expires_at' | 'expires_after_ms' | 'renew_within_ms'> {
  const leftMs = Math.max(0, expiresAt - steadyClock.now());
  return {
    // Clients compare it with the wall clock.
    expires_at: new Date(expiresAt - steadyClock.aheadMs).toISOString(),
    expires_after_ms: Math.max(0, Math.floor(expiresAt - sentAt)),
    renew_within_ms: Math.max(0, Math.min(renewWithinMs(leftMs), Math.ceil(holdLeftMs))),
  };
}

async function parked(
  { table }: AuthenticatedCall,
  ticket: TicketToken,
  {
    pools,
    group,
    position,
    estimateMs,
    waitsFor,
    askAgainMs,
  }: Extract<LeaseAdmitted, { kind: 'parked' }>,
  receivedAt: number,
): Promise<RouteReply> {
  const parkedForMs = steadyClock.now() - receivedAt;
  const retryAfterMs = Math.max(0, askAgainMs, ASK_EVERY_MS - parkedForMs);
  const body: TicketAnswer = {
    ticket: await sealTicket(table.snapshot.fingerprintKey, { ...ticket, pools }),
    position,
    estimate_ms: estimateMs === null ? null : Math.round(estimateMs),
    group,
    ...(waitsFor !== undefined && { waits_for: waitsFor.cause }),
    retry_after_ms: Math.round(retryAfterMs),
  };
  return routeReply(202, body, {
    'retry-after': String(Math.ceil(retryAfterMs / 1_000)),
    ...waitedHeader(waitsFor === undefined ? null : { group, reason: waitsFor }),
  });
}
