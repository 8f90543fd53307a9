import type { Outcome } from '../core/outcome.ts';
import type { Lane } from '../core/ticket.ts';
import type { Placement } from '../routing/placement.ts';

/** One logical call, as its caller presents it to the queues. */
export interface Ticket {
  readonly id: string;
  readonly enqueuedAt: number;
  /** How long the caller is willing to wait; null: as long as the groups allow. */
  readonly maxWaitMs: number | null;
  /** The lane that the caller asks for; null: whatever the key or the group gives. */
  readonly lane: Lane | null;
  /** What the caller's key gives to calls that ask for none, and the best that it allows. */
  readonly keyLanes: { readonly byDefault: Lane | null; readonly best: Lane };
  readonly slots: number;
  /** The first round in which it asks, from 1. What an earlier way took it has given back for good. */
  readonly firstRound: number;
  readonly agent: string | null;
  readonly agentStartedAt: number | null;
  /** Leases of the call that this one is made for. */
  readonly parents: readonly string[];
}

/** The slots of a call in all its groups, or the leave to go without. */
export interface Admission {
  readonly placements: readonly Placement[];
  /** Narrow first; fewer than groups where one let the call pass without a slot. */
  readonly leaseIds: readonly string[];
  reportStatus(status: number): void;
  keep(onRevoked: () => void): void;
  release(outcome: Outcome): Promise<void>;
}
