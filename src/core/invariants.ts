import type { InstantMs } from './ids.ts';
import { firstReady } from './queue.ts';
import { TOMBSTONES_MAX } from './settings.ts';
import { hasRoom, type GroupState } from './state.ts';

/** What is wrong with the state, in words; an empty list is a sound state. For tests and after a load. */
export function checkInvariants(state: GroupState, now: InstantMs): string[] {
  const broken: string[] = [];
  const { line, byTicket } = state.queue;
  if (hasRoom(state, now) && firstReady(state.queue) !== undefined) {
    broken.push('a waiter could take a free slot');
  }
  if (line.length !== byTicket.size) broken.push('the queue and its index differ');
  for (const [index, waiter] of line.entries()) {
    const before = line[index - 1];
    if (before !== undefined && before.ticket.enqueuedAt > waiter.ticket.enqueuedAt) {
      broken.push(`waiter ${waiter.ticket.id} stands before an older one`);
    }
    if (state.leases.has(waiter.leaseId)) broken.push(`${waiter.leaseId} waits and holds`);
    if (state.tombstones.has(waiter.leaseId)) broken.push(`${waiter.leaseId} waits and has ended`);
    if (state.waitersDueAt > waiter.deadlineAt) broken.push(`${waiter.leaseId} has no alarm`);
  }
  for (const lease of state.leases.values()) {
    if (state.leasesDueAt > lease.until) broken.push(`lease ${lease.id} has no alarm`);
    if (lease.phase !== 'cooling' && state.tombstones.has(lease.id)) {
      broken.push(`lease ${lease.id} is held and has ended`);
    }
  }
  if (state.tombstones.size > TOMBSTONES_MAX) broken.push('too many tombstones');
  return broken;
}
