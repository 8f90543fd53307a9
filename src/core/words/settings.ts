import type { Lane } from './ticket.ts';
import type { MemberId } from './ids.ts';

/** The settings of a group and of its members, and the constants of the protocol. */

/** The part of a group's configuration that the core needs. */
export interface GroupSettings {
  /** Slots of the group over all members. 0 grants nothing, and Infinity leaves concurrency unlimited. */
  readonly slotsMax: number;
  /** Whether the slots are configured and never exceeded. Otherwise they are an assumption where learning starts. */
  readonly isHard: boolean;
  /** Whether the group learns from refusals how many concurrent calls its upstream accepts. */
  readonly isAdaptive: boolean;
  readonly rates: RateSettings;
  readonly budgets: BudgetSettings;
  /** Whether any rate or budget is set, so that calls reserve from them. */
  readonly isMetered: boolean;
  readonly breaker: BreakerSettings;
  /** Whether a long pause is probed with single calls. */
  readonly probesPauses: boolean;
  readonly queueLengthMax: number;
  readonly timeoutMs: number;
  /** A paused group queues calls and grants nothing. */
  readonly paused: boolean;
  /** Cooldown of a slot after a successful call, in milliseconds. `auto` uses the learned lag. */
  readonly releaseCooldownMs: number | 'auto';
  /** Cooldown of a slot after a call that was cut short, in milliseconds. `auto` uses `releaseCooldownMs`. */
  readonly cancelCooldownMs: number | 'auto';
  /** Cooldown of a slot after a definite 429 or 5xx of the upstream, in milliseconds. */
  readonly failureCooldownMs: number;
  /** The part of a turn that a lane earns with each grant to a higher lane, while it has waiters. */
  readonly laneShares: Readonly<Record<Lane, number>>;
  /** Maximum time by which the start of an agent run moves a call before its arrival. null means no bound. */
  readonly ageCreditMs: number | null;
  /** Whether the agents of a tenant share its part fairly. Otherwise its oldest call goes first. */
  readonly byAgent: boolean;
  /** Weights of tenants in the scheduling order. A tenant without an entry has weight 1. */
  readonly weights: Readonly<Record<string, number>>;
  /** Slots that a tenant receives before all others. Other tenants use them while it does not. */
  readonly reserved: Readonly<Record<string, number>>;
  readonly reservedLanes: Readonly<Partial<Record<Lane, number>>>;
  /** Maximum number of slots of one tenant. Infinity means no bound. */
  readonly slotsMaxEach: number;
  readonly slotsMaxEachAgent: number;
  readonly slotsPerCallMax: number;
  /** Maximum number of queued calls of one tenant and of one agent. Infinity means no bound. */
  readonly queueLengthMaxEach: number;
  readonly queueLengthMaxEachAgent: number;
  /** What happens to a call that would wait for its own parent. */
  readonly nested: 'reject' | 'pass';
  /** Whether new calls are rejected. Queued calls and calls in flight continue to their end. */
  readonly isDraining: boolean;
  /** Whether the group only decides and counts, and lets every call pass. */
  readonly isDryRun: boolean;
  /** The places where its calls run. Empty means one place with the limits of the group. */
  readonly members: readonly MemberSettings[];
  readonly affinity: AffinitySettings;
}

/** How long a lease lasts without a renewal. Three renewals fit into it. */
export const LEASE_TTL_MS = 45_000;

/** Maximum cooldown, whatever is configured. */
export const COOLDOWN_MAX_MS = 60_000;

/** Interval between renewals. A third of the TTL. */
export const RENEW_EVERY_MS = 15_000;

/** Minimum time without grants after a reset. Without waiters, all holders have returned by then. */
export const SETTLE_MS = 500;

/** Additional time per waiter. Callers return after one millisecond for each call that was ahead of them. */
const SETTLE_WAITER_MS = 1;

/** Additional time per held slot. An object reclaims five leases per millisecond. */
const SETTLE_SLOT_MS = 0.2;

export const SETTLE_MAX_MS = 5_000;

/**
 * Returns how long nothing is granted after a reset. Callers take their old places by their original arrival time, so
 * they must return before the first grant.
 */
export function settleMs(waiters: number, slots: number): number {
  return Math.min(
    SETTLE_MAX_MS,
    SETTLE_MS + waiters * SETTLE_WAITER_MS + Math.floor(slots * SETTLE_SLOT_MS),
  );
}

/** Expected wait above which a waiter may be deferred. */
export const DEFERRED_MS = 60_000;

/**
 * Waiters with fewer certain calls ahead are always parked. Estimates for so few calls are poor, and a free slot needs
 * a parked waiter.
 */
export const NEAR_PLACES = 16;

/** A new call with at least so many waiters ahead receives `pending` at once, to learn its position. */
export const REPORTED_FROM_PLACE = 100;

export const SLICE_MAX_MS = 30_000;

/** How late a waiter may repeat its acquire call after its slice. After that, its caller counts as lost. */
export const ORPHAN_GRACE_MS = 5_000;

/**
 * Delay after which an older acquire call should retry when a newer call for the same ticket has superseded it. It is
 * well within the grace, so the place is kept if the newer caller disconnects.
 */
export const SUPERSEDED_ASK_AGAIN_MS = 3_000;

/** How long callers that lost their places together may return to them. By then each place would have expired. */
export const RETURN_MAX_MS = SLICE_MAX_MS + ORPHAN_GRACE_MS;

/** Minimum time that an ended attempt is remembered, so that a late message about it changes nothing. */
export const TOMBSTONE_TTL_MS = 600_000;

/** Maximum number of remembered ended attempts. The older half is removed first. */
export const TOMBSTONES_MAX = 10_000;

/** Assumed hold of a call before the first call has ended. */
export const HOLD_GUESS_MS = 10_000;

/** Maximum Retry-After. Some SDKs ignore a larger value, others sleep for all of it. */
export const RETRY_AFTER_MAX_MS = 60_000;

/** Minimum Retry-After. A caller that returns sooner finds the same queue. */
export const RETRY_AFTER_MIN_MS = 1_000;

/** Minimum Retry-After if the length of the wait is unknown. */
export const RETURN_MS = 15_000;

/** How long nothing is granted after waiters were moved, so that they are routed again before younger calls start. */
export const MOVE_SETTLE_MS = 250;

/** Maximum number of idle tenants that are remembered. */
export const ACCOUNTS_MAX = 10_000;

/** Maximum number of idle agents that are remembered, over all tenants. */
export const AGENTS_MAX = 20_000;

/** Time without calls after which an agent run without a reported start has ended. */
export const AGENT_FORGOTTEN_MS = 900_000;

/** Minimum number of ended calls before an estimate may reject a call. */
export const HOLD_SAMPLES_MIN = 10;

/** Maximum number of slots that are prefetched to an isolate at once, and maximum share of the free slots. */
export const PREFETCHED_AT_ONCE_MAX = 8;
export const PREFETCHED_SHARE = 1 / 4;

/** Maximum share of slots in use, including prefetched ones, at which more are prefetched. */
export const PREFETCHED_USE_MAX = 1 / 2;

/**
 * Maximum share of slots in use at which prefetched slots are kept. They are recalled before the last slot is taken,
 * because some calls would be rejected instead of queued.
 */
export const PREFETCHED_KEPT_MAX = 3 / 4;

/**
 * Minimum number of grants to an isolate within a second before slots are prefetched to it. Rare calls acquire their
 * slots one by one.
 */
export const PREFETCHED_PACE_MIN = 8;

/**
 * How long prefetched slots last without a keeper: before the first renewal, or after the keeper's context has ended.
 */
export const PREFETCH_TTL_MS = 5_000;

/** Interval between renewals of prefetched slots. The answer is held this long to report a recall. */
export const PREFETCH_RENEW_EVERY_MS = 1_000;

/** How long after sending the last acknowledged renewal a call may start on a prefetched slot. Well below the TTL. */
export const PREFETCH_STARTS_MS = 3_000;

/** Wait before a call probes an ejected member or a long pause. Doubles after each failed probe. */
export const PROBE_MIN_MS = 60_000;
export const PROBE_MAX_MS = 900_000;

/** Maximum number of agents or callers that are assigned to a member. */
export const AFFINITIES_MAX = 10_000;

/** Maximum number of calls that wait for one member while another has room. Those behind them would wait too long. */
export const HELD_OUT_MAX = 64;

/** Maximum number of remembered members that the configuration no longer names. */
export const RETIRED_MAX = 32;

/** A place where calls of the group run. Only what the core needs: its own limits, and when it is preferred. */
export interface MemberSettings {
  readonly id: MemberId;
  /** As for the group. 0 grants nothing here, and Infinity leaves concurrency unlimited. */
  readonly slotsMax: number;
  readonly isHard: boolean;
  readonly isAdaptive: boolean;
  readonly rates: RateSettings;
  readonly budgets: BudgetSettings;
  /** Whether any rate or budget is set. */
  readonly isMetered: boolean;
  readonly breaker: BreakerSettings;
  readonly probesPauses: boolean;
  /** Its share of the calls relative to the other members of its tier. */
  readonly weight: number;
  /** Members of a higher tier are used only when all members of lower tiers are full or ejected. */
  readonly tier: number;
  /** false if the configuration disables the member. Calls in flight there continue to their end. */
  readonly isEnabled: boolean;
  /**
   * The upstream whose calls ran here before the group had members, because both use the same key. null if it has a key
   * of its own.
   */
  readonly succeeds: string | null;
  /**
   * Identifies its upstream and its key, independent of its id. Members with the same place are the same. null if
   * unknown.
   */
  readonly place: string | null;
}

export interface BreakerSettings {
  /** The share of failed calls at which the breaker opens. Infinity disables it. */
  readonly failedShare: number;
  /** Minimum number of results before the breaker opens. */
  readonly callsMin: number;
  /** Maximum age of a result that counts, in milliseconds. */
  readonly windowMs: number;
  /** Initial time that the breaker stays open, in milliseconds. Doubles after each failed probe. */
  readonly openMs: number;
  readonly openMsMax: number;
}

export const BREAKER_DEFAULTS: BreakerSettings = {
  failedShare: 0.5,
  callsMin: 10,
  windowMs: 300_000,
  openMs: 15_000,
  openMsMax: 300_000,
};

/** How related calls stay at one member, where their prompts are cached. */
export interface AffinitySettings {
  readonly by: 'agent' | 'caller' | 'none';
  /** How long a member is kept after its last call, in milliseconds. */
  readonly forMs: number;
  /** Maximum time that a call waits for its member while another member has room, in milliseconds. */
  readonly waitMs: number;
}

/** Why a member is ejected, as a clause after "because", by kind of the refusal. */
export const EJECTION_CAUSES = {
  unauthorized: 'its upstream refuses its key',
  quota: 'its upstream reports that the account has no quota left',
  egress: "its upstream refuses calls from the Worker's location",
} as const;

/** The rate limits of a group. null means no limit, and 0 lets no call pass. */
export interface RateSettings {
  /** Requests per minute and per day. */
  readonly rpm: number | null;
  readonly rpd: number | null;
  /** Input and output tokens together, per minute and per day. */
  readonly tpm: number | null;
  readonly tpd: number | null;
  /** Input tokens and output tokens per minute. */
  readonly itpm: number | null;
  readonly otpm: number | null;
  /** Maximum number of calls that start within one second. It bounds how fast the slots fill. */
  readonly startsPerS: number | null;
  /** The burst of a limit per minute, as the time in which its rate refills it, in milliseconds. */
  readonly burstMs: number;
}

export type LimitName = Exclude<keyof RateSettings, 'burstMs'>;

/** A limit that a single call exceeds, with both amounts. */
export interface Exceeded {
  readonly limit: LimitName;
  readonly limitAmount: number;
  readonly amount: number;
}

/** Maximum cost of a group in each UTC hour, day and month. null means no limit. */
export interface BudgetSettings {
  readonly perHourUsd: number | null;
  readonly perDayUsd: number | null;
  readonly perMonthUsd: number | null;
}
