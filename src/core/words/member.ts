import type { MemberId } from './ids.ts';
import type { BudgetSettings, RateSettings } from './limits.ts';

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
