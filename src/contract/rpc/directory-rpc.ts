import type { RateUse } from '../../core/parts/rates.ts';
import type { GroupConfig, AdminKeyConfig, Config, WebhookConfig } from '../config/config.ts';
import type { AuditEntry } from '../history.ts';
import type { KeylessCaller, RefusalCount, RefusalTotal } from '../reasons.ts';
import type { Warning } from '../attention.ts';
import type { PoolWatchRequest, PoolMetrics, WatchSpan, StoredCosts } from './feed-rpc.ts';
import type { GroupDefinition } from './group-rpc.ts';

/** Calls and messages of the directory, with the reports of idle pools that it stores. */

/** State of an idle pool that the directory stores, so that reads need not wake the pool. */
export interface PresenceReport {
  /** Time of the report, in epoch milliseconds. */
  readonly at: number;
  readonly metrics: PoolMetrics;
  /** Used part of its limits, which recovers with time. */
  readonly rates: RateUse;
  /** The same for its members, by their ids. Absent if the group has none. */
  readonly memberRates?: Readonly<Record<string, RateUse>>;
}

export interface PresentPool {
  readonly group: string;
  readonly partition: string | null;
  /** Jurisdiction of its group. Absent if the group is not known yet. */
  readonly jurisdiction?: GroupConfig['jurisdiction'];
  /**
   * End of the window that the pool starts, in epoch milliseconds, or of its last one if it is idle. Later windows have
   * larger values.
   */
  readonly window: number;
  readonly idleMs: number;
  /** `PresenceReport` as JSON. */
  readonly said: string;
  /** `ReportedCosts` as JSON. Absent if there are none. */
  readonly costs?: string;
}

/** Response to a pool that is in use. */
export interface Woken {
  readonly definition: GroupDefinition;
  /** The pool is on the list of pools that are notified of every change. */
  readonly isListed: boolean;
  /** How to report to the hub of the dashboards. Absent if no dashboard is open, as far as the directory knows. */
  readonly watch?: PoolWatchRequest;
}

export interface StoredPool {
  readonly group: string;
  readonly partition: string | null;
  readonly jurisdiction: GroupConfig['jurisdiction'];
  /** Last `PresenceReport` as JSON. null if the pool is in use and must be queried. */
  readonly said: string | null;
}

/** The versions of the last changes that affect pools. */
export interface ChangedAt {
  /** Last change that affects all pools: where calls go, and what keys may do. */
  readonly everywhere: number;
  /** Last change that affects the pools of a group, if it is later. */
  readonly groups: Readonly<Record<string, number>>;
}

/** Returns the version of the last change that affects the pools of a group. Its name may be `constructor`. */
export function changedFor({ everywhere, groups }: ChangedAt, group: string): number {
  return Object.hasOwn(groups, group) ? Math.max(everywhere, groups[group] ?? 0) : everywhere;
}

/** Everything by which a Worker routes calls: the configuration at one version. */
export interface ConfigSnapshot {
  readonly version: number;
  readonly config: Config;
  /** Key of the fingerprints (HMAC-SHA-256, base64). The directory creates it at its first start. */
  readonly fingerprintKey: string;
  /** Changes with any content of the snapshot. */
  readonly tag: string;
  readonly changedAt: ChangedAt;
  /** Fields that revert automatically. Absent if there are none. */
  readonly temporary?: readonly TemporaryField[];
  /** Groups with so many partitions that a Worker must ask for the pool of a partition. */
  readonly fullGroups: readonly string[];
}

type GroupJurisdiction = GroupConfig['jurisdiction'];

export type ReplaceAnswer =
  | { readonly kind: 'replaced'; readonly version: number }
  /** The configuration was changed since `expected`. */
  | { readonly kind: 'conflict'; readonly version: number };

export interface VersionInfo {
  readonly version: number;
  /** In the format of `toISOString`. */
  readonly at: string;
  readonly actor: string;
  readonly action: string;
}

export interface AuditQuery {
  readonly limit: number;
  /** Return entries older than this sequence. Absent means from the newest on. */
  readonly before?: number;
  readonly actor?: string;
  /** Prefix of the action. */
  readonly action?: string;
  /** Return only changes at or below this path, such as `groups[openai-shared]`. */
  readonly path?: string;
  /** Times in the format of `toISOString`. `until` is exclusive. */
  readonly since?: string;
  readonly until?: string;
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  /** Value of `before` for the next page. null on the last page. */
  readonly next: number | null;
}

/** Keys for the admin API, in addition to `ADMIN_TOKEN`. */
export interface AdminAccess {
  /** Half of the key that signs sessions. `ADMIN_TOKEN` is the other half. Created at the first request. */
  readonly sessionKey: string;
  readonly adminKeys: readonly AdminKeyConfig[];
}

/** A pool to which the directory pushes changes, and which the status shows. */
export interface ListedPool {
  readonly group: string;
  readonly partition: string | null;
}

export interface DirectoryRpc {
  /**
   * Returns the configuration, or null if `known` is its tag. `found` is the tag of the copy with which an isolate
   * started, or null without a copy. An outdated copy is rewritten. Absent if the isolate did not look for a copy.
   */
  snapshot(known: string | null, found?: string | null): Promise<ConfigSnapshot | null>;
  /** Returns the definition of a group, for an object whose configuration is older than that of a ticket. */
  definition(group: string): Promise<GroupDefinition>;
  /**
   * Replaces the whole configuration if its version is still `expected`. The caller has validated it. Pushes the change
   * to the affected listed objects, except idle ones. Temporary changes revert automatically.
   */
  replace(
    config: Config,
    expected: number,
    actor: string,
    action: string,
    orders?: readonly TemporaryOrder[],
  ): Promise<ReplaceAnswer>;
  /** Changes the end of a field that already has its temporary value. Creates no version. */
  setUntil(
    order: TemporaryOrder,
    expected: number,
    actor: string,
    action: string,
  ): Promise<ReplaceAnswer>;
  /** Returns the stored versions, the newest first. */
  versions(): Promise<VersionInfo[]>;
  /** Returns the configuration at a version, or null if it is not stored. */
  configAt(version: number): Promise<Config | null>;
  /** Returns the temporary fields at a version, as far as they are stored. */
  temporaryAt(version: number): Promise<TemporaryField[]>;
  /**
   * Called by a pool after its first 2xx, so that keys that no provider accepts are never listed. Returns false if its
   * group has the maximum number of pools.
   */
  list(pool: ListedPool): Promise<boolean>;
  /**
   * Called by a retired pool when it becomes empty, and by a pool that was idle for a long time. With a `jurisdiction`,
   * only that pool is removed. `costs` is the pool's `ReportedCosts` as JSON, because the pool is not queried again.
   */
  unlist(
    pool: ListedPool & { readonly jurisdiction?: GroupJurisdiction },
    costs?: string,
  ): Promise<void>;
  pools(): Promise<ListedPool[]>;
  /**
   * Returns pools that left the list at or after a time in epoch milliseconds, the last first. They still have logs.
   */
  pastPools(since: number): Promise<ListedPool[]>;
  /** Called by a pool that was unused for some seconds. Until it wakes, it is neither queried nor notified. */
  rest(pool: PresentPool): Promise<void>;
  /** Called by a pool that is used again, or for the first time. */
  wake(pool: PresentPool): Promise<Woken>;
  /**
   * Returns what is known about pools without querying them. Pools that are neither listed nor here were never used.
   */
  presence(): Promise<StoredPool[]>;
  /**
   * Returns the costs of a day or month (`2026-11-24`, `2026-11`) by group, as pools last reported them. `except` has
   * the keys of pools that have reported them directly.
   */
  costs(period: string, except: readonly string[]): Promise<StoredCosts[]>;
  /**
   * Returns the pools that the hub of the dashboards should query. Any other pool that wakes within some seconds is
   * asked by the response to its message to report to the hub.
   */
  awake(span: WatchSpan): Promise<ListedPool[]>;
  /** Removes pools from the list that have been idle for a long time. */
  forgetResting(): Promise<void>;
  /**
   * Returns the partition of a full group to which calls of `partition` go: its own, or `OVERFLOW_PARTITION`. The
   * result is stable as long as calls may be running there.
   */
  share(group: string, partition: string): Promise<string>;
  /** Returns the account of a key that its upstream has accepted, or null if it is unknown. Both are keyed hashes. */
  accountOf(key: string): Promise<string | null>;
  /** Stores the account of a key. null means that its upstream no longer accepts the key. */
  noteAccount(key: string, account: string | null): Promise<void>;
  /** Writes an action that did not change the configuration into the audit log. */
  note(actor: string, action: string): Promise<void>;
  auditPage(query: AuditQuery): Promise<AuditPage>;
  adminAccess(): Promise<AdminAccess>;
  /** Counts a wrong token. Returns the number from the same address within the last minute, including this one. */
  failedAttempt(address: string): Promise<number>;
  /** Returns the receiver of a pool's warnings, or null if there is none. */
  webhook(): Promise<WebhookConfig | null>;
  /** Stores a warning of a pool, or an update of one, so that later reads need not wake all pools. */
  noteWarning(warning: Warning): Promise<void>;
  /** Returns the last warnings of all pools, the latest first. */
  warnings(limit: number): Promise<Warning[]>;
  /** Adds the rejections by Headgate that an isolate has counted since its last message. */
  noteRefusals(counts: readonly RefusalCount[]): Promise<void>;
  /**
   * Returns rejections by Headgate since a time in epoch milliseconds, up to an hour ago, the latest first. The same
   * facts have one row per minute. `key` selects one key. Absent means all.
   */
  refusals(sinceMs: number, key?: string): Promise<RefusalCount[]>;
  /** Adds the served calls of callers without a gateway key that an isolate has counted since its last message. */
  noteKeyless(counts: readonly KeylessCaller[]): Promise<void>;
  /** Returns callers without a gateway key since a time in epoch milliseconds, up to an hour ago. */
  keyless(sinceMs: number): Promise<KeylessCaller[]>;
  /** Returns rejections since counting began, for metrics. */
  refusalTotals(): Promise<RefusalTotal[]>;
}

/** A field of a group with a temporary value. Undefined values mean that the field is absent. */
export interface TemporaryField {
  /** Name of the group, which may be automatic. */
  readonly group: string;
  readonly path: readonly string[];
  /** Value to which it reverts. */
  readonly was?: unknown;
  readonly value?: unknown;
  /** Epoch milliseconds. */
  readonly until: number;
  readonly actor: string;
}

export interface TemporaryOrder {
  readonly group: string;
  /** Time at which it reverts, in epoch milliseconds. null if it is permanent. */
  readonly until: number | null;
  /** Fields that it changes temporarily. Empty if it is permanent. */
  readonly fields: readonly Pick<TemporaryField, 'path' | 'was' | 'value'>[];
  /** Fields that already have the given value. Their end changes, or is removed so that they become permanent. */
  readonly named: readonly (readonly string[])[];
}
