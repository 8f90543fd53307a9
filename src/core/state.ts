import type { InstantMs, LeaseId, MemberId, TicketId } from './words/ids.ts';
import { instant } from './words/ids.ts';
import type { NestedLease } from './words/lease.ts';
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
 * A lease is `held` from its grant, `revoking` after an operator revoked it and until its holder releases it, and
 * `cooling` during the cooldown after its end. It counts in all three phases.
 */
type LeasePhase = 'held' | 'revoking' | 'cooling';

export interface ActiveLease extends AtGrant {
  readonly id: LeaseId;
  readonly ticketId: TicketId;
  holder: Holder;
  readonly lane: Lane;
  member: MemberId;
  /** The member that its holder received with the lease, whose key the call uses. */
  named: MemberId;
  /** 0 while it shares the slots of its parent lease. */
  slots: number;
  /** The parent lease whose slots it shares, and how many of them. null if it has slots of its own. */
  readonly nested: NestedLease | null;
  /** The leases that had its slot before and handed it over without a write, newest first. Empty if there are none. */
  readonly heirOf: readonly LeaseId[];
  readonly grantedAt: InstantMs;
  phase: LeasePhase;
  /** The instant at which it expires, or at which its cooldown ends. */
  until: InstantMs;
  /** The newest answer that carries it. Only the disposal of that answer frees it. */
  attachment: number;
  /** Whether it is held by id: no disposal frees it, and its holder knows when it expires. */
  isById: boolean;
  /** The upstream was not called before this instant. The call may have waited in another group after its grant. */
  callableAt: InstantMs;
  scopes: readonly LeaseInScope[];
  /** Whether the group has received the upstream's answer to the call. */
  hasAnswer: boolean;
  /** Whether its holder still waits in another group. */
  waitsElsewhere: boolean;
  /** Whether the upstream refused its call and its holder has not released it yet. */
  isRefused: boolean;
  /** Whether the upstream refused its call because it still counts a call that has ended. */
  isLagging: boolean;
  /** An earlier instance granted it, so nested calls on its slots may still be unknown here. */
  isOfEarlier: boolean;
  /** Whether it ended without a release. Its holder may still be alive. */
  isLost: boolean;
  /** Hold time, in milliseconds, that its tenant and agent were charged for. */
  chargedMs: number;
  /** The part of rates and budgets that it has reserved. null if there is none, or if it is settled. */
  reserved: Reserved | null;
  /**
   * Its entry in the decision log. null if an earlier instance granted it, or if it was resumed and has no report yet.
   */
  decision: Decision | null;
}

/** A lease that one instance hands over to another. It has no expiry, because its holder gets one TTL from then on. */
export type HandedLease = Pick<
  ActiveLease,
  'id' | 'ticketId' | 'holder' | 'lane' | 'slots' | 'grantedAt' | 'phase' | 'nested' | 'reserved'
> & {
  readonly member: MemberId;
  /** Absent if it is held by its answer. */
  readonly isById?: boolean;
  readonly coolingUntil: InstantMs | null;
};

/** Everything that one instance of a group hands over to the instance that replaces it. */
export interface HandedGroup {
  readonly leases: readonly HandedLease[];
  /** Exceeds every attachment number that it issued. */
  readonly nextAttachment: number;
  /** The used part of the limits, and the lessons about the upstream. */
  readonly controls: Controls;
  /** The controls of each member. Absent if the group names none. */
  readonly members?: Readonly<Record<MemberId, Controls>>;
  readonly totals: Totals;
  readonly upstreams: UpstreamCalls;
  /** Orphaned slots of an earlier process. Absent if there are none. */
  readonly unclaimed?: number;
}

/**
 * The whole state of one group. Only `step` changes it, in place.
 *
 * Invariants, checked by `checkInvariants`:
 *
 * - Slots in use are those of the leases, the prefetched and the orphaned ones. Only `leases.ts` updates the sums. They
 *   are never stored, and always equal the sum over the set.
 * - No parked waiter waits while there is room for the next waiter in scheduling order.
 * - A ticket is in the queue or has a lease, never both. An ended attempt has neither.
 */
export interface GroupState {
  settings: GroupSettings;
  readonly leases: Map<LeaseId, ActiveLease>;
  slotsInUse: number;
  readonly slotsByLane: Record<Lane, number>;
  /** Orphaned slots, the end of their TTL, and whether all leases of earlier instances are accounted for. */
  readonly unclaimed: { slots: number; until: InstantMs; isOver: boolean };
  readonly lending: PrefetchState;
  /** Slots of nested leases that share their parent's slots. `slotsInUse` does not count them. */
  slotsNested: number;
  /** Slots of ended leases that cool down. None of their calls is at the upstream. */
  slotsCooling: number;
  slotsWaitingElsewhere: number;
  /** Slots of leases whose calls the upstream refused. None of these calls is at the upstream any more. */
  slotsRefused: number;
  /** Leases that an operator revoked and whose holders have not released them yet. */
  readonly revoking: Set<LeaseId>;
  /** Nested leases that were reclaimed after a reset, before their parents. */
  readonly seekingParent: Set<ActiveLease>;
  /** Leases that cool down after a failure with a caller's own key, while no other key was in use. */
  readonly coolingForKey: Set<ActiveLease>;
  /** Nested leases by the id of the parent whose slots they share. */
  readonly nestedIn: Map<LeaseId, Set<ActiveLease>>;
  readonly queue: Queue;
  readonly accounts: Accounts;
  /** Credit of the lower lanes, in turns. */
  readonly laneCredit: Record<Lane, number>;
  /** Ended attempts and cancelled tickets. */
  readonly tombstones: Tombstones;
  /** Nothing is granted before this instant, because callers of an earlier instance are still returning. */
  grantsFrom: InstantMs;
  /**
   * While the group drains, a call that arrived before this instant is not new, even if it has no place in the queue.
   */
  drainsFrom: InstantMs;
  /**
   * The instant at which all waiters lost their places, by a reset or a move. Calls that arrived before it may return
   * to them.
   */
  dispersedAt: InstantMs;
  /** No lease expires and no cooldown ends before this instant. */
  leasesDueAt: InstantMs;
  /** No waiter's slice, grace or deadline ends before this instant. */
  waitersDueAt: InstantMs;
  /** Moving mean of the last holds, in milliseconds. */
  holdMeanMs: number;
  holdSamples: number;
  /** Other pools that are full. */
  readonly passedOver: FullPool;
  /** When a call last ended. -Infinity if none has since the state was created. */
  lastEndAt: InstantMs;
  /** When a call was last granted. -Infinity if none was since the state was created. */
  lastGrantAt: InstantMs;
  nextSequence: number;
  nextAttachment: number;
  /** Use of the group's own limits. A group without members shares them with its only member. */
  readonly controls: Controls;
  /** All members that are in use, or have use or lessons. */
  readonly members: Map<MemberId, Member>;
  /** The members at which calls are granted, in the order of the settings. At least one. */
  serving: readonly Member[];
  /** The token limits that a call with an estimated input must fit into. */
  guessRates: GuessRates;
  /** Number of grants so far. It identifies the member that has had no grant for the longest time. */
  turns: number;
  readonly affinity: Affinity;
  readonly repeatRefusals: RepeatRefusals;
  readonly seen: SeenCalls;
  readonly bound: Bound;
  isControlsDirty: boolean;
  /** When the tallies, which do not need a prompt write, first differed from their row. null if they do not. */
  talliesDirtyAt: InstantMs | null;
  /** Amounts that the stored controls already count as used. */
  readonly ahead: Ahead;
  /** When the next waiter will have room, if it lacks only time. */
  roomDueAt: InstantMs;
  /** When a waiter behind the next one may have room without delaying it. */
  overtakingDueAt: InstantMs;
  /**
   * The next instant at which a waiter that is held for a member may be placed elsewhere. It has then waited long
   * enough, its member has room again or its affinity expires, or a member that refused it may serve it again.
   */
  heldOutUntil: InstantMs;
  readonly totals: Totals;
  readonly upstreams: UpstreamCalls;
  /** When `upstreams` is written with the controls, unless the group becomes idle before. */
  upstreamsDueAt: InstantMs;
  /** The budget that had no room for a call, with nothing granted since. null if there is none. */
  budgetStop: BudgetStop | null;
  readonly decisions: DecisionLog;
}

export interface BudgetStop {
  readonly window: Period;
  readonly limitUsd: number;
  readonly at: InstantMs;
}

export const NEVER = instant(Number.POSITIVE_INFINITY);
