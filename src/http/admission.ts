import type { Outcome } from '../core/outcome.ts';
import type { Placement } from '../routing/placement.ts';

/** One logical call, as the queue knows it. */
export interface Ticket {
  readonly id: string;
  readonly enqueuedAt: number;
  /** How long the caller is willing to wait; null: as long as the group allows. */
  readonly maxWaitMs: number | null;
  readonly agent: string | null;
}

/** A slot, or the leave to go without one. */
export interface Admission {
  readonly placement: Placement;
  readonly leaseId: string | null;
  reportStatus(status: number): void;
  keep(onRevoked: () => void): void;
  release(outcome: Outcome): Promise<void>;
}
