import type { InstantMs, LeaseId, MemberId, TicketId } from './words/ids.ts';
import { instant } from './words/ids.ts';
import type { GroupSettings } from './words/settings.ts';
import type { Holder, Lane } from './words/ticket.ts';
import type { Reserved } from './words/usage.ts';
import type { Accounts } from './parts/accounts.ts';
import type { Ahead } from './parts/ahead.ts';
import type { Affinity } from './parts/affinity.ts';
import type { Bound } from './parts/bound.ts';
import type { GuessRates } from './parts/demand.ts';
import type { Decision, DecisionLog } from './parts/decision-log.ts';
import type { FullPool } from './parts/pass-over.ts';
import type { Queue } from './parts/queue.ts';
import type { PrefetchState } from './parts/prefetches.ts';
import type { RepeatRefusals } from './parts/repeat-refusals.ts';
import type { Tombstones } from './parts/tombstones.ts';
import type { Period } from './parts/spend.ts';
import type { Totals } from './parts/totals.ts';
import type { UpstreamCalls } from './parts/upstream-calls.ts';
import type { Controls } from './controls.ts';
import type { AtGrant, LeaseInScope } from './limiter.ts';
import type { SeenCalls } from './parts/seen-calls.ts';
import type { Member } from './member.ts';

/**
 * A lease is `held` from its grant, `revoking` once an operator took it away and its holder has yet to
 * let go, and `cooling` after its end for as long as the slot stays down. It counts in all three.
 */
type LeasePhase = 'held' | 'revoking' | 'cooling';

export interface ActiveLease extends AtGrant {
  readonly id: LeaseId;
  readonly ticketId: TicketId;
  holder: Holder;
  readonly lane: Lane;
  /** The member where it counts. */
  member: MemberId;
  /** The member that its holder was told, by whose key its call runs. */
  named: MemberId;
  /** 0 while it passes on the slots of another lease. */
  slots: number;
  /** The lease on whose slots it was let pass, and how many of them it takes; null: on none. */
  readonly nested: { readonly in: LeaseId; readonly slots: number } | null;
  /** The leases that had its slot before it, and passed it on unwritten, the last one first; empty: none. */
  readonly heirOf: readonly LeaseId[];
  readonly grantedAt: InstantMs;
  phase: LeasePhase;
  /** The instant at which it ends by itself: its expiry, or the end of its cooldown. */
  until: InstantMs;
  /** The answer that holds it. Only the disposal of that one frees it. */
  attachment: number;
  /** It is held by its id: no answer's disposal frees it, and its holder was told when it lapses. */
  isById: boolean;
  /** The upstream was not called before this: at its grant the call may have waited elsewhere. */
  callableAt: InstantMs;
  /** The scopes of its member that it counts in. */
  scopes: readonly LeaseInScope[];
  /** The group has heard what the upstream said to it. */
  hasAnswer: boolean;
  /** Its holder still waits in a wider group. */
  waitsElsewhere: boolean;
  /** The upstream refused its call, and its holder has yet to let go. */
  isRefused: boolean;
  /** The upstream refused its call because it still counts one that has ended. */
  isLagging: boolean;
  /** An earlier instance has granted it: calls that pass on it may not be known yet. */
  isOfEarlier: boolean;
  /** Its end was not told by its holder, who may live. */
  isLost: boolean;
  /** Hold time, in milliseconds, that its tenant and agent were charged for. */
  chargedMs: number;
  /** The part of rates and budgets that it has taken. Null: none, or it is settled. */
  reserved: Reserved | null;
  /**
   * The log's entry, which tells what becomes of the call. Null: granted by an earlier instance, or resumed, and nothing
   * was told of it yet.
   */
  decision: Decision | null;
}

/** A lease as one instance hands it to another: without an expiry, because its holder has a TTL from then on. */
export type HandedLease = Pick<
  ActiveLease,
  'id' | 'ticketId' | 'holder' | 'lane' | 'slots' | 'grantedAt' | 'phase' | 'nested' | 'reserved'
> & {
  /** Absent: it is of a release before members. */
  readonly member?: MemberId;
  /** Absent: it is held by its answer. */
  readonly isById?: boolean;
  /** End of the cooldown of a `cooling` lease. */
  readonly coolingUntil: InstantMs | null;
};

/** All that one instance of a group hands to another, which decides from then on. */
export interface HandedGroup {
  readonly leases: readonly HandedLease[];
  /** Exceeds every attachment that it gave out. Absent: not known. */
  readonly nextAttachment?: number;
  /** The used part of the limits, and the lessons about the upstream. */
  readonly controls: Controls;
  /** The same of each member. Absent: the group names none. */
  readonly members?: Readonly<Record<MemberId, Controls>>;
  /** The counts. */
  readonly totals: Totals;
  /** The calls by upstream. Absent: from an instance that did not count them. */
  readonly upstreams?: UpstreamCalls;
  /** Slots whose holders have not been heard of since a process before. Absent: none. */
  readonly unclaimed?: number;
}

/**
 * The whole state of one group. Owned by `step`, which changes it in place: nothing else may.
 *
 * Invariants, checked by `checkInvariants`:
 * - Slots in use are those of the leases, the lent and the unclaimed ones; the sums beside the set are kept by `leases.ts` alone, never
 *   stored, and equal to what the set adds up to.
 * - No waiter that a caller stands behind waits while there is room for the one whose turn it is.
 * - A ticket is in the queue or has a lease, never both; an ended attempt has neither.
 */
export interface GroupState {
  settings: GroupSettings;
  readonly leases: Map<LeaseId, ActiveLease>;
  slotsInUse: number;
  readonly slotsByLane: Record<Lane, number>;
  /**
   * Slots that an earlier instance may have handed out, and nobody has claimed; until when they count; and whether
   * all that earlier instances left is accounted for.
   */
  readonly unclaimed: { slots: number; until: InstantMs; isOver: boolean };
  readonly lending: PrefetchState;
  /** Slots of leases that pass on those of another one, which `slotsInUse` does not count. */
  slotsNested: number;
  /** Slots of leases that have ended and cool down: nobody of them is at the upstream. */
  slotsCooling: number;
  /** Slots of leases whose holders still wait in another group. */
  slotsWaitingElsewhere: number;
  /** Slots of leases whose calls the upstream refused: none of them is there any more. */
  slotsRefused: number;
  /** Leases that an operator took away, and whose holders have yet to let go. */
  readonly revoking: Set<LeaseId>;
  /** Leases that were claimed after a reset, and pass on others that may be claimed yet. */
  readonly seekingParent: Set<ActiveLease>;
  /** Leases that cool down after a failure with a caller's own key, while no other key was in use. */
  readonly coolingForKey: Set<ActiveLease>;
  /** The leases that pass on the slots of another one, by its id. */
  readonly nestedIn: Map<LeaseId, Set<ActiveLease>>;
  readonly queue: Queue;
  readonly accounts: Accounts;
  /** Turns that lower lanes are owed. */
  readonly laneCredit: Record<Lane, number>;
  /** Ended attempts and cancelled tickets. */
  readonly tombstones: Tombstones;
  /** Nothing is granted before this: callers of an older instance are still on their way back. */
  grantsFrom: InstantMs;
  /** While the group drains, who came before this is not new, though it has to ask as if it were. */
  drainsFrom: InstantMs;
  /** The instant at which all who waited lost their places, by a reset or a move: who came before it may return. */
  dispersedAt: InstantMs;
  /** No lease ends by itself before this. */
  leasesDueAt: InstantMs;
  /** No waiter's slice, grace or deadline ends before this. */
  waitersDueAt: InstantMs;
  /** Mean hold in milliseconds, moving with the last calls. */
  holdMeanMs: number;
  /** Calls that went into it. */
  holdSamples: number;
  /** Other pools that are full. */
  readonly passedOver: FullPool;
  /** When a call last ended; -Infinity: none has since the state began. */
  lastEndAt: InstantMs;
  /** When a call was last granted; -Infinity: none was since the state began. */
  lastGrantAt: InstantMs;
  nextSequence: number;
  nextAttachment: number;
  /** Use of the group's own limits. Of a group that names no members it is that of its only one. */
  readonly controls: Controls;
  /** All members with anything in use, used or learned. */
  readonly members: Map<MemberId, Member>;
  /** Those at which calls are granted, in the order of the settings: at least one. */
  serving: readonly Member[];
  /** Limits of tokens that what is only guessed of a call must fit into. */
  guessRates: GuessRates;
  /** Grants so far, by which the member is found that had none for longest. */
  turns: number;
  readonly affinity: Affinity;
  readonly repeatRefusals: RepeatRefusals;
  readonly seen: SeenCalls;
  readonly bound: Bound;
  /** The controls have changed and are to be kept soon. */
  isControlsDirty: boolean;
  /** Since when tallies, which are counted and learned by the way, differ from their row; null: they do not. */
  talliesDirtyAt: InstantMs | null;
  /** Amounts that the kept controls count as used already. */
  readonly ahead: Ahead;
  /** The instant at which the next in line will have room, where only time is lacking. */
  roomDueAt: InstantMs;
  /** The instant at which somebody behind it may have room that does not delay it. */
  overtakingDueAt: InstantMs;
  /**
   * The instant at which somebody has waited long enough for its member while another has room, or when that has room again or
   * is forgotten; or for others than a member that refused it.
   */
  heldOutUntil: InstantMs;
  readonly totals: Totals;
  readonly upstreams: UpstreamCalls;
  /** From when on they are written with the controls, unless the group falls idle before. */
  upstreamsDueAt: InstantMs;
  /** The budget that had no room for a call, with nothing granted since. Null: none. */
  budgetStop: BudgetStop | null;
  readonly decisions: DecisionLog;
}

/** A budget that had no room for a call. */
export interface BudgetStop {
  readonly window: Period;
  readonly limitUsd: number;
  readonly at: InstantMs;
}

export const NEVER = instant(Number.POSITIVE_INFINITY);
