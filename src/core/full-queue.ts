import { after, type InstantMs } from './words/ids.ts';
import { RETURN_MAX_MS } from './words/settings.ts';
import { NO_AGENT, weightOf, type TenantAccount } from './parts/accounts.ts';
import { compareWaiters, laneLength, lanesBelow, queueLength, type Waiter } from './parts/queue.ts';
import type { Lane } from './words/ticket.ts';
import type { Dropped } from './words/rejection.ts';
import type { GroupState } from './state.ts';

/** The bound of waiters that is exceeded, and whose it is. */
interface Fullness {
  readonly of: 'group' | 'tenant' | 'agent';
  readonly queueLengthMax: number;
}

/** Finds the bound of waiters that the newcomer, which stands in the queue already, exceeds. */
export function fullness(
  { settings, queue }: GroupState,
  { tenant, agent }: Waiter,
): Fullness | null {
  const { queueLengthMaxEach, queueLengthMaxEachAgent } = settings;
  if (agent.key !== NO_AGENT && agent.waiting > queueLengthMaxEachAgent) {
    return { of: 'agent', queueLengthMax: queueLengthMaxEachAgent };
  }
  if (tenant.waiting > queueLengthMaxEach) {
    return { of: 'tenant', queueLengthMax: queueLengthMaxEach };
  }
  const { queueLengthMax } = settings;
  return queueLength(queue) > queueLengthMax ? { of: 'group', queueLengthMax } : null;
}

/** The waiter that is dropped for a new one, and the reason. */
interface Giver {
  readonly waiter: Waiter;
  readonly why: Dropped;
}

/** Finds the waiter that a new one above a bound replaces, so that no queue exceeds it; null: the new one is refused. */
export function whoMakesRoom(
  state: GroupState,
  waiter: Waiter,
  of: Fullness['of'],
  now: InstantMs,
): Giver | null {
  const giver = (found: Waiter | null, why: Dropped): Giver | null =>
    found === null ? null : { waiter: found, why };
  const isOfGroup = of === 'group';
  return (
    (isOfGroup ? giver(worstBelow(state, waiter), 'lane') : null) ??
    (mayReturn(state, waiter, now) ? giver(lastAfter(state, waiter, of), 'returned') : null) ??
    (isOfGroup ? giver(ofLongestLine(state, waiter), 'share') : null)
  );
}

/** Whether a newcomer may have had a place when all were lost. Who was far back notices that last. */
function mayReturn({ dispersedAt }: GroupState, { ticket }: Waiter, now: InstantMs): boolean {
  return ticket.enqueuedAt < dispersedAt && now < after(dispersedAt, RETURN_MAX_MS);
}

/**
 * Finds the last call that came after the newcomer's, in its lane or within its tenant's or agent's bound: had nobody
 * lost a place, it would have found the queue full. Null: none came after it.
 */
function lastAfter({ queue }: GroupState, waiter: Waiter, of: Fullness['of']): Waiter | null {
  const { lane, tenant, agent } = waiter;
  const isWithin = {
    group: (each: Waiter) => each.lane === lane,
    tenant: (each: Waiter) => each.tenant === tenant,
    agent: (each: Waiter) => each.agent === agent,
  }[of];
  let last = waiter;
  for (const each of queue.byTicket.values()) {
    if (isWithin(each) && compareArrivals(each, last) > 0) last = each;
  }
  return last === waiter ? null : last;
}

/** Compares by when the calls reached Headgate, and then by when they came here. */
function compareArrivals(one: Waiter, other: Waiter): number {
  return one.ticket.enqueuedAt - other.ticket.enqueuedAt || one.sequence - other.sequence;
}

/** Finds the youngest waiter of the tenant that waits most in the lowest lane below the new waiter's. */
function worstBelow(state: GroupState, { lane: own }: Waiter): Waiter | null {
  const lane = lanesBelow(own).find((below) => laneLength(state.queue, below) > 0);
  return lane === undefined ? null : youngestOfMost(state, lane, 0);
}

/**
 * Finds the youngest waiter of the tenant that waits most in the new waiter's lane, if the new waiter's own tenant waits less
 * even with it. So the bound is shared in proportion to the weights: while the queue is full, a tenant that has
 * less than its share of it is never refused. No two tenants can take a place from each other in turn.
 */
function ofLongestLine(state: GroupState, { lane, tenant }: Waiter): Waiter | null {
  const own = state.queue.lanes[lane].byTenant.get(tenant)?.waiters.length ?? 0;
  return youngestOfMost(state, lane, perWeight(state, tenant, own));
}

/** Finds the youngest waiter of the tenant that waits most in a lane, in proportion to its weight; null: none waits more than `least`. */
function youngestOfMost(state: GroupState, lane: Lane, least: number): Waiter | null {
  let found: Waiter | null = null;
  let most = least;
  for (const { tenant, waiters } of state.queue.lanes[lane].lines) {
    const youngest = waiters.at(-1);
    const waiting = perWeight(state, tenant, waiters.length);
    if (youngest === undefined || waiting < most) continue;
    const isYounger = found !== null && compareWaiters(found, youngest) < 0;
    if (waiting > most || isYounger) found = youngest;
    most = waiting;
  }
  return found;
}

function perWeight({ settings }: GroupState, { key }: TenantAccount, waiting: number): number {
  return waiting / weightOf(settings, key);
}
