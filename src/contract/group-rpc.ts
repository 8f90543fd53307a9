import type { Outcome } from '../core/outcome.ts';
import type { Rejection } from '../core/rejection.ts';

/**
 * What a Worker may ask of a group's object. Worker and object run different versions for minutes
 * after a deploy, so this contract only grows: a field is never renamed, removed or made required.
 */
export const CONTRACT_VERSION = 1;

export interface AcquireRequest {
  readonly version: number;
  /** Which group, and which partition of it (null: the group is not split). */
  readonly group: string;
  readonly partition: string | null;
  /** The limit of an automatic group, which no configuration holds. Null for a configured group. */
  readonly assumed: AssumedLimit | null;
  /** Version of the configuration that the Worker routed by. */
  readonly configVersion: number;
  readonly ticketId: string;
  /** 1 for the first try of the ticket. Lease id = ticket id + attempt. */
  readonly attempt: number;
  /** When the call reached Headgate, in epoch milliseconds. Kept over every ask. */
  readonly enqueuedAt: number;
  /** The caller's own deadline in epoch milliseconds; the group's time-out applies besides. */
  readonly deadlineAt: number | null;
  /** False: answer `busy` instead of waiting. */
  readonly wait: boolean;
  /** How long the object may park this ask, in milliseconds. The Worker asks again before that. */
  readonly sliceMs: number;
  /** Who is charged: a gateway key's id, or the fingerprint of a provider key. */
  readonly caller: string;
  readonly agent: string | null;
  readonly upstream: string;
  readonly model: string | null;
  /** Calls that this isolate let pass without a slot since it last reached the object. */
  readonly passedUnlimited: number;
}

export interface AssumedLimit {
  readonly slotsMax: number;
  /** `built_in`: a row of the table of known limits. `unknown`: the default for everything else. */
  readonly source: 'built_in' | 'unknown';
}

/** The union that acquire returns: values, never exceptions, for what is expected. */
export type AcquireAnswer =
  | {
      readonly kind: 'granted';
      readonly lease: LeaseRpc;
      readonly leaseId: string;
      /** Larger than that of every earlier answer for this lease; only the largest one's disposal frees it. */
      readonly attachment: number;
      readonly configVersion: number;
    }
  | {
      readonly kind: 'pending';
      /** Waiters ahead of this one. */
      readonly position: number;
      readonly estimateMs: number;
      readonly configVersion: number;
    }
  | { readonly kind: 'rejected'; readonly rejection: Rejection; readonly configVersion: number }
  /** The group was retired or its matching changed: route again, no earlier than by that version. */
  | { readonly kind: 'moved'; readonly configVersion: number }
  /** The attempt has ended: it was released or cancelled, or a grant of it was lost on its way. */
  | { readonly kind: 'gone' };

/**
 * A held lease. The runtime disposes of it when the holder's context ends, which frees the slot as
 * `cancelled` unless it was released before.
 */
export interface LeaseRpc extends Disposable {
  /**
   * Renews at once, then stays parked until the next renewal is due (`ok`) or the lease was
   * force-released (`revoking`: abort the upstream call, then release) or is not known (`gone`).
   * `status` is the upstream's, once known.
   */
  renew(status: number | null): Promise<RenewAnswer>;
  /** Ends the lease; a second release changes nothing. `status` is the upstream's, or null. */
  release(outcome: Outcome, status: number | null): Promise<void>;
}

export type RenewAnswer = 'ok' | 'revoking' | 'gone';

/** What a holder says of itself when it takes up its lease with a new instance of the object. */
export interface ResumeRequest {
  readonly leaseId: string;
  readonly ticketId: string;
  readonly caller: string;
  readonly agent: string | null;
  readonly upstream: string;
  readonly model: string | null;
  readonly group: string;
  readonly partition: string | null;
  readonly assumed: AssumedLimit | null;
}

export type ResumeAnswer =
  | Extract<AcquireAnswer, { kind: 'granted' }>
  /** The lease had ended for good (released, or force-released): stop and do not resume. */
  | { readonly kind: 'gone' };

export interface GroupRpc {
  acquire(request: AcquireRequest): Promise<AcquireAnswer>;
  /** Takes the ticket out of the queue, or releases what it was granted meanwhile. */
  cancel(ticketId: string): Promise<void>;
  /** Ends a lease by its id, for a holder whose stub no longer works. */
  release(leaseId: string, outcome: Outcome, status: number | null): Promise<void>;
  resume(request: ResumeRequest): Promise<ResumeAnswer>;
  status(): Promise<PoolStatus>;
  leases(): Promise<LeaseInfo[]>;
  /** Force-releases a lease: its holder aborts the upstream call and lets go. False: not known. */
  revoke(leaseId: string): Promise<boolean>;
  /** Pushed by the directory at a change. A version that is not newer changes nothing. */
  reconfigure(definition: GroupDefinition): Promise<void>;
}

/** What the directory knows of one group, at one version. */
export interface GroupDefinition {
  readonly version: number;
  /** The last version at which calls may have begun to take another way than before. */
  readonly routingVersion: number;
  /** The group's configuration as JSON (`GroupConfig`), or null: automatic, or deleted. */
  readonly config: string | null;
}

/** One pool of slots: a group, or one partition of it. */
export interface PoolStatus {
  readonly group: string;
  readonly partition: string | null;
  readonly limit: {
    readonly configured: number | null;
    readonly effective: number | null;
    readonly source: 'configured' | 'built_in' | 'unknown' | 'learned';
  };
  readonly in_use: number;
  readonly cooling: number;
  readonly queued: number;
  readonly oldest_wait_ms: number;
  readonly paused: boolean;
  readonly paused_until: string | null;
  readonly granted_total: number;
  readonly rejected_total: Readonly<Record<string, number>>;
  /** Leases whose holder was gone, taken back at the end of their TTL. */
  readonly expired_total: number;
  /** Streams that were taken up again after their lease had lapsed. */
  readonly resurrected_total: number;
  /** Calls that passed without a slot while this object could not be reached. */
  readonly passed_unlimited_total: number;
}

export interface LeaseInfo {
  readonly id: string;
  readonly caller: string;
  readonly agent: string | null;
  readonly upstream: string;
  readonly model: string | null;
  readonly granted_at: string;
  readonly age_ms: number;
  readonly expires_at: string;
  readonly state: 'held' | 'revoking' | 'cooling';
}
