import { cooldownMs } from './cooldown.ts';
import { observeHold } from './estimate.ts';
import type { Effect } from './events.ts';
import { after, instant, type InstantMs, type LeaseId, type TicketId } from './ids.ts';
import type { Outcome } from './outcome.ts';
import { LEASE_TTL_MS, TOMBSTONE_TTL_MS, TOMBSTONES_MAX } from './settings.ts';
import { NEVER, type GroupState, type Lease } from './state.ts';
import type { Holder } from './ticket.ts';

/** Makes a lease and counts it. The caller has checked that there is room. */
export function openLease(
  state: GroupState,
  id: LeaseId,
  ticketId: TicketId,
  holder: Holder,
  now: InstantMs,
): Lease {
  const lease: Lease = {
    id,
    ticketId,
    holder,
    grantedAt: now,
    phase: 'held',
    until: after(now, LEASE_TTL_MS),
    attachment: state.nextAttachment++,
    extendedUntil: null,
  };
  state.leases.set(id, lease);
  noteDue(state, lease.until);
  return lease;
}

/**
 * Hands the lease to a new answer: from now on the earlier one's disposal changes nothing. Who asked
 * for it lives, and begins to count its TTL now.
 */
export function attach(state: GroupState, lease: Lease, now: InstantMs, effects: Effect[]): void {
  lease.attachment = state.nextAttachment++;
  prolong(lease, now, effects);
}

/**
 * Gives a lease whose holder lives one TTL from now. One that was taken away is not prolonged: a holder
 * that ignores it loses the slot by its TTL.
 */
export function prolong(lease: Lease, now: InstantMs, effects: Effect[]): void {
  if (lease.phase !== 'held') return;
  lease.until = after(now, LEASE_TTL_MS);
  if (lease.extendedUntil !== null) {
    lease.extendedUntil = null;
    effects.push({ kind: 'save', lease });
  }
}

/** Ends a lease for good. Its slot comes back at once or after its cool-down. */
export function endLease(
  state: GroupState,
  lease: Lease,
  outcome: Outcome,
  now: InstantMs,
  effects: Effect[],
): void {
  bury(state, lease.id, now);
  effects.push({ kind: 'ended', leaseId: lease.id });
  if (outcome === 'success' || outcome === 'cancelled') observeHold(state, now - lease.grantedAt);
  const downMs = cooldownMs(state.settings, outcome);
  if (downMs > 0) {
    lease.phase = 'cooling';
    lease.until = after(now, downMs);
    noteDue(state, lease.until);
    effects.push({ kind: 'save', lease });
  } else {
    state.leases.delete(lease.id);
    effects.push({ kind: 'drop', leaseId: lease.id });
  }
}

/** Ends every lease whose time is over: lapsed ones, and cool-downs. */
export function expireLeases(state: GroupState, now: InstantMs, effects: Effect[]): void {
  if (now < state.leasesDueAt) return;
  state.leasesDueAt = NEVER;
  for (const lease of state.leases.values()) {
    if (now < lease.until) {
      noteDue(state, lease.until);
      continue;
    }
    state.leases.delete(lease.id);
    effects.push({ kind: 'drop', leaseId: lease.id });
    if (lease.phase === 'cooling') continue;
    // A lapsed lease leaves no tombstone: a holder that was only out of reach may still resume it.
    // One that an operator took away does, or its holder would come back.
    if (lease.phase === 'revoking') bury(state, lease.id, now);
    state.totals.expired += 1;
    effects.push({ kind: 'ended', leaseId: lease.id });
  }
}

/** Remembers that an attempt, or a whole ticket, has ended. */
export function bury(state: GroupState, id: LeaseId | TicketId, now: InstantMs): void {
  state.tombstones.delete(id);
  state.tombstones.set(id, after(now, TOMBSTONE_TTL_MS));
  for (const [oldest, forgetAt] of state.tombstones) {
    if (now < forgetAt && state.tombstones.size <= TOMBSTONES_MAX) break;
    state.tombstones.delete(oldest);
  }
}

/** Lowers the instant of the next expiry to `at`. */
export function noteDue(state: GroupState, at: InstantMs): void {
  state.leasesDueAt = instant(Math.min(state.leasesDueAt, at));
}
