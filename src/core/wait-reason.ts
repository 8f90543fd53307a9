import type { InstantMs, TicketId } from './words/ids.ts';
import type { Demand } from './words/usage.ts';
import { allows } from './parts/breaker.ts';
import type { Outlook, QueuePosition, WaitCause, WaitReason } from './parts/decision-log.ts';
import { isPassedOver } from './parts/pass-over.ts';
import type { Waiter } from './parts/queue.ts';
import { blockBy, blockOf, memberSlotsMaxAt, roomAt, slotsMaxAt, slotsUsedAt } from './capacity.ts';
import { foreseenWaitMs, isStalled, quietMs, waitersAhead } from './estimate.ts';
import type { ScopeLimiter } from './limiter.ts';
import type { Member } from './member.ts';
import { notExcluded } from './members.ts';
import { isUnderCap } from './order.ts';
import { blockFor, scopesHolding } from './scope-holds.ts';
import { aboutCalls } from './scopes.ts';
import { NEVER, type GroupState } from './state.ts';

/** Returns the position of a ticket, its wait reason and, if possible, its expected wait. */
export function queuePlace(state: GroupState, ticketId: TicketId, now: InstantMs): QueuePosition {
  const waiter = state.queue.byTicket.get(ticketId);
  if (waiter === undefined) return { position: 0, estimateMs: null, waitsFor: null, quietMs: null };
  const position = waitersAhead(state, waiter);
  const { estimateMs, ...waitsFor } = outlookOf(state, waiter, position, now);
  return {
    position,
    estimateMs,
    waitsFor,
    quietMs: estimateMs === null ? stalledMs(state, now) : null,
  };
}

/** How long no call has ended, if that prevents an estimate of waits. null if calls end, or if none runs. */
export function stalledMs(state: GroupState, now: InstantMs): number | null {
  if (state.slotsInUse === 0 || !isStalled(state, now)) return null;
  const forMs = quietMs(state, now);
  return Number.isFinite(forMs) ? Math.round(forMs) : null;
}

/** Returns why a waiter with `ahead` waiters before it waits now, and how much longer it probably will. */
export function outlookOf(
  state: GroupState,
  waiter: Waiter,
  ahead: number,
  now: InstantMs,
): Outlook {
  const reason = waitReason(state, waiter, now);
  return { ...reason, estimateMs: estimateBy(reason, state, waiter, ahead, now) };
}

function estimateBy(
  { cause }: WaitReason,
  state: GroupState,
  waiter: Waiter,
  ahead: number,
  now: InstantMs,
): number | null {
  const inTurnMs = (): number | null => foreseenWaitMs(state, ahead, now);
  switch (cause) {
    // An operator ends the first of these. The ends that the others depend on are not counted.
    case 'operator_pause':
    case 'cap':
    case 'elsewhere':
      return null;
    case 'upstream_pause':
    case 'breaker':
    case 'members_out':
      return notBefore(blockFor(state, waiter.ticket, now)?.until ?? NEVER, inTurnMs(), now);
    case 'settling':
      return notBefore(state.grantsFrom, inTurnMs(), now);
    case 'slots': {
      const isOfScope = scopesHolding(state, waiter, now).length > 0;
      return isOfScope ? null : foreseenWaitMs(state, ahead, now, 1);
    }
    case 'rates':
      return inTurnMs();
    case 'member':
      return notBefore(waiter.heldOutUntil ?? now, 0, now);
    case 'order': {
      const doOthersHold = ahead > 0 && state.slotsInUse > 0;
      return doOthersHold && isStalled(state, now) ? null : inTurnMs();
    }
  }
}

/** Extends a wait at least until an instant. null if its end is unknown. */
function notBefore(until: InstantMs, waitMs: number | null, now: InstantMs): number | null {
  if (waitMs === null || until === NEVER) return null;
  return Math.max(waitMs, Math.round(until - now), 0);
}

const CAUSE_OF_BLOCK = {
  paused: 'upstream_pause',
  breaker_open: 'breaker',
  members_out: 'members_out',
} as const;

function hasSlots(
  state: GroupState,
  members: readonly Member[],
  { slots }: Demand,
  now: InstantMs,
): boolean {
  if (state.slotsInUse + slots > slotsMaxAt(state, now)) return false;
  return members.some(
    (member) => slotsUsedAt(state, member) + slots <= memberSlotsMaxAt(member, now),
  );
}

function reasonOfScope(limiter: ScopeLimiter, now: InstantMs): WaitReason {
  const { controls } = limiter;
  const block = blockBy(controls, now);
  const cause = allows(controls.breaker, now) ? 'slots' : 'breaker';
  return { cause: block === null ? cause : CAUSE_OF_BLOCK[block.reason], ...aboutCalls(limiter) };
}

/**
 * Returns why a waiter cannot be granted now. Of several reasons it is the one that the ends of other calls cannot
 * resolve.
 */
export function waitReason(state: GroupState, waiter: Waiter, now: InstantMs): WaitReason {
  if (state.settings.paused) return { cause: 'operator_pause' };
  const members = notExcluded(state, waiter.ticket);
  const [sole, other] = members;
  const about = sole === undefined || other !== undefined ? {} : aboutCalls(sole);
  const block = blockOf(members, now);
  if (block?.reason === 'members_out') return { cause: 'members_out' };
  if (block !== null) return { cause: CAUSE_OF_BLOCK[block.reason], ...about };
  if (members.every(({ controls }) => !allows(controls.breaker, now))) {
    return { cause: 'breaker', ...about };
  }
  if (state.grantsFrom > now) return { cause: 'settling' };
  const [scope] = scopesHolding(state, waiter, now);
  if (scope !== undefined) return reasonOfScope(scope, now);
  const cause = causeOfAll(state, waiter, members, now);
  const isLearned = cause === 'slots' && sole?.controls.ceiling.slots !== null;
  return { cause, ...(isLearned && about) };
}

/** Returns why a waiter waits if neither its upstreams nor its scopes stop it. */
function causeOfAll(
  state: GroupState,
  waiter: Waiter,
  members: readonly Member[],
  now: InstantMs,
): WaitCause {
  if (!isUnderCap(state, waiter)) return 'cap';
  if (!hasSlots(state, members, waiter.demand, now)) return 'slots';
  if (members.every((member) => roomAt(state, member, waiter.demand, now) > now)) return 'rates';
  if (isPassedOver(state.passedOver, waiter.ticket, now)) return 'elsewhere';
  return waiter.heldOutUntil === null ? 'order' : 'member';
}
