import { after, earlier, instant, later, type InstantMs, type MemberId } from './words/ids.ts';
import { HELD_OUT_MAX, type MemberSettings } from './words/settings.ts';
import type { Ticket, Demand } from './words/ticket.ts';
import { homeOf, refusalsOf } from './parts/affinity.ts';
import { allows as breakerAllows } from './parts/breaker.ts';
import type { PassedOver, MemberChoice, PlacedBy } from './parts/decision-log.ts';
import { demandAt } from './parts/demand.ts';
import { letsOthersTry } from './parts/evidence.ts';
import type { Waiter } from './parts/queue.ts';
import { exceededBy } from './parts/rates.ts';
import { budgetBlock } from './parts/spend.ts';
import {
  atUpstream,
  blockBy,
  memberBlockOf,
  memberSlotsLearned,
  memberSlotsMaxAt,
  roomAt,
  roomOverAllAt,
  slotsUsedAt,
  heldBy,
} from './capacity.ts';
import type { Member, Limiter, ScopeLimiter } from './member.ts';
import {
  inPlaceOf,
  isSplit,
  ledgersOf,
  notExcluded,
  refusalKey,
  NEVER,
  type GroupState,
} from './state.ts';
import { findScope } from './scopes.ts';

/** The member that a waiter goes to when it is next. */
export type Placing =
  | { readonly kind: 'now'; readonly member: Member; readonly by: PlacedBy }
  /** It waits for room at these members, which later waiters may not take. `at` is when time alone gives it room. */
  | { readonly kind: 'later'; readonly members: readonly Member[]; readonly at: InstantMs }
  /**
   * It waits for its affine member, at most until `until`, and blocks no other waiter. `at` is when time alone changes
   * that, because the member has room or the affinity expires.
   */
  | {
      readonly kind: 'held_out';
      readonly member: Member;
      readonly until: InstantMs;
      readonly at: InstantMs;
    }
  /** No member is left that it may use. */
  | { readonly kind: 'nowhere' };

/** Slots assumed for a member without a concurrency limit when its load is compared. */
const UNLIMITED_AS_SLOTS = 100;

/** Maximum time that a waiting call avoids a member that refused it for a temporary reason. */
const KEPT_AWAY_MS = 30_000;

const NOWHERE: Placing = { kind: 'nowhere' };

/**
 * Chooses the member for the next waiter. Its affine member comes first, if that has room or will soon. Otherwise it is
 * the member with the largest free share of slots in the lowest tier with room.
 *
 * @param taken members that an earlier waiter waits for
 */
export function placeFor(
  state: GroupState,
  waiter: Waiter,
  taken: ReadonlySet<Member>,
  now: InstantMs,
): Placing {
  const possible = membersOf(state, waiter, now).filter(
    (member) => heldBy(member, waiter.ticket.holder, waiter.demand.slots, now) === null,
  );
  const members = possible.filter((member) => !taken.has(member));
  const [first] = members;
  if (first === undefined) return NOWHERE;
  const { demand } = waiter;
  const rooms = members.map((member) => ({ member, at: roomAt(state, member, demand, now) }));
  const free = rooms.filter(({ at }) => at <= now).map(({ member }) => member);
  if (free.length === 0) {
    return laterAt(rooms, isLackingOverAll(state, demand, now) ? state.serving : null);
  }
  if (!isSplit(state)) return { kind: 'now', member: first, by: 'sole' };
  const affine = affineOf(state, waiter, now);
  // A call does not wait for a member that can never serve it.
  const home = affine !== null && possible.includes(affine.member) ? affine : null;
  const own = home?.member ?? null;
  if (own !== null && free.includes(own)) return { kind: 'now', member: own, by: 'affinity' };
  const until = own === null ? now : waitsForOwnUntil(state, waiter, own, now);
  if (home !== null && until > now) {
    const roomFrom = roomAt(state, home.member, demand, now);
    // If the member has room already, an earlier waiter waits there for more.
    const at = earlier(roomFrom > now ? roomFrom : NEVER, home.until);
    return { kind: 'held_out', member: home.member, until, at };
  }
  return { kind: 'now', member: leastLoaded(free), by: own === null ? 'load' : 'left' };
}

/** Whether the limits over all members have no room. A later waiter would take it at any member. */
function isLackingOverAll(state: GroupState, demand: Demand, now: InstantMs): boolean {
  return isSplit(state) && roomOverAllAt(state, demand, now) > now;
}

/**
 * If only time is lacking, the waiter needs only the member that has room first.
 *
 * @param all the members that it blocks in any case, or null for those that it waits for
 */
function laterAt(
  rooms: readonly { readonly member: Member; readonly at: InstantMs }[],
  all: readonly Member[] | null,
): Placing {
  const at = instant(Math.min(...rooms.map((room) => room.at)));
  if (all !== null) return { kind: 'later', members: all, at };
  const soonest = at === NEVER ? rooms : rooms.filter((room) => room.at === at).slice(0, 1);
  return { kind: 'later', members: soonest.map(({ member }) => member), at };
}

/** Lists the members that a waiter may use, whether or not they have room. */
function membersOf(state: GroupState, waiter: Waiter, now: InstantMs): Member[] {
  const { ticket, demand } = waiter;
  if (!isSplit(state)) return [...state.serving];
  return state.serving.filter(
    (member) =>
      member.settings.isEnabled &&
      !isExcluded(waiter, member, now) &&
      everFits(member, demand) &&
      isAffordable(state, member, demand, now) &&
      !isHeldBack(state, member, ticket),
  );
}

/** Whether a call can ever fit at a member. A limit of 0 stops all calls for a while, and makes none too large. */
function everFits({ settings }: Member, demand: Demand): boolean {
  return isWideEnough(settings, demand.slots) && exceededBy(settings.rates, demand) === null;
}

export function isWideEnough({ slotsMax }: MemberSettings, slots: number): boolean {
  return slotsMax === 0 || slots <= slotsMax;
}

/**
 * Whether a waiter avoids a member. After a temporary refusal it does so until that member has served a call granted
 * since, or for `KEPT_AWAY_MS`. Otherwise it would wait for the other members although this one has had room for long.
 */
function isExcluded(
  { ticket: { excluded = [], excludedForNow = [] }, arrivedAt }: Waiter,
  { id, servedGrantAt }: Member,
  now: InstantMs,
): boolean {
  if (!excluded.includes(id)) return false;
  const mayGoAgain = servedGrantAt > arrivedAt || now >= after(arrivedAt, KEPT_AWAY_MS);
  return !mayGoAgain || !excludedForNow.includes(id);
}

/** Returns when time alone lets a waiter use more members. NEVER if it does not. */
export function keptAwayUntil({ ticket, arrivedAt }: Waiter, now: InstantMs): InstantMs {
  const { excludedForNow = [] } = ticket;
  const until = after(arrivedAt, KEPT_AWAY_MS);
  return excludedForNow.length === 0 || now >= until ? NEVER : until;
}

export function mayNotGoTo(state: GroupState, { excluded = [] }: Ticket, id: MemberId): boolean {
  return isSplit(state) && excluded.includes(id);
}

/** Whether the budgets of a member and of the group have room for a call. */
function isAffordable(state: GroupState, member: Member, demand: Demand, now: InstantMs): boolean {
  const { usd } = demandAt(demand, member.id);
  return ledgersOf(state, member).every(
    ({ controls, settings }) => budgetBlock(controls.spend, settings.budgets, usd, now) === null,
  );
}

/** Whether a call lets other calls go first at a member that has just refused it. */
function isHeldBack(state: GroupState, member: Member, { id, holder }: Ticket): boolean {
  const isHere = (limiter: Limiter): boolean =>
    letsOthersTry(limiter.controls.ceiling.evidence, id, atUpstream(state, limiter));
  return isHere(member) || findScope(member, holder, isHere) !== null;
}

/** Whether a call lets other calls go first at all members that it may use. */
export function isHeldBackEverywhere(state: GroupState, ticket: Ticket): boolean {
  for (const member of notExcluded(state, ticket)) {
    if (!isHeldBack(state, member, ticket)) return false;
  }
  return true;
}

/** Counts the refusals of a call by a single member since it last had room. The highest count of any member. */
export function repeatRefusalsOf(state: GroupState, ticket: Ticket): number {
  const { repeatRefusals, serving } = state;
  if (repeatRefusals.refusalsMax === 0) return 0;
  const counts = serving.map(({ id }) => refusalsOf(repeatRefusals, refusalKey(ticket.id, id)));
  return Math.max(...counts);
}

/**
 * Returns the affine member of a waiter and the end of the affinity. null if there is none, or if that member is
 * disabled or refused the call.
 */
function affineOf(
  state: GroupState,
  { ticket }: Waiter,
  now: InstantMs,
): { readonly member: Member; readonly until: InstantMs } | null {
  const { affinity, settings } = state;
  if (!isSplit(state) || settings.affinity.by === 'none') return null;
  const home = homeOf(affinity, settings.affinity, ticket.holder, now);
  if (home === null || ticket.excluded?.includes(home.member) === true) return null;
  const known = state.members.get(home.member);
  if (known === undefined) return null;
  const member = inPlaceOf(state, known);
  return member.settings.isEnabled ? { member, until: home.until } : null;
}

/** Returns the affine member that a waiter waits for while another member has room. null if it waits for none. */
export function waitsFor(state: GroupState, waiter: Waiter, now: InstantMs): Member | null {
  const { heldOutUntil } = waiter;
  if (heldOutUntil === null || now >= heldOutUntil) return null;
  return affineOf(state, waiter, now)?.member ?? null;
}

/**
 * Returns how long a waiter waits for its affine member while another one has room. If that is not after `now`, it does
 * not wait.
 */
function waitsForOwnUntil(
  state: GroupState,
  waiter: Waiter,
  own: Member,
  now: InstantMs,
): InstantMs {
  const { waitMs } = state.settings.affinity;
  if (!waiter.ticket.wait || waiter.ticket.isTry || waitMs === 0) return now;
  const until = waiter.heldOutUntil ?? after(now, waitMs);
  if (own.heldOut >= HELD_OUT_MAX) return now;
  if (soonestRoomAt(state, waiter, own, now) > after(now, waitMs)) return now;
  return earlier(until, waiter.deadlineAt);
}

/** Forecasts when a member has a slot for a waiter, behind those that already wait for it. */
function soonestRoomAt(
  state: GroupState,
  { demand }: Waiter,
  own: Member,
  now: InstantMs,
): InstantMs {
  const slotsMax = memberSlotsLearned(own);
  if (slotsMax === 0) return NEVER;
  const turns = own.heldOut + demand.slots;
  const bySlots = after(now, (turns * state.holdMeanMs) / slotsMax);
  const block = memberBlockOf(own, now);
  if (block !== null) {
    // The result of a probe in flight cannot be foreseen.
    if (own.controls.outage.probe !== null) return NEVER;
    const isFull = slotsUsedAt(state, own) + demand.slots > slotsMax;
    return isFull ? later(block.until, bySlots) : block.until;
  }
  const byTime = roomAt(state, own, demand, now);
  return byTime === NEVER ? bySlots : instant(Math.max(byTime, bySlots));
}

/**
 * Picks the best member with room: by tier, then by the share of its slots in use, then by the time since its last
 * grant.
 */
function leastLoaded(members: readonly Member[]): Member {
  const tier = Math.min(...members.map(({ settings }) => settings.tier));
  const [best] = members
    .filter(({ settings }) => settings.tier === tier)
    .toSorted((a, b) => compare(loadOf(a), loadOf(b)) || a.turn - b.turn);
  if (best === undefined) throw new Error('The best of no members was requested.');
  return best;
}

function compare(a: number, b: number): number {
  return a === b ? 0 : a - b;
}

/** The share of its slots in use, relative to its weight. */
function loadOf(member: Member): number {
  const slotsMax = memberSlotsLearned(member);
  const slots = slotsMax === Infinity ? UNLIMITED_AS_SLOTS : slotsMax;
  return slots === 0 ? Infinity : member.slotsInUse / (member.settings.weight * slots);
}

/** Returns the chosen member and, for each other member, why it was not chosen. */
export function placedAt(
  state: GroupState,
  waiter: Waiter,
  member: Member,
  by: PlacedBy,
  now: InstantMs,
): MemberChoice {
  const others = state.serving.filter((other) => other !== member);
  return {
    member: member.id,
    by,
    others: others.map((other) => ({
      member: other.id,
      cause: passedOverFor(state, waiter, other, now) ?? betterCause(member, other),
    })),
  };
}

/** Returns why a waiter cannot use a member now. null if it can. */
function passedOverFor(
  state: GroupState,
  waiter: Waiter,
  member: Member,
  now: InstantMs,
): PassedOver | null {
  const { demand } = waiter;
  if (!member.settings.isEnabled) return 'disabled';
  if (isExcluded(waiter, member, now)) return 'excluded';
  const block = memberBlockOf(member, now);
  if (block !== null) return CAUSE_OF_BLOCK[block.reason];
  const scope = heldBy(member, waiter.ticket.holder, demand.slots, now);
  if (scope !== null) return causeOfHold(scope, now);
  if (!breakerAllows(member.controls.breaker, now)) return 'breaker';
  if (!isAffordable(state, member, demand, now)) return 'budget';
  if (slotsUsedAt(state, member) + demand.slots > memberSlotsMaxAt(member, now)) return 'slots';
  return roomAt(state, member, demand, now) > now ? 'rates' : null;
}

function causeOfHold({ controls }: ScopeLimiter, now: InstantMs): PassedOver {
  const block = blockBy(controls, now);
  if (block !== null) return CAUSE_OF_BLOCK[block.reason];
  return breakerAllows(controls.breaker, now) ? 'slots' : 'breaker';
}

const CAUSE_OF_BLOCK = { paused: 'paused', breaker_open: 'breaker', members_out: 'out' } as const;

function betterCause(chosen: Member, other: Member): PassedOver {
  return other.settings.tier > chosen.settings.tier ? 'tier' : 'load';
}

/**
 * Picks a member for a call that passes regardless of room. Ejected members are used only if all are ejected. null if
 * the call excludes every serving member.
 */
export function anyMember(state: GroupState, waiter: Waiter): Member | null {
  const members = notExcluded(state, waiter.ticket);
  if (members.length === 0) return null;
  const inside = members.filter(({ controls }) => controls.outage.reason === null);
  return leastLoaded(inside.length > 0 ? inside : members);
}
