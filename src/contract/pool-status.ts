import type { Lane } from '../core/words/ticket.ts';

/** One pool of slots: a group, or one partition of it. */
export interface PoolStatus {
  readonly group: string;
  readonly partition: string | null;
  readonly limit: {
    readonly configured: number | null;
    readonly effective: number | null;
    readonly source: 'configured' | 'built_in' | 'unknown' | 'learned';
  };
  readonly in_use: number;
  readonly cooling: number;
  readonly queued: number;
  readonly queued_by_lane: Readonly<Record<Lane, number>>;
  readonly oldest_wait_ms: number;
  /** Of the calls granted in the last five minutes; null: there were none. */
  readonly wait_p50_ms: number | null;
  readonly wait_p95_ms: number | null;
  readonly paused: boolean;
  /** Until when the upstream wants no calls: after a refusal, or because a limit is nearly used up. */
  readonly paused_until: string | null;
  readonly breaker: 'closed' | 'open' | 'half_open';
  /** When an open breaker lets the first call probe. */
  readonly breaker_until: string | null;
  /** Refusals of the upstream, by what they were about. */
  readonly refusals_total: Readonly<Record<string, number>>;
  /** Limits of requests and tokens by their names in the configuration. Null: several pools differ. */
  readonly rates: Readonly<Record<string, RateStatus>> | null;
  /** Null: nobody counts cost here. */
  readonly spend: SpendStatus | null;
  readonly draining: boolean;
  readonly dry_run: boolean;
  readonly granted_total: number;
  readonly rejected_total: Readonly<Record<string, number>>;
  /** In a dry run: calls that would not have been granted at once. */
  readonly would_wait_total: number;
  /** Leases whose holder was gone, taken back at the end of their TTL. */
  readonly expired_total: number;
  /** Streams that were taken up again after their lease had lapsed. */
  readonly resurrected_total: number;
  /** Calls that passed without a slot while this object could not be reached. */
  readonly passed_unlimited_total: number;
  /** How long nobody has held or awaited a slot, to within a minute; 0 while somebody does. */
  readonly idle_ms: number;
}

/** One limit of requests or tokens. */
export interface RateStatus {
  readonly limit: number;
  /** What may go at once now. Less than 0: more was used than was reserved. */
  readonly left: number;
}

/** What was spent in the present hour, day and month of UTC, in USD. */
export interface SpendStatus {
  readonly hour_usd: number;
  readonly day_usd: number;
  readonly month_usd: number;
  /** Estimates of what is in flight. */
  readonly reserved_usd: number;
  /** This day's cost of those who spent most. */
  readonly day_usd_by_key: Readonly<Record<string, number>>;
  readonly day_usd_by_agent: Readonly<Record<string, number>>;
}

/** A slot that is held. */
export interface LeaseInfo {
  readonly id: string;
  readonly caller: string;
  readonly tenant: string;
  readonly agent: string | null;
  readonly lane: Lane;
  readonly slots: number;
  readonly upstream: string;
  readonly model: string | null;
  readonly granted_at: string;
  readonly age_ms: number;
  readonly expires_at: string;
  readonly state: 'held' | 'revoking' | 'cooling';
}

/** A call that waits for a slot. */
export interface WaiterInfo {
  readonly ticket: string;
  readonly lane: Lane;
  readonly tenant: string;
  readonly agent: string | null;
  readonly upstream: string;
  readonly model: string | null;
  readonly slots: number;
  readonly waited_ms: number;
  /** Waiters that will probably be granted before this one. */
  readonly position: number;
  readonly estimate_ms: number;
  readonly promoted: boolean;
}
