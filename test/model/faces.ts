import type { Effect } from '../../src/core/events.ts';
import type { Waiter } from '../../src/core/parts/queue.ts';
import type { ActiveLease } from '../../src/core/state.ts';
import type { NaiveLease } from './naive-leases.ts';
import type { NaiveWaiter } from './naive-order.ts';

/** Shows the part of a lease that must be the same in both groups. */
export function faceOf(lease: NaiveLease | ActiveLease): unknown {
  const { id, phase, until, attachment, lane, slots, waitsElsewhere } = lease;
  const { grantedAt, chargedMs, nested, heirOf: nextHolderOf } = lease;
  const times = [until, grantedAt, chargedMs];
  return [id, phase, ...times, attachment, lane, slots, waitsElsewhere, nested, nextHolderOf];
}

const NOWHERE = { position: null, cause: null, scope: null };

/** Shows the part of a waiter that must be the same in both groups. */
export function placeOf(waiter: NaiveWaiter | Waiter): unknown {
  const { ticket, leaseId, age, lane, isPromoted, isAnew, deadlineAt, sliceEndsAt } = waiter;
  const {
    position,
    cause,
    scope = null,
  } = ('waitsFor' in waiter ? waiter.waitsFor : waiter.arrival) ?? NOWHERE;
  const arrival = [position, cause, scope];
  return [ticket.id, leaseId, age, lane, isPromoted, isAnew, deadlineAt, sliceEndsAt, arrival];
}

/** Shows the rejections for stops and for slots, without the times that their callers waited or should wait. */
export function rejectionsOf(effects: readonly Effect[]): unknown[] {
  return effects.flatMap((effect) => {
    if (effect.kind !== 'reject') return [];
    const { ticketId, rejection } = effect;
    if (!SHOWN.has(rejection.reason)) return [];
    const { retryAfterMs: _, ...told } = rejection;
    if ('waitedMs' in told) Reflect.deleteProperty(told, 'waitedMs');
    return { ticketId, scope: null, ...told };
  });
}

const SHOWN: ReadonlySet<string> = new Set([
  'busy',
  'paused',
  'upstream_limited',
  'breaker_open',
  'members_out',
]);
