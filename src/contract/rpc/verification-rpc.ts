import type { CallNotes, LeaseOutcome } from '../../core/words/outcome.ts';
import type { UpstreamSignal } from '../../core/words/signal.ts';
import type { Settlement } from '../../core/words/ticket.ts';
import type { ListedPool } from './directory-rpc.ts';
import type {
  AcquireAnswer,
  AcquireRequest,
  RenewByIdAnswer,
  ResumeAnswer,
  ResumeRequest,
} from './group-rpc.ts';
import type { PoolStatus } from '../status.ts';

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
