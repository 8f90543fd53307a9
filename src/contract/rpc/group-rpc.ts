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
 * Calls of a Worker to a group's object. Worker and object run different versions for minutes
 * after a deploy, so this contract only grows: a field is never renamed, removed or made required.
 */
export const CONTRACT_VERSION = 1;

/**
 * How long nobody must have used a pool for it to be shown no more and to leave the directory's list.
 */
export const POOL_IDLE_MS = 600_000;

export interface AcquireRequest {
  readonly version: number;
  /** Which group, and which partition of it (null: the group is not split). */
  readonly group: string;
  readonly partition: string | null;
  /** The limit of an automatic group, which no configuration holds. Null for a configured group. */
  readonly assumed: AssumedLimit | null;
  /** Version of the configuration that the Worker routed by. */
  readonly configVersion: number;
  /** The version that last changed something for this group, as that configuration has it. Absent: that one. */
  readonly sinceVersion?: number;
  /** The isolate of the Worker that asks: calls of one isolate reach one another without a message. Absent: not known. */
  readonly isolate?: string;
  readonly ticketId: string;
  /** 1 for the first try of the ticket. Lease id = ticket id + attempt. */
  readonly attempt: number;
  /**
   * When this acquire call was sent, by the clock that the instants below are by: the object's may show something
   * else. Absent: it shows the same.
   */
  readonly sentAt?: number;
  /** How far that clock is ahead of the wall clock, because the wall clock was set back. Absent: not at all. */
  readonly clockAheadMs?: number;
  /** When the call reached Headgate, in epoch milliseconds. Kept over every acquire call. */
  readonly enqueuedAt: number;
  /** The caller's own deadline in epoch milliseconds; the group's time-out applies besides. */
  readonly deadlineAt: number | null;
  /** How long it may wait by what the operator says for its lane or its key. Absent: the group's time-out. */
  readonly timeoutMs?: number;
  /** False: answer `busy` instead of waiting. */
  readonly wait: boolean;
  /** How long the object may park this call, in milliseconds. The Worker asks again before that. */
  readonly sliceMs: number;
  /** The Worker understands `pending` with `askAgainMs`. Absent: the call is parked. */
  readonly mayAskLater?: boolean;
  /**
   * Every acquire call of the ticket that came before has ended, and one of them was lost with its answer: none can
   * bring it a lease any more. Kept from then on. Absent: some may.
   */
  readonly isAnew?: boolean;
  /** Account that is charged: a gateway key's id, or the fingerprint of a provider key. */
  readonly caller: string;
  readonly agent: string | null;
  readonly upstream: string;
  readonly model: string | null;
  /** Tenant that is charged in the sharing. Absent: the caller. */
  readonly tenant?: string;
  /** Absent: `normal`. */
  readonly lane?: Lane;
  /** Slots that the call takes. Absent: 1. */
  readonly slots?: number;
  /** When the agent run began, in epoch milliseconds. Absent or null: only its id is known. */
  readonly agentStartedAt?: number | null;
  /** A try for several groups at once: granted now, or `declined` without a trace. */
  readonly isTry?: boolean;
  /** The call needs slots of other groups too, and may hold these while it waits for them; `confirm` ends that. */
  readonly waitsElsewhere?: boolean;
  /** Other pools that the call needs slots of and has none of yet, by their names. Absent: none, or the Worker is older. */
  readonly needs?: readonly string[];
  /** Its turn came here before, and it gave its slot back while it waited for another pool: it goes first. Absent: no. */
  readonly hadTurn?: boolean;
  /** Leases of the call that this one is made for, in whatever groups. */
  readonly parents?: readonly string[];
  /** Estimate of what the call will use of rates and budgets. Absent: one request. */
  readonly estimate?: CallEstimate;
  /** Its isolate may start calls like this one on slots that it is lent. Absent: `granted` comes without `lent`. */
  readonly mayBorrow?: boolean;
  /**
   * The lease is held by its id: the disposal of an answer frees nothing, and an acquire call that is repeated for the same
   * attempt gets the same lease again. It lasts until it is released by its id, or is not renewed for one TTL. Absent: it is
   * held by its answer.
   */
  readonly byId?: boolean;
  /** The kind of the holder. Absent: a call. */
  readonly kind?: HoldKind;
  /** Service tier in the body, in lower case. Absent if it is the default or unknown. */
  readonly tier?: string;
  /**
   * Fingerprint of the caller's own provider key in a pool that other keys share. Absent if all calls have the same
   * key.
   */
  readonly credential?: string;
  /** The body may contain a model and a service tier and was not read. Absent if it was read, or contains none. */
  readonly isUnread?: boolean;
  /** Hash of the user or session of a call without an agent, for the scheduling order alone. Absent: none is known. */
  readonly session?: string;
  /** The Worker can look for the session of the call. Absent: it has looked, or there is nothing to look into. */
  readonly mayNameSession?: boolean;
  /** Ids of the group's members that cannot take the call, or have refused it. Absent: none. */
  readonly excluded?: readonly string[];
  /** Those of them that refused it once, for what passes. Absent: none. */
  readonly excludedForNow?: readonly string[];
  /** Calls that this isolate let pass without a slot since it last reached the object. */
  readonly passedUnlimited: number;
}

export interface AssumedLimit {
  readonly slotsMax: number;
  /** `built_in`: a row of the table of known limits. `unknown`: the default for everything else. */
  readonly source: 'built_in' | 'unknown';
  /** The pool is that of a key whose account is to be found out: the limit holds whatever is configured. Absent: it is not. */
  readonly isUnproved?: true;
}

/** The union that acquire returns: values, never exceptions, for what is expected. */
export type AcquireAnswer =
  | {
      readonly kind: 'granted';
      readonly lease: LeaseRpc;
      readonly leaseId: string;
      /** Id of the member of the group that the call runs at. Absent: the group names no members. */
      readonly member?: string;
      /** Larger than that of every earlier answer for this lease; only the largest one's disposal frees it. */
      readonly attachment: number;
      /** The call was let pass on the slots of another lease. Absent: it holds its own. */
      readonly nested?: NestedLease;
      /** The leases that had its slot before it, as far as nothing is written of that yet; the last first. Absent: none. */
      readonly heirOf?: readonly string[];
      /** The part of rates and budgets that it was granted with. Absent: none. */
      readonly reserved?: Reserved;
      /** The group wants to be told at the headers that the upstream took the call. Absent: no. */
      readonly wantsServed?: boolean;
      /** Others wait for a slot as this one is granted. Absent: nobody. */
      readonly hasWaiters?: boolean;
      /** Mean time between the ends of calls there, in milliseconds. Only where the call waits elsewhere too. */
      readonly endGapMs?: number;
      /** The reason of its wait. Absent: it was granted at once, an answer with it was lost, or the object is older. */
      readonly waitedFor?: WaitReason;
      /** Room in the limits of requests and tokens, this call counted. Absent: the group has none. */
      readonly rates?: readonly RateRoom[];
      /**
       * When a lease that is held by its id lapses unless it is renewed, in epoch milliseconds: by the clock of `sentAt`, or of
       * the object if the request has none or the object is older. Absent: it is not held by its id.
       */
      readonly expiresAt?: number;
      /** Slots that the isolate is lent besides. Absent: none. */
      readonly lent?: PrefetchedSlots;
      readonly configVersion: number;
    }
  | {
      readonly kind: 'pending';
      /** Waiters ahead of this one. */
      readonly position: number;
      /** How long it will probably wait. A minute with `isUnforeseen`, for Workers that do not know that. */
      readonly estimateMs: number;
      /** No estimate can be made. Absent: one can, or the object is older. */
      readonly isUnforeseen?: true;
      /** Absent: it does not wait any more, or the object is older. */
      readonly waitsFor?: WaitReason;
      /** How long no call has ended, in milliseconds, where that is why there is no estimate. Absent: it is not. */
      readonly quietMs?: number;
      /**
       * Ask again after so long, and no sooner: the place is kept until then, and no call is parked. Absent: ask again
       * at once.
       */
      readonly askAgainMs?: number;
      readonly configVersion: number;
    }
  | {
      readonly kind: 'rejected';
      readonly rejection: Rejection;
      /** The reason of its wait. Absent: it did not wait, or the object is older. */
      readonly waitedFor?: WaitReason;
      /** Room in the limits of requests and tokens. Absent: the group has none. */
      readonly rates?: readonly RateRoom[];
      readonly configVersion: number;
    }
  /**
   * The group was retired, its matching changed while the call waited, or the call is new here and was routed by an older
   * configuration: decide again from the beginning, no earlier than by that version.
   */
  | { readonly kind: 'moved'; readonly configVersion: number }
  /**
   * Only to calls with `isUnread`: some calls are held by the model or service tier in their bodies. Read the body
   * and ask again. With `of` only to calls with `mayNameSession`, which have to wait while their tenant has other calls: find the
   * session of the call and ask again.
   */
  | { readonly kind: 'unread'; readonly configVersion: number; readonly of?: 'session' }
  /** Only to tries: not now. */
  | {
      readonly kind: 'declined';
      /**
       * Expected wait from where the call would stand in the queue, in milliseconds. Null: no call has ended recently, so none
       * can be foreseen. Absent: the object is older.
       */
      readonly waitMs?: number | null;
      readonly configVersion: number;
    }
  /** The attempt has ended: it was released or cancelled, or a grant of it was lost on its way. */
  | ReplacedInstance;

/**
 * Slots that an isolate may start calls on without asking. They count as in use until they are given back by `giveBack`,
 * become the lease of a call (`ResumeRequest.lent`), or nobody keeps the loan. No answer holds them.
 */
export interface PrefetchedSlots {
  readonly loan: string;
  readonly slots: readonly string[];
  /** As a lease's. */
  readonly attachment: number;
}

/** The report on a loan that comes with every message about it. */
export interface PrefetchReport {
  readonly loan: string;
  /** Slots of it that the isolate has, without those whose calls have asked for leases of their own. */
  readonly known: number;
  /** Slots that calls run on, and the most that did as one of those below began. */
  readonly used: number;
  readonly peak: number;
  /** Calls that have ended well on its slots since then, and were told of in no other way. */
  readonly ended: readonly PrefetchedCalls[];
}

/** Calls of one kind that ended well on lent slots. */
export interface PrefetchedCalls {
  readonly caller: string;
  readonly tenant?: string;
  readonly agent: string | null;
  readonly upstream: string;
  readonly model: string | null;
  readonly lane?: Lane;
  readonly status: number | null;
  readonly calls: number;
  /** How long they held their slots, together. */
  readonly heldMs: number;
  /** The last of them: the id of each one's lease, how long ago it began and ended, and its upstream's own id of it. */
  readonly last: readonly (readonly [
    leaseId: string,
    beganMs: number,
    endedMs: number,
    requestId?: string,
  ])[];
  /** The use that the provider reported, by team and model. Absent: none of them stands in the costs of the group. */
  readonly costs?: readonly ReportedCost[];
}

/** Request by which an isolate gives lent slots back. */
export interface GiveBackRequest extends PrefetchReport {
  readonly slots: readonly { readonly slot: string; readonly attachment: number }[];
  /** As with `ResumeRequest`. */
  readonly hasLapsed: boolean;
}

/**
 * The hold of the request that keeps a loan for its isolate. The runtime disposes of it when that ends: then the loan
 * lapses soon unless another one keeps it.
 */
export interface PrefetchRpc extends Disposable {
  /**
   * Renews at once, then stays parked until the next renewal is due (`ok`), the slots are wanted back (`revoking`), or
   * the loan is not known (`gone`).
   */
  renew(report: PrefetchReport): Promise<RenewAnswer>;
}

export type KeepPrefetchAnswer =
  | { readonly kind: 'kept'; readonly loan: PrefetchRpc }
  /** It is not known: give back what is unused, and have each call resume by itself. */
  | { readonly kind: 'gone' };

/**
 * A lease that has ended for good. `attachment` is the next one of the instance that says so: whoever holds the
 * lease by a larger one has it from a newer instance, and knows better.
 */
export interface ReplacedInstance {
  readonly kind: 'gone';
  readonly attachment?: number;
}

/** The lease on whose slots another one was let pass, and how many of them it takes. */
interface NestedLease {
  readonly in: string;
  readonly slots: number;
}

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
  /** The call has its slots in all its groups. */
  confirm(): Promise<void>;
  /**
   * Another pool of the call is full for about so long, so that this lease is given back. Until then calls that need slots there
   * too are passed over here.
   */
  passOver(pool: string, forMs: number): Promise<void>;
  /**
   * Tells what the upstream said to the call, as soon as it is known. `isRepeat`: it said so to this call
   * before, so it is no news of anybody else's.
   */
  report(signal: UpstreamSignal, isRepeat: boolean): Promise<void>;
  /**
   * Ends the lease; a second release changes nothing. `status` is the upstream's, or null. Without a
   * settlement the call counts as what was reserved for it. `isSole`: nothing was said of the lease by its id, so no
   * other instance knows it. Absent: something may have been. `notes` are for whoever looks the call up.
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

/** Request by which a holder takes up its lease with a new instance of the object. */
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
  readonly tenant?: string;
  readonly lane?: Lane;
  readonly slots?: number;
  /** The member that it was granted at. Absent: the group named no members. */
  readonly member?: string;
  /** That of the answer that it holds the lease by: the new one's is larger. Absent: not known. */
  readonly attachment?: number;
  /** No renewal was acknowledged that was sent within the last TTL: its slots have been given up. Absent: no. */
  readonly hasLapsed?: boolean;
  /** How long it has held the lease, in milliseconds. Absent: not known. */
  readonly heldMs?: number;
  /** When this message was sent, by the clock that `expiresAt` in its answer is to be by. Absent: the object's. */
  readonly sentAt?: number;
  /** As the grant's answer had them. */
  readonly nested?: NestedLease;
  readonly heirOf?: readonly string[];
  readonly reserved?: Reserved;
  /**
   * It is held by its id, or is from now on. An instance that does not know it takes it up only if its slots are among those
   * that an earlier one has handed out, and never above the limit. Absent: it is held by its answer.
   */
  readonly byId?: boolean;
  /** The kind of the holder. Absent: a call. */
  readonly kind?: HoldKind;
  /** As with `AcquireRequest`. */
  readonly session?: string;
  readonly tier?: string;
  readonly credential?: string;
  readonly isUnread?: boolean;
  /** The lent slot on which its call began: where the lease is not known, it takes the place of that one. Absent: none. */
  readonly lent?: {
    readonly loan: string;
    readonly slot: string;
    /** Noted as the lease takes its place: what the call is told may depend on it. Absent: nothing. */
    readonly told?: PrefetchReport;
  };
}

export type ResumeAnswer =
  | Extract<AcquireAnswer, { kind: 'granted' }>
  /** The lease had ended for good (released, or force-released): stop and do not resume. */
  | ReplacedInstance;

/** The answer to a renewal by a lease's id. */
export type RenewByIdAnswer =
  | {
      readonly kind: 'ok';
      /** To be told from now on: `ResumeRequest.attachment`. */
      readonly attachment: number;
      /**
       * When it lapses unless it is renewed before, in epoch milliseconds: by the clock of `ResumeRequest.sentAt`, or of the
       * object if the request has none or the object is older.
       */
      readonly expiresAt: number;
    }
  /** An operator took it away: stop, then release it. */
  | { readonly kind: 'revoking' }
  /** It has ended, or lapsed: stop. Of an instance that was replaced it says nothing, as with `resume`. */
  | ReplacedInstance;

/** A pool that was on trial, for its own object to go on with. */
export interface HandedPool extends HandedGroup {
  /** Name of the trial: a hand-over that is repeated has the same. */
  readonly trialId: string;
  readonly assumed: AssumedLimit | null;
  /** The group's definition as the trial knew it. Null: it knew none. */
  readonly definition: GroupDefinition | null;
  /** Lines of the log of calls so far. */
  readonly calls: readonly StoredCall[];
}

/** A correction of the spend of a budget. */
export type SpendCorrection = Readonly<Correction>;

/** A correction that was made or undone, and the spend after it. */
export interface CorrectedSpend {
  readonly correction: SpendCorrection;
  readonly spent: Readonly<Record<Period, number>>;
}

export interface GroupRpc {
  acquire(request: AcquireRequest): Promise<AcquireAnswer>;
  /** Takes the ticket out of the queue, or releases what it was granted meanwhile. */
  cancel(ticketId: string): Promise<void>;
  /**
   * Ends a lease by its id, for a holder whose stub no longer works. `held` is what it would resume: an instance
   * that does not know the lease frees its slots by that.
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
   * Renews a lease by its id, and answers at once. It is held by its id from then on, also where an answer has held it until
   * now. `held` is what its holder would resume, with `byId`. `status` is the upstream's, once known.
   */
  renew(leaseId: string, status: number | null, held: ResumeRequest): Promise<RenewByIdAnswer>;
  /** Keeps a loan from now on, in place of whoever kept it before. */
  keepPrefetch(report: PrefetchReport): Promise<KeepPrefetchAnswer>;
  /** Gives lent slots back. Those that an earlier instance has lent come back as well. */
  giveBack(request: GiveBackRequest): Promise<void>;
  status(): Promise<PoolStatus>;
  leases(): Promise<LeaseInfo[]>;
  /** Counts since the instance began. */
  metrics(): Promise<PoolMetrics>;
  /** History from `fromMs` up to `toMs`, in steps of `stepMs`; after a day of 15 minutes at the least. */
  history(fromMs: number, toMs: number, stepMs: number): Promise<PoolHistory>;
  /** Counts the calls that had slots in the last hour, by key, upstream and model. */
  callsOfLastHour(): Promise<CallCounts>;
  /** Costs of a day or month of UTC (`2026-11-24`, `2026-11`), of the last two months. */
  costs(period: string): Promise<PeriodCosts>;
  /** The last decisions that the instance remembers, the latest first. */
  decisions(filter: DecisionFilter): Promise<DecisionInfo[]>;
  /** Finds calls in the log that is kept of them, and among those decisions. */
  calls(query: CallQuery): Promise<CallsFound>;
  /** Writes what waits for a later write: the process is about to end. */
  flush(): Promise<void>;
  /** The last warnings, the latest first. */
  warnings(): Promise<Warning[]>;
  /**
   * Tells what the pool would do if the group, configured as `before`, were configured as `after` (`GroupConfig`
   * as JSON). Changes nothing.
   */
  preview(before: string, after: string): Promise<PoolPreview>;
  /** Everybody who waits, in the order in which they will probably be granted. */
  waiters(): Promise<WaiterInfo[]>;
  /** Calls of one caller here, for itself to see. */
  callsOf(caller: string): Promise<CallerCalls>;
  /** Tells how the pool is, and from now on pushes to the hub of the dashboards what changes. */
  watch(request: WatchRequest): Promise<PoolReport>;
  /** Puts a waiter first, or into another lane, or both. False: it does not wait here. */
  promote(ticketId: string, lane: Lane | null, toFront: boolean): Promise<boolean>;
  /**
   * Takes a waiter out, whose caller is refused as `cancelled`. Never touches a lease. False: it does
   * not wait here.
   */
  dismiss(ticketId: string): Promise<boolean>;
  /** Forgets what was learned of the upstream: ceiling, pause and breaker. What was used of limits stays. */
  relearn(): Promise<void>;
  /** Corrects the spend of a budget, once for each id. Null: there is no such member. */
  correctSpend(wanted: NewCorrection): Promise<CorrectedSpend | null>;
  /** Undoes a correction, once. Null: no correction has that id. */
  undoCorrection(id: string): Promise<CorrectedSpend | null>;
  /** Lists the kept corrections of the group and its members, newest first. */
  corrections(): Promise<readonly SpendCorrection[]>;
  /** Force-releases every lease that is meant, as `revoke` does one. Returns their tickets: a call has one in all its groups. */
  revokeAll(filter: CallFilter, isDry: boolean): Promise<string[]>;
  /** Takes every waiter out that is meant, as `dismiss` does one. Returns their tickets. */
  dismissAll(filter: CallFilter, isDry: boolean): Promise<string[]>;
  /** Gives a member calls again that a refusal took out. False: the pool has no such member. */
  bringBack(member: string): Promise<boolean>;
  /** Force-releases a lease: its holder aborts the upstream call and lets go. False: not known. */
  revoke(leaseId: string): Promise<boolean>;
  /**
   * Takes the pool off the directory's list until its next 2xx, and reports its costs, if its group is gone or the pool was
   * idle for `POOL_IDLE_MS`. Returns whether it did. `jurisdiction` is where the pool is, which it does not know itself.
   */
  forget(jurisdiction: GroupConfig['jurisdiction']): Promise<boolean>;
  /**
   * Goes on with a pool whose key had its first success: counts its leases, and answers with a hold on each,
   * in the same order.
   */
  takeOver(handed: HandedPool): Promise<LeaseRpc[]>;
  /** Whether the pool's key had a success. True where nobody asks for one. */
  isVerified(): Promise<boolean>;
  /** Pushed by the directory at every change. A version that is not newer changes nothing. */
  reconfigure(definition: GroupDefinition): Promise<void>;
}

/** Definition of one group in the directory, at one version. */
export interface GroupDefinition {
  readonly version: number;
  /** The last version at which calls may have begun to take another way than before. */
  readonly routingVersion: number;
  /** The group's configuration as JSON (`GroupConfig`), or null: automatic, or deleted. */
  readonly config: string | null;
  /** Names of the secrets that the upstreams of its members have themselves, by their ids. Absent: it names no members. */
  readonly ownSecrets?: Readonly<Record<string, string>>;
  /** Weights of gateway keys, for an automatic group. Absent: none; a configured one has its own. */
  readonly weights?: Readonly<Record<string, number>>;
  /** Switches of an automatic group, as an operator set them. Absent: it is open. */
  readonly paused?: boolean;
  readonly draining?: boolean;
  /** Only to a pool whose group is split otherwise, or elsewhere, by now: it gets no calls any more. Absent: no. */
  readonly takesNoCalls?: boolean;
}

/** Which calls are meant: those that everything fits that is said. */
export interface CallFilter {
  readonly tenant?: string;
  readonly agent?: string;
  readonly model?: string;
  readonly upstream?: string;
}

/** Calls of one caller in a pool. */
export interface CallerCalls {
  /** The pool's own; a caller may see some of it only. */
  readonly status: PoolStatus;
  /** Calls that hold slots, and how many slots. */
  readonly in_flight: number;
  readonly slots_in_use: number;
  /** The next one first. */
  readonly waiters: readonly WaiterInfo[];
}
