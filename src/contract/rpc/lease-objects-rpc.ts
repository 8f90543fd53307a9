import type { LeaseOutcome, CallNotes } from '../../core/words/outcome.ts';
import type { UpstreamSignal } from '../../core/words/signal.ts';
import type { Settlement } from '../../core/words/ticket.ts';
import type { GroupConfig } from '../config/config.ts';
import type { PoolStatus } from '../status.ts';
import type {
  LeaseRef,
  AcquireAnswer,
  AcquireRequest,
  RenewByIdAnswer,
  ResumeAnswer,
  ResumeRequest,
} from './group-rpc.ts';
import type { ListedPool } from './directory-rpc.ts';

/** Objects that hold leases beside the pools: one per upstream for its runs, and one for all unverified pools. */

/** A lease that moves from the call that started a run to the run. */
export interface RunLease {
  readonly lease: LeaseRef;
  /** As in `ResumeRequest`. */
  readonly heldMs: number;
  readonly hasLapsed: boolean;
  readonly jurisdiction: GroupConfig['jurisdiction'];
  readonly location: GroupConfig['location'];
  /** Status of the upstream's response to the call. */
  readonly status: number | null;
}

export interface RunRequest {
  /** The upstream's id of the run. */
  readonly run: string;
  /** Maximum time for which it holds its leases. */
  readonly forMs: number;
  readonly leases: readonly RunLease[];
}

/** Objects that an upstream created for a caller. Caller and ids are keyed hashes. */
export interface MadeRequest {
  readonly caller: string;
  readonly ids: readonly string[];
  readonly upstream: string;
}

/**
 * Calls of a Worker to the object that holds the leases of an upstream's runs. A separate object holds them, because no
 * request lives as long as a run that continues after its response.
 */
export interface RunsRpc {
  /**
   * Holds leases until the run ends. Idempotent. `late`: a pool was unreachable. `no`: the leases are not held, and
   * their call releases them.
   */
  hold(request: RunRequest): Promise<'held' | 'late' | 'no'>;
  /** Reports that the run has ended, according to the upstream. Ignores unknown runs. */
  end(run: string, outcome: LeaseOutcome): Promise<void>;
  /** Stores which upstream created objects, so that later requests for their ids are routed there. */
  noteMade(request: MadeRequest): Promise<void>;
  /** Returns the upstream that created one of these objects, or null if it is unknown or expired. */
  madeBy(ids: readonly string[]): Promise<string | null>;
}

/** The pool has had its first success, so its own object must be called. */
export interface VerifiedPool {
  readonly kind: 'proved';
}

/**
 * Calls of a Worker to the object that holds all unverified pools. A runtime that opens a file per object would
 * otherwise open one for every value that a caller makes up.
 */
export interface VerificationRpc {
  acquire(request: AcquireRequest): Promise<AcquireAnswer | VerifiedPool>;
  resume(request: ResumeRequest): Promise<ResumeAnswer | VerifiedPool>;
  renew(
    leaseId: string,
    status: number | null,
    held: ResumeRequest,
  ): Promise<RenewByIdAnswer | VerifiedPool>;
  cancel(pool: ListedPool, ticketId: string): Promise<void>;
  release(
    pool: ListedPool,
    leaseId: string,
    outcome: LeaseOutcome,
    status: number | null,
    settlement?: Settlement,
    held?: ResumeRequest,
    notes?: CallNotes,
  ): Promise<void>;
  report(
    pool: ListedPool,
    leaseId: string,
    signal: UpstreamSignal,
    isRepeat: boolean,
    held?: ResumeRequest,
  ): Promise<void>;
  status(pool: ListedPool): Promise<PoolStatus>;
  isVerified(pool: ListedPool): Promise<boolean>;
}
