import { earlier, IMPLICIT, instant, later, type InstantMs } from './words/ids.ts';
import type { LeaseOutcome } from './words/outcome.ts';
import type { Scope } from './words/signal.ts';
import type { Demand, Holder, Ticket } from './words/ticket.ts';
import {
  allows as breakerAllows,
  nextChangeAt as breakerChangesAt,
  type BreakerLimit,
} from './parts/breaker.ts';
import { slotsMaxNow } from './parts/ceiling.ts';
import { ONE_REQUEST } from './parts/demand.ts';
import { takeCooldownMs } from './parts/lag.ts';
import {
  outageAllows,
  outageChangesAt,
  mayProbe,
  nextChangeAt as pauseChangesAt,
  rampSlotsMax,
  stopsUntil,
} from './parts/pause.ts';
import { roomAt as ratesRoomAt } from './parts/rates.ts';
import type { Lessons } from './parts/lessons.ts';
import type { Waiter } from './parts/queue.ts';
import type { Limiter, Member, ScopeLimiter } from './member.ts';
import {
  isSplit,
  memberOf,
  NEVER,
  notExcluded,
  type GroupState,
  type ActiveLease,
} from './state.ts';
import { aboutCalls, findScope, scopesOf } from './scopes.ts';

/** How many slots are in use, and how many more calls fit: in the group, at a member, and in a scope. */

/** Slots that may be in use now, by the limits, the lessons and the ramp after a pause. */
export function slotsMaxAt(state: GroupState, now: InstantMs): number {
  return ofAll(state, (member) => memberSlotsMaxAt(member, now));
}

/** Slots that may be in use by the limits and the lessons, regardless of pauses. */
export function slotsLearned(state: GroupState): number {
  return ofAll(state, memberSlotsLearned);
}

/** Adds up the slots of the members, up to the group's own limit. */
function ofAll(state: GroupState, slotsOf: (member: Member) => number): number {
  let slots = 0;
  for (const member of state.serving) {
    // An ejected member has no slots. The only member of a group is never ejected.
    if (member.controls.outage.reason === null) slots += slotsOf(member);
  }
  return Math.min(slots, overAll(state));
}

/** The limit over all members. Infinity if there is none, or if the only member has it. */
function overAll(state: GroupState): number {
  return isSplit(state) ? state.settings.slotsMax : Infinity;
}

export function memberSlotsMaxAt(member: Member, now: InstantMs): number {
  return rampSlotsMax(member.controls.pause, memberSlotsLearned(member), now);
}

export function memberSlotsLearned({ settings, controls }: Member): number {
  return settings.isEnabled ? slotsMaxNow(controls.ceiling, settings) : 0;
}

/** Slots that calls are known to hold: not cooling, not orphaned, and not prefetched without a call. */
export function heldByCalls({
  slotsInUse,
  unclaimed: orphaned,
  slotsCooling,
  lending,
}: GroupState): number {
  return slotsInUse - orphaned.slots - slotsCooling - lending.idle;
}

/** As `heldByCalls`, at one member. */
export function heldAtMember({ slotsInUse, unclaimed, slotsCooling }: Member): number {
  return slotsInUse - unclaimed - slotsCooling;
}

/** Known slots of calls at the upstream, for a member or one of its scopes. */
export function atUpstream({ lending }: GroupState, limiter: Limiter): number {
  const { slotsInUse, unclaimed, slotsCooling, slotsWaitingElsewhere, slotsRefused } = limiter;
  // Prefetched before the group had members.
  const idle = limiter.id === IMPLICIT ? lending.idle : 0;
  return slotsInUse - unclaimed - slotsCooling - idle - slotsWaitingElsewhere - slotsRefused;
}

/** Slots that calls may hold at a member. Orphaned slots from before the group had members may be at any of them. */
export function slotsUsedAt(state: GroupState, member: Member): number {
  if (!isSplit(state)) return member.slotsInUse;
  const unplaced = state.members.get(IMPLICIT)?.unclaimed ?? 0;
  return member.slotsInUse + unplaced + state.lending.slots;
}

/** A stop by the upstream, and its end. */
export interface Block {
  readonly reason: 'paused' | 'breaker_open' | 'members_out';
  readonly until: InstantMs;
  /** For `breaker_open`: the refusal that opened the breaker, if its status was 429. */
  readonly limit?: BreakerLimit;
  /** The calls affected. Absent if they are all calls of a member. */
  readonly scope?: Scope;
}

/**
 * Returns why the upstreams of all these members stop calls, and when the first stop ends. null if not all are stopped.
 * Without members, no call is served.
 */
export function blockOf(serving: readonly Member[], now: InstantMs): Block | null {
  if (serving.length === 0) return { reason: 'members_out', until: NEVER };
  let soonest: Block | null = null;
  for (const member of serving) {
    const block = memberBlockOf(member, now);
    if (block === null) return null;
    if (soonest === null || block.until < soonest.until) soonest = block;
  }
  return soonest;
}

/** Returns the reason for which a member is stopped or ejected, and the end of that time. null if it is neither. */
export function memberBlockOf({ controls, settings }: Member, now: InstantMs): Block | null {
  const { outage } = controls;
  if (!settings.isEnabled) return { reason: 'members_out', until: NEVER };
  if (!outageAllows(outage, now)) return { reason: 'members_out', until: outage.probeAt };
  return blockBy(controls, now);
}

/** Returns the reason for which lessons stop calls, and the end of that time. null if they do not. */
export function blockBy({ pause, breaker }: Lessons, now: InstantMs): Block | null {
  const until = breakerChangesAt(breaker, now);
  // The longer one of both applies, because calls must wait for both.
  if (until !== NEVER && until > pause.until) {
    const { limit } = breaker;
    return { reason: 'breaker_open', until, ...(limit !== undefined && { limit }) };
  }
  const isClosed = now < pause.until && !mayProbe(pause, now);
  return isClosed ? { reason: 'paused', until: pause.until } : null;
}

/** Whether the group grants nothing for a while, because its operator paused it or its upstreams stop it. */
export function isStopped(state: GroupState, now: InstantMs): boolean {
  return state.settings.paused || blockOf(state.serving, now) !== null;
}

/**
 * Returns when a member has room for `demand` if only time passes. `now` if it has room already, Infinity if other
 * calls must end first. Slots, requests and tokens are checked together, so a call takes all of them or none.
 */
export function roomAt(
  state: GroupState,
  member: Member,
  demand: Demand,
  now: InstantMs,
): InstantMs {
  const { settings, controls } = member;
  const slotsInUse = slotsUsedAt(state, member);
  if (state.settings.paused || !settings.isEnabled || settings.slotsMax === 0) return NEVER;
  let at: number = Math.max(now, state.grantsFrom);
  const { outage } = controls;
  const learned = { slots: demand.slots, inUse: slotsInUse, max: memberSlotsLearned(member) };
  at = Math.max(at, roomByLessons(controls, learned, now));
  if (!outageAllows(outage, now)) at = Math.max(at, outageChangesAt(outage, now));
  at = Math.max(at, ratesRoomAt(controls.rates, settings.rates, demand, now));
  return isSplit(state) ? later(instant(at), roomOverAllAt(state, demand, now)) : instant(at);
}

/**
 * Returns when a call of so many slots may start next to others if only time passes. A call that is wider than
 * the learned limit starts while no other call runs. Otherwise it would never start.
 */
function roomByLessons(
  { pause, breaker }: Lessons,
  { slots, inUse, max }: { readonly slots: number; readonly inUse: number; readonly max: number },
  now: InstantMs,
): InstantMs {
  let at: number = now;
  if (inUse + slots > rampSlotsMax(pause, max, now)) {
    if (inUse > 0 && inUse + slots > max) return NEVER;
    at = Math.max(at, inUse > 0 ? pauseChangesAt(pause, max, now) : stopsUntil(pause));
  }
  if (!breakerAllows(breaker, now)) at = Math.max(at, breakerChangesAt(breaker, now));
  return instant(at);
}

/** Returns when the limits over all members have room. */
export function roomOverAllAt(state: GroupState, demand: Demand, now: InstantMs): InstantMs {
  const { settings, controls, slotsInUse } = state;
  if (slotsInUse + demand.slots > settings.slotsMax) return NEVER;
  return ratesRoomAt(controls.rates, settings.rates, demand, now);
}

/** Whether the next waiter lacks only time, and not only because the group settles. */
export function isHeldByRates({ roomDueAt, grantsFrom }: GroupState): boolean {
  return roomDueAt !== NEVER && roomDueAt > grantsFrom;
}

/** Returns when the limits have one request to spare, whatever else a call needs. */
export function requestFreeAt(state: GroupState, now: InstantMs): InstantMs {
  let soonest: InstantMs = NEVER;
  for (const { controls, settings } of state.serving) {
    soonest = earlier(soonest, ratesRoomAt(controls.rates, settings.rates, ONE_REQUEST, now));
  }
  if (!isSplit(state)) return soonest;
  const { controls, settings } = state;
  return later(soonest, ratesRoomAt(controls.rates, settings.rates, ONE_REQUEST, now));
}

/**
 * Returns the cooldown of a lease that ended with this outcome. Upstreams count a call as in flight for a while after
 * its last byte. At full use, the next call would be refused. A call refused for that reason is no failure.
 */
export function cooldownMs(state: GroupState, lease: ActiveLease, outcome: LeaseOutcome): number {
  const { releaseCooldownMs, cancelCooldownMs, failureCooldownMs } = state.settings;
  const orLearned = (configured: number | 'auto'): number =>
    configured === 'auto' ? cooldownLearnedMs(state, lease) : configured;
  switch (outcome) {
    case 'success':
      return orLearned(releaseCooldownMs);
    case 'cancelled':
      return orLearned(cancelCooldownMs === 'auto' ? releaseCooldownMs : cancelCooldownMs);
    case 'failed':
      return lease.isLagging ? orLearned(releaseCooldownMs) : failureCooldownMs;
    case 'refused':
    case 'unused':
      return 0;
  }
}

/** Returns the longest cooldown learned at the member of a lease and in its scopes. */
function cooldownLearnedMs(state: GroupState, lease: ActiveLease): number {
  const ofMember = takeCooldownMs(memberOf(state, lease).controls.lag);
  const ofScopes = lease.scopes.map(({ limiter }) => takeCooldownMs(limiter.controls.lag));
  return Math.max(ofMember, ...ofScopes);
}

/**
 * Returns the current cooldown after a successful call, as configured or as learned at the member where it is longest.
 * Calls that probe a shorter cooldown do not count.
 */
export function cooldownInForceMs({ settings, serving }: GroupState): number {
  const { releaseCooldownMs } = settings;
  if (releaseCooldownMs !== 'auto') return releaseCooldownMs;
  return Math.max(...serving.map(({ controls }) => controls.lag.ms));
}

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
