import type { ScopeFields } from './scope.ts';
/** How long a time a point of a pool's history is about; after a day only the longer ones are kept. */
export const MINUTE_MS = 60_000;
export const QUARTER_MS = 900_000;

/** How far back points of a minute reach, and points of a quarter of an hour. */
export const MINUTES_KEPT_MS = 86_400_000;
export const QUARTERS_KEPT_MS = 30 * 86_400_000;

/** Counts of a pool over a stretch of time. Points can be added up: over time, and over pools. */
export interface HistoryPoint {
  /** When the stretch began, in epoch milliseconds. Its length is that of the step that was asked for. */
  readonly at: number;
  readonly inUseMax: number;
  /** Slots in use times the milliseconds that they were. */
  readonly slotMs: number;
  /** The slots that could be granted at its end, with what was learned; null: any number. */
  readonly limit: number | null;
  /** The slots that were configured at its end, or assumed. */
  readonly limitConfigured: number | null;
  readonly queuedMax: number;
  /** Waits of granted calls, by the buckets of `BOUNDS_MS`. */
  readonly waits: readonly number[];
  readonly granted: number;
  readonly rejected: Readonly<Record<string, number>>;
  readonly refusals: Readonly<Record<string, number>>;
  /** Calls that ended, by outcome. Absent: of an older release. */
  readonly ended?: Readonly<Record<string, number>>;
  /** Those among the successes that the upstream answered with an error status, by status. Absent: none. */
  readonly answeredErrors?: Readonly<Record<string, number>>;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly usd: number;
  /** Calls granted at each member, and refused by its upstream, of those that had any. Absent: the group names none. */
  readonly grantedByMember?: Readonly<Record<string, number>>;
  readonly refusedByMember?: Readonly<Record<string, number>>;
  /** The most slots that calls held at each member, of those that had any. Absent: as above, or of an older release. */
  readonly inUseMaxByMember?: Readonly<Record<string, number>>;
  /**
   * Waits that ended in it, with a slot or without, by what the calls waited for: how many, and how long together in
   * milliseconds. Calls that did not wait are in neither. Absent here and below: of an older release.
   */
  readonly waitedFor?: Readonly<Record<string, number>>;
  readonly waitedForMs?: Readonly<Record<string, number>>;
  /** The tenants whose calls waited longest, by the waits that ended in it, and those that held slots longest. */
  readonly tenantsWaited?: TenantTimes;
  readonly tenantsHeld?: TenantTimes;
  /** Calls that were over in it and had slots, of the keys and models with the most. Absent: of a longer step than a minute. */
  readonly callsOf?: CallCounts;
}

/**
 * Calls of a key of an upstream's model, the most first. `key`: id of the gateway key, or the fingerprint of the provider key.
 * Bounded: those with few calls may be missing.
 */
export type CallCounts = readonly (readonly [
  key: string,
  upstream: string,
  model: string | null,
  calls: number,
])[];

/**
 * Tenants with the milliseconds that theirs took, the longest first. Bounded, so what is joined of several points is at
 * least so much: a tenant that was far behind in one of them is not in it.
 */
export type TenantTimes = readonly (readonly [tenant: string, ms: number])[];

/** Events that a pool marks in its own history. Changes by operators stand in the audit log. */
export type PoolMarkerKind =
  | 'upstream_pause'
  | 'breaker_opened'
  | 'breaker_closed'
  | 'ceiling_cut'
  | 'member_out'
  | 'member_back'
  | 'reset';

/** Something that changed how a pool grants, at an instant. */
export interface PoolMarker {
  /** Epoch milliseconds; of several the first. */
  readonly at: number;
  readonly kind: PoolMarkerKind;
  /** How often within a minute: one marker stands for all of them. */
  readonly times: number;
  /** Subject of the upstream's answer, as in `requests`; null: no answer of it. */
  readonly why: string | null;
  /** The member that it happened to. Absent: the group names none. */
  readonly member?: string;
  /** The calls affected. Absent if they are all calls of the group or member. */
  readonly scope?: ScopeFields;
  /**
   * `until`, in epoch milliseconds; `from` and `to`, in slots; `slots`: how many were held, which releases up to
   * 0.1.0 called `leases`. Of a reset `since` and `until`: the time of which the instance before has left no word, in
   * epoch milliseconds; absent: of an older release, or it has left one of all of it.
   */
  readonly figures: Readonly<Record<string, number>>;
}

/** Maximum of markers that are kept of a pool, for as long as the points of its history. */
export const POOL_MARKERS_MAX = 500;

/** Time of which a pool does not know what happened: its object was reset with calls in flight. */
export interface HistoryGap {
  /** Epoch milliseconds. Points in it are of what came after, if there are any. */
  readonly from: number;
  readonly to: number;
}

/** The past of one pool. */
export interface PoolHistory {
  /** The object's clock, in epoch milliseconds: up to when the last point tells. */
  readonly now: number;
  readonly points: readonly HistoryPoint[];
  /**
   * From when on the pool has data, in epoch milliseconds: within the time asked for, or before it. Null: it has recorded nothing
   * so far. Absent: from a release that does not say.
   */
  readonly since?: number | null;
  /** Absent: from a release that marks nothing. */
  readonly markers?: readonly PoolMarker[];
  /** The oldest first. Absent: from a release that knows of none. */
  readonly gaps?: readonly HistoryGap[];
}
