import { after, IMPLICIT, type InstantMs, type LeaseId } from './words/ids.ts';
import { errorStatusName, type LeaseOutcome } from './words/outcome.ts';
import type { Rejection } from './words/rejection.ts';
import type { RefusalKind, UpstreamSignal } from './words/signal.ts';
import type { Ticket } from './words/ticket.ts';
import type { CallUsage } from './words/usage.ts';
import { addDecision, type Decision, type MemberChoice } from './parts/decision-log.ts';
import { observe } from './parts/histogram.ts';
import type { Waiter } from './parts/queue.ts';
import type { Totals } from './parts/totals.ts';
import {
  noteGrantedThere,
  noteRefusedStatus,
  noteRefusedThere,
  noteSpentThere,
  noteUnusedThere,
} from './parts/upstream-calls.ts';
import type { GroupEvent } from './events.ts';
import { isSplit, memberOf } from './members.ts';
import { NEVER, type GroupState, type ActiveLease } from './state.ts';

/**
 * Counts what happens and remembers what was decided. Nothing here changes a decision, and everything is
 * bounded: some counters, and the last decisions.
 */

export function noteGrant(
  state: GroupState,
  waiter: Waiter,
  lease: ActiveLease,
  placed: MemberChoice | null,
  now: InstantMs,
): void {
  const { totals } = state;
  totals.granted += 1;
  memberOf(state, lease).totals.granted += 1;
  noteGrantedAt(state, placeOf(state, lease), 1, now);
  state.budgetStop = null;
  if (placed?.by === 'affinity') totals.affinityKept += 1;
  if (placed?.by === 'left') totals.affinityLeft += 1;
  if (waiter.heldOutUntil !== null) totals.affinityWaited += 1;
  if (attemptOf(waiter.leaseId) > 1) totals.grantedAgain += 1;
  observe(totals.wait, now - waiter.arrivedAt);
  lease.decision = note(state, waiter, 'granted', null, now, placed);
}

/** Notes that a waiter was rejected. Its reason is counted where it is told. */
export function noteRejection(
  state: GroupState,
  waiter: Waiter,
  rejection: Rejection,
  now: InstantMs,
): void {
  if (rejection.reason === 'budget_exhausted') {
    const { window, limitUsd } = rejection;
    state.budgetStop = { window, limitUsd, at: now };
  }
  note(state, waiter, 'rejected', rejection, now);
}

/** Notes that a ticket was rejected before it stood in the queue. */
export function noteRejectedAtDoor(
  state: GroupState,
  { ticket, leaseId }: Pick<Waiter, 'ticket' | 'leaseId'>,
  rejection: Rejection,
  now: InstantMs,
): void {
  note(state, { ticket, leaseId, arrivedAt: now, arrival: null }, 'rejected', rejection, now);
}

/** Notes that a waiter went without a grant and without a rejection. */
export function noteDeparture(
  state: GroupState,
  waiter: Waiter,
  decided: 'left' | 'moved',
  now: InstantMs,
): void {
  state.totals[decided] += 1;
  note(state, waiter, decided, null, now);
}

/** How long the calls by upstream of a group that does not fall idle are not written. */
const UPSTREAMS_EVERY_MS = 60_000;

/** Counts calls for an upstream, which are written with whatever is written when the group falls idle, or in a minute. */
export function noteGrantedAt(
  state: GroupState,
  place: string,
  calls: number,
  now: InstantMs,
): void {
  noteGrantedThere(state.upstreams, place, calls, now);
  if (state.upstreamsDueAt === NEVER) state.upstreamsDueAt = after(now, UPSTREAMS_EVERY_MS);
}

/** Names where a call of a lease went: the member, where the group names some, else the upstream. */
function placeOf(state: GroupState, { member, holder }: ActiveLease): string {
  return isSplit(state) ? member : holder.upstream;
}

/** Notes a refusal by the upstream. */
export function noteRefusal(
  state: GroupState,
  lease: ActiveLease,
  kind: RefusalKind,
  { retryAfterMs, words, reportedBy }: UpstreamSignal,
  now: InstantMs,
): void {
  const { totals, upstreams } = state;
  totals.refusals[kind] = (totals.refusals[kind] ?? 0) + 1;
  memberOf(state, lease).totals.refused += 1;
  // The message of a report is not the upstream's.
  const isStated = words !== undefined && reportedBy === undefined;
  const said = { retryAfterMs, model: lease.holder.model, ...(isStated && { words }) };
  noteRefusedThere(upstreams, placeOf(state, lease), kind, said, now);
}

/** Notes that the call of a lease was never sent. */
export function noteUnused(state: GroupState, lease: ActiveLease, now: InstantMs): void {
  noteUnusedThere(state.upstreams, placeOf(state, lease), now);
}

/** Notes the upstream's answer to a call. */
export function noteSignal(lease: ActiveLease, { kind, retryAfterMs }: UpstreamSignal): void {
  decisionOf(lease).upstreamSignal = { kind, retryAfterMs };
}

/** Notes what the holder of a lease tells of its call at the end. */
export function noteAnswer(
  state: GroupState,
  lease: ActiveLease,
  { status, notes }: Pick<Extract<GroupEvent, { kind: 'release' }>, 'status' | 'notes'>,
): void {
  if (typeof status === 'number') {
    const decision = decisionOf(lease);
    decision.upstreamStatus = status;
    const kind = decision.upstreamSignal?.kind ?? 'served';
    if (kind !== 'served') noteRefusedStatus(state.upstreams, placeOf(state, lease), kind, status);
  }
  if (notes === undefined) return;
  decisionOf(lease).notes = notes;
  const { totals } = state;
  const { cut } = notes;
  if (cut !== undefined) totals.cut[cut] = (totals.cut[cut] ?? 0) + 1;
}

/** Finds the log's entry of a lease. One that an earlier instance granted gets one of its own, which is in no list until it ends. */
function decisionOf(lease: ActiveLease): Decision {
  lease.decision ??= ofEarlier(lease);
  return lease.decision;
}

function ofEarlier(lease: ActiveLease): Decision {
  const { id, ticketId, holder, lane, slots, nested, member, grantedAt } = lease;
  const of = { id: ticketId, holder, lane, slots: slots === 0 ? (nested?.slots ?? 0) : slots };
  const decision = grantedAtOnce(id, bareTicket(of, grantedAt), grantedAt);
  const placed = member === IMPLICIT ? null : { member, by: 'sole' as const, others: [] };
  return { ...decision, placed, isOfEarlier: true };
}

/** Notes the end of a lease, by its holder or at its TTL. */
export function noteEnd(
  { totals, decisions }: GroupState,
  lease: ActiveLease,
  how: LeaseOutcome | 'expired',
  now: InstantMs,
): void {
  if (how === 'expired') totals.expired += 1;
  else totals.ended[how] = (totals.ended[how] ?? 0) + 1;
  if (how === 'success') noteErrorStatus(totals, decisionOf(lease).upstreamStatus);
  if (how !== 'unused') observe(totals.hold, now - lease.grantedAt);
  const decision = decisionOf(lease);
  decision.ended = how;
  decision.endedAt = now;
  decisions.over.push(decision);
}

/** Counts calls that the upstream answered with an error status. Any other status counts nothing. */
export function noteErrorStatus(
  { answeredErrors }: Totals,
  status: number | null,
  calls = 1,
): void {
  const name = errorStatusName(status);
  if (name !== null) answeredErrors[name] = (answeredErrors[name] ?? 0) + calls;
}

/** Notes what a call was charged. */
export function noteUsage(
  state: GroupState,
  lease: ActiveLease,
  { inputTokens, outputTokens }: CallUsage,
  usd: number,
  now: InstantMs,
): void {
  decisionOf(lease).used = { inputTokens, outputTokens, usd };
  noteSpentThere(state.upstreams, placeOf(state, lease), usd, now);
  for (const { totals } of [state, memberOf(state, lease)]) {
    totals.inputTokens += inputTokens;
    totals.outputTokens += outputTokens;
    totals.usd += usd;
  }
}

/** Notes the model that the answer to a call named. */
export function noteModel(lease: ActiveLease, model: string): void {
  decisionOf(lease).reportedModel = model;
}

/** Whether the call of a lease was queued first. Unknown of one that an earlier instance granted: then it counts as not. */
export function hasWaitedFirst({ decision }: ActiveLease): boolean {
  return decision !== null && decision.waitedFor !== null;
}

/** Reads the number of the attempt, which ends a lease's id. */
export function attemptOf(leaseId: LeaseId): number {
  return Number(leaseId.slice(leaseId.lastIndexOf('.') + 1));
}

/** Makes the ticket of a call of which no ask is known. */
export function bareTicket(
  of: Pick<Ticket, 'id' | 'holder' | 'lane' | 'slots'>,
  enqueuedAt: InstantMs,
): Ticket {
  return {
    ...of,
    enqueuedAt,
    agentStartedAt: null,
    deadlineAt: null,
    wait: true,
    isTry: false,
    waitsElsewhere: false,
    parents: [],
    estimate: null,
  };
}

/** Makes the log's entry of a call that was granted as soon as it came. */
export function grantedAtOnce(leaseId: LeaseId, ticket: Ticket, at: InstantMs): Decision {
  return {
    ticket,
    leaseId,
    arrivedAt: at,
    decidedAt: at,
    decided: 'granted',
    rejection: null,
    positionAtArrival: 0,
    waitedFor: null,
    placed: null,
    upstreamStatus: null,
    upstreamSignal: null,
    ended: null,
    endedAt: null,
  };
}

function note(
  { decisions, totals }: GroupState,
  about: Pick<Waiter, 'ticket' | 'leaseId' | 'arrivedAt' | 'arrival'>,
  decided: Decision['decided'],
  rejection: Rejection | null,
  now: InstantMs,
  placed: MemberChoice | null = null,
): Decision {
  const decision: Decision = {
    ticket: about.ticket,
    leaseId: about.leaseId,
    arrivedAt: about.arrivedAt,
    decidedAt: now,
    decided,
    rejection,
    positionAtArrival: about.arrival?.position ?? 0,
    waitedFor: about.arrival?.cause ?? null,
    ...(about.arrival?.scope !== undefined && { scope: about.arrival.scope }),
    placed,
    upstreamStatus: null,
    upstreamSignal: null,
    ended: null,
    endedAt: null,
  };
  addDecision(decisions, decision);
  if (decided !== 'moved') noteWait(totals, decision);
  return decision;
}

/** Counts a wait by its cause. Who is sent back, or asks anew, goes on waiting. */
function noteWait(totals: Totals, { waitedFor, arrivedAt, decidedAt }: Decision): void {
  if (waitedFor === null) return;
  const { waitedFor: calls, waitedForMs: ms } = totals;
  calls[waitedFor] = (calls[waitedFor] ?? 0) + 1;
  ms[waitedFor] = (ms[waitedFor] ?? 0) + Math.max(0, decidedAt - arrivedAt);
}
