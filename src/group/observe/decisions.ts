import type { DecisionFilter, DecisionInfo } from '../../contract/decisions.ts';
import { attemptOf } from '../../core/stats.ts';
import type { GroupState } from '../../core/state.ts';
import { shownScope } from './scope-status.ts';
import { latestFirst, type Decision } from '../../core/parts/decision-log.ts';

/** Lists the remembered decisions of one pool that match a filter, latest first. */
export function decisionInfos({ decisions }: GroupState, filter: DecisionFilter): DecisionInfo[] {
  const { ids, fromMs = -Infinity, toMs = Infinity, decided, limit = Infinity } = filter;
  const wanted = ids === undefined ? null : new Set(ids);
  return latestFirst(decisions)
    .filter(
      (each) =>
        each.decidedAt >= fromMs &&
        each.decidedAt < toMs &&
        (decided === undefined || each.decided === decided) &&
        (wanted === null || wanted.has(each.leaseId) || wanted.has(each.ticket.id)),
    )
    .slice(0, limit)
    .map(infoOf);
}

function infoOf(decision: Decision): DecisionInfo {
  const { ticket, leaseId, arrivedAt, decidedAt, upstreamSignal, endedAt } = decision;
  const { tenant, agent, upstream, model, kind } = ticket.holder;
  return {
    lease: leaseId,
    ...(kind === undefined ? {} : { kind }),
    ticket: ticket.id,
    attempt: attemptOf(leaseId),
    lane: ticket.lane,
    tenant,
    agent,
    upstream,
    model,
    slots: ticket.slots,
    arrived_at: new Date(arrivedAt).toISOString(),
    decided_at: new Date(decidedAt).toISOString(),
    waited_ms: Math.max(0, decidedAt - arrivedAt),
    position_at_arrival: decision.positionAtArrival,
    waited_for: decision.waitedFor,
    ...(decision.scope !== undefined && { scope: shownScope(decision.scope) }),
    outcome: decision.decided,
    ...(decision.placed === null ? {} : { placed: decision.placed }),
    rejection: decision.rejection,
    upstream_status: decision.upstreamStatus,
    upstream_said: upstreamSignal?.kind ?? null,
    upstream_retry_after_ms: upstreamSignal?.retryAfterMs ?? null,
    ended: decision.ended,
    held_ms: endedAt === null ? null : endedAt - decidedAt,
  };
}
