import { after, type InstantMs } from './words/ids.ts';
import type { Dropped } from './words/outcome.ts';
import { RETURN_MAX_MS } from './words/settings.ts';
import type { Lane } from './words/ticket.ts';
import { compareWaiters, lanesBelow, queueLength, type Waiter } from './parts/queue.ts';
import { isNamedAgent, weightOf, type TenantAccount } from './parts/accounts.ts';
import { scopesHolding } from './capacity.ts';
import type { GroupState } from './state.ts';
import { goesByScopes } from './scopes.ts';

/** When a queue is too long, and which waiter leaves it for a new one. */

/** The queue bound that is exceeded: the group's, the tenant's or the agent's. */
interface Fullness {
  readonly of: 'group' | 'tenant' | 'agent';
  readonly queueLengthMax: number;
}

/**
 * Returns the queue bound that a new waiter, already in the queue, exceeds. A call that was granted here before is
 * exempt. It had its place, and there are never more such calls than slots.
 */
export function fullness(
  { settings, queue }: GroupState,
  { tenant, agent, ticket }: Waiter,
): Fullness | null {
  if (ticket.hadTurn === true) return null;
  const { queueLengthMaxEach, queueLengthMaxEachAgent } = settings;
  if (isNamedAgent(agent) && agent.waiting > queueLengthMaxEachAgent) {
    return { of: 'agent', queueLengthMax: queueLengthMaxEachAgent };
  }
  if (tenant.waiting > queueLengthMaxEach) {
    return { of: 'tenant', queueLengthMax: queueLengthMaxEach };
  }
  const { queueLengthMax } = settings;
  return queueLength(queue) > queueLengthMax ? { of: 'group', queueLengthMax } : null;
}

/** The waiter that is replaced by a new one, and the reason. */
interface SlotGiver {
  readonly waiter: Waiter;
  readonly why: Dropped;
}

/**
 * Finds the waiter that a new one above a bound replaces, so that no queue exceeds its bound. null if the new one is
 * rejected.
 */
export function callToReject(
  state: GroupState,
  waiter: Waiter,
  of: Fullness['of'],
  now: InstantMs,
): SlotGiver | null {
  const replaced = (found: Waiter | null, why: Dropped): SlotGiver | null =>
    found === null ? null : { waiter: found, why };
  const isOfGroup = of === 'group';
  return (
    (isOfGroup ? replaced(worstBelow(state, waiter), 'lane') : null) ??
    (mayReturn(state, waiter, now) ? replaced(lastAfter(state, waiter, of), 'returned') : null) ??
    (isOfGroup ? replaced(ofLongestLine(state, waiter), 'share') : null) ??
    replaced(lastHeld(state, waiter, of, now), 'held')
  );
}

/** Whether a new call may have had a place when all places were lost. Deferred waiters notice that last. */
function mayReturn({ dispersedAt }: GroupState, { ticket }: Waiter, now: InstantMs): boolean {
  return ticket.enqueuedAt < dispersedAt && now < after(dispersedAt, RETURN_MAX_MS);
}

/**
 * Finds the latest call that arrived after the new waiter. It must be within the tenant's or agent's bound, or in its
 * lane among the tenants that wait most. Before the reset, that call would have found the queue full. null if there is
 * none. Other tenants keep their places. Otherwise a tenant could take more than its share with old calls.
 */
function lastAfter(state: GroupState, waiter: Waiter, of: Fullness['of']): Waiter | null {
  const { lane, tenant, agent } = waiter;
  const most = of === 'group' ? mostWaiting(state, lane) : 0;
  const isWithin = {
    group: (each: Waiter) => each.lane === lane && waitingOf(state, lane, each.tenant) === most,
    tenant: (each: Waiter) => each.tenant === tenant,
    agent: (each: Waiter) => each.agent === agent,
  }[of];
  let last = waiter;
  for (const each of state.queue.byTicket.values()) {
    const isLater = !each.isPromoted && compareArrivals(each, last) > 0;
    if (isLater && isWithin(each)) last = each;
  }
  return last === waiter ? null : last;
}

/** Compares by the arrival at Headgate, then by the arrival in this pool. */
function compareArrivals(one: Waiter, other: Waiter): number {
  return one.ticket.enqueuedAt - other.ticket.enqueuedAt || one.sequence - other.sequence;
}

/** Finds the youngest waiter of the tenant that waits most, in the lowest lane below the new waiter's. */
function worstBelow(state: GroupState, { lane: own }: Waiter): Waiter | null {
  for (const lane of lanesBelow(own)) {
    const youngest = youngestOfMost(state, lane, 0);
    if (youngest !== null) return youngest;
  }
  return null;
}

/**
 * Finds the youngest waiter of the tenant that waits most in the new waiter's lane, if the own tenant still waits less
 * with the new waiter. So the bound is shared in proportion to the weights: a tenant below its share is never rejected.
 * No two tenants can take a place from each other in turn.
 */
function ofLongestLine(state: GroupState, { lane, tenant }: Waiter): Waiter | null {
  return youngestOfMost(state, lane, waitingOf(state, lane, tenant));
}

/**
 * Finds the youngest waiter of the tenant that waits most in a lane, relative to its weight. null if no tenant waits
 * more than `least`. Promoted waiters keep their places.
 */
function youngestOfMost(state: GroupState, lane: Lane, least: number): Waiter | null {
  let found: Waiter | null = null;
  let most = least;
  for (const { tenant, waiters } of state.queue.lanes[lane].lines) {
    const youngest = waiters.findLast(({ isPromoted }) => !isPromoted);
    const waiting = waitingOf(state, lane, tenant);
    if (youngest === undefined || waiting < most) continue;
    const isYounger = found !== null && compareWaiters(found, youngest) < 0;
    if (waiting > most || isYounger) found = youngest;
    most = waiting;
  }
  return found;
}

/**
 * Finds the youngest held call of the new waiter's tenant (or agent) in its lane or below, if no scope holds
 * the new one. Calls of a stopped model must not fill a queue that other calls could use. Other tenants keep their
 * places.
 */
function lastHeld(
  state: GroupState,
  waiter: Waiter,
  of: Fullness['of'],
  now: InstantMs,
): Waiter | null {
  const { tenant, agent, lane: own } = waiter;
  const isHeld = (each: Waiter): boolean => scopesHolding(state, each, now).length > 0;
  if (!state.serving.some(goesByScopes) || isHeld(waiter)) return null;
  for (const lane of [...lanesBelow(own), own]) {
    const found = state.queue.lanes[lane].byTenant.get(tenant)?.waiters.findLast((each) => {
      const isWithin = of !== 'agent' || each.agent === agent;
      return isWithin && !each.isPromoted && isHeld(each);
    });
    if (found !== undefined) return found;
  }
  return null;
}

function mostWaiting(state: GroupState, lane: Lane): number {
  const { lines } = state.queue.lanes[lane];
  return Math.max(...lines.map(({ tenant }) => waitingOf(state, lane, tenant)));
}

/** Counts the waiters of a tenant in a lane, relative to its weight. */
function waitingOf({ settings, queue }: GroupState, lane: Lane, tenant: TenantAccount): number {
  const waiting = queue.lanes[lane].byTenant.get(tenant)?.waiters.length ?? 0;
  return waiting / weightOf(settings, tenant.key);
}
