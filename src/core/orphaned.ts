import {
  after,
  IMPLICIT,
  type InstantMs,
  type LeaseId,
  type MemberId,
  type TicketId,
} from './words/ids.ts';
import { LEASE_TTL_MS } from './words/settings.ts';
import type { LeaseRecord } from './words/ticket.ts';
import type { KeeperReport } from './parts/prefetches.ts';
import { keepProbes } from './parts/breaker.ts';
import { chargeRest } from './parts/spend.ts';
import type { Member } from './member.ts';
import { inPlaceOf, isSplit, memberAt, memberFor, type GroupState } from './state.ts';

/**
 * Slots that an earlier instance may have granted and whose holders have not returned yet. They count as held until a
 * holder reclaims them, or for one TTL.
 */

/** A lease as its holder reports it to a group that may not know it, because an earlier instance granted it. */
export interface Claim extends LeaseRecord {
  /** No renewal that it sent within the last TTL was acknowledged, so its slots may have been granted again. */
  readonly hasLapsed: boolean;
  /** Time for which it has held the lease, in milliseconds. */
  readonly heldMs: number;
  /** The prefetched slot on which its call began. Absent if it acquired its slots. */
  readonly lent?: OrphanedPrefetchedSlot;
}

export interface OrphanedPrefetchedSlot {
  readonly loan: LeaseId;
  readonly slot: LeaseId;
  /** A report on the prefetched slots, applied together with the claim. Absent if there is none. */
  readonly told?: KeeperReport;
}

/** Counts the slots that earlier instances may have granted, by member. */
export function holdOrphaned(
  state: GroupState,
  slots: ReadonlyMap<MemberId, number>,
  now: InstantMs,
): void {
  state.unclaimed.until = after(now, LEASE_TTL_MS);
  state.unclaimed.isOver = false;
  for (const [id, count] of slots) {
    // A group that no longer names members has only one.
    const [sole] = state.serving;
    const isOne = !isSplit(state) && sole !== undefined;
    const member = isOne ? sole : inPlaceOf(state, memberAt(state, id, now));
    holdOrphanedAt(state, member, count);
  }
}

export function holdOrphanedAt(state: GroupState, member: Member, slots: number): void {
  state.unclaimed.slots += slots;
  state.slotsInUse += slots;
  member.unclaimed += slots;
  member.slotsInUse += slots;
}

/** Whether the slots of a claimed lease may be among the orphaned ones. */
export function mayClaim({ bound, unclaimed: orphaned }: GroupState, claim: Claim): boolean {
  const { leaseId, attachment, hasLapsed, lent } = claim;
  if (hasLapsed || orphaned.slots === 0 || bound.unclaimable.has(leaseId)) return false;
  if (lent !== undefined && bound.unclaimable.has(lent.slot)) return false;
  return attachment === null || (attachment >= bound.since && attachment < bound.first);
}

/** Whether an attempt or its ticket has ended, here or in an earlier instance. */
export function hasEnded(
  { tombstones, bound }: GroupState,
  lease: LeaseId,
  ticket: TicketId,
): boolean {
  if (tombstones.has(lease) || tombstones.has(ticket)) return true;
  return bound.unclaimable.has(lease) && !bound.lapsedBefore.has(lease);
}

/** Whether a claim comes from a newer instance, which has replaced this one. */
export function isOfNewer({ bound, nextAttachment }: GroupState, claim: Claim): boolean {
  return bound.isStored && (claim.attachment ?? 0) >= nextAttachment;
}

/** Takes up to `slots` orphaned slots of a member, and returns how many. */
export function takeOrphaned(state: GroupState, member: Member, slots: number): number {
  const taken = Math.min(slots, member.unclaimed);
  holdOrphanedAt(state, member, -taken);
  return taken;
}

export function orphanedFor(state: GroupState, claim: Claim, now: InstantMs): number {
  return orphanedAt(state, memberOfClaim(state, claim, now));
}

/** Counts orphaned slots that a lease of a member may reclaim, including those from before the group had members. */
export function orphanedAt(state: GroupState, member: Member): number {
  const unplaced = state.members.get(IMPLICIT);
  return member.unclaimed + (unplaced === member ? 0 : (unplaced?.unclaimed ?? 0));
}

/** Takes slots that were granted before the group had members, and returns how many. */
export function takeUnplaced(state: GroupState, slots: number): number {
  const member = state.members.get(IMPLICIT);
  return member === undefined ? 0 : takeOrphaned(state, member, slots);
}

export function memberOfClaim(
  state: GroupState,
  { member = IMPLICIT, holder }: Pick<Claim, 'member' | 'holder'>,
  now: InstantMs,
): Member {
  return memberFor(state, member, holder, now);
}

/** Frees orphaned slots that no holder reclaimed within the TTL. */
export function expireOrphaned(state: GroupState, now: InstantMs): void {
  if (now < state.unclaimed.until) return;
  for (const member of state.members.values()) takeOrphaned(state, member, member.unclaimed);
}

/**
 * Once no slots are orphaned, nothing of earlier instances is left. Later claims get no slot, and budget reservations
 * without a known lease count as spent.
 */
export function settleOrphaned(state: GroupState, now: InstantMs): void {
  const { bound, unclaimed, leases } = state;
  if (unclaimed.slots > 0 || unclaimed.isOver) return;
  unclaimed.isOver = true;
  bound.since = bound.first;
  bound.unclaimable.clear();
  bound.lapsedBefore.clear();
  bound.grantedBefore.clear();
  bound.heirsBefore.clear();
  bound.passedBefore.length = 0;
  state.seekingParent.clear();
  for (const { id, controls } of state.members.values()) {
    for (const { breaker } of [controls, ...controls.scopes.narrower]) {
      keepProbes(breaker, (lease) => leases.has(lease));
    }
    const isOfAll = controls === state.controls;
    if (!isOfAll) chargeRest(controls.spend, reservedAt(state, id), now);
  }
  chargeRest(state.controls.spend, reservedAt(state, null), now);
}

/** Adds up the budget reservations of a member's leases. null means all leases. */
function reservedAt({ leases }: GroupState, member: MemberId | null): number {
  let usd = 0;
  for (const lease of leases.values()) {
    if (member === null || lease.member === member) usd += lease.reserved?.usd ?? 0;
  }
  return usd;
}
