import type { RunLease } from '../contract/rpc/runs-rpc.ts';

/** A lease of a run, and until when its pool counts it unless it is renewed. Instants are of the object's clock. */
export interface HeldByRun extends RunLease {
  readonly grantedAt: number;
  readonly expiresAt: number;
}

/** Something that goes on at its upstream, with its leases. */
export interface UpstreamRun {
  readonly id: string;
  /** When its leases are given back, whatever becomes of it. */
  readonly until: number;
  readonly leases: readonly HeldByRun[];
  /** A renewal of it has failed, so that those of the others say nothing of it. */
  readonly isLate: boolean;
}
