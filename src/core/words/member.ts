import type { MemberId } from './ids.ts';
import type { BudgetSettings, RateSettings } from './limits.ts';

/** A place where calls of the group run, as far as the core looks at it: its own limits, and when it is preferred. */
export interface MemberSettings {
  readonly id: MemberId;
  /** As with the group. 0 grants nothing here; Infinity leaves concurrency unlimited. */
  readonly slotsMax: number;
  readonly isHard: boolean;
  readonly isAdaptive: boolean;
  readonly rates: RateSettings;
  readonly budgets: BudgetSettings;
  /** Whether any rate or budget is set. */
  readonly isMetered: boolean;
  readonly breaker: BreakerSettings;
  /** Whether a long pause is probed with single calls. */
  readonly probesPauses: boolean;
  /** Its part of the calls, against the others of its tier. */
  readonly weight: number;
  /** Members of a lower tier are full, or out, before one of a higher tier is used. */
  readonly tier: number;
  /** False: the configuration takes it out; what is in flight there goes on to its end. */
  readonly isEnabled: boolean;
  /**
   * The upstream whose calls ran here before the group had members, because they had the same key. Null: it has a key
   * of its own.
   */
  readonly succeeds: string | null;
  /** Names its upstream and its key, whatever its id is: one with the same is the same. Null: it is not known. */
  readonly place: string | null;
}

/** Settings of the circuit breaker. */
export interface BreakerSettings {
  /** The share of failed calls at which the breaker opens. Infinity disables it. */
  readonly failedShare: number;
  /** Minimum number of results before the breaker opens. */
  readonly callsMin: number;
  /** Age up to which a result counts, in milliseconds. */
  readonly windowMs: number;
  /** How long the breaker stays open at first, in milliseconds. Doubles after each failed probe. */
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

/** How calls that belong together stay at one member, where their prompts are cached. */
export interface AffinitySettings {
  readonly by: 'agent' | 'caller' | 'none';
  /** How long after its last call, in milliseconds. */
  readonly forMs: number;
  /** How long a call waits at most for its member while another has room, in milliseconds. */
  readonly waitMs: number;
}
