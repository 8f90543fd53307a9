import type { Waiter } from '../../src/core/parts/queue.ts';
import type { Lease } from '../../src/core/state.ts';
import type { NaiveLease } from './naive-leases.ts';
import type { NaiveWaiter } from './naive-order.ts';

/** Shows the part of a lease that must be the same in both groups. */
export function faceOf(lease: NaiveLease | Lease): unknown {
  const { id, phase, until, attachment, lane, slots, waitsElsewhere } = lease;
  const { grantedAt, chargedMs, nested, heirOf } = lease;
  const times = [until, grantedAt, chargedMs];
  return [id, phase, ...times, attachment, lane, slots, waitsElsewhere, nested, heirOf];
}

/** Shows the part of a waiter that must be the same in both groups. */
export function placeOf(waiter: NaiveWaiter | Waiter): unknown {
  const { ticket, leaseId, age, lane, isPromoted, isAnew, deadlineAt, sliceEndsAt } = waiter;
  return [ticket.id, leaseId, age, lane, isPromoted, isAnew, deadlineAt, sliceEndsAt];
}
