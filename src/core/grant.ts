import type { InstantMs } from './words/ids.ts';
import { noteServiceOf } from './parts/accounts.ts';
import { isCovered, isOutlivingReported, markOnDisk, noteAwaited } from './parts/bound.ts';
import type { PlacedBy } from './parts/decision-log.ts';
import { takeVacated } from './parts/next-holders.ts';
import { noteLaneGrant } from './parts/lanes.ts';
import { dequeue, type Waiter } from './parts/queue.ts';
import type { Effect } from './events.ts';
import { mayInherit } from './next-holders.ts';
import { openLease } from './leases.ts';
import { leave, rejected, waitedFor } from './leave.ts';
import { prefetchFor } from './prefetching.ts';
import type { Member } from './member.ts';
import { isOverdrawn, isSplit, memberOf, noteAffinity } from './members.ts';
import { findPassage } from './nesting.ts';
import { levelHeld } from './order.ts';
import { anyMember, placedAt } from './placing.ts';
import { rejectionOfUnaffordable } from './rejections.ts';
import { reserveFor } from './reservation.ts';
import type { GroupState, ActiveLease } from './state.ts';
import { noteGrant } from './stats.ts';
import { nextTurn } from './queue-step.ts';
import { noteGranted } from './upstream-signals.ts';
import { checkLimit, checkMark } from './violations.ts';

export function pump(state: GroupState, now: InstantMs, effects: Effect[]): void {
  do grantInTurn(state, now, effects);
  while (passNested(state, now, effects));
  if (!state.settings.isDryRun) return;
  for (const waiter of state.queue.byTicket.values()) {
    if (waiter.sliceEndsAt !== null) passInDryRun(state, waiter, now, effects);
  }
}

/** Grants slots in scheduling order while there is room for the next waiter. */
function grantInTurn(state: GroupState, now: InstantMs, effects: Effect[]): void {
  for (;;) {
    const turn = nextTurn(state, now);
    if (turn === null) return;
    const { waiter } = turn;
    if (turn.kind === 'grant') {
      grant(state, waiter, { ...turn, slots: waiter.demand.slots, nested: null }, now, effects);
    } else if (state.settings.isDryRun) {
      passInDryRun(state, waiter, now, effects);
    } else {
      leave(state, waiter, rejected(turn.rejection), now, effects);
    }
  }
}

/**
 * Grants nested calls on the slots of their parents, if these have room.
 *
 * @returns whether a waiter left the queue
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
    else {
      const parent = state.leases.get(leaseId);
      if (parent === undefined) continue;
      const nested = { in: leaseId, slots: ticket.slots };
      const member = memberOf(state, parent);
      grant(state, waiter, { member, by: 'sole', slots: 0, nested }, now, effects);
    }
  }
  return hasChanged;
}

/** Grants a call in a dry run, and counts that it would have waited. A call that no member may serve is rejected. */
export function passInDryRun(
  state: GroupState,
  waiter: Waiter,
  now: InstantMs,
  effects: Effect[],
): void {
  const member = anyMember(state, waiter);
  if (member === null) {
    // No member may serve it, now or later.
    const nowhere = { reason: 'members_out', retryAfterMs: null } as const;
    leave(state, waiter, rejected(nowhere), now, effects);
    return;
  }
  state.totals.wouldWait += 1;
  const { slots } = waiter.ticket;
  grant(state, waiter, { member, by: 'dry_run', slots, nested: null }, now, effects);
}

/**
 * Returns the answer that carries a lease. It waits for a write unless the stored bound covers it.
 *
 * @param hasLostAnswer an answer to this caller was lost, so a replaced instance must not answer it any more
 */
export function grantOf(
  state: GroupState,
  lease: ActiveLease,
  now: InstantMs,
  hasLostAnswer = false,
): Extract<Effect, { kind: 'grant' }> {
  const { bound } = state;
  const isReported = !lease.isById || isOutlivingReported(bound);
  const isLeaving = isCovered(bound, now) && isReported && !mustWait(state, hasLostAnswer);
  if (isLeaving) checkMark(state, markOnDisk(bound));
  return leaving(state, lease, isLeaving);
}

/** Whether the answer needs a write, even if the bound covers it. */
function mustWait(state: GroupState, hasLostAnswer: boolean): boolean {
  return state.bound.isStored && (isOverdrawn(state) || hasLostAnswer);
}

function leaving(
  { bound }: GroupState,
  lease: ActiveLease,
  isLeaving: boolean,
): Extract<Effect, { kind: 'grant' }> {
  if (!isLeaving) noteAwaited(bound, lease.id);
  return { kind: 'grant', ticketId: lease.ticketId, lease, isCovered: isLeaving };
}

interface MemberGrant {
  readonly member: Member;
  readonly by: PlacedBy;
  readonly slots: number;
  readonly nested: ActiveLease['nested'];
}

function grant(
  state: GroupState,
  waiter: Waiter,
  { member, by, slots, nested }: MemberGrant,
  now: InstantMs,
  effects: Effect[],
): void {
  const { ticket, leaseId, lane, tenant, agent } = waiter;
  const placed = isSplit(state) ? placedAt(state, waiter, member, by, now) : null;
  dequeue(state.queue, waiter);
  noteLaneGrant(state, lane);
  noteServiceOf(state.accounts, tenant, lane);
  tenant.lastAgentService = agent.service;
  levelHeld(state, tenant, now);
  agent.lastSeenAt = now;
  member.turn = state.turns += 1;
  const { id: ticketId, holder, waitsElsewhere } = ticket;
  // A nested call on its parent's slot uses rates and budgets like any other call.
  const reserved = reserveFor(
    state,
    member,
    waiter.demand,
    { estimate: ticket.estimate, hasWaited: waiter.arrival !== null },
    now,
  );
  const nextHolderOf = mayInherit(waiter) ? takeVacated(state.bound, member.id, leaseId, now) : [];
  const lease: ActiveLease = openLease(
    state,
    {
      id: leaseId,
      ticketId,
      holder,
      lane,
      member: member.id,
      slots,
      nested,
      heirOf: nextHolderOf,
      waitsElsewhere,
      reserved,
      isById: ticket.isById ?? false,
    },
    now,
  );
  checkLimit(state, member, slots, now);
  noteAffinity(state, lease, now);
  // A call that still waits in another group is no probe. Other calls may probe meanwhile.
  if (!waitsElsewhere) noteGranted(member, lease, now);
  noteGrant(state, waiter, lease, placed, now);
  // The answer to a next holder leaves before anything is written.
  const prefetched = nextHolderOf.length > 0 ? null : prefetchFor(state, ticket, now);
  const isPassed = nextHolderOf.length > 0 && !mustWait(state, waiter.isAnew);
  const answer = isPassed ? leaving(state, lease, true) : grantOf(state, lease, now, waiter.isAnew);
  effects.push({
    ...answer,
    ...waitedFor(waiter, now),
    ...(prefetched !== null && { lent: prefetched }),
  });
}
