import { agentAccount, NO_AGENT, tenantAccount } from './parts/accounts.ts';
import type { GroupEvent } from './events.ts';
import { after, instant, type InstantMs } from './words/ids.ts';
import { needOf } from './parts/demand.ts';
import { ageOf } from './order.ts';
import type { Waiter } from './parts/queue.ts';
import type { GroupState } from './state.ts';
import type { Ticket } from './words/ticket.ts';

/** The entry of a ticket that comes for the first time. It does not stand in the queue yet. */
export function newWaiter(
  state: GroupState,
  event: Extract<GroupEvent, { kind: 'acquire' }>,
  now: InstantMs,
): Waiter {
  const ticket = clamp(event.ticket, state.settings.timeoutMs, now);
  const { holder, enqueuedAt } = ticket;
  const tenant = tenantAccount(state.accounts, holder.tenant);
  const key = holder.agent ?? NO_AGENT;
  const agent = agentAccount(state.accounts, tenant, key, now, enqueuedAt);
  const startedAt = holder.agent === null ? enqueuedAt : (ticket.agentStartedAt ?? agent.startedAt);
  return {
    ticket,
    leaseId: event.leaseId,
    need: needOf(state.controls.factors, state.settings.rates, ticket),
    tenant,
    agent,
    arrivedAt: arrivalOf(state, ticket, now),
    arrival: null,
    sequence: state.nextSequence++,
    deadlineAt: instant(
      Math.min(ticket.deadlineAt ?? Infinity, after(enqueuedAt, state.settings.timeoutMs)),
    ),
    age: ageOf(ticket, startedAt, state.settings),
    lane: ticket.lane,
    isPromoted: false,
    sliceEndsAt: null,
    orphanAt: now,
  };
}

/** Who comes while the group settles has waited since its call came, unless that was for another group. */
function arrivalOf({ grantsFrom }: GroupState, ticket: Ticket, now: InstantMs): InstantMs {
  if (now >= grantsFrom || ticket.holdsNarrower) return now;
  return instant(Math.min(now, ticket.enqueuedAt));
}

/**
 * Claims from the future would be a place behind everybody, one from the far past a place before. The
 * start of an agent run needs no bound into the past: the age credit bounds what it is good for.
 */
function clamp(ticket: Ticket, timeoutMs: number, now: InstantMs): Ticket {
  const enqueuedAt = instant(Math.min(Math.max(ticket.enqueuedAt, now - timeoutMs), now + 1));
  return { ...ticket, enqueuedAt };
}
