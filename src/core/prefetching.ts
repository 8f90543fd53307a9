import {
  after,
  IMPLICIT,
  instant,
  leaseId,
  ticketOf,
  type InstantMs,
  type LeaseId,
} from './words/ids.ts';
import {
  LEASE_TTL_MS,
  PREFETCHED_AT_ONCE_MAX,
  PREFETCHED_KEPT_MAX,
  PREFETCHED_PACE_MIN,
  PREFETCHED_SHARE,
  PREFETCHED_USE_MAX,
  PREFETCH_TTL_MS,
} from './words/settings.ts';
import { LANES, type Ticket, type Holder, type Lane } from './words/ticket.ts';
import { noteFreed, noteHandedOut, noteLapsed, noteLost } from './parts/bound.ts';
import {
  changePrefetch,
  notePace,
  paceOf,
  type PrefetchedShare,
  type Prefetch,
  type KeeperReport,
  type ReportedCall,
  type ReportedCalls,
} from './parts/prefetches.ts';
import { queueLength, resettle } from './parts/queue.ts';
import {
  agentAccount,
  charge,
  NO_AGENT,
  noteServiceOf,
  tenantAccount,
  weightOf,
} from './parts/accounts.ts';
import { noteServed } from './parts/breaker.ts';
import { noteReportedCost } from './parts/costs.ts';
import { addDecision, type Decision } from './parts/decision-log.ts';
import { noteAccepted } from './parts/evidence.ts';
import { observe } from './parts/totals.ts';
import { atUpstream, blockOf, cooldownInForceMs, slotsMaxAt } from './capacity.ts';
import type { Effect } from './events.ts';
import type { Member } from './member.ts';
import { isSplit, type GroupState } from './state.ts';
import { goesByScopes } from './scopes.ts';
import { wantsServed } from './upstream-signals.ts';
import { observeHold } from './estimate.ts';
import { bareTicket, grantedAtOnce, noteErrorStatus, noteGrantedAt } from './stats.ts';

/** Prefetched slots: granted to an isolate in advance, reported by it, recalled and expired. */

/**
 * Prefetches slots to the isolate of a granted call if it calls often, no call is queued and less than half of the
 * group is in use. They count as in use from now on. null if there are none.
 */
export function prefetchFor(
  state: GroupState,
  { isolate, slots }: Ticket,
  now: InstantMs,
): PrefetchedShare | null {
  const { lending: prefetching } = state;
  if (isolate === undefined || slots !== 1) return null;
  notePace(prefetching, isolate, now);
  const known = prefetching.growing.get(isolate);
  if (known === undefined && paceOf(prefetching, isolate, now) < PREFETCHED_PACE_MIN) return null;
  const [sole] = state.serving;
  if (sole === undefined || !mayPrefetch(state, now) || isLearning(state, sole)) return null;
  const max = slotsMaxAt(state, now);
  if (state.slotsInUse >= max * PREFETCHED_USE_MAX) return null;
  const wanted = Math.min(
    PREFETCHED_AT_ONCE_MAX,
    Math.floor((max - state.slotsInUse) * PREFETCHED_SHARE),
  );
  const count = Math.min(wanted, Math.floor(max * PREFETCHED_USE_MAX) - state.slotsInUse);
  if (count < 1) return null;
  const attachment = state.nextAttachment++;
  const prefetch = known ?? newPrefetch(state, sole, isolate, attachment);
  const ids = Array.from({ length: count }, (_, index) =>
    leaseId(`${isolate}~${attachment}.${index + 1}`),
  );
  changePrefetch(prefetching, prefetch, () => {
    for (const id of ids) prefetch.slots.add(id);
  });
  prefetch.until = instant(Math.max(prefetch.until, after(now, PREFETCH_TTL_MS)));
  countPrefetched(state, count);
  noteHandedOut(state.bound, sole.id, count, now);
  return { loan: prefetch.id, slots: ids, attachment };
}

/**
 * Whether many more calls are at the upstream than it was ever seen to serve. Reports about prefetched slots come late,
 * so the first lessons must come from calls that acquire their slots.
 */
function isLearning(state: GroupState, member: Member): boolean {
  const { settings, controls } = member;
  return (
    settings.isAdaptive && atUpstream(state, member) > 2 * controls.ceiling.evidence.servedSlots
  );
}

function newPrefetch(
  state: GroupState,
  member: Member,
  isolate: string,
  attachment: number,
): Prefetch {
  const { lending } = state;
  const id = leaseId(`${isolate}~${attachment}`);
  const unused = { used: 0, others: atUpstream(state, member), until: instant(0), attachment: 0 };
  const none = { missingSince: null, isRecalled: false };
  const prefetch: Prefetch = { id, isolate, slots: new Set(), ...unused, ...none };
  lending.loans.set(id, prefetch);
  lending.growing.set(isolate, prefetch);
  return prefetch;
}

/**
 * Whether calls may start without an acquire call. No call is queued or about to be, none needs an individual
 * reservation, and no lesson depends on the upstream's answer to a single call.
 */
function mayPrefetch(state: GroupState, now: InstantMs): boolean {
  const { settings, controls, bound, unclaimed, queue, serving } = state;
  const [sole] = serving;
  // The member and the scopes of a call are decided when it starts.
  if (isSplit(state) || sole === undefined || goesByScopes(sole)) return false;
  if (!bound.isStored || unclaimed.slots > 0 || now < state.grantsFrom) return false;
  if (queueLength(queue) > 0) return false;
  if (state.slotsInUse > slotsMaxAt(state, now) * PREFETCHED_KEPT_MAX) return false;
  const { paused, isDraining, isDryRun, isMetered } = settings;
  if (paused || isDraining || isDryRun || isMetered) return false;
  if (settings.slotsMaxEach < Infinity || settings.slotsMaxEachAgent < Infinity) return false;
  if (hasEntries(settings.reserved) || hasEntries(settings.reservedLanes)) return false;
  if (blockOf(serving, now) !== null || controls.breaker.phase !== 'closed') return false;
  if (controls.pause.waitMs > 0) return false;
  return cooldownInForceMs(state) === 0 && !wantsServed(sole, now);
}

function hasEntries(record: object): boolean {
  return Object.keys(record).length > 0;
}

/** Recalls all prefetched slots as soon as calls may not start without an acquire call. */
export function recallPrefetched(state: GroupState, now: InstantMs, effects: Effect[]): void {
  const { growing } = state.lending;
  if (growing.size === 0 || mayPrefetch(state, now)) return;
  for (const prefetch of growing.values()) {
    prefetch.isRecalled = true;
    effects.push({ kind: 'recalled', loanId: prefetch.id });
  }
  growing.clear();
}

/**
 * Renews the prefetched slots of a live isolate. With `isNew`, a new answer keeps them, and only its disposal counts
 * from now on.
 */
export function keepPrefetch(
  state: GroupState,
  {
    loanId,
    isNew,
    told: report,
  }: { readonly loanId: LeaseId; readonly isNew: boolean; readonly told: KeeperReport },
  now: InstantMs,
): void {
  const prefetch = state.lending.loans.get(loanId);
  noteTold(state, prefetch, report, now);
  if (prefetch === undefined) return;
  if (isNew) prefetch.attachment = state.nextAttachment++;
  prefetch.until = after(now, LEASE_TTL_MS);
  recallIncomplete(state, prefetch, report, now);
}

/**
 * Recalls the prefetched slots of an isolate that has missed some of them for too long. An answer was lost, or a call
 * with its context. The missing slots expire once all others have been returned.
 */
function recallIncomplete(
  { lending }: GroupState,
  prefetch: Prefetch,
  { known }: KeeperReport,
  now: InstantMs,
): void {
  if (known >= prefetch.slots.size) prefetch.missingSince = null;
  else prefetch.missingSince ??= now;
  if (prefetch.missingSince === null || now < after(prefetch.missingSince, PREFETCH_TTL_MS)) return;
  prefetch.isRecalled = true;
  if (lending.growing.get(prefetch.isolate) === prefetch) lending.growing.delete(prefetch.isolate);
}

/**
 * Notes that the context that kept the prefetched slots has ended. Another one keeps them soon, or the isolate is gone.
 */
export function leavePrefetch(
  { lending }: GroupState,
  { loanId, attachment }: { readonly loanId: LeaseId; readonly attachment: number },
  now: InstantMs,
): void {
  const prefetch = lending.loans.get(loanId);
  if (prefetch?.attachment !== attachment) return;
  prefetch.until = instant(Math.min(prefetch.until, after(now, PREFETCH_TTL_MS)));
}

/**
 * Counts slots as prefetched or no longer so, at the only member. If the configuration removed that member, only the
 * group counts them.
 */
function countPrefetched(state: GroupState, slots: number): void {
  state.slotsInUse += slots;
  const lender = state.members.get(IMPLICIT);
  if (lender !== undefined) lender.slotsInUse += slots;
}

/** Applies the report of a keeper. */
export function noteTold(
  state: GroupState,
  prefetch: Prefetch | undefined,
  { used, peak, ended }: KeeperReport,
  now: InstantMs,
): void {
  if (prefetch === undefined) return noteReportedCalls(state, ended, peak, now);
  changePrefetch(state.lending, prefetch, () => {
    prefetch.used = used;
  });
  const [sole] = state.serving;
  const others = (sole === undefined ? 0 : atUpstream(state, sole)) - used;
  // The other calls may have changed meanwhile. The lower count is what is certain to have been there all the time.
  noteReportedCalls(state, ended, peak + Math.min(others, prefetch.others), now);
  prefetch.others = others;
}

/** Removes a slot from the prefetched ones. Returns false if it is not among them. */
export function takePrefetched(state: GroupState, loanId: LeaseId, slot: LeaseId): boolean {
  const { lending } = state;
  const prefetch = lending.loans.get(loanId);
  if (prefetch?.slots.has(slot) !== true) return false;
  changePrefetch(lending, prefetch, () => {
    prefetch.slots.delete(slot);
  });
  countPrefetched(state, -1);
  if (prefetch.slots.size === 0) forget(state, prefetch);
  return true;
}

/** Frees a returned prefetched slot. Returns false if it is not among them. */
export function freePrefetched(
  state: GroupState,
  loanId: LeaseId,
  slot: LeaseId,
  now: InstantMs,
): boolean {
  if (!takePrefetched(state, loanId, slot)) return false;
  state.tombstones.add(slot, now);
  noteFreed(state.bound, slot, state.unclaimed.slots > 0);
  return true;
}

/**
 * Ends prefetched slots that were not renewed. Their isolate may be alive, so the slots are granted again only behind a
 * write.
 */
export function expirePrefetched(state: GroupState, now: InstantMs): void {
  const { lending, bound } = state;
  for (const prefetch of lending.loans.values()) {
    if (now < prefetch.until) continue;
    const { size } = prefetch.slots;
    for (const slot of prefetch.slots) noteLapsed(bound, slot);
    changePrefetch(lending, prefetch, () => prefetch.slots.clear());
    countPrefetched(state, -size);
    noteLost(bound);
    forget(state, prefetch);
  }
}

export function prefetchedDueAt({ lending }: GroupState): InstantMs {
  let dueAt = Infinity;
  for (const { until } of lending.loans.values()) dueAt = Math.min(dueAt, until);
  return instant(dueAt);
}

/** Extends all prefetched slots by time in which no isolate could renew. */
export function extendPrefetched({ lending }: GroupState, lostMs: number): void {
  for (const prefetch of lending.loans.values()) prefetch.until = after(prefetch.until, lostMs);
}

function forget({ lending }: GroupState, prefetch: Prefetch): void {
  lending.loans.delete(prefetch.id);
  if (lending.growing.get(prefetch.isolate) === prefetch) lending.growing.delete(prefetch.isolate);
}

/** Maximum number of results that the breaker, the mean hold and the evidence use at once. */
const RESULTS_MAX = 20;

/**
 * Counts, charges and logs successful calls on prefetched slots like calls that acquired theirs. `slotsAtOnce` is the
 * highest number of concurrent slots at the upstream.
 */
function noteReportedCalls(
  state: GroupState,
  ended: readonly ReportedCalls[],
  slotsAtOnce: number,
  now: InstantMs,
): void {
  for (const reported of ended) noteSome(state, reported, now);
  if (ended.length === 0) return;
  state.talliesDirtyAt ??= now;
  // Only a group with one member prefetches, and it shares its controls.
  const { controls, settings } = state;
  const { ceiling, breaker } = controls;
  const recent = ended.flatMap(({ last }) => last).toSorted(([, , a], [, , b]) => a - b);
  for (const [lease, beganMs] of recent.slice(0, RESULTS_MAX)) {
    // Dated back, because calls that began before a refusal do not contradict it.
    const grantedAt = instant(now - beganMs);
    noteServed(breaker, { leaseId: lease, grantedAt }, now, settings.breaker);
    noteAccepted(ceiling.evidence, { grantedAt, slotsAtGrant: slotsAtOnce }, now);
  }
}

function noteSome(state: GroupState, reported: ReportedCalls, now: InstantMs): void {
  const { accounts, totals, settings } = state;
  const { holder, calls, heldMs, lane } = reported;
  const meanMs = heldMs / calls;
  const tenant = tenantAccount(accounts, holder.tenant);
  const agent = agentAccount(accounts, tenant, holder.agent ?? NO_AGENT, now);
  noteServiceOf(accounts, tenant, lane);
  const weight = weightOf(settings, tenant.key);
  for (const each of LANES) charge(tenant.shares[each], heldMs, weight);
  // New agents and sessions start level with this one, as after a grant.
  tenant.lastAgentService = Math.max(tenant.lastAgentService, agent.service);
  charge(agent, heldMs, 1);
  resettle(state.queue, tenant);
  totals.granted += calls;
  // Only a group without members prefetches.
  noteGrantedAt(state, holder.upstream, calls, now);
  totals.ended.success = (totals.ended.success ?? 0) + calls;
  noteErrorStatus(totals, reported.status, calls);
  observe(totals.wait, 0, calls);
  observe(totals.hold, meanMs, calls);
  state.lastEndAt = now;
  for (let index = 0; index < Math.min(calls, RESULTS_MAX); index += 1) observeHold(state, meanMs);
  state.decisions.lent.push(reported);
  for (const one of reported.last) noteOne(state, reported, one, now);
  for (const cost of reported.costs ?? []) {
    noteReportedCost(state.controls.costs, holder.caller, cost, now);
    totals.inputTokens += cost.inputTokens;
    totals.outputTokens += cost.outputTokens;
    totals.usd += cost.usd;
  }
}

/** Adds a call to the log like one that acquired its slot. */
function noteOne(
  state: GroupState,
  { holder, lane, status }: ReportedCalls,
  [id, beganMs, endedMs, requestId]: ReportedCall,
  now: InstantMs,
): void {
  const decision = noteStart(state, { id, holder, lane }, instant(now - beganMs));
  decision.isLent = true;
  if (requestId !== undefined) decision.notes = { requestId };
  decision.upstreamStatus = status;
  decision.ended = 'success';
  decision.endedAt = instant(now - endedMs);
  state.decisions.over.push(decision);
}

/** Logs the start of a call without an acquire call, and returns its log entry. */
export function noteStart(
  { decisions }: GroupState,
  { id, holder, lane }: { readonly id: LeaseId; readonly holder: Holder; readonly lane: Lane },
  arrivedAt: InstantMs,
): Decision {
  const ticket = bareTicket({ id: ticketOf(id), holder, lane, slots: 1 }, arrivedAt);
  const decision = grantedAtOnce(id, ticket, arrivedAt);
  addDecision(decisions, decision);
  return decision;
}
