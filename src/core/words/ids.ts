/**
 * Branded ids and instants. The functions below are the only way to make one, so that a lease id
 * can never stand where a ticket id is meant, nor a duration where an instant is.
 */
declare const brand: unique symbol;

/** One logical call, whatever its tries. Minted by the Worker. */
export type TicketId = string & { readonly [brand]: 'TicketId' };

/** One hold on slots: a ticket id and the number of the attempt. */
export type LeaseId = string & { readonly [brand]: 'LeaseId' };

/** Milliseconds since the epoch, as the shell's clock gives them. */
export type InstantMs = number & { readonly [brand]: 'InstantMs' };

export function ticketId(text: string): TicketId {
  return text as TicketId;
}

/** The lease id of a ticket's attempt: `<ticket>.<attempt>`. */
export function leaseIdOf(ticket: TicketId, attempt: number): LeaseId {
  return `${ticket}.${attempt}` as LeaseId;
}

/** The ticket of a lease id. */
export function ticketOf(lease: LeaseId): TicketId {
  return lease.slice(0, lease.lastIndexOf('.')) as TicketId;
}

/** The attempt of a lease id. */
export function attemptOf(lease: string): number {
  return Number(lease.slice(lease.lastIndexOf('.') + 1));
}

/** A lease id that came over the wire or from a row. */
export function leaseId(text: string): LeaseId {
  return text as LeaseId;
}

export function instant(ms: number): InstantMs {
  return ms as InstantMs;
}

/** The instant `ms` milliseconds after `at`. */
export function after(at: InstantMs, ms: number): InstantMs {
  return (at + ms) as InstantMs;
}

/** The later of two instants. */
export function later(at: InstantMs, other: InstantMs): InstantMs {
  return instant(Math.max(at, other));
}

/** The earlier of two instants. */
export function earlier(at: InstantMs, other: InstantMs): InstantMs {
  return instant(Math.min(at, other));
}

/** The name of a member within its group. */
export type MemberId = string & { readonly [brand]: 'MemberId' };

/** The id of a member that came over the wire, from a row or from the configuration. */
export function memberId(text: string): MemberId {
  return text as MemberId;
}

/** The only member of a group that names none. */
export const IMPLICIT = memberId('');
