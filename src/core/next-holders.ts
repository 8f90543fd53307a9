import {
  after,
  IMPLICIT,
  later,
  ticketOf,
  type InstantMs,
  type LeaseId,
  type MemberId,
  type TicketId,
} from './words/ids.ts';
import { COVERS_MS, noteFreed, type NextHolders, type ReleasedSlot } from './parts/bound.ts';
import { NEXT_HOLDERS_MAX } from './parts/next-holders.ts';
import { queueLength, type Waiter } from './parts/queue.ts';
import { cooldownInForceMs, slotsLearned } from './capacity.ts';
import { leave } from './leave.ts';
import type { Member } from './member.ts';
import { isSplit } from './members.ts';
import { nextWaiter } from './order.ts';
import { NEVER, type GroupState, type ActiveLease } from './state.ts';
import { holdOrphanedAt, takeUnclaimed, type Claim } from './orphaned.ts';

/** Minimum slots granted in a second and the one before it for heirs to be listed ahead: else a write would be too old. */
const PACE_MIN = 2;

const NONE: NextHolders = { ids: [], unlisted: 0 };

/**
 * Whether a waiter may have the slot of a lease unwritten: a single one, and by its first acquire calls. Of one that is held by its id
 * nobody knows which acquire calls were lost.
 */
export function mayInherit({ ticket, isAnew }: Waiter): boolean {
  if (ticket.isById === true) return false;
  return ticket.slots === 1 && ticket.parents.length === 0 && !isAnew;
}

/** Whether an heir may have the slot of a lease. */
export function mayHaveNextHolder(
  { nestedIn }: GroupState,
  { id, slots, nested, phase }: ActiveLease,
): boolean {
  return phase === 'held' && slots === 1 && nested === null && !nestedIn.has(id);
}

/** Lists the next waiters in their order, for a write to name them as heirs. */
export function listNextHolders(state: GroupState, now: InstantMs): NextHolders {
  if (!arePassing(state, now)) return NONE;
  const seen = new Set<Waiter>();
  while (seen.size < NEXT_HOLDERS_MAX) {
    const waiter = nextWaiter(state, now, seen);
    if (waiter === undefined) break;
    seen.add(waiter);
  }
  const ids = [...seen].filter(mayInherit).map(({ leaseId }) => leaseId);
  return { ids, unlisted: wantedOf(state) - ids.length };
}

/**
 * Whether the heirs on disk are so few, or their write so old, that it had better be written now who comes next. Only
 * where there is no margin, which spares more writes than heirs do.
 */
export function areNextHoldersDue(state: GroupState, now: InstantMs): boolean {
  const { confirmed, inFlight, isStored, pace } = state.bound;
  if (!isStored || confirmed === null || inFlight.length > 0) return false;
  const { at, mark, held, heirs: nextHolders, unlisted, answering } = confirmed;
  if (mark > held || !arePassing(state, now)) return false;
  const isQuick = pace.granted + pace.before >= PACE_MIN && now < (pace.second + 2) * 1_000;
  const wanted = isQuick ? wantedOf(state) - unlisted : 0;
  if (wanted <= 0) return false;
  const { byTicket } = state.queue;
  const left = [...nextHolders].filter((id) => byTicket.get(ticketOf(id))?.leaseId === id).length;
  const isOld = now >= after(at, COVERS_MS / 2);
  return isOld || left * 2 < wanted || answering.size * 2 > held;
}

/**
 * Finds when the group must wake to ask for that write, because the one before it has arrived meanwhile, which is no
 * event; NEVER: it has asked, or need not.
 */
export function heirsDueAt(state: GroupState, now: InstantMs): InstantMs {
  const { confirmed, heirsNotedAt } = state.bound;
  const isNoted = confirmed === null || confirmed.seq === heirsNotedAt;
  return isNoted || !areNextHoldersDue(state, now) ? NEVER : later(now, after(confirmed.at, 1));
}

/** Whether slots that come free go to waiters at once. As long as anything is unclaimed there are no heirs of our own. */
function arePassing(state: GroupState, now: InstantMs): boolean {
  const { settings, queue, unclaimed, grantsFrom, slotsInUse } = state;
  if (settings.isDryRun || settings.paused || queueLength(queue) === 0) return false;
  if (unclaimed.slots > 0 || now < grantsFrom || slotsInUse < slotsLearned(state)) return false;
  return cooldownInForceMs(state) === 0;
}

function wantedOf({ queue }: GroupState): number {
  return Math.min(NEXT_HOLDERS_MAX, queueLength(queue));
}

/**
 * Whether the slot of a lease that an earlier instance granted, and that has ended, may have been passed to an heir
 * there.
 */
export function mayHavePassed({ slots, nested }: ActiveLease): boolean {
  return slots === 1 && nested === null;
}

/** Counts a slot that was given back as unclaimed: an earlier instance may have passed it to one of its heirs. */
export function notePassed(state: GroupState, member: Member, freeAt: InstantMs): void {
  const { bound, unclaimed } = state;
  holdOrphanedAt(state, member, 1);
  unclaimed.until = later(unclaimed.until, freeAt);
  bound.passedBefore.push({ freeAt, member: member.id });
  bound.passedBefore.sort((a, b) => a.freeAt - b.freeAt);
}

/** Frees slots that were given back, of which there are more than heirs that may have them. */
export function freePassed(state: GroupState, now: InstantMs): void {
  const { passedBefore } = state.bound;
  for (
    let next = nextPassed(state);
    next !== null && next.freeAt <= now;
    next = nextPassed(state)
  ) {
    passedBefore.splice(passedBefore.indexOf(next), 1);
    const member = state.members.get(next.member);
    if (member !== undefined) takeUnclaimed(state, member, 1);
  }
}

/** Finds when the next slot that was given back is free; NEVER: an heir may have each of them. */
export function passedDueAt(state: GroupState): InstantMs {
  return nextPassed(state)?.freeAt ?? NEVER;
}

/** Finds the next slot that no heir can have, because more were given back at its member than there are heirs. */
function nextPassed(state: GroupState): ReleasedSlot | null {
  const { heirsBefore, passedBefore } = state.bound;
  if (passedBefore.length <= heirsBefore.size) return null;
  if (!isSplit(state)) return passedBefore[0] ?? null;
  const counts = new Map<MemberId, number>();
  for (const { member } of passedBefore) counts.set(member, (counts.get(member) ?? 0) + 1);
  return passedBefore.find(({ member }) => (counts.get(member) ?? 0) > heirsBefore.size) ?? null;
}

/**
 * Takes note that an heir of the instance before has come, and of all who had its slot before it: they have ended. One
 * that does not say whose slot it has leaves it open whether that was given back here.
 */
export function noteHeirHeard(
  state: GroupState,
  member: Member,
  claim: Claim,
  now: InstantMs,
): void {
  let heir = claim.leaseId;
  for (const before of claim.heirOf) {
    if (state.bound.heirsBefore.delete(heir)) noteInherited(state, member, before, now);
    heir = before;
  }
}

/** Takes note that the slot of a lease went to an heir, so that it is not counted as given back besides. */
function noteInherited(state: GroupState, member: Member, lease: LeaseId, now: InstantMs): void {
  const { bound, tombstones, queue, leases } = state;
  if (tombstones.has(lease) || bound.unclaimable.has(lease)) {
    const own = bound.passedBefore.findIndex((passed) => passed.member === member.id);
    const at = own < 0 ? bound.passedBefore.findIndex(isUnplaced) : own;
    if (at >= 0) bound.passedBefore.splice(at, 1);
    return;
  }
  const waiter = queue.byTicket.get(ticketOf(lease));
  if (waiter?.leaseId === lease) leave(state, waiter, { kind: 'left' }, now, []);
  // Where its caller asked here as well, and has a slot by that, it is known, and ends as all others.
  if (leases.has(lease)) return;
  tombstones.add(lease, now);
  noteFreed(bound, lease, true);
}

function isUnplaced({ member }: ReleasedSlot): boolean {
  return member === IMPLICIT;
}

/** Takes note that a ticket has no lease of the instance before, nor gets one: it is nobody's heir. */
export function strikeHeirs(state: GroupState, ticket: TicketId, now: InstantMs): void {
  const { heirsBefore } = state.bound;
  for (const id of heirsBefore) if (ticketOf(id) === ticket) heirsBefore.delete(id);
  freePassed(state, now);
}
