import type { InstantMs, LeaseId, TicketId } from './ids.ts';
import type { Ticket } from './ticket.ts';

/** A ticket's entry in the queue. */
export interface Waiter {
  readonly ticket: Ticket;
  readonly leaseId: LeaseId;
  /** Order of arrival at this instance. */
  readonly sequence: number;
  /** When it is rejected. */
  readonly deadlineAt: InstantMs;
  /**
   * End of the ask that its caller is parked in, or null: nobody is parked. Without a parked ask the
   * waiter keeps its place but gets no slot, which would go to somebody who may be gone.
   */
  sliceEndsAt: InstantMs | null;
  /** When it is dropped unless its caller asks again. */
  orphanAt: InstantMs;
}

/** The waiting line, best first. */
export interface Queue {
  readonly line: Waiter[];
  readonly byTicket: Map<TicketId, Waiter>;
}

export function emptyQueue(): Queue {
  return { line: [], byTicket: new Map() };
}

/**
 * The order of the queue: first come, first served, by the time at which the call reached Headgate,
 * so that a caller who asks again after a reset stands where it stood. Ties by arrival here.
 */
function compareWaiters(a: Waiter, b: Waiter): number {
  return a.ticket.enqueuedAt - b.ticket.enqueuedAt || a.sequence - b.sequence;
}

/** Puts a waiter where it belongs: nearly always at the end. */
export function enqueue(queue: Queue, waiter: Waiter): void {
  let index = queue.line.length;
  for (let before = queue.line[index - 1]; before !== undefined; before = queue.line[index - 1]) {
    if (compareWaiters(before, waiter) <= 0) break;
    index -= 1;
  }
  queue.line.splice(index, 0, waiter);
  queue.byTicket.set(waiter.ticket.id, waiter);
}

/** Takes a waiter out. One that is not in the queue changes nothing. */
export function dequeue(queue: Queue, waiter: Waiter): void {
  const index = queue.line.indexOf(waiter);
  if (index < 0) return;
  queue.line.splice(index, 1);
  queue.byTicket.delete(waiter.ticket.id);
}

/** The first waiter that a caller is parked behind. */
export function firstReady(queue: Queue): Waiter | undefined {
  return queue.line.find((waiter) => waiter.sliceEndsAt !== null);
}
