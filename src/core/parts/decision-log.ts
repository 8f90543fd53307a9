import type { CallNotes } from '../words/call-notes.ts';
import type { InstantMs, LeaseId } from '../words/ids.ts';
import type { MemberId } from '../words/ids.ts';
import type { LeaseOutcome } from '../words/outcome.ts';
import type { Rejection } from '../words/rejection.ts';
import type { Scope } from '../words/scope.ts';
import type { UpstreamSignal } from '../words/signal.ts';
import type { Ticket } from '../words/ticket.ts';
import type { ReportedCalls } from './prefetches.ts';

/**
 * Why a call is not granted at once.
 * - `operator_pause`, `upstream_pause`: nothing is granted for now.
 * - `breaker`: the upstream failed too often, or is being probed.
 * - `members_out`: all members are out.
 * - `settling`: the group was reset or re-routed a moment ago, and waits for older calls to come back.
 * - `cap`: its tenant, its agent, or calls that wait elsewhere have as many slots as they may.
 * - `slots`: all slots are in use, or fewer are free than it takes.
 * - `rates`: a limit of requests or tokens is used up.
 * - `member`: the member that it belongs to has no room, and others have.
 * - `order`: there is room, and others go first.
 * - `elsewhere`: there is room, and another group that it also needs is full.
 */
export type WaitCause =
  | 'operator_pause'
  | 'upstream_pause'
  | 'breaker'
  | 'members_out'
  | 'settling'
  | 'cap'
  | 'slots'
  | 'rates'
  | 'member'
  | 'order'
  | 'elsewhere';

/** The reason why a call waits. */
export interface WaitReason {
  readonly cause: WaitCause;
  /** The calls that the upstream stops or limits. Absent if they are all calls. */
  readonly scope?: Scope;
}

/** Why a queued call waits now, and how much longer it will, as far as that can be known. */
export interface Outlook extends WaitReason {
  /** In milliseconds. Null: it depends on calls that end, and none does, or on something without a known end. */
  readonly estimateMs: number | null;
}

/** The place of a queued call, and its outlook. */
export interface QueuePosition {
  /** Waiters that will probably be granted before it. */
  readonly position: number;
  readonly estimateMs: number | null;
  /** Null: it does not wait any more. */
  readonly waitsFor: WaitReason | null;
  /** How long no call has ended, in milliseconds, where that is why there is no estimate. Null: it is not. */
  readonly quietMs: number | null;
}

/**
 * Why a call went to its member.
 * - `sole`: the group has but one.
 * - `affinity`: others of its agent or caller ran there lately.
 * - `left`: its own member had no room and would not have had it in time.
 * - `load`: of its tier, the largest part of the slots was free there.
 * - `dry_run`: it was let pass, room or not.
 */
export type PlacedBy = 'sole' | 'affinity' | 'left' | 'load' | 'dry_run';

/** Why a member did not take a call that another one took. */
export type PassedOver =
  | 'excluded'
  | 'out'
  | 'disabled'
  | 'paused'
  | 'breaker'
  | 'budget'
  | 'slots'
  | 'rates'
  | 'tier'
  | 'load';

/** Where a call went, and why not elsewhere. */
export interface MemberChoice {
  readonly member: MemberId;
  readonly by: PlacedBy;
  readonly others: readonly { readonly member: MemberId; readonly cause: PassedOver }[];
}

/** A decision about one attempt of a call, and what became of it. `left`: its caller went, or did not ask again in time. */
export interface Decision {
  ticket: Ticket;
  readonly leaseId: LeaseId;
  readonly arrivedAt: InstantMs;
  readonly decidedAt: InstantMs;
  readonly decided: 'granted' | 'rejected' | 'left' | 'moved';
  /** Null unless it was rejected. */
  readonly rejection: Rejection | null;
  /** Waiters ahead of it when it came; 0: nobody. */
  readonly positionAtArrival: number;
  /** The cause for which it was not granted when it came; null: it was. */
  readonly waitedFor: WaitCause | null;
  /** The calls that this reason applies to. Absent if they are all calls. */
  readonly scope?: Scope;
  /** Null: it went to none, or the group names no members. */
  readonly placed: MemberChoice | null;
  /** The upstream's answer, as soon as it is known. */
  upstreamStatus: number | null;
  upstreamSignal: Pick<UpstreamSignal, 'kind' | 'retryAfterMs'> | null;
  /** The end of its lease; null: it has none, or still holds it. */
  ended: LeaseOutcome | 'expired' | null;
  endedAt: InstantMs | null;
  /** Its use, as its limits count it. Absent: nobody counts, or it is not over. */
  used?: { readonly inputTokens: number; readonly outputTokens: number; readonly usd: number };
  /** The model that its answer named. Absent: the call named one, or none is known. */
  reportedModel?: string;
  /** Words of its holder at its end. Absent: nothing. */
  notes?: CallNotes;
  /** Granted by an earlier instance, which alone knows since when it waited. Absent: by this one. */
  readonly isOfEarlier?: true;
  /** It ran on a lent slot, and asked nobody. Absent: it asked. */
  isLent?: true;
}

/** The last decisions of a group. They are in memory only: explaining a call must not cost a row. */
export interface DecisionLog {
  readonly ring: Decision[];
  /** Index where the next one goes, over the oldest once the ring is full. */
  next: number;
  /** Those that the last event has made, for whoever watches the group. */
  readonly made: Decision[];
  /** Those with which it was over: whose lease it ended, and who got none. */
  readonly over: Decision[];
  /** Calls on lent slots that it told of. */
  readonly lent: ReportedCalls[];
}

/** Maximum decisions that are remembered. Each holds on to its ticket, about half a kilobyte together. */
export const DECISIONS_MAX = 500;

export function emptyDecisionLog(): DecisionLog {
  return { ring: [], next: 0, made: [], over: [], lent: [] };
}

/** Forgets what the event before has made and ended. */
export function beginEvent({ made, over, lent: prefetched }: DecisionLog): void {
  made.length = 0;
  over.length = 0;
  prefetched.length = 0;
}

export function addDecision(log: DecisionLog, decision: Decision): void {
  log.ring[log.next] = decision;
  log.next = (log.next + 1) % DECISIONS_MAX;
  log.made.push(decision);
  if (decision.decided !== 'granted') log.over.push(decision);
}

/** Reads the last one; undefined: there is none. */
export function lastDecision({ ring, next }: DecisionLog): Decision | undefined {
  return ring[(next + DECISIONS_MAX - 1) % DECISIONS_MAX];
}

/** Lists all that are remembered, the latest decided first. */
export function latestFirst({ ring, next }: DecisionLog): Decision[] {
  return [...ring.slice(next), ...ring.slice(0, next)].toReversed();
}
