/**
 * Branded ids and instants. The functions below are the only way to make one. So a lease id cannot be passed as a
 * ticket id, nor a duration as an instant.
 */
declare const brand: unique symbol;

/** One logical call, whatever the number of its attempts. The Worker generates it. */
export type TicketId = string & { readonly [brand]: 'TicketId' };

export type LeaseId = string & { readonly [brand]: 'LeaseId' };

/** Milliseconds since the epoch, by the shell's clock. */
export type InstantMs = number & { readonly [brand]: 'InstantMs' };

export function ticketId(text: string): TicketId {
  return text as TicketId;
}

/** Formats a lease id as `<ticket>.<attempt>`. */
export function leaseIdOf(ticket: TicketId, attempt: number): LeaseId {
  return `${ticket}.${attempt}` as LeaseId;
}

export function ticketOf(lease: LeaseId): TicketId {
  return lease.slice(0, lease.lastIndexOf('.')) as TicketId;
}

export function attemptOf(lease: string): number {
  return Number(lease.slice(lease.lastIndexOf('.') + 1));
}

export function leaseId(text: string): LeaseId {
  return text as LeaseId;
}

export function instant(ms: number): InstantMs {
  return ms as InstantMs;
}

export function after(at: InstantMs, ms: number): InstantMs {
  return (at + ms) as InstantMs;
}

export function later(at: InstantMs, other: InstantMs): InstantMs {
  return instant(Math.max(at, other));
}

export function earlier(at: InstantMs, other: InstantMs): InstantMs {
  return instant(Math.min(at, other));
}

/** The name of a member within its group. */
export type MemberId = string & { readonly [brand]: 'MemberId' };

export function memberId(text: string): MemberId {
  return text as MemberId;
}

/** The only member of a group that names no members. */
export const IMPLICIT = memberId('');
