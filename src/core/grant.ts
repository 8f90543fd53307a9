import { earlier, instant, type InstantMs } from './words/ids.ts';
import { noteServiceOf, noteLaneGrant, isNamedAgent } from './parts/accounts.ts';
import { isCovered, isOutlivingReported, markOnDisk, noteAwaited } from './parts/bound.ts';
import type { PlacedBy } from './parts/decision-log.ts';
import { dequeue, queueLength, type Waiter } from './parts/queue.ts';
import type { Rejection } from './words/outcome.ts';
import { demandOf } from './parts/demand.ts';
import type { CallUsage } from './words/ticket.ts';
import { nextChangeAt, rampSlotsMax } from './parts/pause.ts';
import { exceededBy, fillInTime, isSpare, sparesBeside } from './parts/rates.ts';
import { budgetBlock } from './parts/spend.ts';
import { takeVacated, mayInherit } from './next-holders.ts';
import type { Effect } from './events.ts';
import { openLease } from './leases.ts';
import { leave, rejected, waitedFor } from './waiting.ts';
import { prefetchFor } from './prefetching.ts';
import type { Member } from './member.ts';
import {
  isOverdrawn,
  isSplit,
  memberOf,
  noteAffinity,
  NEVER,
  type GroupState,
  type ActiveLease,
} from './state.ts';
import { findPassage } from './nesting.ts';
import { levelHeld, nextWaiter } from './order.ts';
import { anyMember, placedAt, keptAwayUntil, placeFor } from './placing.ts';
import { rejectionOfUnaffordable, rejectionOfTooLarge } from './rejections.ts';
import { reserveFor } from './reservation.ts';
import { noteGrant, checkLimit, checkMark } from './stats.ts';
import { noteGranted } from './upstream-signals.ts';
import { memberSlotsLearned, roomAt, slotsLearned } from './capacity.ts';

/**
 * Grants slots. Finds the next waiter in scheduling order, or one that may overtake it, and grants while there is room.
 */

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

type QueueStep =
  | {
      readonly kind: 'grant';
      readonly waiter: Waiter;
      readonly member: Member;
      readonly by: PlacedBy;
    }
  /** It is the next waiter, and it can never be granted. */
  | { readonly kind: 'hopeless'; readonly waiter: Waiter; readonly rejection: Rejection };

/**
 * Finds the next waiter that can start, and its member. null if none can start now. A waiter without room blocks the
 * members that it waits for. A waiter that may not use the members with room, or waits for its affine member, blocks
 * none.
 */
export function nextTurn(state: GroupState, now: InstantMs): QueueStep | null {
  state.roomDueAt = NEVER;
  state.overtakingDueAt = NEVER;
  state.heldOutUntil = NEVER;
  for (const member of state.serving) member.heldOut = 0;
  const passedOver = new Set<Waiter>();
  const taken = new Set<Member>();
  while (queueLength(state.queue) > passedOver.size && mayHaveRoom(state, taken)) {
    const waiter = nextWaiter(state, now, passedOver);
    if (waiter === undefined) return null;
    // The group has learned since the call arrived. Estimates from before the first call ended are far too high.
    waiter.demand = demandOf(state.controls.factors, state.guessRates, waiter.ticket);
    const rejection =
      rejectionOfTooLarge(state, waiter.ticket) ?? rejectionOfUnaffordable(state, waiter, now);
    if (rejection !== null) return { kind: 'hopeless', waiter, rejection };
    const placing = placeFor(state, waiter, taken, now);
    switch (placing.kind) {
      case 'now':
        return { kind: 'grant', waiter, member: placing.member, by: placing.by };
      case 'later': {
        state.roomDueAt = earlier(state.roomDueAt, placing.at);
        const next = findOvertaker(state, { waiter, at: placing.at }, now);
        const [member] = placing.members;
        if (next.waiter !== null && member !== undefined) {
          return { kind: 'grant', waiter: next.waiter, member, by: 'sole' };
        }
        state.overtakingDueAt = next.at;
        for (const each of placing.members) taken.add(each);
        break;
      }
      case 'held_out':
        waiter.heldOutUntil ??= placing.until;
        placing.member.heldOut += 1;
        state.heldOutUntil = earlier(state.heldOutUntil, earlier(placing.until, placing.at));
        break;
      case 'nowhere':
        break;
    }
    state.heldOutUntil = earlier(state.heldOutUntil, keptAwayUntil(waiter, now));
    passedOver.add(waiter);
  }
  return null;
}

/** Avoids the search if no waiter can start. */
function mayHaveRoom(state: GroupState, taken: ReadonlySet<Member>): boolean {
  const { settings, slotsInUse, serving } = state;
  if (settings.paused || (isSplit(state) && slotsInUse >= settings.slotsMax)) return false;
  return serving.some(
    (member) => !taken.has(member) && member.slotsInUse < Math.max(1, memberSlotsLearned(member)),
  );
}

/** Maximum number of waiters behind the next one that are considered. */
const LOOKED_AT_MAX = 16;

/** The least that a call uses. If even that is not spare, no waiter is considered. */
const LEAST: CallUsage = { requests: 1, inputTokens: 1, outputTokens: 0 };

/** The next waiter, which lacks only time, and the instant at which it has room. */
interface First {
  readonly waiter: Waiter;
  readonly at: InstantMs;
}

/** The waiter that may overtake. null if there is none before `at`. */
interface Overtaker {
  readonly waiter: Waiter | null;
  readonly at: InstantMs;
}

const NONE: Overtaker = { waiter: null, at: NEVER };

/**
 * Finds a smaller call that uses what the next waiter leaves of the limits and does not delay it. So large calls are
 * not starved, and no spare capacity is wasted.
 */
function findOvertaker(state: GroupState, first: First, now: InstantMs): Overtaker {
  const [member] = state.serving;
  // If the next waiter waits for one of several members, later waiters may use the other members already.
  if (member === undefined || isSplit(state)) return NONE;
  const { settings, controls } = member;
  // Permits of the breaker, probes of a pause and slots of a ramp go to the next waiter.
  const isClosed = controls.breaker.phase === 'closed' && controls.pause.waitMs === 0;
  if (state.settings.isDryRun || first.at === NEVER || !isClosed) return NONE;
  const slotsMax = slotsLearned(state);
  if (rampSlotsMax(controls.pause, slotsMax, now) < slotsMax) {
    return { waiter: null, at: nextChangeAt(controls.pause, slotsMax, now) };
  }
  const expected = { demand: first.waiter.demand, at: first.at };
  const spares = sparesBeside(controls.rates, settings.rates, expected);
  if (!isSpare(settings.rates, spares, LEAST)) return NONE;
  if (!fillInTime(controls.rates, settings.rates, LEAST, expected, now)) return NONE;
  const passedOver = new Set([first.waiter]);
  let soonest: number = NEVER;
  while (passedOver.size <= LOOKED_AT_MAX) {
    const waiter = nextWaiter(state, now, passedOver);
    if (waiter === undefined) break;
    waiter.demand = demandOf(state.controls.factors, state.guessRates, waiter.ticket);
    const isSmall = isSpare(settings.rates, spares, waiter.demand);
    const at = isSmall ? roomBeside(state, member, waiter, first, now) : NEVER;
    if (at <= now) return { waiter, at };
    soonest = Math.min(soonest, at);
    passedOver.add(waiter);
  }
  return { waiter: null, at: instant(soonest) };
}

/** Returns when a waiter has room that the next waiter does not need. NEVER if not before the next waiter starts. */
function roomBeside(
  state: GroupState,
  member: Member,
  waiter: Waiter,
  first: First,
  now: InstantMs,
): InstantMs {
  const { settings, controls } = member;
  const { rates, budgets } = settings;
  const { demand } = waiter;
  const { slots, usd } = demand;
  const both = slots + first.waiter.demand.slots;
  if (state.slotsInUse + both > slotsLearned(state) || !areUnderCaps(state, waiter, first, both)) {
    return NEVER;
  }
  const usdOfBoth = usd + first.waiter.demand.usd;
  if (usd > 0 && budgetBlock(controls.spend, budgets, usdOfBoth, now) !== null) return NEVER;
  if (waiter.ticket.waitsElsewhere || exceededBy(rates, demand) !== null) return NEVER;
  const at = roomAt(state, member, { ...demand, slots: both }, now);
  const expected = { demand: first.waiter.demand, at: first.at };
  const isInTime = at < first.at && fillInTime(controls.rates, rates, demand, expected, at);
  return isInTime ? at : NEVER;
}

/** Whether the caps of the next waiter still have room for it after the other one has started. */
function areUnderCaps(
  { settings }: GroupState,
  { tenant, agent }: Waiter,
  { waiter: first }: First,
  slots: number,
): boolean {
  if (first.tenant !== tenant) return true;
  if (tenant.slots + slots > settings.slotsMaxEach) return false;
  if (first.agent !== agent || !isNamedAgent(agent)) return true;
  return agent.slots + slots <= settings.slotsMaxEachAgent;
}
