import type { ReportAnswer, ReportRequest, ReleaseRequest } from '../../contract/caller-api.ts';
import { SERVED, type UpstreamSignal } from '../../core/words/signal.ts';
import { isTaken } from '../../core/words/outcome.ts';
import type { UpstreamRefusal } from '../../upstream/refusal/classify-refusal.ts';
import { mayReportUsage } from '../../routing/key-access.ts';
import { EachSecond, steadyClock } from '../../runtime/async.ts';
import { logEvent } from '../../runtime/log.ts';
import type { AuthenticatedCall } from '../request/call.ts';
import type { CallLimits } from '../answer/sending.ts';
import { hintsIn, nearlyEmpty, readAnswer } from '../answer/read-answer.ts';
import { CallAttempts } from '../attempts/call-attempts.ts';
import { noteRefusedAt, whereNextIfKept } from '../attempts/where-next.ts';
import type { Settle } from '../results/result.ts';
import type { Metering } from '../plan/metering.ts';
import { releaseAll, reportTo } from './held-pools.ts';
import {
  notReported,
  openLeaseOf,
  routeReply,
  unknownToken,
  type LeaseRouteAnswer,
} from './lease-call.ts';
import { poolOfToken, sealTicket, type LeaseToken, type PoolHold } from './lease-token.ts';
import { forbiddenHold, planHeld, estimateOf, meteringOf } from './plan-lease.ts';

/** Processes the report of a client about the call of its lease, and settles the lease. */

/** Statuses for which the runtime allows no body. */
const NO_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/** Headers about the encoding of the body, which is reported as plain text. */
const OF_BODY = ['content-encoding', 'content-length', 'transfer-encoding'];

export async function patchLease(
  call: AuthenticatedCall,
  token: string,
  reported: ReportRequest,
): Promise<LeaseRouteAnswer> {
  const lease = await openLeaseOf(call, token);
  if (lease === null) return unknownToken('lease');
  const forbidden = forbiddenHold(call, lease);
  if (forbidden !== null) return forbidden;
  const held = planHeld(call, lease);
  const { upstream } = held.located;
  const answer = answerOf(reported);
  // The key belongs to the holder, so its refusal affects no other key.
  const limits = (): CallLimits => limitsOf(lease, held);
  const { refusal } = await readAnswer(answer, { upstream, isOfMember: false, limits }, call.after);
  if (refusal === null) {
    if (answer !== null) await reportServed(call, lease, answer, held);
    return judged({ action: 'go_on', after_ms: 0 });
  }
  const { kind } = refusal.signal;
  const attempts = new CallAttempts(call.request.headers, lease.past);
  const isRepeat = noteRefusedAt(held, attempts, refusal.signal);
  // The holder's network address is not that of the Worker.
  if (kind !== 'egress') await reportRefused(call, lease, refusal, isRepeat);
  const ticket = { maxWaitMs: lease.mayWait ? null : 0 };
  const where = whereNextIfKept(
    held,
    { ticket, attempts, hasNext: false, hasOtherPlace: false },
    kind,
  );
  const notTo = await releaseAll(call, lease, {
    outcome: refusal.isFinal ? 'refused' : 'failed',
    // A report does not prove a key, so a reported success does not count as a success of the key.
    status: reported.status === undefined || isTaken(reported.status) ? null : reported.status,
    settle: settleRefused(call, lease),
  });
  if (notTo.length > 0) return notReported(notTo);
  if (where === null) return judged({ action: 'stop', after_ms: 0 });
  const afterMs = where === 'here later' ? Math.round(attempts.pauseMs()) : 0;
  return judged({
    action: 'again',
    after_ms: afterMs,
    ticket: await ticketAfter(call, lease, attempts),
  });
}

/** The ticket with which a refused call acquires its next lease. */
function ticketAfter(
  { table }: AuthenticatedCall,
  { caller, ticketId, attempt, enqueuedAt, slots, pools }: LeaseToken,
  { past }: CallAttempts,
): Promise<string> {
  return sealTicket(table.snapshot.fingerprintKey, {
    caller,
    ticketId,
    attempt: attempt + 1,
    enqueuedAt,
    slots,
    past,
    pools: pools.map(({ lease, jurisdiction }) => poolOfToken(lease, jurisdiction)),
  });
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
  const withMember = pools.filter(({ lease }) => lease.member !== undefined);
  return withMember.length > 0 ? withMember : pools.filter((hold) => hold.isOfProvider === true);
}

type HeldPlan = ReturnType<typeof planHeld>;

/** The limits that count a lease. The number of calls in flight is unknown. */
function limitsOf({ caller }: LeaseToken, { rules, located }: HeldPlan): CallLimits {
  const { feedForward } = rules;
  return { place: `lease ${caller} ${located.upstream.id}`, underWay: 0, feedForward };
}

async function reportServed(
  call: AuthenticatedCall,
  lease: LeaseToken,
  answer: Response,
  held: HeldPlan,
): Promise<void> {
  const { upstream } = held.located;
  const warning = nearlyEmpty(hintsIn(answer, upstream), upstream, limitsOf(lease, held));
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
  isRepeat: boolean,
): Promise<void> {
  const about = scope === 'model' ? ofProvider(lease)[0] : ofProvider(lease).at(-1);
  if (about === undefined) return;
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

/** Measures the call of a lease that is held. null if none of its groups counts usage. */
function meteringOfHeld(call: AuthenticatedCall, lease: LeaseToken): Metering | null {
  const held = planHeld(call, lease);
  const metering = meteringOf(held, lease.wanted);
  return held.member === null ? metering : (metering?.at(held.member) ?? null);
}

/** Minimum time between two log lines about reported usage that does not count. */
const LOGGED_EACH_SECOND = 1;

const logged = new EachSecond(LOGGED_EACH_SECOND);

/**
 * Settles a lease by the usage that its holder reports. null if no group counts usage, or none was reported.
 *
 * Headgate did not see the call, so the figures are a claim. If the key has no right to report usage, the reservation
 * counts: a larger charge would spend the budget of others, and a smaller one would make leases free.
 */
export function settleBy(
  call: AuthenticatedCall,
  lease: LeaseToken,
  usage: ReleaseRequest['usage'],
): { readonly counts: 'reported' | 'reserved'; readonly settle: Settle | undefined } | null {
  const metering = usage === undefined ? null : meteringOfHeld(call, lease);
  if (usage === undefined || metering === null) return null;
  if (!mayReportUsage(call.caller.key)) {
    noteIgnored(call, lease, usage);
    return { counts: 'reserved', settle: undefined };
  }
  const { inputTokens } = estimateOf(lease.wanted);
  const cacheReadTokens = usage.cached_tokens ?? 0;
  const outputTokens = usage.output_tokens ?? 0;
  const counted = {
    inputTokens: Math.max(usage.input_tokens ?? inputTokens ?? 0, cacheReadTokens),
    cacheReadTokens,
    cacheWriteTokens: 0,
    outputTokens,
  };
  const settle = metering.settlement({
    end: () => ({ usage: counted, outputTokensSeen: outputTokens }),
  });
  return { counts: 'reported', settle };
}

/** Settles a lease whose holder reports that its call was refused, by the same rule. */
function settleRefused(call: AuthenticatedCall, lease: LeaseToken): Settle | undefined {
  return mayReportUsage(call.caller.key) ? meteringOfHeld(call, lease)?.notServed : undefined;
}

function noteIgnored(
  { caller }: AuthenticatedCall,
  { wanted, pools }: LeaseToken,
  usage: NonNullable<ReleaseRequest['usage']>,
): void {
  if (!logged.mayOneMore(steadyClock.now())) return;
  logEvent('lease_usage_ignored', {
    key: caller.gatewayKeyId,
    groups: pools.map(({ lease }) => lease.group).join(','),
    model: wanted.model ?? null,
    input_tokens: usage.input_tokens ?? null,
    output_tokens: usage.output_tokens ?? null,
  });
}
