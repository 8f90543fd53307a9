import { earlier, type InstantMs } from './words/ids.ts';
import type { Rejection } from './words/rejection.ts';
import type { PlacedBy } from './parts/decision-log.ts';
import { demandOf } from './parts/demand.ts';
import { queueLength, type Waiter } from './parts/queue.ts';
import { memberSlotsLearned } from './capacity.ts';
import type { Member } from './member.ts';
import { isSplit } from './members.ts';
import { nextWaiter } from './order.ts';
import { findOvertaker } from './overtaking.ts';
import { keptAwayUntil, placeFor } from './placing.ts';
import { rejectionOfTooLarge, rejectionOfUnaffordable } from './rejections.ts';
import { NEVER, type GroupState } from './state.ts';

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
