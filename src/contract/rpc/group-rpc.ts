import type { CallNotes } from '../../core/words/call-notes.ts';
import type { LeaseOutcome } from '../../core/words/outcome.ts';
import type { Rejection } from '../../core/words/rejection.ts';
import type { UpstreamSignal } from '../../core/words/signal.ts';
import type { WaitReason } from '../../core/parts/decision-log.ts';
import type { ReportedCost } from '../../core/parts/costs.ts';
import type { Correction, NewCorrection, Period } from '../../core/parts/spend.ts';
import type { RateRoom } from '../../core/parts/rate-room.ts';
import type { HandedGroup } from '../../core/state.ts';
import type { HoldKind, Lane } from '../../core/words/ticket.ts';
import type { CallEstimate, Reserved, Settlement } from '../../core/words/usage.ts';
import type { PoolPreview } from './change-preview.ts';
import type { GroupConfig } from '../config/config.ts';
import type { PoolReport, WatchRequest } from './feed-rpc.ts';
import type { CallQuery, CallsFound, StoredCall } from '../calls.ts';
import type { DecisionFilter, DecisionInfo } from '../decisions.ts';
import type { CallCounts, PoolHistory } from '../history.ts';
import type { PeriodCosts } from './costs-rpc.ts';
import type { PoolMetrics } from './pool-metrics.ts';
import type { Warning } from '../warnings.ts';
import type { LeaseInfo, PoolStatus, WaiterInfo } from '../status.ts';

/**
 * Calls of a Worker to a group's object. Worker and object run different versions for minutes after a deploy, so this
 * contract only grows: a field is never renamed, removed or made required.
 */
export const CONTRACT_VERSION = 1;

/** Idle time after which a pool is no longer shown and leaves the directory's list. */
export const POOL_IDLE_MS = 600_000;

export interface AcquireRequest {
  readonly version: number;
  /** Group and partition. The partition is null if the group is not split. */
  readonly group: string;
  readonly partition: string | null;
  /** Limit of an automatic group, which is not in the configuration. null for a configured group. */
  readonly assumed: AssumedLimit | null;
  /** Version of the configuration by which the Worker routed the call. */
  readonly configVersion: number;
  /** Version of the last change that affects this group in that configuration. */
  readonly sinceVersion: number;
  /** Isolate of the Worker. Calls of one isolate communicate without messages. Absent if unknown. */
  readonly isolate?: string;
  readonly ticketId: string;
  /** Number of the ticket's attempt, beginning with 1. Lease id = ticket id + attempt. */
  readonly attempt: number;
  /**
   * When this acquire call was sent, by the clock of the times below. The object's clock may differ. Absent if it does
   * not.
   */
  readonly sentAt?: number;
  /** How far that clock is ahead of the wall clock, because the wall clock was set back. Absent means 0. */
  readonly clockAheadMs?: number;
  /** Arrival of the call at Headgate, in epoch milliseconds. The same in all acquire calls. */
  readonly enqueuedAt: number;
  /** The caller's own deadline in epoch milliseconds. The group's time-out applies in addition. */
  readonly deadlineAt: number | null;
  /** Maximum wait that the operator set for its lane or its key. Absent means the group's time-out. */
  readonly timeoutMs?: number;
  /** If false, the object responds `busy` instead of queueing the call. */
  readonly wait: boolean;
  /** How long the object may park this call, in milliseconds. The Worker polls again before that. */
  readonly sliceMs: number;
  /** The object may respond `pending` with `askAgainMs`. Otherwise the call is parked. */
  readonly mayAskLater: boolean;
  /**
   * All earlier acquire calls of the ticket have ended, and the response to one of them was lost. None of them can
   * deliver a lease any more. Set from then on. Absent if some still may.
   */
  readonly isAnew?: boolean;
  /** Account of the call: the id of a gateway key, or the fingerprint of a provider key. */
  readonly caller: string;
  readonly agent: string | null;
  readonly upstream: string;
  readonly model: string | null;
  /** Tenant for fair sharing. */
  readonly tenant: string;
  readonly lane: Lane;
  /** Slots that the call takes. */
  readonly slots: number;
  /** Start of the agent run, in epoch milliseconds. null if at most its id is known. */
  readonly agentStartedAt: number | null;
  /** An attempt for several groups at once: granted immediately, or `declined` without a trace. */
  readonly isTry: boolean;
  /** The call needs slots of other groups, too, and may hold these while it waits for them. `confirm` ends that. */
  readonly waitsElsewhere: boolean;
  /** Names of other pools in which the call needs slots and has none yet. Absent if there are none. */
  readonly needs?: readonly string[];
  /** The call was granted here before, and released its slot while it waited for another pool. It goes first. */
  readonly hadTurn?: boolean;
  /** Lease ids of the parent call, in any groups. */
  readonly parents: readonly string[];
  /** Estimated use of rates and budgets. Absent means one request. */
  readonly estimate?: CallEstimate;
  /** The isolate may start similar calls on prefetched slots. If absent, `granted` has no `lent`. */
  readonly mayBorrow?: boolean;
  /**
   * The lease is held by its id: the disposal of a response frees nothing, and a repeated acquire call for the same
   * attempt gets the same lease again. It lasts until it is released by its id, or is not renewed for one TTL. Absent
   * if the lease is held by its response.
   */
  readonly byId?: boolean;
  /** Kind of the holder. Absent if it is a call. */
  readonly kind?: HoldKind;
  /** Service tier in the body, in lower case. Absent if it is the default or unknown. */
  readonly tier?: string;
  /**
   * Fingerprint of the caller's own provider key in a pool that several keys share. Absent if all calls have one key.
   */
  readonly credential?: string;
  /** The body was not read, and may contain a model and a service tier. Absent if it was read, or contains none. */
  readonly isUnread?: boolean;
  /** Hash of the user or session of a call without an agent, for the scheduling order. Absent if there is none. */
  readonly session?: string;
  /** The Worker can still determine the session of the call. Absent if it has, or if there is none. */
  readonly mayNameSession?: boolean;
  /** Ids of members that cannot run the call, or have refused it. Absent if there are none. */
  readonly excluded?: readonly string[];
  /** Those of them that refused it once for a temporary reason. Absent if there are none. */
  readonly excludedForNow?: readonly string[];
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
      readonly leaseId: string;
      /** Id of the member that runs the call. Absent if the group has no members. */
      readonly member?: string;
      /** Larger than in all earlier responses for this lease. Only the disposal of the largest one frees the lease. */
      readonly attachment: number;
      /** The call runs on the slots of another lease. Absent if it holds its own. */
      readonly nested?: NestedLease;
      /**
       * Leases that had its slot before, as far as that is not durable yet, the last first. Absent if there are none.
       */
      readonly heirOf?: readonly string[];
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
      /** Slots that the isolate prefetches with this response. Absent if there are none. */
      readonly lent?: PrefetchedSlots;
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
  /** Only for attempts (`isTry`): not now. */
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

/**
 * Slots on which an isolate may start calls without a request. They count as in use until `giveBack` releases them,
 * they become the lease of a call (`ResumeRequest.lent`), or no keeper renews them. They are not held by a response.
 */
export interface PrefetchedSlots {
  readonly loan: string;
  readonly slots: readonly string[];
  /** As for a lease. */
  readonly attachment: number;
}

/** Report about a set of prefetched slots. Every message about the set contains it. */
export interface PrefetchReport {
  readonly loan: string;
  /** Slots of the set that the isolate has, without those whose calls have requested their own leases. */
  readonly known: number;
  /** Slots in use, and the maximum when one of the calls below started. */
  readonly used: number;
  readonly peak: number;
  /** Calls that have ended successfully on these slots since then, and were not reported otherwise. */
  readonly ended: readonly PrefetchedCalls[];
}

/** Calls of one kind that ended successfully on prefetched slots. */
export interface PrefetchedCalls {
  readonly caller: string;
  readonly tenant: string;
  readonly agent: string | null;
  readonly upstream: string;
  readonly model: string | null;
  readonly lane: Lane;
  readonly status: number | null;
  readonly calls: number;
  /** Total time for which they held their slots. */
  readonly heldMs: number;
  /** The last calls: lease id, milliseconds since their start and end, and the upstream's id of the request. */
  readonly last: readonly (readonly [
    leaseId: string,
    beganMs: number,
    endedMs: number,
    requestId?: string,
  ])[];
  /** Usage that the provider reported, by team and model. Absent if none of them counts in the costs of the group. */
  readonly costs?: readonly ReportedCost[];
}

export interface GiveBackRequest extends PrefetchReport {
  readonly slots: readonly { readonly slot: string; readonly attachment: number }[];
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

/** The lease on whose slots another one runs, and the number of slots that it takes. */
interface NestedLease {
  readonly in: string;
  readonly slots: number;
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

/** Request by which a holder resumes its lease at a new instance of the object. */
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
  readonly isolate?: string;
  readonly tenant: string;
  readonly lane: Lane;
  readonly slots: number;
  /** Member at which it was granted. Absent if the group had no members. */
  readonly member?: string;
  /** Attachment of the response that holds the lease. The new one is larger. Absent if unknown. */
  readonly attachment?: number;
  /** No renewal sent within the last TTL was acknowledged, so its slots may have been reassigned. */
  readonly hasLapsed?: boolean;
  /** Time for which it has held the lease, in milliseconds. Absent if unknown. */
  readonly heldMs?: number;
  /**
   * When this message was sent, by the clock that `expiresAt` in its response should use. Absent means the object's.
   */
  readonly sentAt?: number;
  /** As in the response to the grant. */
  readonly nested?: NestedLease;
  readonly heirOf?: readonly string[];
  readonly reserved?: Reserved;
  /**
   * The lease is held by its id, or will be from now on. An instance without the lease accepts it only if its slots are
   * among those that an earlier instance granted, and never above the limit. Absent if it is held by its response.
   */
  readonly byId?: boolean;
  /** Kind of the holder. Absent if it is a call. */
  readonly kind?: HoldKind;
  /** As in `AcquireRequest`. */
  readonly session?: string;
  readonly tier?: string;
  readonly credential?: string;
  readonly isUnread?: boolean;
  /** Prefetched slot on which its call started. The lease replaces it if the lease is unknown. */
  readonly lent?: {
    readonly loan: string;
    readonly slot: string;
    /** Processed when the lease replaces the slot, because the response may depend on it. */
    readonly told?: PrefetchReport;
  };
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
   * before. `held` is what its holder would resume, with `byId`. `status` is that of the upstream, once known.
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
