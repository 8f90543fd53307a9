import type { BudgetSettings, RateSettings } from './limits.ts';
import type { AffinitySettings, BreakerSettings, MemberSettings } from './member.ts';
import type { Lane } from './ticket.ts';

/** A group's configuration as far as the core looks at it. */
export interface GroupSettings {
  /** Slots of the group, over all members. 0 grants nothing; Infinity leaves concurrency unlimited. */
  readonly slotsMax: number;
  /** The slots are configured and never exceeded. Assumed ones are where learning starts. */
  readonly isHard: boolean;
  /** Whether the group learns from refusals how many calls its upstream takes. */
  readonly isAdaptive: boolean;
  readonly rates: RateSettings;
  readonly budgets: BudgetSettings;
  /** Whether any rate or budget is set, so that calls take of them. */
  readonly isMetered: boolean;
  readonly breaker: BreakerSettings;
  /** Whether a long pause is probed with single calls. */
  readonly probesPauses: boolean;
  /** Waiters that may stand in the queue. */
  readonly queueLengthMax: number;
  /** How long a ticket may wait, in milliseconds. */
  readonly timeoutMs: number;
  /** A paused group queues and grants nothing. */
  readonly paused: boolean;
  /** How long a slot stays down after a call that ended well. `auto`: as long as was learned. */
  readonly releaseCooldownMs: number | 'auto';
  /** How long a slot stays down after a call that was cut short. `auto`: as after one that ended well. */
  readonly cancelCooldownMs: number | 'auto';
  /** How long a slot stays down after a definite 429 or 5xx of the upstream. */
  readonly failureCooldownMs: number;
  /** The part of a turn that a lane earns with each grant to one above it, while somebody waits there. */
  readonly laneShares: Readonly<Record<Lane, number>>;
  /** How much older than its arrival an agent run makes a call. Null: no bound. */
  readonly ageCreditMs: number | null;
  /** Whether the agents of a tenant share its part fairly, instead of the oldest going first. */
  readonly byAgent: boolean;
  /** Weights of tenants in the sharing; 1 for who is not named. */
  readonly weights: Readonly<Record<string, number>>;
  /** Slots that a tenant gets before all others, and that others use while it does not. */
  readonly reserved: Readonly<Record<string, number>>;
  readonly reservedLanes: Readonly<Partial<Record<Lane, number>>>;
  /** Slots that one tenant may hold; Infinity: no bound. */
  readonly slotsMaxEach: number;
  readonly slotsMaxEachAgent: number;
  /** Slots that one call may take. */
  readonly slotsPerCallMax: number;
  /** Waiters of one tenant, and of one agent; Infinity: no bound. */
  readonly queueLengthMaxEach: number;
  readonly queueLengthMaxEachAgent: number;
  /** The fate of a call that would wait for its own parent. */
  readonly nested: 'reject' | 'pass';
  /** New calls are rejected; the queue and what is in flight go on to their end. */
  readonly isDraining: boolean;
  /** Decides and counts, and lets everything pass. */
  readonly isDryRun: boolean;
  /** The places where its calls run. Empty: one, which has the limits of the group. */
  readonly members: readonly MemberSettings[];
  readonly affinity: AffinitySettings;
}

/** How long a lease lasts without a renewal: then its holder is lost. Three renewals fit into it. */
export const LEASE_TTL_MS = 45_000;

/** Maximum cooldown, whatever is configured. */
export const COOLDOWN_MAX_MS = 60_000;

/** How often a holder renews. A third of the TTL. */
export const RENEW_EVERY_MS = 15_000;

/** How long nothing is granted after a reset at least: where nobody waited, holders are back by then. */
export const SETTLE_MS = 500;

/** How much longer for each waiter that was there: callers ask again after as many milliseconds as they had ahead. */
const SETTLE_WAITER_MS = 1;

/** How much longer for each slot that was held: an object takes five holders back in a millisecond. */
const SETTLE_SLOT_MS = 0.2;

/** How long nothing is granted after a reset at most. */
export const SETTLE_MAX_MS = 5_000;

/**
 * Computes how long nothing is granted after a reset: callers take their old place by their original time, which needs
 * them to be back before the first grant.
 */
export function settleMs(waiters: number, slots: number): number {
  return Math.min(
    SETTLE_MAX_MS,
    SETTLE_MS + waiters * SETTLE_WAITER_MS + Math.floor(slots * SETTLE_SLOT_MS),
  );
}

/** The estimate above which nobody need be parked for a waiter. */
export const DEFERRED_MS = 60_000;

/** Waiters that are parked whatever their estimate: of so few calls it says little, and a free slot must find one. */
export const NEAR_PLACES = 16;

/** Waiters ahead of a newcomer that is told so at once. */
export const REPORTED_FROM_PLACE = 100;

/** How long a slice is at most. */
export const SLICE_MAX_MS = 30_000;

/** How long after its slice a waiter may take to ask again: then its caller is lost. */
export const ORPHAN_GRACE_MS = 5_000;

/**
 * When a request for a lease should retry after a newer request for the same ticket has superseded it. Well within
 * the grace, so that the place is kept if the newer one disconnects meanwhile.
 */
export const SUPERSEDED_ASK_AGAIN_MS = 3_000;

/** How long those may take to return who lost their places together: by then each would have lost its own anyhow. */
export const RETURN_MAX_MS = SLICE_MAX_MS + ORPHAN_GRACE_MS;

/** How long an ended attempt is remembered at least, so that a late message about it changes nothing. */
export const TOMBSTONE_TTL_MS = 600_000;

/** Maximum ended attempts that are remembered; the older half goes first. */
export const TOMBSTONES_MAX = 10_000;

/** How long a hold is assumed to be before the first call has ended. */
export const HOLD_GUESS_MS = 10_000;

/** Maximum Retry-After: some SDKs ignore a larger one, others sleep it in full. */
export const RETRY_AFTER_MAX_MS = 60_000;

/** Minimum Retry-After: a caller that comes back sooner finds the same queue. */
export const RETRY_AFTER_MIN_MS = 1_000;

/** Minimum Retry-After where nobody knows how long it will last. */
export const RETURN_MS = 15_000;

/** How long nobody younger is granted after waiters were moved, to be routed again. */
export const MOVE_SETTLE_MS = 250;

/** Maximum tenants that are remembered while they have no call. */
export const ACCOUNTS_MAX = 10_000;

/** Maximum agents, over all tenants, that are remembered while they have no call. */
export const AGENTS_MAX = 20_000;

/** How long an agent run that is known by its id only may make no call: then it has ended. */
export const AGENT_FORGOTTEN_MS = 900_000;

/** Minimum calls that have ended before an estimate may reject anybody. */
export const HOLD_SAMPLES_MIN = 10;

/** Maximum slots that are lent at once to an isolate, and maximum part of those that are free. */
export const PREFETCHED_AT_ONCE_MAX = 8;
export const PREFETCHED_SHARE = 1 / 4;

/** Maximum part of the slots in use, lent ones among them, while more are lent. */
export const PREFETCHED_USE_MAX = 1 / 2;

/**
 * Maximum part of the slots in use while any are lent. They are wanted back before the last one is taken, for the sake of calls that
 * would be refused rather than wait.
 */
export const PREFETCHED_KEPT_MAX = 3 / 4;

/** Minimum grants to an isolate within a second for slots to be lent to it: where calls are rare they all ask. */
export const PREFETCHED_PACE_MIN = 8;

/** How long slots stay lent that nobody keeps: nobody does yet, or the context that did has ended. */
export const PREFETCH_TTL_MS = 5_000;

/** How often a loan is renewed. The answer waits so long for the news that its slots are wanted back. */
export const PREFETCH_RENEW_EVERY_MS = 1_000;

/** How long after the last renewal that was acknowledged was sent a call may start on a loan: well before its TTL. */
export const PREFETCH_STARTS_MS = 3_000;

/** Wait before a call probes an ejected member or a long pause. Doubles after each failed probe. */
export const PROBE_MIN_MS = 60_000;
export const PROBE_MAX_MS = 900_000;

/** Maximum agents or callers that are known to belong to a member. */
export const AFFINITIES_MAX = 10_000;

/** Maximum calls that wait for one member while another has room: for those behind them it takes too long anyway. */
export const HELD_OUT_MAX = 64;

/** Maximum members that are remembered which the configuration does not name any more. */
export const RETIRED_MAX = 32;
