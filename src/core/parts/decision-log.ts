import type { CallNotes, LeaseOutcome, Rejection } from '../words/outcome.ts';
import type { InstantMs, LeaseId } from '../words/ids.ts';
import type { MemberId } from '../words/ids.ts';
import type { Scope, UpstreamSignal } from '../words/signal.ts';
import type { Ticket } from '../words/ticket.ts';
import type { ReportedCalls } from './prefetches.ts';

/**
 * Why a call is not granted at once.
 *
 * - `operator_pause`, `upstream_pause`: nothing is granted for now.
 * - `breaker`: the upstream failed too often, or is being probed.
 * - `members_out`: no member is available.
 * - `settling`: the group was reset or re-routed a moment ago, and waits for older calls to return.
 * - `cap`: its tenant, its agent, or calls that wait elsewhere are at their maximum.
 * - `slots`: all slots are in use, or too few are free for it.
 * - `rates`: a limit of requests or tokens is used up.
 * - `member`: its affine member has no room, and others do.
 * - `order`: there is room, and other calls go first.
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

export interface WaitReason {
  readonly cause: WaitCause;
  /** The calls that the upstream stops or limits. Absent if they are all calls. */
  readonly scope?: Scope;
}

/** The wait reason of a queued call, and how much longer it will probably wait. */
export interface Outlook extends WaitReason {
  /** In milliseconds. null if the wait depends on calls and none ends, or on something without a known end. */
  readonly estimateMs: number | null;
}

export interface QueuePosition {
  /** Number of waiters that will probably be granted before it. */
  readonly position: number;
  readonly estimateMs: number | null;
  /** null if it no longer waits. */
  readonly waitsFor: WaitReason | null;
  /** How long no call has ended, in milliseconds, if that is why there is no estimate. null otherwise. */
  readonly quietMs: number | null;
}

/**
 * Why a call went to its member.
 *
 * - `sole`: the group has only one.
 * - `affinity`: other calls of its agent or caller ran there lately.
 * - `left`: its affine member had no room and would not have had it in time.
 * - `load`: the member had the largest free share of slots in its tier.
 * - `dry_run`: it passed regardless of room.
 */
export type PlacedBy = 'sole' | 'affinity' | 'left' | 'load' | 'dry_run';

/** Why a member did not get a call that went to another one. */
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

export interface MemberChoice {
  readonly member: MemberId;
  readonly by: PlacedBy;
  readonly others: readonly { readonly member: MemberId; readonly cause: PassedOver }[];
}

/**
 * A decision about one attempt of a call, and its outcome. `left` means that its caller disconnected or did not repeat
 * its acquire call in time.
 */
export interface Decision {
  ticket: Ticket;
  readonly leaseId: LeaseId;
  readonly arrivedAt: InstantMs;
  readonly decidedAt: InstantMs;
  readonly decided: 'granted' | 'rejected' | 'left' | 'moved';
  /** null unless it was rejected. */
  readonly rejection: Rejection | null;
  /** Number of waiters ahead of it on arrival. */
  readonly positionAtArrival: number;
  /** Why it was not granted on arrival. null if it was. */
  readonly waitedFor: WaitCause | null;
  /** The calls that this reason applies to. Absent if they are all calls. */
  readonly scope?: Scope;
  /** null if it went to no member, or if the group names none. */
  readonly placed: MemberChoice | null;
  /** The upstream's answer, once it is known. */
  upstreamStatus: number | null;
  upstreamSignal: Pick<UpstreamSignal, 'kind' | 'retryAfterMs'> | null;
  /** How its lease ended. null if it has no lease, or still holds it. */
  ended: LeaseOutcome | 'expired' | null;
  endedAt: InstantMs | null;
  /** Its use, as its limits count it. Absent if it is not counted, or if the call has not ended. */
  used?: { readonly inputTokens: number; readonly outputTokens: number; readonly usd: number };
  /** The model in its answer. Absent if the request named a model, or if none is known. */
  reportedModel?: string;
  /** What its holder reported at its end. Absent if nothing. */
  notes?: CallNotes;
  /** Set if an earlier instance granted it. Its time in the queue is then unknown here. */
  readonly isOfEarlier?: true;
  /** Set if it ran on a prefetched slot, without an acquire call. */
  isLent?: true;
}

/** The last decisions of a group. They are in memory only, because explaining a call must not cost a row. */
export interface DecisionLog {
  readonly ring: Decision[];
  /** Index of the next entry. Once the ring is full, it overwrites the oldest. */
  next: number;
  /** Decisions of the last event, for the live feed. */
  readonly made: Decision[];
  /** Decisions that the last event completed: their lease ended, or they got none. */
  readonly over: Decision[];
  /** Calls on prefetched slots that the last event reported. */
  readonly lent: ReportedCalls[];
}

/** Maximum number of remembered decisions. Each one with its ticket takes about half a kilobyte. */
export const DECISIONS_MAX = 500;

export function emptyDecisionLog(): DecisionLog {
  return { ring: [], next: 0, made: [], over: [], lent: [] };
}

/** Clears the results of the previous event. */
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

export function lastDecision({ ring, next }: DecisionLog): Decision | undefined {
  return ring[(next + DECISIONS_MAX - 1) % DECISIONS_MAX];
}

export function latestFirst({ ring, next }: DecisionLog): Decision[] {
  return [...ring.slice(next), ...ring.slice(0, next)].toReversed();
}
