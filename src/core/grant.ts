import type { InstantMs } from './words/ids.ts';
import { noteServiceOf } from './parts/accounts.ts';
import { isCovered, markOnDisk, noteAwaited } from './parts/bound.ts';
import { demandOf } from './parts/demand.ts';
import { takeVacated } from './parts/heirs.ts';
import { noteLaneGrant } from './parts/lanes.ts';
import { dequeue, queueLength, type Waiter } from './parts/queue.ts';
import { roomAt, slotsLearned } from './capacity.ts';
import type { Effect } from './events.ts';
import { mayInherit } from './heirs.ts';
import { openLease } from './leases.ts';
import { leave, rejected } from './leave.ts';
import { lendTo } from './lending.ts';
import { findPassage } from './nesting.ts';
import { nextWaiter } from './order.ts';
import { findOvertaker } from './overtaking.ts';
import { rejectionOfTooLarge, rejectionOfUnaffordable } from './rejections.ts';
import { reserveFor } from './reservation.ts';
import { NEVER, type GroupState, type Lease } from './state.ts';
import { noteGrant } from './stats.ts';
import { noteGranted } from './upstream-signals.ts';
import { checkLimit, checkMark } from './violations.ts';

/** Grants whatever can be granted. */
export function pump(state: GroupState, now: InstantMs, effects: Effect[]): void {
  do grantInTurn(state, now, effects);
  while (passNested(state, now, effects));
  if (!state.settings.isDryRun) return;
  for (const waiter of state.queue.byTicket.values()) {
    if (waiter.sliceEndsAt !== null) letPass(state, waiter, now, effects);
  }
}

/**
 * Grants as long as there is room for whose turn it is. A call that does not fit bars whom it would wait for.
 */
function grantInTurn(state: GroupState, now: InstantMs, effects: Effect[]): void {
  state.roomDueAt = NEVER;
  state.overtakingDueAt = NEVER;
  while (queueLength(state.queue) > 0 && mayHaveRoom(state)) {
    const waiter = nextWaiter(state);
    if (waiter === undefined) break;
    // The group has learned since: guesses that were made before the first call ended are far too high.
    waiter.demand = demandOf(state.controls.factors, state.settings.rates, waiter.ticket);
    const hopeless =
      rejectionOfTooLarge(state, waiter.ticket) ?? rejectionOfUnaffordable(state, waiter, now);
    if (hopeless !== null) {
      if (state.settings.isDryRun) letPass(state, waiter, now, effects);
      else leave(state, waiter, rejected(hopeless), now, effects);
      continue;
    }
    const at = roomAt(state, waiter.demand, now);
    const next = at > now ? findOvertaker(state, { waiter, at }, now) : { waiter, at };
    state.roomDueAt = at > now ? at : NEVER;
    if (next.waiter === null) {
      state.overtakingDueAt = next.at;
      break;
    }
    grant(state, next.waiter, next.waiter.demand.slots, now, effects);
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
    const unaffordable = rejectionOfUnaffordable(state, waiter, now);
    if (unaffordable !== null) leave(state, waiter, rejected(unaffordable), now, effects);
    else grant(state, waiter, 0, now, effects, { in: leaseId, slots: ticket.slots });
  }
  return hasChanged;
}

/** Spares the search for who goes next where nobody can go. */
function mayHaveRoom(state: GroupState): boolean {
  return !state.settings.paused && state.slotsInUse < Math.max(1, slotsLearned(state));
}

/** Grants in a dry run, where nobody waits: it is only counted that this one would have. */
export function letPass(
  state: GroupState,
  waiter: Waiter,
  now: InstantMs,
  effects: Effect[],
): void {
  state.totals.wouldWait += 1;
  grant(state, waiter, waiter.ticket.slots, now, effects);
}

/**
 * Makes the answer that carries a lease. It waits for a write unless the bound covers it by what is on disk.
 *
 * @param asked `anew`: by a caller who has lost an answer, and has said so. An instance that was replaced must not
 *   answer him any more
 */
export function grantOf(
  state: GroupState,
  lease: Lease,
  now: InstantMs,
  asked: 'anew' | 'again' = 'again',
): Extract<Effect, { kind: 'grant' }> {
  const { bound } = state;
  const isLeaving = isCovered(bound, now) && !mustWait(state, asked === 'anew');
  if (isLeaving) checkMark(state, markOnDisk(bound));
  return leaving(state, lease, isLeaving);
}

/** Whether an answer with a lease leaves behind a write, whatever the bound covers. */
function mustWait({ bound, ahead }: GroupState, isAnew: boolean): boolean {
  return bound.isStored && (ahead.isOverdrawn || isAnew);
}

function leaving(
  { bound }: GroupState,
  lease: Lease,
  isLeaving: boolean,
): Extract<Effect, { kind: 'grant' }> {
  if (!isLeaving) noteAwaited(bound, lease.id);
  return { kind: 'grant', ticketId: lease.ticketId, lease, isCovered: isLeaving };
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
  const reserved = reserveFor(state, waiter.demand, ticket.estimate?.inputTokens ?? null, now);
  const heirOf = mayInherit(waiter) ? takeVacated(state.bound, leaseId, now) : [];
  const lease: Lease = openLease(
    state,
    { id: leaseId, ticketId, holder, lane, slots, nested, heirOf, waitsElsewhere, reserved },
    now,
  );
  checkLimit(state, slots, now);
  // One that still waits in a wider group probes nothing: others may meanwhile.
  if (!waitsElsewhere) noteGranted(state, lease, now);
  noteGrant(state, waiter, lease, now);
  // What an heir is told leaves before anything is written.
  const lent = heirOf.length > 0 ? null : lendTo(state, ticket, now);
  const isPassed = heirOf.length > 0 && !mustWait(state, waiter.isAnew);
  const asked = waiter.isAnew ? 'anew' : 'again';
  const answer = isPassed ? leaving(state, lease, true) : grantOf(state, lease, now, asked);
  effects.push({ ...answer, ...(lent !== null && { lent }) });
}
