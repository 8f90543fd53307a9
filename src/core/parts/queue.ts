import { after, instant, type InstantMs, type LeaseId, type TicketId } from '../words/ids.ts';
import { LANES, type Lane, type Ticket, type Demand } from '../words/ticket.ts';
import { TOMBSTONE_TTL_MS, TOMBSTONES_MAX } from '../words/settings.ts';
import type { AgentAccount, TenantAccount } from './accounts.ts';
import type { WaitReason } from './decision-log.ts';
import { BoundedMap } from './bounded-map.ts';

/** The queue of a group. Also the pools whose calls are passed over in it, and the tickets that have ended. */

/** A ticket's entry in the queue. */
export interface Waiter {
  /** Replaced when the names in the body are read. */
  ticket: Ticket;
  readonly leaseId: LeaseId;
  /** Its demand, by what was known when it was last considered for a grant. */
  demand: Demand;
  readonly tenant: TenantAccount;
  readonly agent: AgentAccount;
  /** When its wait here began. After a reset, the instant at which its call reached Headgate. */
  readonly arrivedAt: InstantMs;
  /** Its first position, counted from 0, and its wait reason. null if it was granted at once. */
  arrival: ({ readonly position: number } & WaitReason) | null;
  readonly sequence: number;
  readonly deadlineAt: InstantMs;
  /** Its place among the waiters of its tenant (see `order.ts`). It never changes, so ageing needs no sorting. */
  readonly age: InstantMs;
  lane: Lane;
  /** Whether an operator moved it to the front, or it was granted here before. */
  isPromoted: boolean;
  /**
   * The end of its parked acquire call. null if none is parked. Then the waiter keeps its place but gets no slot,
   * because its caller may be gone.
   */
  sliceEndsAt: InstantMs | null;
  /** Whether its caller lost an answer. It is then granted only behind a write. */
  isAnew: boolean;
  /** When it is removed unless its caller repeats the acquire call. */
  orphanAt: InstantMs;
  /** How long it waits for its affine member while another one has room. null if it never had to. */
  heldOutUntil: InstantMs | null;
}

/** The waiters of one tenant in one lane, oldest first. Never empty. */
export interface Line {
  readonly lane: Lane;
  readonly tenant: TenantAccount;
  readonly waiters: Waiter[];
}

export interface LaneQueue {
  /** Sorted by service, so that few lines need to be compared. See `compareLines`. */
  readonly lines: Line[];
  readonly byTenant: Map<TenantAccount, Line>;
  /** At each index, the number of tenants with more than that many waiters here. */
  readonly backlogs: number[];
  length: number;
}

/** The queue: in each lane, one line per tenant with waiters. */
export interface Queue {
  readonly lanes: Readonly<Record<Lane, LaneQueue>>;
  readonly byTicket: Map<TicketId, Waiter>;
  readonly promoted: Set<Waiter>;
  /** Waiters of nested calls, in order of arrival. */
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

/** Compares waiters of one tenant, by age and then by arrival. */
export function compareWaiters(a: Waiter, b: Waiter): number {
  return a.age - b.age || a.sequence - b.sequence;
}

/** Compares lines of one lane, by service and then by the oldest waiter. */
export function compareLines(a: Line, b: Line): number {
  const [one, two] = [a.tenant.shares[a.lane].service, b.tenant.shares[b.lane].service];
  if (one !== two) return one - two;
  const [oldest] = a.waiters;
  const [other] = b.waiters;
  return oldest === undefined || other === undefined ? 0 : compareWaiters(oldest, other);
}

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

/** Removes a waiter. A waiter that is not in the queue changes nothing. */
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

/** Moves the lines of a tenant to their new places after its service changed. */
export function resettle(queue: Queue, tenant: TenantAccount): void {
  if (tenant.waiting === 0) return;
  for (const lane of LANES) {
    const line = queue.lanes[lane].byTenant.get(tenant);
    if (line !== undefined) settle(queue.lanes[lane], line);
  }
}

/** Sorts the lines of a lane after the service of several tenants changed. */
export function resettleAll({ lines }: LaneQueue): void {
  lines.sort(compareLines);
}

function settle({ lines }: LaneQueue, line: Line): void {
  const from = lines.indexOf(line);
  if (from >= 0) lines.splice(from, 1);
  lines.splice(placeOf(lines, line, compareLines), 0, line);
}

/** Finds by bisection the index of the first item that is not before `item`. */
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

export function laneLength(queue: Queue, lane: Lane): number {
  return queue.lanes[lane].length;
}

/** Lists the lanes below `lane`, lowest first. */
export function lanesBelow(lane: Lane): Lane[] {
  return LANES.slice(LANES.indexOf(lane) + 1).toReversed();
}

/**
 * Full pools, each with the time until which calls that also need slots there are passed over here. Without it, a slot
 * that one of these calls returns would go to the next of them. That call would be declined there and return the slot
 * too. All of them would move to the other queue, one round trip each, while the slot is idle.
 */
export type FullPool = BoundedMap<string, InstantMs>;

const POOLS_MAX = 100;

/**
 * Maximum time for which calls are passed over, in milliseconds. Then one of them checks again, because estimates may
 * be wrong.
 */
const PASS_OVER_MS_MAX = 5_000;

export function nothingPassedOver(): FullPool {
  return new BoundedMap(POOLS_MAX);
}

/** Passes over calls that need slots of a pool which is full for about `forMs`. */
export function passOver(passedOver: FullPool, pool: string, forMs: number, now: InstantMs): void {
  passedOver.set(pool, after(now, Math.min(PASS_OVER_MS_MAX, Math.max(0, forMs))));
}

export function isPassedOver(passedOver: FullPool, { needs }: Ticket, now: InstantMs): boolean {
  if (passedOver.size === 0 || needs === undefined) return false;
  return needs.some((pool) => (passedOver.get(pool) ?? -Infinity) > now);
}

/** Removes expired entries. Returns when the next one expires, Infinity if there is none. */
export function endPassedOver(passedOver: FullPool, now: InstantMs): InstantMs {
  let next = Infinity;
  for (const [pool, until] of passedOver.entries()) {
    if (until <= now) passedOver.delete(pool);
    else next = Math.min(next, until);
  }
  return instant(next);
}

/**
 * Ids of ended attempts and cancelled tickets. Each is remembered for at least the TTL, and until others have ended for
 * the same time again. It is forgotten earlier only if there are too many.
 *
 * Ids are kept in two generations, and the older one is forgotten as a whole. Removing the oldest ids one by one
 * becomes slower with their number, because a Set or Map scans the removed entries at its front again until it is
 * rebuilt.
 */
export class Tombstones {
  #recent = new Set<string>();
  #older = new Set<string>();
  /** The instant at which every id of the older generation has reached its TTL. */
  #recentUntil = instant(0);

  /** An id that ended twice may count twice. */
  get size(): number {
    return this.#recent.size + this.#older.size;
  }

  has(id: string): boolean {
    return this.#recent.has(id) || this.#older.has(id);
  }

  /** Remembers an id from `now` on, even if it is already known. */
  add(id: string, now: InstantMs): void {
    if (now >= this.#recentUntil || this.#recent.size >= TOMBSTONES_MAX / 2) {
      this.#older = this.#recent;
      this.#recent = new Set();
      this.#recentUntil = after(now, TOMBSTONE_TTL_MS);
    }
    this.#recent.add(id);
  }
}
