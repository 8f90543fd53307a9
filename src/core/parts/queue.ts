import type { InstantMs, LeaseId, TicketId } from '../words/ids.ts';
import { LANES, type Lane, type Ticket } from '../words/ticket.ts';
import type { Demand } from '../words/usage.ts';
import type { AgentAccount, TenantAccount } from './accounts.ts';
import type { WaitReason } from './decision-log.ts';

/** A ticket's entry in the queue. */
export interface Waiter {
  /** Replaced when the names in the body are read. */
  ticket: Ticket;
  readonly leaseId: LeaseId;
  /** Its demand when it is granted, by what was known when its turn was last looked at. */
  demand: Demand;
  readonly tenant: TenantAccount;
  readonly agent: AgentAccount;
  /** The begin of its wait here. After a reset: the instant at which its call reached Headgate. */
  readonly arrivedAt: InstantMs;
  /** Its first place, counted from 0, and the cause of its wait; null: it was granted at once. */
  arrival: ({ readonly position: number } & WaitReason) | null;
  /** Order of arrival at this instance. */
  readonly sequence: number;
  /** The instant at which it is rejected. */
  readonly deadlineAt: InstantMs;
  /** Its place among the waiters of its tenant: see `order.ts`. Fixed, so ageing needs no sorting. */
  readonly age: InstantMs;
  lane: Lane;
  /** An operator put it first. */
  isPromoted: boolean;
  /**
   * End of the acquire call that its caller is parked in, or null: nobody is parked. Without one the
   * waiter keeps its place but gets no slot, which would go to somebody who may be gone.
   */
  sliceEndsAt: InstantMs | null;
  /** Its caller has lost an answer of it: it is granted behind a write alone. */
  isAnew: boolean;
  /** The instant at which it is dropped unless its caller asks again. */
  orphanAt: InstantMs;
  /** Until when it waits for its own member though another has room; null: it never had to. */
  heldOutUntil: InstantMs | null;
}

/** The waiters of one tenant in one lane, oldest first; there is at least one. */
export interface Line {
  readonly lane: Lane;
  readonly tenant: TenantAccount;
  readonly waiters: Waiter[];
}

export interface LaneQueue {
  /** Least service first, so that few need to be looked at: see `compareLines`. */
  readonly lines: Line[];
  readonly byTenant: Map<TenantAccount, Line>;
  /** Counts of tenants: at each index those that have more than that many waiters here. */
  readonly backlogs: number[];
  length: number;
}

/** The waiting line: in each lane one line per tenant that waits there. */
export interface Queue {
  readonly lanes: Readonly<Record<Lane, LaneQueue>>;
  readonly byTicket: Map<TicketId, Waiter>;
  readonly promoted: Set<Waiter>;
  /** Waiters whose call is made for another one, in the order in which they came. */
  readonly nested: Set<Waiter>;
}

export function emptyQueue(): Queue {
  const emptyLane = (): LaneQueue => ({ lines: [], byTenant: new Map(), backlogs: [], length: 0 });
  return {
    lanes: { high: emptyLane(), normal: emptyLane(), low: emptyLane() },
    byTicket: new Map(),
    promoted: new Set(),
    nested: new Set(),
  };
}

/** Compares waiters of one tenant: by age and then by arrival. */
export function compareWaiters(a: Waiter, b: Waiter): number {
  return a.age - b.age || a.sequence - b.sequence;
}

/** Compares lines of one lane: by service, then by the oldest waiter. */
export function compareLines(a: Line, b: Line): number {
  const [one, two] = [a.tenant.shares[a.lane].service, b.tenant.shares[b.lane].service];
  if (one !== two) return one - two;
  const [oldest] = a.waiters;
  const [other] = b.waiters;
  return oldest === undefined || other === undefined ? 0 : compareWaiters(oldest, other);
}

/** Puts a waiter into its line. */
export function enqueue(queue: Queue, waiter: Waiter): void {
  const { lane, tenant, agent, ticket } = waiter;
  const inLane = queue.lanes[lane];
  const line = inLane.byTenant.get(tenant) ?? { lane, tenant, waiters: [] };
  const { waiters } = line;
  const place = placeOf(waiters, waiter, compareWaiters);
  waiters.splice(place, 0, waiter);
  inLane.byTenant.set(tenant, line);
  if (place === 0) settle(inLane, line);
  inLane.backlogs[waiters.length - 1] = (inLane.backlogs[waiters.length - 1] ?? 0) + 1;
  inLane.length += 1;
  tenant.waiting += 1;
  agent.waiting += 1;
  tenant.waitingAgents.add(agent);
  queue.byTicket.set(ticket.id, waiter);
  if (waiter.isPromoted) queue.promoted.add(waiter);
  if (ticket.parents.length > 0) queue.nested.add(waiter);
}

/** Takes a waiter out. One that is not in the queue changes nothing. */
export function dequeue(queue: Queue, waiter: Waiter): void {
  if (!queue.byTicket.delete(waiter.ticket.id)) return;
  const { lane, tenant, agent } = waiter;
  const inLane = queue.lanes[lane];
  queue.promoted.delete(waiter);
  queue.nested.delete(waiter);
  tenant.waiting -= 1;
  agent.waiting -= 1;
  if (agent.waiting === 0) tenant.waitingAgents.delete(agent);
  const line = inLane.byTenant.get(tenant);
  if (line === undefined) return;
  const { waiters } = line;
  const place = placeOf(waiters, waiter, compareWaiters);
  waiters.splice(place, 1);
  inLane.length -= 1;
  inLane.backlogs[waiters.length] = (inLane.backlogs[waiters.length] ?? 0) - 1;
  if (waiters.length === 0) {
    inLane.byTenant.delete(tenant);
    inLane.lines.splice(inLane.lines.indexOf(line), 1);
  } else if (place === 0) {
    settle(inLane, line);
  }
}

/** Puts the lines of a tenant, whose service has changed, where they belong now. */
export function resettle(queue: Queue, tenant: TenantAccount): void {
  if (tenant.waiting === 0) return;
  for (const lane of LANES) {
    const line = queue.lanes[lane].byTenant.get(tenant);
    if (line !== undefined) settle(queue.lanes[lane], line);
  }
}

/** Sorts the lines of a lane, after the service of several tenants changed. */
export function resettleAll({ lines }: LaneQueue): void {
  lines.sort(compareLines);
}

function settle({ lines }: LaneQueue, line: Line): void {
  const from = lines.indexOf(line);
  if (from >= 0) lines.splice(from, 1);
  lines.splice(placeOf(lines, line, compareLines), 0, line);
}

/** Searches by halves for the index of the first of the sorted items that does not stand before `item`. */
export function placeOf<Item>(
  items: readonly Item[],
  item: Item,
  compare: (a: Item, b: Item) => number,
): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const other = items[middle];
    if (other !== undefined && compare(other, item) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function queueLength(queue: Queue): number {
  return queue.byTicket.size;
}

/** Counts the waiters of one lane. */
export function laneLength(queue: Queue, lane: Lane): number {
  return queue.lanes[lane].length;
}

/** Lists the lanes below `lane`, the lowest first. */
export function lanesBelow(lane: Lane): Lane[] {
  return LANES.slice(LANES.indexOf(lane) + 1).toReversed();
}
