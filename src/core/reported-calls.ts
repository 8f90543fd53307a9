import { instant, ticketOf, type InstantMs, type LeaseId } from './words/ids.ts';
import { LANES, type Holder, type Lane } from './words/ticket.ts';
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
import { observe } from './parts/histogram.ts';
import type { ReportedCall, ReportedCalls } from './parts/prefetches.ts';
import { resettle } from './parts/queue.ts';
import { observeHold } from './estimate.ts';
import type { GroupState } from './state.ts';
import { bareTicket, grantedAtOnce, noteErrorStatus, noteGrantedAt } from './stats.ts';

/** Maximum number of results that the breaker, the mean hold and the evidence use at once. */
const RESULTS_MAX = 20;

/**
 * Counts, charges and logs successful calls on prefetched slots like calls that acquired theirs. `slotsAtOnce` is the
 * highest number of concurrent slots at the upstream.
 */
export function noteReportedCalls(
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
  for (const [leaseId, beganMs] of recent.slice(0, RESULTS_MAX)) {
    // Dated back, because calls that began before a refusal do not contradict it.
    const grantedAt = instant(now - beganMs);
    noteServed(breaker, { leaseId, grantedAt }, now, settings.breaker);
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
