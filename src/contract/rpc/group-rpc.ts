import type { CallNotes, LeaseOutcome, Rejection } from '../../core/words/outcome.ts';
import type { UpstreamSignal } from '../../core/words/signal.ts';
import type { WaitReason } from '../../core/parts/decision-log.ts';
import type { KeeperReport, PrefetchedShare } from '../../core/parts/prefetches.ts';
import type { Correction, NewCorrection, Period } from '../../core/parts/spend.ts';
import type { RateRoom } from '../../core/parts/rates.ts';
import type { Claim } from '../../core/orphaned.ts';
import type { HandedGroup } from '../../core/state.ts';
import type { LeaseId, MemberId } from '../../core/words/ids.ts';
import type {
  LeaseRecord,
  NestedLease,
  Lane,
  Ticket,
  Reserved,
  Settlement,
} from '../../core/words/ticket.ts';
import type {
  PoolPreview,
  PeriodCosts,
  PoolMetrics,
  PoolReport,
  WatchRequest,
} from './feed-rpc.ts';
import type { GroupConfig } from '../config/config.ts';
import type { CallQuery, CallsFound, StoredCall } from '../calls.ts';
import type { DecisionFilter, DecisionInfo } from '../decisions.ts';
import type { CallCounts, PoolHistory } from '../history.ts';
import type { Warning } from '../attention.ts';
import type { LeaseInfo, PoolStatus, WaiterInfo } from '../status.ts';

/**
 * Calls of a Worker to a group's object. Worker and object run different versions for minutes after a deploy, so this
 * contract only grows: a field is never renamed, removed or made required.
 */
export const CONTRACT_VERSION = 1;

/** Idle time after which a pool is no longer shown and leaves the directory's list. */
export const POOL_IDLE_MS = 600_000;

/** A pool: a group, or one of its partitions. */
export interface PoolRef {
  readonly group: string;
  /** null if the group is not split. */
  readonly partition: string | null;
  /** Limit of an automatic group, which is not in the configuration. null for a configured group. */
  readonly assumed: AssumedLimit | null;
}

export interface AcquireRequest extends PoolRef {
  readonly version: number;
  /** Version of the configuration by which the Worker routed the call. */
  readonly configVersion: number;
  /** Version of the last change that affects this group in that configuration. */
  readonly sinceVersion: number;
  /** The call. Its times are by the clock of the Worker. */
  readonly ticket: Ticket;
  /** Number of the ticket's attempt, beginning with 1. Lease id = ticket id + attempt. */
  readonly attempt: number;
  /** When this acquire call was sent, by the clock of the ticket. Absent if the object has the same clock. */
  readonly sentAt?: number;
  /** How far that clock is ahead of the wall clock, because the wall clock was set back. Absent means 0. */
  readonly clockAheadMs?: number;
  /** How long the object may park this call, in milliseconds. The Worker polls again before that. */
  readonly sliceMs: number;
  /** The object may respond `pending` with `askAgainMs`. Otherwise the call is parked. */
  readonly mayAskLater: boolean;
  /**
   * All earlier acquire calls of the ticket have ended, and the response to one of them was lost. None of them can
   * deliver a lease any more. Set from then on. Absent if some still may.
   */
  readonly isAnew?: boolean;
  /** Calls that this isolate passed without a slot since it last reached the object. */
  readonly passedUnlimited: number;
}

export interface AssumedLimit {
  readonly slotsMax: number;
  /** `built_in`: from the table of known limits. `unknown`: the default for all others. */
  readonly source: 'built_in' | 'unknown';
  /** The pool is that of a key with an unknown account: the limit applies whatever is configured. */
  readonly isUnproved?: true;
}

/** The result of acquire. Expected outcomes are values, never exceptions. */
export type AcquireAnswer =
  | {
      readonly kind: 'granted';
      readonly lease: LeaseRpc;
      readonly leaseId: LeaseId;
      /** Id of the member that runs the call. Absent if the group has no members. */
      readonly member?: MemberId;
      /** Larger than in all earlier responses for this lease. Only the disposal of the largest one frees the lease. */
      readonly attachment: number;
      /** The call runs on the slots of another lease. Absent if it holds its own. */
      readonly nested?: NestedLease;
      /**
       * Leases that had its slot before, as far as that is not durable yet, the last first. Absent if there are none.
       */
      readonly heirOf?: readonly LeaseId[];
      /** Part of rates and budgets that is reserved for the call. Absent if there is none. */
      readonly reserved?: Reserved;
      /** The group wants a report when the headers show that the upstream accepted the call. */
      readonly wantsServed?: boolean;
      /** Other calls are queued when this one is granted. */
      readonly hasWaiters?: boolean;
      /** Mean time between the ends of calls there, in milliseconds. Only if the call also waits elsewhere. */
      readonly endGapMs?: number;
      /** Its wait reason. Absent if it was granted immediately, or a response was lost. */
      readonly waitedFor?: WaitReason;
      /** Room in the request and token limits, after this call. Absent if the group has none. */
      readonly rates?: readonly RateRoom[];
      /**
       * Time at which a lease that is held by its id expires unless it is renewed, in epoch milliseconds. By the clock
       * of `sentAt`, or by that of the object if the request has none. Absent for other leases.
       */
      readonly expiresAt?: number;
      /**
       * Time of the grant of a lease that is held by its id, by the same clock. Earlier than this response if the
       * request is repeated. Absent for other leases.
       */
      readonly grantedAt?: number;
      /** Slots that the isolate prefetches with this response. Absent if there are none. */
      readonly lent?: PrefetchedShare;
      readonly configVersion: number;
    }
  | {
      readonly kind: 'pending';
      /** Number of waiters ahead of it. */
      readonly position: number;
      /** Estimated wait. A minute with `isUnforeseen`. */
      readonly estimateMs: number;
      /** There is no estimate. Absent if there is one. */
      readonly isUnforeseen?: true;
      /** Absent if it no longer waits. */
      readonly waitsFor?: WaitReason;
      /** Time without an ended call, in milliseconds, if that is why there is no estimate. */
      readonly quietMs?: number;
      /**
       * Poll again after this time, and not before. The place is kept until then, and no call is parked. If absent,
       * poll again immediately.
       */
      readonly askAgainMs?: number;
      readonly configVersion: number;
    }
  | {
      readonly kind: 'rejected';
      readonly rejection: Rejection;
      /** Its wait reason. Absent if it did not wait. */
      readonly waitedFor?: WaitReason;
      /** Room in the request and token limits. Absent if the group has none. */
      readonly rates?: readonly RateRoom[];
      readonly configVersion: number;
    }
  /**
   * The group was retired, its matching changed while the call waited, or the call is new here and was routed by an
   * older configuration. Route the call again, by at least this version.
   */
  | { readonly kind: 'moved'; readonly configVersion: number }
  /**
   * Only for calls with `isUnread`: the model or service tier in their bodies holds some calls. Read the body and
   * retry. With `of`, only for calls with `mayNameSession` that must wait because their tenant has other calls:
   * determine the session of the call and retry.
   */
  | { readonly kind: 'unread'; readonly configVersion: number; readonly of?: 'session' }
  /** Only for attempts (`Ticket.isTry`): not now. */
  | {
      readonly kind: 'declined';
      /**
       * Expected wait from the place that the call would have in the queue, in milliseconds. null if there is no
       * estimate because no call has ended recently.
       */
      readonly waitMs: number | null;
      readonly configVersion: number;
    }
  /** The attempt has ended: it was released or canceled, or its grant was lost in transit. */
  | ReplacedInstance;

/** Report about a set of prefetched slots. Every message about the set contains it. */
export interface PrefetchReport extends KeeperReport {
  readonly loan: LeaseId;
}

export interface GiveBackRequest extends PrefetchReport {
  readonly slots: readonly { readonly slot: LeaseId; readonly attachment: number }[];
  /** As in `ResumeRequest`. */
  readonly hasLapsed: boolean;
}

/**
 * The hold of the request that keeps prefetched slots for its isolate. The runtime disposes of it when that request
 * ends. The slots then expire soon unless another request keeps them.
 */
export interface PrefetchRpc extends Disposable {
  /**
   * Renews, then stays parked until the next renewal is due (`ok`), the slots are recalled (`revoking`), or the set is
   * unknown (`gone`).
   */
  renew(report: PrefetchReport): Promise<RenewAnswer>;
}

export type KeepPrefetchAnswer =
  | { readonly kind: 'kept'; readonly loan: PrefetchRpc }
  /** The set is unknown: release unused slots, and resume each call separately. */
  | { readonly kind: 'gone' };

/**
 * A lease that has ended permanently. `attachment` is the next one of the responding instance. A holder with a larger
 * attachment has it from a newer instance, which takes precedence.
 */
export interface ReplacedInstance {
  readonly kind: 'gone';
  readonly attachment: number;
}

/**
 * A held lease. The runtime disposes of it when the holder's context ends. That frees the slot as `cancelled` unless it
 * was released before.
 */
export interface LeaseRpc extends Disposable {
  /**
   * Renews, then stays parked until the next renewal is due (`ok`), the lease is force-released (`revoking`: abort the
   * upstream call, then release), or it is unknown (`gone`). `status` is that of the upstream, once known.
   */
  renew(status: number | null): Promise<RenewAnswer>;
  /** Reports that the call has its slots in all its groups. */
  confirm(): Promise<void>;
  /**
   * Reports that another pool of the call will be full for about this time, so that this lease is released. Until then,
   * calls that also need slots there are passed over here.
   */
  passOver(pool: string, forMs: number): Promise<void>;
  /**
   * Reports the response of the upstream as soon as it is known. `isRepeat` means that this call got the same response
   * before, so it contains no news for other calls.
   */
  report(signal: UpstreamSignal, isRepeat: boolean): Promise<void>;
  /**
   * Ends the lease. Idempotent. `status` is that of the upstream, or null. Without a settlement, the reservation counts
   * as used. `isSole`: the lease was never mentioned by its id, so no other instance has it. Absent if it may have
   * been. `notes` are stored for lookups of the call.
   */
  release(
    outcome: LeaseOutcome,
    status: number | null,
    settlement?: Settlement,
    isSole?: boolean,
    notes?: CallNotes,
  ): Promise<void>;
}

export type RenewAnswer = 'ok' | 'revoking' | 'gone';

/** A lease and its pool. Messages about the lease and stored holders contain it as it is. */
export interface LeaseRef extends PoolRef, LeaseRecord {}

/**
 * Request by which a holder resumes its lease at a new instance of the object. An instance without a lease that is held
 * by its id accepts it only if its slots are among those that an earlier instance granted, and never above the limit.
 */
export interface ResumeRequest extends LeaseRef, Claim {
  /**
   * When this message was sent, by the clock that `expiresAt` in its response should use. Absent means the object's.
   */
  readonly sentAt?: number;
}

export type ResumeAnswer =
  | Extract<AcquireAnswer, { kind: 'granted' }>
  /** The lease has ended permanently (released, or force-released). Stop, and do not resume. */
  | ReplacedInstance;

/** The result of a renewal by the id of a lease. */
export type RenewByIdAnswer =
  | {
      readonly kind: 'ok';
      /** Send it from now on as `ResumeRequest.attachment`. */
      readonly attachment: number;
      /**
       * Time at which the lease expires unless it is renewed, in epoch milliseconds. By the clock of
       * `ResumeRequest.sentAt`, or by that of the object if the request has none.
       */
      readonly expiresAt: number;
    }
  /** An operator revoked it: stop the work, then release it. */
  | { readonly kind: 'revoking' }
  /** It has ended or expired: stop the work. As with `resume`, this does not cover newer instances. */
  | ReplacedInstance;

/** An unverified pool that its own object takes over. */
export interface HandedPool extends HandedGroup {
  /** Identifies the unverified pool. Repeated handovers have the same id. */
  readonly trialId: string;
  readonly assumed: AssumedLimit | null;
  /** Definition of the group in the unverified pool, or null if it had none. */
  readonly definition: GroupDefinition | null;
  readonly calls: readonly StoredCall[];
}

export type SpendCorrection = Readonly<Correction>;

/** A correction that was made or undone, and the spend after it. */
export interface CorrectedSpend {
  readonly correction: SpendCorrection;
  readonly spent: Readonly<Record<Period, number>>;
}

export interface GroupRpc {
  acquire(request: AcquireRequest): Promise<AcquireAnswer>;
  /** Removes the ticket from the queue, or releases what it was granted in the meantime. */
  cancel(ticketId: string): Promise<void>;
  /**
   * Ends a lease by its id, for a holder whose stub no longer works. `held` is what the holder would resume. An
   * instance without the lease uses it to free the slots.
   */
  release(
    leaseId: string,
    outcome: LeaseOutcome,
    status: number | null,
    settlement?: Settlement,
    held?: ResumeRequest,
    notes?: CallNotes,
  ): Promise<void>;
  /** As on the lease, for a holder whose stub no longer works. */
  report(
    leaseId: string,
    signal: UpstreamSignal,
    isRepeat: boolean,
    held?: ResumeRequest,
  ): Promise<void>;
  resume(request: ResumeRequest): Promise<ResumeAnswer>;
  /**
   * Renews a lease by its id, and responds immediately. From then on it is held by its id, even if a response held it
   * before. `held` is what its holder would resume, with `isById`. `status` is that of the upstream, once known.
   */
  renew(leaseId: string, status: number | null, held: ResumeRequest): Promise<RenewByIdAnswer>;
  /** Makes this request the keeper of prefetched slots, in place of the previous one. */
  keepPrefetch(report: PrefetchReport): Promise<KeepPrefetchAnswer>;
  /** Releases prefetched slots, including those of an earlier instance. */
  giveBack(request: GiveBackRequest): Promise<void>;
  status(): Promise<PoolStatus>;
  leases(): Promise<LeaseInfo[]>;
  /** Returns counts since the instance started. */
  metrics(): Promise<PoolMetrics>;
  /** Returns the history from `fromMs` to `toMs` in steps of `stepMs`. Beyond a day, steps are at least 15 minutes. */
  history(fromMs: number, toMs: number, stepMs: number): Promise<PoolHistory>;
  /** Counts calls that had slots in the last hour, by key, upstream and model. */
  callsOfLastHour(): Promise<CallCounts>;
  /** Returns costs of a UTC day or month (`2026-11-24`, `2026-11`), up to two months ago. */
  costs(period: string): Promise<PeriodCosts>;
  /** Returns the decisions in the memory of the instance, the latest first. */
  decisions(filter: DecisionFilter): Promise<DecisionInfo[]>;
  /** Finds calls in the log of calls and among those decisions. */
  calls(query: CallQuery): Promise<CallsFound>;
  /** Flushes pending writes, because the process is about to end. */
  flush(): Promise<void>;
  /** Returns the last warnings, the latest first. */
  warnings(): Promise<Warning[]>;
  /**
   * Computes the effect of a change of the group from `before` to `after` (`GroupConfig` as JSON). Changes nothing.
   */
  preview(before: string, after: string): Promise<PoolPreview>;
  /** Returns all waiters, in the order in which they will probably be granted. */
  waiters(): Promise<WaiterInfo[]>;
  callsOf(caller: string): Promise<CallerCalls>;
  /** Returns the state of the pool, and then pushes changes to the hub of the dashboards. */
  watch(request: WatchRequest): Promise<PoolReport>;
  /** Moves a waiter to the front, into another lane, or both. Returns false if it is not queued here. */
  promote(ticketId: string, lane: Lane | null, toFront: boolean): Promise<boolean>;
  /** Removes a waiter and rejects it as `cancelled`. Never affects a lease. Returns false if it is not queued here. */
  dismiss(ticketId: string): Promise<boolean>;
  /** Discards what was learned about the upstream: ceiling, pause and breaker. Used limits stay. */
  relearn(): Promise<void>;
  /** Corrects the spend of a budget, once per id. Returns null if there is no such member. */
  correctSpend(wanted: NewCorrection): Promise<CorrectedSpend | null>;
  /** Undoes a correction, once. Returns null if no correction has this id. */
  undoCorrection(id: string): Promise<CorrectedSpend | null>;
  /** Returns the stored corrections of the group and its members, the newest first. */
  corrections(): Promise<readonly SpendCorrection[]>;
  /**
   * Force-releases all matching leases, as `revoke`. Returns their tickets. A call has the same one in all its groups.
   */
  revokeAll(filter: CallFilter, isDry: boolean): Promise<string[]>;
  /** Removes all matching waiters, as `dismiss`. Returns their tickets. */
  dismissAll(filter: CallFilter, isDry: boolean): Promise<string[]>;
  /** Restores a member that was ejected. Returns false if the pool has no such member. */
  bringBack(member: string): Promise<boolean>;
  /** Force-releases a lease: its holder aborts the upstream call, then releases. Returns false if it is unknown. */
  revoke(leaseId: string): Promise<boolean>;
  /**
   * Removes the pool from the directory's list until its next 2xx, and reports its costs, if its group is gone or the
   * pool was idle for `POOL_IDLE_MS`. Returns whether it did. `jurisdiction` is that of the pool, which does not know
   * it itself.
   */
  forget(jurisdiction: GroupConfig['jurisdiction']): Promise<boolean>;
  /**
   * Takes over a pool whose key had its first success. Counts its leases, and returns a hold on each, in the same
   * order.
   */
  takeOver(handed: HandedPool): Promise<LeaseRpc[]>;
  /** Returns whether the pool's key had a success. True for pools that need none. */
  isVerified(): Promise<boolean>;
  /** Pushed by the directory at every change. Ignores versions that are not newer. */
  reconfigure(definition: GroupDefinition): Promise<void>;
}

export interface GroupDefinition {
  readonly version: number;
  /** Last version that may have changed the groups of calls. */
  readonly routingVersion: number;
  /** Configuration of the group as JSON (`GroupConfig`). null if it is automatic or deleted. */
  readonly config: string | null;
  /** Names of the secrets of its members' upstreams, by upstream. Absent without members. */
  readonly ownSecrets?: Readonly<Record<string, string>>;
  /** Weights of gateway keys, for an automatic group. Absent if there are none, and for a configured group. */
  readonly weights?: Readonly<Record<string, number>>;
  /** Switches of an automatic group. Absent means false. */
  readonly paused?: boolean;
  readonly draining?: boolean;
  /** The pool gets no more calls, because its group is now split or placed differently. */
  readonly takesNoCalls?: boolean;
}

export interface CallFilter {
  readonly tenant?: string;
  readonly agent?: string;
  readonly model?: string;
  readonly upstream?: string;
}

export interface CallerCalls {
  /** State of the pool. The caller may see only a part of it. */
  readonly status: PoolStatus;
  /** Number of calls that hold slots, and number of slots. */
  readonly in_flight: number;
  readonly slots_in_use: number;
  /** The next one first. */
  readonly waiters: readonly WaiterInfo[];
}
