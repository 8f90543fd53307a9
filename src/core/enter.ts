import { after, instant, later, type InstantMs } from './words/ids.ts';
import { LANES, type Lane, type Ticket } from './words/ticket.ts';
import type { BusyCause, Rejection } from './words/outcome.ts';
import {
  agentAccount,
  agentKeyOf,
  leastAgentService,
  catchUp,
  tenantAccount,
  type Account,
} from './parts/accounts.ts';
import type { WaitCause } from './parts/decision-log.ts';
import { demandOf } from './parts/demand.ts';
import { dequeue, enqueue, queueLength, type Waiter } from './parts/queue.ts';
import { slotsMaxAt } from './capacity.ts';
import { waitersAhead } from './estimate.ts';
import type { Effect, GroupEvent } from './events.ts';
import { grantOf, passInDryRun, pump } from './grant.ts';
import { strikeNextHolders } from './next-holders.ts';
import { attach, freeForOtherKey } from './leases.ts';
import { claimGranted } from './claims.ts';
import {
  leave,
  reject,
  rejected,
  askForNames,
  declineInPlace,
  letGo,
  noteNamesRead,
  park,
  reportPosition,
} from './waiting.ts';
import { waitsForItself } from './nesting.ts';
import { ageOf, expectedWaitMs } from './order.ts';
import { goesByNames, noteCall } from './scopes.ts';
import { rejectionAtDoor, rejectionInQueue } from './rejections.ts';
import type { GroupState } from './state.ts';
import { noteRejectedAtDoor } from './stats.ts';
import { hasEnded } from './orphaned.ts';
import { waitReason } from './outlook.ts';

type AcquireEvent = Extract<GroupEvent, { kind: 'acquire' }>;

/**
 * Handles an acquire call. It is idempotent by lease id. An attempt with a lease gets the same lease with a new
 * attachment, a waiting one keeps its place, and an ended one stays ended.
 */
export function joinQueue(
  state: GroupState,
  event: AcquireEvent,
  now: InstantMs,
  effects: Effect[],
): void {
  const { ticket, leaseId, isAnew = false } = event;
  if (isAnew) strikeNextHolders(state, ticket.id, now);
  // An effect of this step, at the end of the ticket's slice or deadline, already answers this acquire call.
  if (effects.some((effect) => 'ticketId' in effect && effect.ticketId === ticket.id)) return;
  if (hasEnded(state, leaseId, ticket.id)) {
    effects.push({ kind: 'gone', ticketId: ticket.id });
    return;
  }
  const lease = state.leases.get(leaseId);
  if (lease?.phase === 'held') {
    // Its call has not begun, or its caller would not repeat the acquire call. A lease held by id may have begun.
    if (!lease.isById) lease.named = lease.member;
    attach(state, lease, now);
    effects.push(grantOf(state, lease, now, isAnew));
    return;
  }
  if (lease !== undefined) {
    // An operator revoked it, so no call may begin with it.
    effects.push({ kind: 'gone', ticketId: ticket.id });
    return;
  }
  const known = state.queue.byTicket.get(ticket.id);
  if (known !== undefined && known.leaseId !== leaseId) {
    leave(state, known, { kind: 'left' }, now, effects); // an earlier attempt, given up
  } else if (known !== undefined) {
    noteNamesRead(state, known, event, now);
    park(state, known, event, now);
    askForNames(state, now, effects);
    pump(state, now, effects);
    if (ticket.isTry) declineInPlace(state, known, now, effects);
    else if (known.sliceEndsAt !== null) letGo(state, known, event, now, effects);
    return;
  }
  const claimed = claimGranted(state, event, now);
  if (claimed !== null) {
    effects.push(grantOf(state, claimed, now, isAnew));
    return;
  }
  // Names in the body decide whether the call is held, so the caller must read them first.
  if (ticket.holder.isUnread === true && goesByNames(state, now)) {
    effects.push({ kind: 'unread', ticketId: ticket.id });
    return;
  }
  if (needsSession(state, ticket, now)) {
    effects.push({ kind: 'unread', ticketId: ticket.id, of: 'session' });
    return;
  }
  noteCall(state, ticket.holder, now);
  freeForOtherKey(state, ticket.holder, now);
  const { isDryRun } = state.settings;
  const rejection = rejectionAtDoor(state, ticket);
  if (rejection !== null && !isDryRun) {
    noteRejectedAtDoor(state, event, rejection, now);
    return reject(state, ticket.id, rejection, effects);
  }
  // A declined `isTry` call leaves no trace, so slots that are free for other waiters must be granted before it.
  if (ticket.isTry) pump(state, now, effects);
  const waiter = newWaiter(state, event, now);
  const revertLevels = lineUp(state, waiter);
  park(state, waiter, event, now);
  if (rejection !== null) passInDryRun(state, waiter, now, effects);
  pump(state, now, effects);
  if (state.queue.byTicket.get(ticket.id) !== waiter) return;
  decide(state, waiter, now, effects);
  if (ticket.isTry) revertLevels();
  if (state.queue.byTicket.get(ticket.id) === waiter) noteWaits(state, waiter, now);
  if (letGo(state, waiter, event, now, effects)) return;
  reportPosition(state, waiter, event, now, effects);
}

/** Whether the session of a new call affects its place: it has to wait, and its tenant has other calls here. */
function needsSession(state: GroupState, ticket: Ticket, now: InstantMs): boolean {
  const { settings, accounts, queue, slotsInUse } = state;
  const { mayNameSession, holder, wait, isTry, slots } = ticket;
  if (mayNameSession !== true || !settings.byAgent || !wait || isTry) return false;
  const tenant = accounts.tenants.get(holder.tenant);
  if (tenant === undefined || tenant.waiting + tenant.slots === 0) return false;
  return queueLength(queue) > 0 || slotsInUse + slots > slotsMaxAt(state, now);
}

/** Notes the latest deadline of the waiters. A later instance settles only if there may be waiters. */
function noteWaits({ bound, queue, grantsFrom }: GroupState, waiter: Waiter, now: InstantMs): void {
  const isAlone = queueLength(queue) === 1 && now >= grantsFrom;
  bound.waitersUntil = isAlone ? waiter.deadlineAt : later(bound.waitersUntil, waiter.deadlineAt);
}

/** Decides what happens to a new call that cannot be granted now. */
function decide(state: GroupState, waiter: Waiter, now: InstantMs, effects: Effect[]): void {
  const { ticket } = waiter;
  if (!ticket.isTry) noteArrival(state, waiter, now);
  if (waitsForItself(state, ticket)) {
    leave(state, waiter, rejected({ reason: 'nested', retryAfterMs: null }), now, effects);
  } else if (ticket.isTry) {
    const waitMs = expectedWaitMs(state, waiter, now);
    leave(state, waiter, { kind: 'declined', waitMs }, now, effects);
  } else {
    const found = rejectionInQueue(state, waiter, now);
    if (found === null) return;
    const rejection =
      found.rejection.reason === 'busy'
        ? withCause(state, waiter, found.rejection, now)
        : found.rejection;
    leave(state, found.evicted ?? waiter, rejected(rejection), now, effects);
  }
}

/**
 * Adds why the call cannot start although slots are free. While the group settles, the retry time is the end of that.
 */
function withCause(
  state: GroupState,
  waiter: Waiter,
  busy: Extract<Rejection, { reason: 'busy' }>,
  now: InstantMs,
): Rejection {
  const { cause } = waitReason(state, waiter, now);
  if (!isBusyCause(cause)) return busy;
  const retryMs = cause === 'settling' ? Math.ceil(state.grantsFrom - now) : busy.retryAfterMs;
  return { ...busy, cause, retryAfterMs: retryMs };
}

const BUSY_CAUSES: ReadonlySet<string> = new Set<BusyCause>([
  'settling',
  'cap',
  'rates',
  'member',
  'order',
  'breaker',
  'elsewhere',
]);

function isBusyCause(cause: WaitCause): cause is BusyCause {
  return BUSY_CAUSES.has(cause);
}

/**
 * Adds a waiter to the queue and levels its tenant and agent with the other waiters. The tenant is levelled in every
 * lane where it does not wait. Otherwise it would bring credit into a lane that was idle.
 *
 * @returns a function that reverts the levelling once the waiter has left
 */
function lineUp(state: GroupState, waiter: Waiter): () => void {
  const { queue, accounts, settings } = state;
  const { tenant, agent } = waiter;
  const shares = [...LANES.map((lane) => tenant.shares[lane]), agent];
  const levels = shares.map(({ service, floor }) => ({ service, floor }));
  const { needs, enqueuedAt } = waiter.ticket;
  // The account was not idle if its call has been waiting in another group since its other calls ended.
  const wasWaiting = ({ activeAt }: Account): boolean =>
    needs !== undefined && enqueuedAt <= activeAt;
  for (const lane of LANES) {
    const { lines, byTenant } = queue.lanes[lane];
    if (byTenant.has(tenant) || wasWaiting(tenant)) continue;
    catchUp(
      tenant.shares[lane],
      lines[0]?.tenant.shares[lane].service ?? accounts.lastService[lane],
    );
  }
  if (settings.byAgent && agent.waiting === 0 && !wasWaiting(agent)) {
    const least = leastAgentService(tenant);
    catchUp(agent, least === Infinity ? tenant.lastAgentService : least);
  }
  enqueue(queue, waiter);
  return () => {
    for (const [index, share] of shares.entries()) Object.assign(share, levels[index]);
  };
}

/** Moves a waiter to a lane, and to the front if it is promoted. Its age stays. */
export function replace(state: GroupState, waiter: Waiter, lane: Lane, isPromoted: boolean): void {
  dequeue(state.queue, waiter);
  waiter.lane = lane;
  waiter.isPromoted = isPromoted;
  enqueue(state.queue, waiter);
}

/** Returns the entry of a new ticket, which is not in the queue yet. */
function newWaiter(state: GroupState, event: AcquireEvent, now: InstantMs): Waiter {
  const { timeoutMs = state.settings.timeoutMs } = event.ticket;
  const ticket = clamp(event.ticket, timeoutMs, now);
  const { holder, enqueuedAt } = ticket;
  const tenant = tenantAccount(state.accounts, holder.tenant);
  const agent = agentAccount(state.accounts, tenant, agentKeyOf(holder), now, enqueuedAt);
  const startedAt = holder.agent === null ? enqueuedAt : (ticket.agentStartedAt ?? agent.startedAt);
  return {
    ticket,
    leaseId: event.leaseId,
    demand: demandOf(state.controls.factors, state.guessRates, ticket),
    tenant,
    agent,
    arrivedAt: arrivalOf(state, ticket, now),
    arrival: null,
    sequence: state.nextSequence++,
    deadlineAt: instant(Math.min(ticket.deadlineAt ?? Infinity, after(enqueuedAt, timeoutMs))),
    age: ageOf(ticket, startedAt, state.settings),
    lane: ticket.lane,
    isPromoted: ticket.hadTurn === true,
    isAnew: false,
    sliceEndsAt: null,
    orphanAt: now,
    heldOutUntil: null,
  };
}

/** While the group settles, a call counts as having arrived when it reached Headgate. */
function arrivalOf({ grantsFrom }: GroupState, ticket: Ticket, now: InstantMs): InstantMs {
  if (now >= grantsFrom) return now;
  return instant(Math.min(now, ticket.enqueuedAt));
}

/**
 * Clamps the time of arrival to the timeout and to now, so that a wrong clock moves no call far ahead or behind. The
 * start of an agent run needs no such bound, because the age credit limits its effect.
 */
function clamp(ticket: Ticket, timeoutMs: number, now: InstantMs): Ticket {
  const enqueuedAt = instant(Math.min(Math.max(ticket.enqueuedAt, now - timeoutMs), now + 1));
  return { ...ticket, enqueuedAt };
}

/** Stores the position and the wait reason of a new call that was not granted at once. */
function noteArrival(state: GroupState, waiter: Waiter, now: InstantMs): void {
  const position = waitersAhead(state, waiter);
  waiter.arrival = { position, ...waitReason(state, waiter, now) };
}
