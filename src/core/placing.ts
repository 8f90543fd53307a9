import { after, earlier, instant, later, type InstantMs, type MemberId } from './words/ids.ts';
import type { MemberSettings } from './words/member.ts';
import { HELD_OUT_MAX } from './words/settings.ts';
import type { Ticket } from './words/ticket.ts';
import type { Demand } from './words/usage.ts';
import { homeOf } from './parts/affinity.ts';
import { allows as breakerAllows } from './parts/breaker.ts';
import type { PassedOver, MemberChoice, PlacedBy } from './parts/decision-log.ts';
import { demandAt } from './parts/demand.ts';
import { letsOthersTry } from './parts/evidence.ts';
import type { Waiter } from './parts/queue.ts';
import { exceededBy } from './parts/rates.ts';
import { refusalsOf } from './parts/repeat-refusals.ts';
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
} from './capacity.ts';
import type { Member } from './member.ts';
import { inPlaceOf, isSplit, ledgersOf, notExcluded, refusalKey } from './members.ts';
import { heldBy } from './scope-holds.ts';
import type { Limiter, ScopeLimiter } from './limiter.ts';
import { findScope } from './scopes.ts';
import { NEVER, type GroupState } from './state.ts';

/** The member that a waiter goes to, once it is its turn. */
export type Placing =
  | { readonly kind: 'now'; readonly member: Member; readonly by: PlacedBy }
  /** It waits for room at these, which nobody behind it may take: from `at` on if nothing but time changes. */
  | { readonly kind: 'later'; readonly members: readonly Member[]; readonly at: InstantMs }
  /**
   * It waits for the member that it belongs to until then at most, and nobody waits for it. At `at` that changes by time
   * alone: the member has room, or is forgotten.
   */
  | {
      readonly kind: 'held_out';
      readonly member: Member;
      readonly until: InstantMs;
      readonly at: InstantMs;
    }
  /** None of those that it may go to is left. */
  | { readonly kind: 'nowhere' };

/** Slots that a member without a limit of them is taken to have beside others. */
const UNLIMITED_AS_SLOTS = 100;

/** How long a call keeps away at most from a member that has refused it for what passes, while it waits for others. */
const KEPT_AWAY_MS = 30_000;

const NOWHERE: Placing = { kind: 'nowhere' };

/**
 * Places a waiter whose turn it is: at the member that it belongs to if that has room, or has soon; else at the first
 * tier with room, and there at the one with the largest part of its slots free.
 *
 * @param taken members for which somebody before it waits
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
  // It waits for none that never takes it.
  const home = affine !== null && possible.includes(affine.member) ? affine : null;
  const own = home?.member ?? null;
  if (own !== null && free.includes(own)) return { kind: 'now', member: own, by: 'affinity' };
  const until = own === null ? now : waitsForOwnUntil(state, waiter, own, now);
  if (home !== null && until > now) {
    const roomFrom = roomAt(state, home.member, demand, now);
    // Where it has room already, somebody before it waits there for more.
    const at = earlier(roomFrom > now ? roomFrom : NEVER, home.until);
    return { kind: 'held_out', member: home.member, until, at };
  }
  return { kind: 'now', member: leastLoaded(free), by: own === null ? 'load' : 'left' };
}

/** Whether the limits over all members have no room: whoever went before, wherever, would take it. */
function isLackingOverAll(state: GroupState, demand: Demand, now: InstantMs): boolean {
  return isSplit(state) && roomOverAllAt(state, demand, now) > now;
}

/**
 * Where time alone is lacking, nobody needs the others: they would have room later.
 *
 * @param all the members that it bars, whichever it waits for; null: those
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

/** Lists the members that a waiter may go to, whether they have room or not. */
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

/** Whether a call is no larger than what a member ever has. A limit of 0 stops all for a while, and makes none too large. */
function everFits({ settings }: Member, demand: Demand): boolean {
  return isWideEnough(settings, demand.slots) && exceededBy(settings.rates, demand) === null;
}

/** Whether a member ever has so many slots for one call. */
export function isWideEnough({ slotsMax }: MemberSettings, slots: number): boolean {
  return slotsMax === 0 || slots <= slotsMax;
}

/**
 * Whether a waiter keeps away from a member. From one that refused it for what passes it does so until a call was served
 * there that was granted since, or for a while: else it would wait for the others though that has had room for long.
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

/** Finds when time alone lets a waiter go to more members; NEVER: it does not. */
export function keptAwayUntil({ ticket, arrivedAt }: Waiter, now: InstantMs): InstantMs {
  const { excludedForNow = [] } = ticket;
  const until = after(arrivedAt, KEPT_AWAY_MS);
  return excludedForNow.length === 0 || now >= until ? NEVER : until;
}

/** Whether a ticket excludes a member. */
export function mayNotGoTo(state: GroupState, { excluded = [] }: Ticket, id: MemberId): boolean {
  return isSplit(state) && excluded.includes(id);
}

/** Whether the budgets have room for a call at a member, its own and those over all. */
function isAffordable(state: GroupState, member: Member, demand: Demand, now: InstantMs): boolean {
  const { usd } = demandAt(demand, member.id);
  return ledgersOf(state, member).every(
    ({ controls, settings }) => budgetBlock(controls.spend, settings.budgets, usd, now) === null,
  );
}

/** Whether a call lets others try first at a member, which has just refused it. */
function isHeldBack(state: GroupState, member: Member, { id, holder }: Ticket): boolean {
  const isHere = (limiter: Limiter): boolean =>
    letsOthersTry(limiter.controls.ceiling.evidence, id, atUpstream(state, limiter));
  return isHere(member) || findScope(member, holder, isHere) !== null;
}

/** Whether a call lets others try first wherever it may go. */
export function isHeldBackEverywhere(state: GroupState, ticket: Ticket): boolean {
  for (const member of notExcluded(state, ticket)) {
    if (!isHeldBack(state, member, ticket)) return false;
  }
  return true;
}

/** Counts how often one and the same member has refused a call, since there was last room: the most of any. */
export function repeatRefusalsOf(state: GroupState, ticket: Ticket): number {
  const { repeatRefusals, serving } = state;
  if (repeatRefusals.refusalsMax === 0) return 0;
  const counts = serving.map(({ id }) => refusalsOf(repeatRefusals, refusalKey(ticket.id, id)));
  return Math.max(...counts);
}

/** Finds the member that a waiter belongs to, and until when, where it serves and did not refuse it; null: none. */
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

/** Finds the member that a waiter waits for though another one has room; null: it waits for none. */
export function waitsFor(state: GroupState, waiter: Waiter, now: InstantMs): Member | null {
  const { heldOutUntil } = waiter;
  if (heldOutUntil === null || now >= heldOutUntil) return null;
  return affineOf(state, waiter, now)?.member ?? null;
}

/** Finds until when a waiter waits for its own member while another has room; not after `now`: it goes. */
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

/** Forecasts when a member has a slot for a waiter, behind those that wait for it already. */
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
    // Whether a member comes back whose probe is under way, nobody knows.
    if (own.controls.outage.probe !== null) return NEVER;
    const isFull = slotsUsedAt(state, own) + demand.slots > slotsMax;
    return isFull ? later(block.until, bySlots) : block.until;
  }
  const byTime = roomAt(state, own, demand, now);
  return byTime === NEVER ? bySlots : instant(Math.max(byTime, bySlots));
}

/** Picks of members with room the best: by tier, by the part of its slots that is in use, by how long it had no grant. */
function leastLoaded(members: readonly Member[]): Member {
  const tier = Math.min(...members.map(({ settings }) => settings.tier));
  const [best] = members
    .filter(({ settings }) => settings.tier === tier)
    .toSorted((a, b) => compare(loadOf(a), loadOf(b)) || a.turn - b.turn);
  if (best === undefined) throw new Error('of no member the best was wanted');
  return best;
}

function compare(a: number, b: number): number {
  return a === b ? 0 : a - b;
}

/** The part of its slots that is in use, by weight. */
function loadOf(member: Member): number {
  const slotsMax = memberSlotsLearned(member);
  const slots = slotsMax === Infinity ? UNLIMITED_AS_SLOTS : slotsMax;
  return slots === 0 ? Infinity : member.slotsInUse / (member.settings.weight * slots);
}

/** Tells where a waiter goes, and for each other member why it does not go there. */
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

/** Finds why a waiter cannot go to a member now; null: it can. */
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
 * Picks a member for a call that is let pass whether there is room or not: of those that are in, unless all are out. Null:
 * it excludes each that serves.
 */
export function anyMember(state: GroupState, waiter: Waiter): Member | null {
  const members = notExcluded(state, waiter.ticket);
  if (members.length === 0) return null;
  const inside = members.filter(({ controls }) => controls.outage.reason === null);
  return leastLoaded(inside.length > 0 ? inside : members);
}
