import { after, IMPLICIT, instant, type InstantMs } from './words/ids.ts';
import { LEASE_TTL_MS } from './words/settings.ts';
import { demandAt, demandOf } from './parts/demand.ts';
import { noteHandedOut } from './parts/bound.ts';
import { observe } from './parts/totals.ts';
import { atUpstream } from './capacity.ts';
import type { GroupEvent } from './events.ts';
import { noteNextHolderReturned } from './next-holders.ts';
import { memberFor, memberOf, noteAffinity, type GroupState, type ActiveLease } from './state.ts';
import { noteNested, passesOn, slotsPassing } from './nesting.ts';
import { isMeteredAt, reservationOf } from './reservation.ts';
import { noteStart, noteTold, takePrefetched } from './prefetching.ts';
import {
  mayClaim,
  memberOfClaim,
  takeOrphaned,
  takeUnplaced,
  orphanedAt,
  type Claim,
} from './orphaned.ts';
import { addLease, chargeTo, countLease, newLease, openLease } from './leases.ts';

/** Leases that this instance learns from their holders: after a reset, or for calls on prefetched slots. */

/**
 * Creates the lease of a holder that this instance does not know. Its slots are taken from the orphaned ones. Slots
 * beyond those count too, even above the limit, because the call is running at the provider. Nothing is granted until
 * there is room again.
 */
export function claimLease(state: GroupState, claim: Claim, now: InstantMs): ActiveLease {
  const { leaseId: id, ticketId, holder, lane, slots } = claim;
  const heldMs = heldFor(claim);
  const isOurs = mayClaim(state, claim);
  const member = memberOfClaim(state, claim, now);
  const parent = isOurs ? claim.nested : null;
  const isNested = parent !== null && maySharePassage(state, parent);
  const { isById = false } = claim;
  const bare = { waitsElsewhere: false, reserved: isOurs ? claim.reserved : null, isById };
  const named = claim.member ?? IMPLICIT;
  const wanted = { id, ticketId, holder, lane, member: member.id, named, nested: parent, ...bare };
  if (!isOurs) {
    state.totals.resurrected += 1;
    return openLease(state, { ...wanted, heirOf: [], slots }, now);
  }
  const { heirOf: nextHolderOf } = claim;
  noteNextHolderReturned(state, member, claim, now);
  const marked = takeOrphaned(state, member, slots);
  const unmarked = slots - marked;
  if (unmarked > takeUnplaced(state, unmarked)) state.totals.resurrected += 1;
  noteHandedOut(state.bound, member.id, unmarked, now);
  const since = instant(now - heldMs);
  const lease = newLease(
    state,
    { ...wanted, heirOf: nextHolderOf, slots: isNested ? 0 : slots },
    since,
  );
  lease.until = after(now, LEASE_TTL_MS);
  lease.isOfEarlier = true;
  // What tenants had received before a reset is forgotten, so the time held until now is not charged.
  lease.chargedMs = heldMs;
  addLease(state, lease, now);
  if (parent !== null && !isNested) state.seekingParent.add(lease);
  noteAffinity(state, lease, now);
  for (const child of state.seekingParent) {
    if (child.nested?.in === id) nestAgain(state, child, child.nested, now);
  }
  return lease;
}

/**
 * Creates the lease of a call that runs on a prefetched slot. The slot belongs to the lease from now on. null if the
 * slot is not prefetched.
 */
export function leaseOnPrefetched(
  state: GroupState,
  claim: Claim,
  now: InstantMs,
): ActiveLease | null {
  const { leaseId: id, ticketId, holder, lane, lent } = claim;
  if (lent === undefined) return null;
  const heldMs = heldFor(claim);
  const loan = state.lending.loans.get(lent.loan);
  if (!takePrefetched(state, lent.loan, lent.slot)) return null;
  if (lent.told !== undefined) noteTold(state, loan, lent.told, now);
  const bare = { slots: 1, nested: null, heirOf: [], waitsElsewhere: false, reserved: null };
  const member = memberFor(state, IMPLICIT, holder, now).id;
  const lease = newLease(
    state,
    { id, ticketId, holder, lane, member, named: IMPLICIT, ...bare },
    instant(now - heldMs),
  );
  lease.until = after(now, LEASE_TTL_MS);
  addLease(state, lease, now);
  lease.slotsAtGrant = atUpstream(state, memberOf(state, lease));
  chargeTo(state, lease, heldMs, now);
  state.totals.granted += 1;
  observe(state.totals.wait, 0);
  lease.decision = noteStart(state, lease, lease.grantedAt);
  return lease;
}

/** A negative hold means that the holder's clock was set back. */
function heldFor({ heldMs }: Claim): number {
  return Math.max(0, heldMs);
}

/** Whether a reclaimed nested lease may share its parent's slots again. Other leases may have taken them meanwhile. */
function maySharePassage(state: GroupState, to: NonNullable<ActiveLease['nested']>): boolean {
  const parent = state.leases.get(to.in);
  if (parent === undefined || parent.phase === 'cooling' || passesOn(parent) !== null) return false;
  return slotsPassing(state, to.in) + to.slots <= parent.slots;
}

/**
 * Recreates a lease of the last write before a reset, if its caller repeats the acquire call. The answer was lost with
 * the earlier instance. null if there is no such lease.
 */
export function claimGranted(
  state: GroupState,
  { ticket, leaseId }: Pick<Extract<GroupEvent, { kind: 'acquire' }>, 'ticket' | 'leaseId'>,
  now: InstantMs,
): ActiveLease | null {
  const { bound, controls } = state;
  const member = bound.grantedBefore.get(leaseId);
  if (member === undefined) return null;
  const there = memberFor(state, member, ticket.holder, now);
  const unclaimed = orphanedAt(state, there);
  // A call that may have shared its parent's slots is not known to hold any.
  if (ticket.parents.length > 0 || ticket.slots > unclaimed) return null;
  bound.grantedBefore.delete(leaseId);
  const { id: ticketId, holder, lane, slots, estimate, isById = false } = ticket;
  const demand = demandAt(demandOf(controls.factors, state.guessRates, ticket), there.id);
  const reserved = reservationOf(isMeteredAt(state, there.id), demand, {
    estimate,
    hasWaited: false,
  });
  const none = { attachment: null, hasLapsed: false, heldMs: 0, nested: null, heirOf: [] };
  const claim = { leaseId, ticketId, holder, lane, member, slots, reserved, isById, ...none };
  return claimLease(state, claim, now);
}

/** Attaches a nested lease to its parent again, if it was reclaimed before the parent. */
function nestAgain(
  state: GroupState,
  lease: ActiveLease,
  to: NonNullable<ActiveLease['nested']>,
  now: InstantMs,
): void {
  if (!maySharePassage(state, to)) return;
  countLease(state, lease, -1, now);
  lease.slots = 0;
  countLease(state, lease, 1, now);
  noteNested(state, lease);
  state.seekingParent.delete(lease);
}
