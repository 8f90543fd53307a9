import { after, IMPLICIT, type InstantMs, type LeaseId } from './words/ids.ts';
import { errorStatusName, type LeaseOutcome, type Rejection } from './words/outcome.ts';
import type { RefusalKind, UpstreamSignal } from './words/signal.ts';
import type { Ticket, CallUsage } from './words/ticket.ts';
import { addDecision, type Decision, type MemberChoice } from './parts/decision-log.ts';
import {
  observe,
  noteGrantedThere,
  noteRefusedStatus,
  noteRefusedThere,
  noteSpentThere,
  noteUnusedThere,
  type Totals,
  type Invariant,
} from './parts/totals.ts';
import type { Waiter } from './parts/queue.ts';
import type { GroupEvent } from './events.ts';
import { isSplit, memberOf, NEVER, type GroupState, type ActiveLease } from './state.ts';
import { memberSlotsMaxAt } from './capacity.ts';
import type { Member } from './member.ts';

/** Counters and the decision log. Nothing here changes a decision, and everything is bounded. */

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

/** Logs the rejection of a waiter. `reject` counts its reason. */
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

/** Logs the rejection of a ticket that was never in the queue. */
export function noteRejectedAtDoor(
  state: GroupState,
  { ticket, leaseId }: Pick<Waiter, 'ticket' | 'leaseId'>,
  rejection: Rejection,
  now: InstantMs,
): void {
  note(state, { ticket, leaseId, arrivedAt: now, arrival: null }, 'rejected', rejection, now);
}

export function noteDeparture(
  state: GroupState,
  waiter: Waiter,
  decided: 'left' | 'moved',
  now: InstantMs,
): void {
  state.totals[decided] += 1;
  note(state, waiter, decided, null, now);
}

/** How long a group that does not become idle delays writing its calls by upstream. */
const UPSTREAMS_EVERY_MS = 60_000;

/** Counts calls for an upstream. The counts are written when the group becomes idle, or within a minute. */
export function noteGrantedAt(
  state: GroupState,
  place: string,
  calls: number,
  now: InstantMs,
): void {
  noteGrantedThere(state.upstreams, place, calls, now);
  if (state.upstreamsDueAt === NEVER) state.upstreamsDueAt = after(now, UPSTREAMS_EVERY_MS);
}

/** Returns where the call of a lease went: the member if the group names members, otherwise the upstream. */
function placeOf(state: GroupState, { member, holder }: ActiveLease): string {
  return isSplit(state) ? member : holder.upstream;
}

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
  const refusal = { retryAfterMs, model: lease.holder.model, ...(isStated && { words }) };
  noteRefusedThere(upstreams, placeOf(state, lease), kind, refusal, now);
}

export function noteUnused(state: GroupState, lease: ActiveLease, now: InstantMs): void {
  noteUnusedThere(state.upstreams, placeOf(state, lease), now);
}

export function noteSignal(lease: ActiveLease, { kind, retryAfterMs }: UpstreamSignal): void {
  decisionOf(lease).upstreamSignal = { kind, retryAfterMs };
}

/** Logs what the holder of a lease reports about its call at the end. */
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

/**
 * Returns the log entry of a lease. A lease of an earlier instance gets a new entry, which joins a list when it ends.
 */
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

/** Logs the end of a lease, by its holder or at its TTL. */
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

/** Counts calls that the upstream answered with an error status. Other statuses are not counted. */
export function noteErrorStatus(
  { answeredErrors }: Totals,
  status: number | null,
  calls = 1,
): void {
  const name = errorStatusName(status);
  if (name !== null) answeredErrors[name] = (answeredErrors[name] ?? 0) + calls;
}

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

/** Logs the model that the answer to a call named. */
export function noteModel(lease: ActiveLease, model: string): void {
  decisionOf(lease).reportedModel = model;
}

/** Whether the call of a lease was queued first. false for a lease of an earlier instance, because it is unknown. */
export function hasWaitedFirst({ decision }: ActiveLease): boolean {
  return decision !== null && decision.waitedFor !== null;
}

export function attemptOf(leaseId: LeaseId): number {
  return Number(leaseId.slice(leaseId.lastIndexOf('.') + 1));
}

/** Creates the ticket of a call without an acquire call. */
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

/** Adds a wait to its reason. A call that is routed again is still waiting. */
function noteWait(totals: Totals, { waitedFor, arrivedAt, decidedAt }: Decision): void {
  if (waitedFor === null) return;
  const { waitedFor: calls, waitedForMs: ms } = totals;
  calls[waitedFor] = (calls[waitedFor] ?? 0) + 1;
  ms[waitedFor] = (ms[waitedFor] ?? 0) + Math.max(0, decidedAt - arrivedAt);
}

/**
 * Checks the promises of `INVARIANTS` in production, with a comparison or two for each grant and each end. A broken
 * promise is counted and reported, and changes nothing else.
 */

export function countViolation({ totals }: GroupState, invariant: Invariant): void {
  totals.violations[invariant] += 1;
}

/** Slots that the bound must cover: those in use, and those of nested leases that may outlive their parents. */
export function slotsHeld({ slotsInUse, slotsNested }: GroupState): number {
  return slotsInUse + slotsNested;
}

/**
 * Checks that a grant exceeds neither its member's limit nor the group's. A call that runs alone may be wider than the
 * learned limit. The sum of slots may itself be wrong, so leases are counted too. Each has at least one slot, except
 * nested ones.
 */
export function checkLimit(state: GroupState, member: Member, slots: number, now: InstantMs): void {
  if (slots === 0 || state.settings.isDryRun) return;
  const { slotsInUse, slotsNested, leases, lending: prefetching, unclaimed, settings } = state;
  const inUse = Math.max(
    slotsInUse,
    leases.size - slotsNested + prefetching.slots + unclaimed.slots,
  );
  // Without members, the member and the group have the same count, with two sources.
  const here = isSplit(state) ? member.slotsInUse : inUse;
  const isAbove = here !== slots && here > memberSlotsMaxAt(member, now);
  const isAboveAll = isSplit(state) && inUse !== slots && inUse > settings.slotsMax;
  if (isAbove || isAboveAll) countViolation(state, 'above_limit');
}

/** Checks that the mark covers all held slots when an answer with a lease leaves behind its write. */
export function checkMark(state: GroupState, mark: number): void {
  if (state.bound.isStored && slotsHeld(state) > mark) countViolation(state, 'above_mark');
}

/** Checks that a new lease neither exists nor has ended. */
export function checkNew(state: GroupState, id: LeaseId): void {
  if (state.leases.has(id) || state.tombstones.has(id)) countViolation(state, 'granted_twice');
}
