import type { RunLease } from '../contract/rpc/runs-rpc.ts';

/** A lease of a run, and when it expires unless it is renewed. Times are of the object's clock. */
export interface HeldByRun extends RunLease {
  readonly grantedAt: number;
  readonly expiresAt: number;
}

/** Work that continues at an upstream after its answer, and the leases that it holds. */
export interface UpstreamRun {
  readonly id: string;
  /** When its leases are released at the latest. */
  readonly until: number;
  readonly leases: readonly HeldByRun[];
  /** Whether its last renewal failed, so the common renewal time does not apply to it. */
  readonly isLate: boolean;
}
