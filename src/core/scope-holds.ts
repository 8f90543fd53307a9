import { instant, later, type InstantMs } from './words/ids.ts';
import type { Holder, Ticket } from './words/ticket.ts';
import { nextChangeAt as breakerChangesAt } from './parts/breaker.ts';
import { slotsMaxNow } from './parts/ceiling.ts';
import { nextChangeAt as pauseChangesAt } from './parts/pause.ts';
import type { Waiter } from './parts/queue.ts';
import {
  blockBy,
  memberBlockOf,
  memberSlotsLearned,
  roomByLessons,
  type Block,
} from './capacity.ts';
import type { Member } from './member.ts';
import { notExcluded } from './members.ts';
import type { ScopeLimiter } from './limiter.ts';
import { aboutCalls, findScope, scopesOf } from './scopes.ts';
import { NEVER, type GroupState } from './state.ts';

/** Holds by scopes. A held call is skipped and blocks no other call. */

/** Slots that calls of a scope may use. Infinity if only the limits of the member apply. */
export function slotsOfScope({ controls, settings }: ScopeLimiter): number {
  return controls.ceiling.slots === null ? Infinity : slotsMaxNow(controls.ceiling, settings);
}

function roomInScope(
  member: Member,
  limiter: ScopeLimiter,
  slots: number,
  now: InstantMs,
): InstantMs {
  // The ramp after a pause needs a number.
  const max = Math.min(slotsOfScope(limiter), memberSlotsLearned(member));
  return roomByLessons(limiter.controls, { slots, inUse: limiter.slotsInUse, max }, now);
}

/** Finds a scope at a member without room for a call of so many slots. null if all have room. */
export function heldBy(
  member: Member,
  holder: Holder,
  slots: number,
  now: InstantMs,
): ScopeLimiter | null {
  return findScope(member, holder, (one) => roomInScope(member, one, slots, now) > now);
}

export function fullScopes({ serving }: GroupState, now: InstantMs): ReadonlySet<ScopeLimiter> {
  const full = new Set<ScopeLimiter>();
  for (const member of serving) {
    for (const limiter of member.scopes.values()) {
      if (roomInScope(member, limiter, 1, now) > now) full.add(limiter);
    }
  }
  return full;
}

const NONE: readonly never[] = [];

/** Lists the scopes that hold a waiter, one for each member that it may go to. Empty if some member can take it. */
export function scopesHolding(
  state: GroupState,
  { ticket, demand }: Waiter,
  now: InstantMs,
): readonly ScopeLimiter[] {
  if (state.serving.every(({ scopes }) => scopes.size === 0)) return NONE;
  const holding: ScopeLimiter[] = [];
  for (const member of notExcluded(state, ticket)) {
    const limiter = heldBy(member, ticket.holder, demand.slots, now);
    if (limiter === null) return NONE;
    holding.push(limiter);
  }
  return holding;
}

/** Returns the reason for which a member or its scopes stop a call, and the end of that time. null if they do not. */
function blockAt(member: Member, holder: Holder, now: InstantMs): Block | null {
  let longest = memberBlockOf(member, now);
  if (longest !== null && longest.reason !== 'members_out') {
    longest = { ...longest, ...aboutCalls(member) };
  }
  for (const limiter of scopesOf(member, holder)) {
    const block = blockBy(limiter.controls, now);
    if (block === null || (longest !== null && block.until <= longest.until)) continue;
    longest = { ...block, ...aboutCalls(limiter) };
  }
  return longest;
}

/**
 * Returns why all members that a call may go to stop it, and when the first stop ends. null if not all stop it. Without
 * members, no member serves the call.
 */
export function blockFor(state: GroupState, ticket: Ticket, now: InstantMs): Block | null {
  const members = notExcluded(state, ticket);
  if (members.length === 0) return { reason: 'members_out', until: NEVER };
  let soonest: Block | null = null;
  for (const member of members) {
    const block = blockAt(member, ticket.holder, now);
    if (block === null) return null;
    if (soonest === null || block.until < soonest.until) soonest = block;
  }
  return soonest;
}

/** Returns when a scope gains room by time alone. NEVER if none does. */
export function scopesDueAt({ serving }: GroupState, now: InstantMs): InstantMs {
  let dueAt: number = NEVER;
  for (const member of serving) {
    for (const limiter of member.scopes.values()) {
      const { pause, breaker } = limiter.controls;
      const max = Math.min(slotsOfScope(limiter), memberSlotsLearned(member));
      const at = later(pauseChangesAt(pause, max, now), now);
      if (at > now) dueAt = Math.min(dueAt, at);
      dueAt = Math.min(dueAt, breakerChangesAt(breaker, now));
    }
  }
  return instant(dueAt);
}
