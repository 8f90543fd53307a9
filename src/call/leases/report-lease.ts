import type { Upstream } from '../../contract/config/upstream.ts';
import type { ReportAnswer, ReportRequest } from '../../contract/leases.ts';
import { SERVED, type RefusalKind, type UpstreamSignal } from '../../core/words/signal.ts';
import { isTaken } from '../../core/words/outcome.ts';
import { membersOf } from '../../routing/members.ts';
import type { UpstreamRefusal } from '../../upstream/refusal/classify-refusal.ts';
import type { AuthenticatedCall } from '../call.ts';
import { retryBudgetOf } from '../isolate.ts';
import type { CallLimits } from '../answer-source.ts';
import { hintsIn, nearlyEmpty, readAnswer } from '../read-answer.ts';
import { reentriesMaxOf, RETRY_PAUSE_MAX_MS, RETRY_PAUSE_MS } from '../call-attempts.ts';
import { placementOf, releaseAll, reportTo } from './held-pools.ts';
import {
  notReported,
  openLeaseOf,
  routeReply,
  unknownToken,
  type LeaseRouteAnswer,
} from './lease-call.ts';
import { sealTicket, type LeaseToken, type PoolHold } from './lease-token.ts';
import { forbiddenHold, placeOfHeld, rulesOf } from './plan-lease.ts';
import { settleRefused } from './settle-lease.ts';

/** Statuses for which the runtime allows no body. */
const NO_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/** Headers about the encoding of the body, which is reported as plain text. */
const OF_BODY = ['content-encoding', 'content-length', 'transfer-encoding'];

/** Refusals after which the call can succeed once it has queued again. */
const WAITABLE: ReadonlySet<RefusalKind> = new Set<RefusalKind>([
  'concurrency',
  'requests',
  'tokens',
  'ramp',
  'unknown',
]);

/** Refusals after which a retry at the same upstream may succeed. */
const RETRIABLE: ReadonlySet<RefusalKind> = new Set<RefusalKind>(['overload', 'error']);

export async function patchLease(
  call: AuthenticatedCall,
  token: string,
  reported: ReportRequest,
): Promise<LeaseRouteAnswer> {
  const lease = await openLeaseOf(call, token);
  if (lease === null) return unknownToken('lease');
  const forbidden = forbiddenHold(call, lease);
  if (forbidden !== null) return forbidden;
  const { located } = placeOfHeld(call, lease);
  const { upstream } = located;
  const answer = answerOf(reported);
  // The key belongs to the holder, so its refusal affects no other key.
  const limits = (): CallLimits => limitsOf(call, lease, upstream);
  const { refusal } = await readAnswer(answer, { upstream, isOfMember: false, limits }, call.after);
  if (refusal === null) {
    if (answer !== null) await reportServed(call, lease, answer, upstream);
    return judged({ action: 'go_on', after_ms: 0 });
  }
  const { kind } = refusal.signal;
  // The holder's network address is not that of the Worker.
  if (kind !== 'egress') await reportRefused(call, lease, refusal);
  const next = nextOf(call, lease, upstream, kind);
  const notTo = await releaseAll(call, lease, {
    outcome: refusal.isFinal ? 'refused' : 'failed',
    // A report does not prove a key, so a reported success does not count as a success of the key.
    status: reported.status === undefined || isTaken(reported.status) ? null : reported.status,
    settle: settleRefused(call, lease),
  });
  if (notTo.length > 0) return notReported(notTo);
  if (next === null) return judged({ action: 'stop', after_ms: 0 });
  const { afterMs, ...past } = next;
  const { wanted: _, upstream: __, agent: ___, slots, ...rest } = lease;
  const ticket = await sealTicket(call.table.snapshot.fingerprintKey, {
    caller: rest.caller,
    ticketId: rest.ticketId,
    attempt: rest.attempt + 1,
    enqueuedAt: rest.enqueuedAt,
    slots,
    ...past,
    pools: rest.pools.map(({ group, partition, assumed, jurisdiction }) => ({
      group,
      partition,
      assumed,
      jurisdiction,
    })),
  });
  return judged({ action: 'again', after_ms: Math.round(afterMs), ticket });
}

function judged(answer: ReportAnswer): LeaseRouteAnswer {
  return routeReply(200, answer);
}

/** The provider's answer as if it had passed through Headgate. null if there was none. */
function answerOf({ status, headers = {}, error }: ReportRequest): Response | null {
  if (status === undefined) return null;
  const text = typeof error === 'object' ? JSON.stringify(error) : (error ?? null);
  const all = new Headers();
  for (const [name, value] of Object.entries(headers)) addHeader(all, name, value);
  for (const name of OF_BODY) all.delete(name);
  // The runtime creates no responses with 1xx. Such a status means that the call was accepted and is still open.
  const known = Math.max(status, 200);
  return new Response(NO_BODY.has(known) ? null : text, { status: known, headers: all });
}

/** Ignores names and values that no header can have. */
function addHeader(headers: Headers, name: string, value: string): void {
  try {
    headers.append(name, value);
  } catch {
    // The header is invalid.
  }
}

/** The pools that represent a provider, narrowest first. With members it is the pool of the members. */
function ofProvider({ pools }: LeaseToken): readonly PoolHold[] {
  const withMember = pools.filter(({ member }) => member !== undefined);
  return withMember.length > 0 ? withMember : pools.filter((hold) => hold.isOfProvider === true);
}

/** The limits that count a lease. The number of calls in flight is unknown. */
function limitsOf(call: AuthenticatedCall, lease: LeaseToken, upstream: Upstream): CallLimits {
  const { feedForward } = rulesOf(call, lease);
  return { place: `lease ${lease.caller} ${upstream.id}`, underWay: 0, feedForward };
}

async function reportServed(
  call: AuthenticatedCall,
  lease: LeaseToken,
  answer: Response,
  upstream: Upstream,
): Promise<void> {
  const warning = nearlyEmpty(hintsIn(answer, upstream), upstream, limitsOf(call, lease, upstream));
  const [warned] = ofProvider(lease);
  const mistake = answer.ok ? {} : { isMistake: true };
  await Promise.all(
    lease.pools.map(async (hold) => {
      const isWarned = warning !== null && hold === warned;
      if (!isWarned && hold.wantsServed !== true) return;
      const signal = { ...(isWarned ? warning : SERVED), ...mistake, ...reportedBy(call) };
      await reportTo(call, lease, hold, signal, false);
    }),
  );
}

async function reportRefused(
  call: AuthenticatedCall,
  lease: LeaseToken,
  { signal, scope }: UpstreamRefusal,
): Promise<void> {
  const about = scope === 'model' ? ofProvider(lease)[0] : ofProvider(lease).at(-1);
  if (about === undefined) return;
  const isRepeat = lease.reentered + lease.retried > 0;
  // A lease has no tier, so it is unknown which tier is full.
  const reach = scope === 'tier' ? 'call' : scope;
  await reportTo(call, lease, about, { ...signal, scope: reach, ...reportedBy(call) }, isRepeat);
}

/**
 * Names the key that a report counts for. Callers without a gateway key count as one, because they could invent keys.
 */
function reportedBy({ caller }: AuthenticatedCall): Required<Pick<UpstreamSignal, 'reportedBy'>> {
  return { reportedBy: caller.gatewayKeyId ?? '' };
}

interface Next {
  readonly reentered: number;
  readonly retried: number;
  readonly refusedBy: readonly string[];
  readonly refusedForNow: readonly string[];
  readonly afterMs: number;
}

/** Decides whether a refused call asks again, as a proxied one would. null if it does not. */
function nextOf(
  call: AuthenticatedCall,
  lease: LeaseToken,
  upstream: Upstream,
  kind: UpstreamRefusal['signal']['kind'],
): Next | null {
  const { reentered, retried, refusedBy, refusedForNow, member } = lease;
  const past = { reentered, retried, refusedBy, refusedForNow };
  if (kind === 'served' || !lease.mayWait) return null;
  const passes = WAITABLE.has(kind) || RETRIABLE.has(kind);
  if (member !== null && hasOther(call, lease)) {
    if (reentered >= reentriesMaxOf(kind)) return null;
    const forNow = passes ? [...refusedForNow, member] : refusedForNow;
    const by = { refusedBy: [...refusedBy, member], refusedForNow: forNow };
    return { ...past, ...by, reentered: reentered + 1, afterMs: 0 };
  }
  if (WAITABLE.has(kind)) {
    if (reentered >= reentriesMaxOf(kind)) return null;
    // Members that refused it before may be asked again once all have refused it.
    return { ...past, refusedBy: [], refusedForNow: [], reentered: reentered + 1, afterMs: 0 };
  }
  const { max, budget } = rulesOf(call, lease).retries;
  if (!RETRIABLE.has(kind) || retried >= max) return null;
  if (!retryBudgetOf(upstream.id).take(budget)) return null;
  const longestMs = Math.min(RETRY_PAUSE_MAX_MS, RETRY_PAUSE_MS * 2 ** retried);
  return { ...past, retried: retried + 1, afterMs: (longestMs * (1 + Math.random())) / 2 };
}

function hasOther(call: AuthenticatedCall, { pools, member, refusedBy }: LeaseToken): boolean {
  const hold = pools.find((each) => each.member !== undefined);
  if (hold === undefined) return false;
  const { config } = placementOf(call, hold);
  return membersOf(config).some(
    ({ id, config: { enabled } }) => enabled && id !== member && !refusedBy.includes(id),
  );
}
