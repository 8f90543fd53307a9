import { isStopped, roomAt, slotsLearned } from './capacity.ts';
import { leastAgentService, lift, noteServiceOf } from './parts/accounts.ts';
import type { Effect, GroupEvent } from './events.ts';
import { estimateWaitMs, waitersAhead } from './estimate.ts';
import { after, instant, type InstantMs, type TicketId } from './words/ids.ts';
import { noteLaneGrant } from './parts/lanes.ts';
import { attach, openLease } from './leases.ts';
import { decline, letGo, reject, turnAway } from './leaving.ts';
import { findPassage, waitsForItself } from './nesting.ts';
import { needOf } from './parts/demand.ts';
import { newWaiter } from './new-waiter.ts';
import { nextWaiter } from './order.ts';
import { findOvertaker } from './overtaking.ts';
import { dequeue, enqueue, queueLength, type Waiter } from './parts/queue.ts';
import { ORPHAN_GRACE_MS } from './words/settings.ts';
import { NEVER, type GroupState, type Lease } from './state.ts';
import {
  refuseAtDoor,
  refuseStopped,
  refuseTooLarge,
  refuseToWait,
  refuseUnaffordable,
  timeoutOf,
} from './refuse.ts';
import { noteArrival, noteGrant, noteRefusedAtDoor } from './stats.ts';
import { reserveFor } from './reservation.ts';
import { noteGranted } from './upstream-signals.ts';
import { LANES, type Lane } from './words/ticket.ts';

type Acquire = Extract<GroupEvent, { kind: 'acquire' }>;

/**
 * Takes a ticket's ask in. Idempotent by the lease id: an attempt that has a lease gets the same one
 * under a new attachment, one that waits keeps its place, one that ended stays ended.
 */
export function joinQueue(
  state: GroupState,
  event: Acquire,
  now: InstantMs,
  effects: Effect[],
): void {
  const { ticket, leaseId } = event;
  // What fell due for the ticket at this instant, its slice or its deadline, answers this ask too.
  if (effects.some((effect) => 'ticketId' in effect && effect.ticketId === ticket.id)) return;
  if (state.tombstones.has(leaseId) || state.tombstones.has(ticket.id)) {
    effects.push({ kind: 'gone', ticketId: ticket.id });
    return;
  }
  const lease = state.leases.get(leaseId);
  if (lease?.phase === 'held') {
    attach(state, lease, now, effects);
    effects.push({ kind: 'grant', ticketId: ticket.id, lease });
    return;
  }
  if (lease !== undefined) {
    // An operator has taken it away: nobody may begin with it any more.
    effects.push({ kind: 'gone', ticketId: ticket.id });
    return;
  }
  const known = state.queue.byTicket.get(ticket.id);
  if (known !== undefined && known.leaseId !== leaseId) {
    letGo(state, known, now); // an earlier attempt, given up
  } else if (known !== undefined) {
    park(state, known, event, now);
    pump(state, now, effects);
    return;
  }
  const { isDryRun } = state.settings;
  const refusal = refuseAtDoor(state, ticket);
  if (refusal !== null && !isDryRun) {
    noteRefusedAtDoor(state, event, refusal, now);
    return reject(state, ticket.id, refusal, effects);
  }
  // A try that is declined leaves no trace: so it must not be it that finds a slot free for others.
  if (ticket.isTry) pump(state, now, effects);
  const waiter = newWaiter(state, event, now);
  const unlevel = lineUp(state, waiter);
  park(state, waiter, event, now);
  if (refusal !== null) letPass(state, waiter, now, effects);
  pump(state, now, effects);
  if (state.queue.byTicket.get(ticket.id) !== waiter) return;
  decide(state, waiter, now, effects);
  if (ticket.isTry) unlevel();
}

/** What becomes of a newcomer that cannot be granted now. */
function decide(state: GroupState, waiter: Waiter, now: InstantMs, effects: Effect[]): void {
  const { ticket } = waiter;
  const { settings } = state;
  if (!ticket.isTry) noteArrival(state, waiter, now);
  if (waitsForItself(state, ticket)) {
    turnAway(state, waiter, { reason: 'nested', retryAfterMs: null }, now, effects);
  } else if (ticket.isTry || (isStopped(state, now) && ticket.holdsNarrower)) {
    // It waits without what it holds, unless it would wait in vain. An operator's pause may end at any time.
    const mayWait = ticket.isTry || settings.paused;
    const stopped = mayWait ? null : refuseStopped(state, waiter, now);
    if (stopped === null) decline(state, waiter, now, effects);
    else turnAway(state, waiter, stopped, now, effects);
  } else {
    const refused = refuseToWait(state, waiter, now);
    if (refused === null) return;
    turnAway(state, refused.evicted ?? waiter, refused.rejection, now, effects);
  }
}

/** Grants whatever can be granted. */
export function pump(state: GroupState, now: InstantMs, effects: Effect[]): void {
  do grantInTurn(state, now, effects);
  while (passNested(state, now, effects));
  if (!state.settings.isDryRun) return;
  for (const waiter of state.queue.byTicket.values()) {
    if (waiter.sliceEndsAt !== null) letPass(state, waiter, now, effects);
  }
}

/** Grants as long as there is room for whose turn it is. A call that does not fit bars whom it would wait for. */
function grantInTurn(state: GroupState, now: InstantMs, effects: Effect[]): void {
  state.roomDueAt = NEVER;
  state.overtakingDueAt = NEVER;
  while (queueLength(state.queue) > 0 && mayHaveRoom(state)) {
    const waiter = nextWaiter(state);
    if (waiter === undefined) break;
    // The group has learned since: guesses that were made before the first call ended are far too high.
    waiter.need = needOf(state.controls.factors, state.settings.rates, waiter.ticket);
    const hopeless = refuseTooLarge(state, waiter.ticket) ?? refuseUnaffordable(state, waiter, now);
    if (hopeless !== null) {
      if (state.settings.isDryRun) letPass(state, waiter, now, effects);
      else turnAway(state, waiter, hopeless, now, effects);
      continue;
    }
    const at = roomAt(state, waiter.need, now);
    const next = at > now ? findOvertaker(state, { waiter, at }, now) : { waiter, at };
    state.roomDueAt = at > now ? at : NEVER;
    if (next.waiter === null) {
      state.overtakingDueAt = next.at;
      break;
    }
    grant(state, next.waiter, next.waiter.need.slots, now, effects);
  }
}

/**
 * Lets those pass on the slots of the calls that they are made for who find room there.
 *
 * @returns whether anybody left the queue
 */
function passNested(state: GroupState, now: InstantMs, effects: Effect[]): boolean {
  if (state.settings.nested === 'reject' || state.settings.isDryRun) return false;
  let hasChanged = false;
  for (const waiter of state.queue.nested) {
    const { ticket, sliceEndsAt } = waiter;
    const leaseId = sliceEndsAt === null ? null : findPassage(state, ticket);
    if (leaseId === null) continue;
    hasChanged = true;
    const unaffordable = refuseUnaffordable(state, waiter, now);
    if (unaffordable !== null) turnAway(state, waiter, unaffordable, now, effects);
    else grant(state, waiter, 0, now, effects, { in: leaseId, slots: ticket.slots });
  }
  return hasChanged;
}

/** Spares the search for who goes next where nobody can go. */
function mayHaveRoom(state: GroupState): boolean {
  return !state.settings.paused && state.slotsInUse < Math.max(1, slotsLearned(state));
}

/** In a dry run nobody waits: it is only counted who would have. */
function letPass(state: GroupState, waiter: Waiter, now: InstantMs, effects: Effect[]): void {
  state.totals.wouldWait += 1;
  grant(state, waiter, waiter.ticket.slots, now, effects);
}

function grant(
  state: GroupState,
  waiter: Waiter,
  slots: number,
  now: InstantMs,
  effects: Effect[],
  nested: Lease['nested'] = null,
): void {
  const { ticket, leaseId, lane, tenant, agent } = waiter;
  dequeue(state.queue, waiter);
  noteLaneGrant(state, lane);
  noteServiceOf(state.accounts, tenant, lane);
  tenant.lastAgentService = agent.service;
  agent.lastSeenAt = now;
  const { id: ticketId, holder, waitsElsewhere } = ticket;
  // A call that passes on its parent's slot calls the upstream all the same.
  const reserved = reserveFor(state, waiter.need, ticket.estimate?.inputTokens ?? null, now);
  const lease: Lease = openLease(
    state,
    { id: leaseId, ticketId, holder, lane, slots, nested, waitsElsewhere, reserved },
    now,
  );
  // One that still waits in a wider group probes nothing: others may meanwhile.
  if (!waitsElsewhere) noteGranted(state, lease, now);
  noteGrant(state, waiter, lease, now);
  effects.push({ kind: 'save', lease }, { kind: 'grant', ticketId, lease });
}

/** Ends slices, drops waiters whose caller has gone, rejects those at their deadline. */
export function expireWaiters(state: GroupState, now: InstantMs, effects: Effect[]): void {
  if (now < state.waitersDueAt) return;
  state.waitersDueAt = NEVER;
  for (const waiter of state.queue.byTicket.values()) {
    if (now >= waiter.deadlineAt) {
      turnAway(state, waiter, timeoutOf(state, waiter.ticket, now), now, effects);
    } else if (waiter.sliceEndsAt === null && now >= waiter.orphanAt) {
      letGo(state, waiter, now);
    } else {
      if (waiter.sliceEndsAt !== null && now >= waiter.sliceEndsAt) {
        waiter.sliceEndsAt = null;
        // From now on: where the process was held up, the slice may have been over for long.
        waiter.orphanAt = after(now, ORPHAN_GRACE_MS);
        const { id: ticketId } = waiter.ticket;
        effects.push({ kind: 'pending', ticketId, ...standing(state, ticketId, now) });
      }
      noteDue(state, waiter);
    }
  }
}

/**
 * Puts a waiter into the queue, its tenant and agent level with those who wait beside them: the tenant in
 * every lane where it does not wait, or it would bring credit into one that nobody used for a while.
 *
 * @returns takes that levelling back, once the waiter has left
 */
function lineUp(state: GroupState, waiter: Waiter): () => void {
  const { queue, accounts, settings } = state;
  const { tenant, agent } = waiter;
  const shares = [...LANES.map((lane) => tenant.shares[lane]), agent];
  const levels = shares.map(({ service, floor }) => ({ service, floor }));
  for (const lane of LANES) {
    const { lines, byTenant } = queue.lanes[lane];
    if (byTenant.has(tenant)) continue;
    lift(tenant.shares[lane], lines[0]?.tenant.shares[lane].service ?? accounts.lastService[lane]);
  }
  if (settings.byAgent && agent.waiting === 0) {
    const least = leastAgentService(tenant);
    lift(agent, least === Infinity ? tenant.lastAgentService : least);
  }
  enqueue(queue, waiter);
  return () => {
    for (const [index, share] of shares.entries()) Object.assign(share, levels[index]);
  };
}

/** Puts somebody who waits into a lane, and before all others if it is promoted. Its age stays. */
export function replace(state: GroupState, waiter: Waiter, lane: Lane, isPromoted: boolean): void {
  dequeue(state.queue, waiter);
  waiter.lane = lane;
  waiter.isPromoted = isPromoted;
  enqueue(state.queue, waiter);
}

/** Where a ticket stands, and how long it may take from there. */
export function standing(
  state: GroupState,
  ticketId: TicketId,
  now: InstantMs,
): { readonly position: number; readonly estimateMs: number } {
  const waiter = state.queue.byTicket.get(ticketId);
  const position = waiter === undefined ? 0 : waitersAhead(state, waiter);
  return { position, estimateMs: estimateWaitMs(state, position, now) };
}

function park(state: GroupState, waiter: Waiter, event: Acquire, now: InstantMs): void {
  waiter.sliceEndsAt = after(now, event.sliceMs);
  waiter.agent.lastSeenAt = now;
  noteDue(state, waiter);
}

function noteDue(state: GroupState, waiter: Waiter): void {
  state.waitersDueAt = instant(
    Math.min(state.waitersDueAt, waiter.deadlineAt, waiter.sliceEndsAt ?? waiter.orphanAt),
  );
}
