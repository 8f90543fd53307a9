import { after, type InstantMs } from './words/ids.ts';
import { RETURN_MAX_MS } from './words/settings.ts';
import { NO_AGENT } from './parts/accounts.ts';
import { compareWaiters, laneLength, lanesBelow, queueLength, type Waiter } from './parts/queue.ts';
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

/** Finds who makes room for a newcomer that exceeds a bound, so that no queue outgrows it; null: nobody does. */
export function whoMakesRoom(
  state: GroupState,
  waiter: Waiter,
  of: Fullness['of'],
  now: InstantMs,
): Waiter | null {
  // Only a lower lane makes room: within a lane fresh tickets of old runs would churn the queue.
  const worst = of === 'group' ? worstBelow(state, waiter) : null;
  return worst === null && mayReturn(state, waiter, now) ? lastAfter(state, waiter, of) : worst;
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

/** Finds the youngest waiter of the most backlogged tenant in the lowest lane below the newcomer's. */
function worstBelow({ queue }: GroupState, { lane: own }: Waiter): Waiter | null {
  const lane = lanesBelow(own).find((below) => laneLength(queue, below) > 0);
  if (lane === undefined) return null;
  let worst: Waiter | null = null;
  let most = 0;
  for (const { waiters } of queue.lanes[lane].lines) {
    const youngest = waiters.at(-1);
    if (youngest === undefined || waiters.length < most) continue;
    const isWorse = worst === null || compareWaiters(worst, youngest) < 0;
    if (waiters.length > most || isWorse) worst = youngest;
    most = waiters.length;
  }
  return worst;
}
