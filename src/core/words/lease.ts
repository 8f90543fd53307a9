import type { LeaseId, MemberId, TicketId } from './ids.ts';
import type { Holder, Lane, Reserved } from './ticket.ts';

/** The lease on whose slots another one runs, and the number of slots that it takes. */
export interface NestedLease {
  readonly in: LeaseId;
  readonly slots: number;
}

/** A lease as its holder knows it. A group that does not know it can recreate it from this record. */
export interface LeaseRecord {
  readonly leaseId: LeaseId;
  readonly ticketId: TicketId;
  readonly holder: Holder;
  readonly lane: Lane;
  /** Slots that the call uses, including those that it shares with its parent. */
  readonly slots: number;
  /** The member in its answer. Absent if the group had no members then. */
  readonly member?: MemberId;
  /** The attachment number of the answer that carries it. null if unknown. */
  readonly attachment: number | null;
  /** null if it has slots of its own. */
  readonly nested: NestedLease | null;
  /** Leases that had its slot before, newest first. Empty if there were none, or if its holder does not report them. */
  readonly heirOf: readonly LeaseId[];
  /** The part of rates and budgets that it has reserved. null if there is none. */
  readonly reserved: Reserved | null;
  /** It is held by id now. Absent if it is held by its answer. */
  readonly isById?: boolean;
}
