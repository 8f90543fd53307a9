import type { InstantMs, TicketId } from './ids.ts';

/** Who a slot is for: what the core carries along and never looks into. */
export interface Holder {
  readonly caller: string;
  readonly agent: string | null;
  readonly upstream: string;
  readonly model: string | null;
}

/** One logical call that asks for a slot. */
export interface Ticket {
  readonly id: TicketId;
  readonly holder: Holder;
  /** When the call reached Headgate. Its place in the queue, kept over every ask and every reset. */
  readonly enqueuedAt: InstantMs;
  /** The caller's own deadline; the group's time-out applies besides. */
  readonly deadlineAt: InstantMs | null;
  /** False: the caller would rather be told `busy` than wait. */
  readonly wait: boolean;
}
