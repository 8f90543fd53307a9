import {
  after,
  IMPLICIT,
  type InstantMs,
  type LeaseId,
  type MemberId,
  type TicketId,
} from './words/ids.ts';
import { LEASE_TTL_MS } from './words/settings.ts';
import type { Holder, Lane } from './words/ticket.ts';
import type { Reserved } from './words/usage.ts';
import type { KeeperReport } from './parts/prefetches.ts';
import { keepProbes } from './parts/breaker.ts';
import { chargeRest } from './parts/spend.ts';
import type { Member } from './member.ts';
import { inPlaceOf, isSplit, memberAt, memberFor } from './members.ts';
import type { GroupState, ActiveLease } from './state.ts';

/**
 * Slots that an earlier instance may have handed out, and of which nobody has been heard yet. They count as
 * held until a holder claims them, or for one TTL.
 */

/** A lease as its holder tells of it, to a group that may not know it: an earlier instance has granted it. */
export interface Claim {
  readonly leaseId: LeaseId;
  readonly ticketId: TicketId;
  readonly holder: Holder;
  readonly lane: Lane;
  /** The member that its answer named. Absent: the group named none then. */
  readonly member?: MemberId;
  /** Slots that the call takes, on another lease too. */
  readonly slots: number;
  /** The attachment of the answer that it holds it by. Null: it is not known. */
  readonly attachment: number | null;
  /** No renewal was acknowledged that it sent within the last TTL: its slots have been given up. */
  readonly hasLapsed: boolean;
  /** The leases that had its slot before it, as its answer named them; empty: none, or its holder does not say. */
  readonly heirOf: readonly LeaseId[];
  /** How long it has held the lease, in milliseconds. */
  readonly heldMs: number;
  readonly nested: ActiveLease['nested'];
  /** The part of rates and budgets that it was granted with. */
  readonly reserved: Reserved | null;
  /** It is held by its id, or is from now on. Absent: by its answer. */
  readonly isById?: boolean;
  /** The lent slot on which its call began, and the loan that it is of. Absent: it asked for its slots. */
  readonly lent?: OrphanedPrefetchedSlot;
}

export interface OrphanedPrefetchedSlot {
  readonly loan: LeaseId;
  readonly slot: LeaseId;
  /** The report on the loan that comes with it, noted as the lease takes the place of the slot. Absent: nothing. */
  readonly told?: KeeperReport;
}

/** Counts as many slots as earlier instances may have handed out, each where it did. */
export function holdOrphaned(
  state: GroupState,
  slots: ReadonlyMap<MemberId, number>,
  now: InstantMs,
): void {
  state.unclaimed.until = after(now, LEASE_TTL_MS);
  state.unclaimed.isOver = false;
  for (const [id, count] of slots) {
    // Of a group that names none any more there is but one.
    const [sole] = state.serving;
    const isOne = !isSplit(state) && sole !== undefined;
    const member = isOne ? sole : inPlaceOf(state, memberAt(state, id, now));
    holdOrphanedAt(state, member, count);
  }
}

/** Counts slots of a member as unclaimed. */
export function holdOrphanedAt(state: GroupState, member: Member, slots: number): void {
  state.unclaimed.slots += slots;
  state.slotsInUse += slots;
  member.unclaimed += slots;
  member.slotsInUse += slots;
}

/** Whether a lease may be one of those whose slots are unclaimed. */
export function mayClaim({ bound, unclaimed: orphaned }: GroupState, claim: Claim): boolean {
  const { leaseId, attachment, hasLapsed, lent } = claim;
  if (hasLapsed || orphaned.slots === 0 || bound.unclaimable.has(leaseId)) return false;
  if (lent !== undefined && bound.unclaimable.has(lent.slot)) return false;
  return attachment === null || (attachment >= bound.since && attachment < bound.first);
}

/** Whether an attempt, or its ticket, has ended here or in an instance before. */
export function hasEnded(
  { tombstones, bound }: GroupState,
  lease: LeaseId,
  ticket: TicketId,
): boolean {
  if (tombstones.has(lease) || tombstones.has(ticket)) return true;
  return bound.unclaimable.has(lease) && !bound.lapsedBefore.has(lease);
}

/** Whether a claim is of an instance that came after this one, and has replaced it. */
export function isOfNewer({ bound, nextAttachment }: GroupState, claim: Claim): boolean {
  return bound.isStored && (claim.attachment ?? 0) >= nextAttachment;
}

/** Takes slots out of the unclaimed ones of a member, as many as there are. Returns how many. */
export function takeUnclaimed(state: GroupState, member: Member, slots: number): number {
  const taken = Math.min(slots, member.unclaimed);
  holdOrphanedAt(state, member, -taken);
  return taken;
}

/** Counts the unclaimed slots where the lease of a claim would be. */
export function unclaimedFor(state: GroupState, claim: Claim, now: InstantMs): number {
  return unclaimedAt(state, memberOfClaim(state, claim, now));
}

/** Counts unclaimed slots that a lease of a member may have. */
export function unclaimedAt(state: GroupState, member: Member): number {
  const unplaced = state.members.get(IMPLICIT);
  return member.unclaimed + (unplaced === member ? 0 : (unplaced?.unclaimed ?? 0));
}

/** Takes slots out of those that were handed out while the group named no members. Returns how many. */
export function takeUnplaced(state: GroupState, slots: number): number {
  const member = state.members.get(IMPLICIT);
  return member === undefined ? 0 : takeUnclaimed(state, member, slots);
}

/** Finds the member of a claim. */
export function memberOfClaim(
  state: GroupState,
  { member = IMPLICIT, holder }: Pick<Claim, 'member' | 'holder'>,
  now: InstantMs,
): Member {
  return memberFor(state, member, holder, now);
}

/** Frees what nobody has claimed in time. */
export function expireUnclaimed(state: GroupState, now: InstantMs): void {
  if (now < state.unclaimed.until) return;
  for (const member of state.members.values()) takeUnclaimed(state, member, member.unclaimed);
}

/**
 * Once nothing is unclaimed any more, nothing of earlier instances is left: whoever comes now has no slot, and
 * what was reserved for nobody who is known counts as spent.
 */
export function settleUnclaimed(state: GroupState, now: InstantMs): void {
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

/** Adds up what is reserved of budgets by the leases of a member; null: of all. */
function reservedAt({ leases }: GroupState, member: MemberId | null): number {
  let usd = 0;
  for (const lease of leases.values()) {
    if (member === null || lease.member === member) usd += lease.reserved?.usd ?? 0;
  }
  return usd;
}
