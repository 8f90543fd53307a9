import type { AcquireRequest, ResumeRequest } from '../contract/group-rpc.ts';
import { instant, leaseId, ticketId } from '../core/ids.ts';
import type { Holder, Ticket } from '../core/ticket.ts';

/** The core's ticket of an ask. Fields that older Workers do not send get their meaning here. */
export function ticketFrom(request: AcquireRequest): Ticket {
  const { deadlineAt, agentStartedAt = null, parents = [] } = request;
  return {
    id: ticketId(request.ticketId),
    holder: holderOf(request),
    lane: request.lane ?? 'normal',
    slots: request.slots ?? 1,
    enqueuedAt: instant(request.enqueuedAt),
    agentStartedAt: agentStartedAt === null ? null : instant(agentStartedAt),
    deadlineAt: deadlineAt === null ? null : instant(deadlineAt),
    wait: request.wait,
    isTry: request.isTry ?? false,
    waitsElsewhere: request.waitsElsewhere ?? false,
    holdsNarrower: request.holdsNarrower ?? false,
    parents: parents.map(leaseId),
    estimate: request.estimate ?? null,
  };
}

/** Who an ask, or a holder that takes its lease up again, speaks for. */
export function holderOf(from: AcquireRequest | ResumeRequest): Holder {
  const { caller, tenant = caller, agent, upstream, model } = from;
  return { caller, tenant, agent, upstream, model };
}
