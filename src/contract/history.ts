import * as z from 'zod';
import type { ScopeFields, Frozen } from './shared-shapes.ts';

/** The past: figures of pools over time, and the audit log. */

/** Steps of a pool's history. After a day, only the longer steps are kept. */
export const MINUTE_MS = 60_000;
export const QUARTER_MS = 900_000;

export const MINUTES_KEPT_MS = 86_400_000;
export const QUARTERS_KEPT_MS = 30 * 86_400_000;

/** Counts of a pool over one step. Points can be added up, over time and over pools. */
export interface HistoryPoint {
  /** Start of the step, in epoch milliseconds. */
  readonly at: number;
  readonly inUseMax: number;
  /** Sum over slots of the milliseconds in which each was in use. */
  readonly slotMs: number;
  /** Slots that could be granted at its end, including what was learned. null means unlimited. */
  readonly limit: number | null;
  /** Slots that were configured or assumed at its end. */
  readonly limitConfigured: number | null;
  readonly queuedMax: number;
  /** Waits of granted calls, in the buckets of `BOUNDS_MS`. */
  readonly waits: readonly number[];
  readonly granted: number;
  readonly rejected: Readonly<Record<string, number>>;
  readonly refusals: Readonly<Record<string, number>>;
  /** Calls that ended, by outcome. */
  readonly ended: Readonly<Record<string, number>>;
  /** Successes that the upstream answered with an error status, by status. Absent if there are none. */
  readonly answeredErrors?: Readonly<Record<string, number>>;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly usd: number;
  /**
   * Calls granted at each member, and refused by its upstream. Members without any are omitted. Absent without members.
   */
  readonly grantedByMember?: Readonly<Record<string, number>>;
  readonly refusedByMember?: Readonly<Record<string, number>>;
  /** Most slots in use at each member. Absent without members. */
  readonly inUseMaxByMember?: Readonly<Record<string, number>>;
  /**
   * Waits that ended in this step, with or without a slot, by wait reason: their number, and their total in
   * milliseconds. Calls that did not wait do not count.
   */
  readonly waitedFor: Readonly<Record<string, number>>;
  readonly waitedForMs: Readonly<Record<string, number>>;
  /** Tenants with the longest waits that ended in this step, and those that held slots longest. */
  readonly tenantsWaited: TenantTimes;
  readonly tenantsHeld: TenantTimes;
  /** Calls that ended in this step and had slots, of the most frequent keys and models. Only in steps of a minute. */
  readonly callsOf?: CallCounts;
}

/**
 * Number of calls by key, upstream and model, the most first. `key` is the id of the gateway key, or the fingerprint of
 * the provider key. The list is bounded, so entries with few calls may be missing.
 */
export type CallCounts = readonly (readonly [
  key: string,
  upstream: string,
  model: string | null,
  calls: number,
])[];

/**
 * Total milliseconds by tenant, the longest first. The list is bounded, so a sum over several points is a minimum: it
 * misses points in which the tenant was not listed.
 */
export type TenantTimes = readonly (readonly [tenant: string, ms: number])[];

/** Events that a pool records in its own history. Changes by operators are in the audit log. */
export type PoolMarkerKind =
  | 'upstream_pause'
  | 'breaker_opened'
  | 'breaker_closed'
  | 'ceiling_cut'
  | 'member_out'
  | 'member_back'
  | 'reset';

export interface PoolMarker {
  /** Epoch milliseconds of the first event of this minute. */
  readonly at: number;
  readonly kind: PoolMarkerKind;
  /** Number of events of this kind in the minute. One marker stands for all of them. */
  readonly times: number;
  /** Subject of the upstream's response, such as `requests`. null if there was no response. */
  readonly why: string | null;
  /** Member of the event. Absent if the group has no members. */
  readonly member?: string;
  /** Affected calls. Absent if they are all calls of the group or member. */
  readonly scope?: ScopeFields;
  /**
   * `until` in epoch milliseconds; `from` and `to` in slots; `slots`: held slots. For a reset, `since` and `until`
   * bound the time of which the earlier instance left no data, in epoch milliseconds. They are absent if there is no
   * such gap.
   */
  readonly figures: Readonly<Record<string, number>>;
}

/** Maximum number of stored markers of a pool. They are kept as long as the points of its history. */
export const POOL_MARKERS_MAX = 500;

/** Time without data of a pool: its object was reset with calls in flight. */
export interface HistoryGap {
  /** Epoch milliseconds. Points within the gap come from the instance after the reset. */
  readonly from: number;
  readonly to: number;
}

export interface PoolHistory {
  /** Clock of the object in epoch milliseconds. The last point reaches up to it. */
  readonly now: number;
  readonly points: readonly HistoryPoint[];
  /**
   * Start of the pool's data within or before the requested time, in epoch milliseconds. null if it has recorded
   * nothing.
   */
  readonly since: number | null;
  readonly markers: readonly PoolMarker[];
  /** The oldest first. */
  readonly gaps: readonly HistoryGap[];
}

/** One changed field of the configuration. Hashes are hidden, and webhook addresses are cut to their host. */
export const auditChangeSchema = z
  .object({
    path: z
      .string()
      .describe('Path of the field, such as `groups[openai-shared].limits.max_concurrency`.'),
    from: z
      .unknown()
      .optional()
      .describe(
        'Value before the change. Absent if there was none. Hashes are shown as `(hidden)`.',
      ),
    to: z.unknown().optional().describe('Value after the change. Absent if the field was removed.'),
  })
  .describe('One changed field of the configuration.');

export const auditEntrySchema = z
  .object({
    sequence: z.int().describe('Number of the entry. It increases with time.'),
    at: z.iso.datetime().describe('Time of the action.'),
    version: z
      .int()
      .min(0)
      .describe('Version of the configuration that the action created, or that was current then.'),
    actor: z.string().describe('Who acted: `admin-token`, the id of an admin key, or `access:…`.'),
    action: z
      .string()
      .describe('The action, such as `group openai-shared: pause`. It never contains a secret.'),
    changes: z
      .array(auditChangeSchema)
      .describe('Changed fields. Empty if the action did not change the configuration.'),
    changes_omitted: z.int().min(0).describe('Number of changes that were not stored.'),
  })
  .describe('An entry of the audit log.');

export type AuditChange = Frozen<z.output<typeof auditChangeSchema>>;
export type AuditEntry = Frozen<z.output<typeof auditEntrySchema>>;
