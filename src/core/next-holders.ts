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
import {
  COVERS_MS,
  writesOf,
  noteFreed,
  type Bound,
  type BoundWrite,
  type NextHolders,
  type ReleasedSlot,
} from './parts/bound.ts';
import { queueLength, type Waiter } from './parts/queue.ts';
import { cooldownInForceMs, slotsLearned } from './capacity.ts';
import { leave } from './waiting.ts';
import type { Member } from './member.ts';
import { isSplit, NEVER, type GroupState, type ActiveLease } from './state.ts';
import { nextWaiter } from './order.ts';
import { holdOrphanedAt, takeOrphaned, type Claim } from './orphaned.ts';

/**
 * Slots that are handed over without waiting for a write. A write lists the next waiters in advance, as next holders of
 * the leases that end next. A later instance accounts for that: a slot released to it may already belong to one of
 * them.
 */

/** A lease, and the leases that had its slot before. */
interface HandedOverSlot {
  readonly id: LeaseId;
  readonly member: MemberId;
  readonly heirOf: readonly LeaseId[];
}

const NEXT_HOLDERS_MAX = 8;

/**
 * Notes that a slot was freed by the only release of its holder, so that no instance receives anything else about the
 * lease. It does not apply to a lease that its caller may still request from a row.
 */
export function noteVacated(
  bound: Bound,
  { id, member, heirOf: nextHolderOf }: HandedOverSlot,
): void {
  for (const { answering, heirs, vacated } of writesOf(bound)) {
    if (!answering.has(id) && vacated.size < heirs.size) {
      vacated.set(id, { member, heirOf: nextHolderOf });
    }
  }
}

/**
 * Takes a vacated slot of a member for a waiter that every row that may be the last on disk lists as a next holder.
 *
 * @returns the leases that had the slot, newest first. Empty if the waiter is not listed, or if no slot was vacated
 */
export function takeVacated(
  bound: Bound,
  member: MemberId,
  nextHolder: LeaseId,
  now: InstantMs,
): readonly LeaseId[] {
  const { confirmed } = bound;
  if (confirmed === null || now >= after(confirmed.at, COVERS_MS)) return [];
  const writes = writesOf(bound);
  if (!writes.every(({ heirs }) => heirs.has(nextHolder))) return [];
  for (const [id, { member: at, heirOf }] of confirmed.vacated) {
    if (at !== member || !writes.every(({ vacated }) => vacated.has(id))) continue;
    for (const { vacated } of writes) vacated.delete(id);
    return sinceRow(writes, [id, ...heirOf]);
  }
  return [];
}

/** Removes the leases that had a slot before the last row, which a later instance knows from that row. */
function sinceRow(writes: readonly BoundWrite[], line: readonly LeaseId[]): readonly LeaseId[] {
  const first = line.findIndex((id) => !writes.some(({ heirs }) => heirs.has(id)));
  return first < 0 ? line : line.slice(0, first + 1);
}

/**
 * Minimum number of slots granted in the current and the previous second for next holders to be stored ahead. At a
 * slower pace the write would be too old when it is needed.
 */
const PACE_MIN = 2;

const NONE: NextHolders = { ids: [], unlisted: 0 };

/**
 * Whether a waiter may be a next holder: one slot, and no lost acquire call. For a lease held by id, lost acquire calls
 * cannot be excluded.
 */
export function mayInherit({ ticket, isAnew }: Waiter): boolean {
  if (ticket.isById === true) return false;
  return ticket.slots === 1 && ticket.parents.length === 0 && !isAnew;
}

export function mayHaveNextHolder(
  { nestedIn }: GroupState,
  { id, slots, nested, phase }: ActiveLease,
): boolean {
  return phase === 'held' && slots === 1 && nested === null && !nestedIn.has(id);
}

/** Lists the next waiters in order, so that a write can name them as next holders. */
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
 * Whether the next holders on disk are too few, or their write too old. Only without a margin, which saves more writes.
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
 * Returns when the group must wake to request that write, because the confirmation of the previous one is no event.
 * NEVER if it has requested it or does not need it.
 */
export function nextHoldersDueAt(state: GroupState, now: InstantMs): InstantMs {
  const { confirmed, heirsNotedAt } = state.bound;
  const isNoted = confirmed === null || confirmed.seq === heirsNotedAt;
  return isNoted || !areNextHoldersDue(state, now) ? NEVER : later(now, after(confirmed.at, 1));
}

/** Whether free slots go to waiters at once. While any slots are orphaned, this instance lists no next holders. */
function arePassing(state: GroupState, now: InstantMs): boolean {
  const { settings, queue, unclaimed, grantsFrom, slotsInUse } = state;
  if (settings.isDryRun || settings.paused || queueLength(queue) === 0) return false;
  if (unclaimed.slots > 0 || now < grantsFrom || slotsInUse < slotsLearned(state)) return false;
  return cooldownInForceMs(state) === 0;
}

function wantedOf({ queue }: GroupState): number {
  return Math.min(NEXT_HOLDERS_MAX, queueLength(queue));
}

/** Whether an earlier instance may have handed the slot of this ended lease to a next holder. */
export function mayHavePassed({ slots, nested }: ActiveLease): boolean {
  return slots === 1 && nested === null;
}

/** Marks a released slot as orphaned, because an earlier instance may have handed it to a next holder. */
export function noteOrphanedAgain(state: GroupState, member: Member, freeAt: InstantMs): void {
  const { bound, unclaimed } = state;
  holdOrphanedAt(state, member, 1);
  unclaimed.until = later(unclaimed.until, freeAt);
  bound.passedBefore.push({ freeAt, member: member.id });
  bound.passedBefore.sort((a, b) => a.freeAt - b.freeAt);
}

/** Frees released slots beyond the number of next holders that may have them. */
export function freePassed(state: GroupState, now: InstantMs): void {
  const { passedBefore } = state.bound;
  for (
    let next = nextPassed(state);
    next !== null && next.freeAt <= now;
    next = nextPassed(state)
  ) {
    passedBefore.splice(passedBefore.indexOf(next), 1);
    const member = state.members.get(next.member);
    if (member !== undefined) takeOrphaned(state, member, 1);
  }
}

/** Returns when the next released slot is free. NEVER if a next holder may have each of them. */
export function passedDueAt(state: GroupState): InstantMs {
  return nextPassed(state)?.freeAt ?? NEVER;
}

/**
 * Returns the next released slot that no next holder can have, because its member has more of them than there are next
 * holders.
 */
function nextPassed(state: GroupState): ReleasedSlot | null {
  const { heirsBefore, passedBefore } = state.bound;
  if (passedBefore.length <= heirsBefore.size) return null;
  if (!isSplit(state)) return passedBefore[0] ?? null;
  const counts = new Map<MemberId, number>();
  for (const { member } of passedBefore) counts.set(member, (counts.get(member) ?? 0) + 1);
  return passedBefore.find(({ member }) => (counts.get(member) ?? 0) > heirsBefore.size) ?? null;
}

/**
 * Notes that a next holder of an earlier instance has returned, and that all leases that had its slot before have
 * ended. A holder that does not report these leaves open whether their slot was released here.
 */
export function noteNextHolderReturned(
  state: GroupState,
  member: Member,
  claim: Claim,
  now: InstantMs,
): void {
  let nextHolder = claim.leaseId;
  for (const before of claim.heirOf) {
    if (state.bound.heirsBefore.delete(nextHolder)) noteHandedOver(state, member, before, now);
    nextHolder = before;
  }
}

/** Notes that the slot of a lease went to a next holder, so that it does not count as released too. */
function noteHandedOver(state: GroupState, member: Member, lease: LeaseId, now: InstantMs): void {
  const { bound, tombstones, queue, leases } = state;
  if (tombstones.has(lease) || bound.unclaimable.has(lease)) {
    const own = bound.passedBefore.findIndex((passed) => passed.member === member.id);
    const at = own < 0 ? bound.passedBefore.findIndex(isUnplaced) : own;
    if (at >= 0) bound.passedBefore.splice(at, 1);
    return;
  }
  const waiter = queue.byTicket.get(ticketOf(lease));
  if (waiter?.leaseId === lease) leave(state, waiter, { kind: 'left' }, now, []);
  // If its caller also repeated its acquire call here and was granted a slot, the lease ends like any other.
  if (leases.has(lease)) return;
  tombstones.add(lease, now);
  noteFreed(bound, lease, true);
}

function isUnplaced({ member }: ReleasedSlot): boolean {
  return member === IMPLICIT;
}

/** Notes that a ticket has no lease of an earlier instance and gets none, so it is no next holder. */
export function strikeNextHolders(state: GroupState, ticket: TicketId, now: InstantMs): void {
  const { heirsBefore } = state.bound;
  for (const id of heirsBefore) if (ticketOf(id) === ticket) heirsBefore.delete(id);
  freePassed(state, now);
}
