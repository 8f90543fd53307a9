import type { AdminKeyConfig, Config, GroupConfig, WebhookConfig } from '../config/config.ts';
import type { AuditEntry } from '../audit.ts';
import type { WatchSpan } from './feed-rpc.ts';
import type { KeylessCaller } from '../keyless.ts';
import type { RefusalCount, RefusalTotal } from '../refusals.ts';
import type { Warning } from '../warnings.ts';
import type { GroupDefinition } from './group-rpc.ts';
import type { StoredCosts } from './costs-rpc.ts';
import type { TemporaryField, TemporaryOrder } from './temporary-rpc.ts';
import type { StoredPool, PresentPool, Woken } from './presence-rpc.ts';

/** The versions that last changed something for pools. */
export interface ChangedAt {
  /** For all: where calls go, what keys may do. */
  readonly everywhere: number;
  /** For the pools of a group, where that is later. */
  readonly groups: Readonly<Record<string, number>>;
}

/** Finds the version that last changed something for the pools of a group. It may be called `constructor`. */
export function changedFor({ everywhere, groups }: ChangedAt, group: string): number {
  return Object.hasOwn(groups, group) ? Math.max(everywhere, groups[group] ?? 0) : everywhere;
}

/** Everything a Worker routes by: the configuration at one version. */
export interface ConfigSnapshot {
  readonly version: number;
  readonly config: Config;
  /** Key of the fingerprints (HMAC-SHA-256, base64), made by the directory at its first start. */
  readonly fingerprintKey: string;
  /** Changes with everything in the snapshot. Absent: from a directory that knows no tags yet. */
  readonly tag?: string;
  /** Absent: from a directory of before, whose every version may change everything. */
  readonly changedAt?: ChangedAt;
  /** Fields that go back by themselves. Absent: from a directory of before, or there are none. */
  readonly temporary?: readonly TemporaryField[];
  /** Groups with so many partitions that a Worker must ask which pool a partition goes to. */
  readonly fullGroups?: readonly string[];
}

type GroupJurisdiction = GroupConfig['jurisdiction'];

export type ReplaceAnswer =
  | { readonly kind: 'replaced'; readonly version: number }
  /** Somebody else changed the configuration since `expected`. */
  | { readonly kind: 'conflict'; readonly version: number };

/** A version of the configuration that is kept, and who made it. */
export interface VersionInfo {
  readonly version: number;
  /** As `toISOString` writes it. */
  readonly at: string;
  readonly actor: string;
  readonly action: string;
}

/** Which entries of the audit log. */
export interface AuditQuery {
  readonly limit: number;
  /** Entries older than that sequence. Absent: from the newest on. */
  readonly before?: number;
  readonly actor?: string;
  /** How the action begins. */
  readonly action?: string;
  /** Only what was changed there or below, as in `groups[openai-shared]`: other changes are left out. */
  readonly path?: string;
  /** Instants as `toISOString` writes them; the second is not included. */
  readonly since?: string;
  readonly until?: string;
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  /** Value of `before` for the next page; null: that was all. */
  readonly next: number | null;
}

/** Keys that decide about access to the admin API, beside `ADMIN_TOKEN`. */
export interface AdminAccess {
  /** Half of the key that signs sessions, which `ADMIN_TOKEN` completes. The directory creates it at the first request. */
  readonly sessionKey: string;
  readonly adminKeys: readonly AdminKeyConfig[];
}

/** A pool that the directory pushes changes to and that status shows. */
export interface ListedPool {
  readonly group: string;
  readonly partition: string | null;
}

export interface DirectoryRpc {
  /**
   * The configuration, or null when `known` is its tag (or version, as older Workers ask). `found` is the tag of the copy that an
   * isolate began with, null if there was none: one that is not the newest is written anew. Absent: nobody looked.
   */
  snapshot(known: string | number | null, found?: string | null): Promise<ConfigSnapshot | null>;
  /** Tells one group's definition to an object whose configuration is older than a ticket's. */
  definition(group: string): Promise<GroupDefinition>;
  /**
   * Replaces the whole configuration, which the caller has validated, if its version is still
   * `expected`, and pushes the change to the listed objects that it concerns, but for those that rest. What is changed for
   * a while goes back by itself.
   */
  replace(
    config: Config,
    expected: number,
    actor: string,
    action: string,
    orders?: readonly TemporaryOrder[],
  ): Promise<ReplaceAnswer>;
  /** Changes for how long something holds that has its value already. Makes no version. */
  setUntil(
    order: TemporaryOrder,
    expected: number,
    actor: string,
    action: string,
  ): Promise<ReplaceAnswer>;
  /** Lists the versions that are kept, the newest first. */
  versions(): Promise<VersionInfo[]>;
  /** The configuration at a version. Null: it is not kept. */
  configAt(version: number): Promise<Config | null>;
  /** Fields that had another value for a while at a version, as far as that is kept. */
  temporaryAt(version: number): Promise<TemporaryField[]>;
  /**
   * Called by a pool after its first 2xx: keys that no provider accepts never get listed. False: its
   * group has as many as it may have.
   */
  list(pool: ListedPool): Promise<boolean>;
  /**
   * Called by a retired pool when it becomes empty, and by a pool that has been idle for a long time. With a
   * `jurisdiction` only that pool is removed. `costs`: the pool's `SaidCosts` as JSON, since the pool is not asked again.
   */
  unlist(
    pool: ListedPool & { readonly jurisdiction?: GroupJurisdiction },
    costs?: string,
  ): Promise<void>;
  pools(): Promise<ListedPool[]>;
  /** Lists pools that have left the list at an instant or later, in epoch milliseconds, the last first: they have logs. */
  pastPools(since: number): Promise<ListedPool[]>;
  /** Called by a pool that nobody has used for some seconds: it is asked for nothing and told of nothing until it wakes. */
  rest(pool: PresentPool): Promise<void>;
  /** Called by a pool that is in use again, or for the first time. */
  wake(pool: PresentPool): Promise<Woken>;
  /** Everything that is known of pools without asking them. One that is not listed and not here was never used. */
  presence(): Promise<StoredPool[]>;
  /**
   * The costs of a day or month (`2026-11-24`, `2026-11`) as pools said them last, by group, of those that had any.
   * `except`: the keys of pools that have said it themselves.
   */
  costs(period: string, except: readonly string[]): Promise<StoredCosts[]>;
  /**
   * Lists the pools that are to be asked how they are, for the hub of the dashboards. Every other one that comes into use
   * within some seconds is told to tell it by the answer to its word.
   */
  awake(span: WatchSpan): Promise<ListedPool[]>;
  /** Takes pools off the list that rest, and that nobody has used for long. */
  forgetResting(): Promise<void>;
  /**
   * Which partition of a full group the calls of `partition` go to: its own, or `OVERFLOW_PARTITION`.
   * The answer stays the same for as long as calls may be under way there.
   */
  share(group: string, partition: string): Promise<string>;
  /** The account of a key that its upstream has taken; null: not known. Both are keyed hashes. */
  accountOf(key: string): Promise<string | null>;
  /** Notes whose a key is; null: its upstream takes it no more. */
  noteAccount(key: string, account: string | null): Promise<void>;
  /** Writes into the audit log what changed no configuration. */
  note(actor: string, action: string): Promise<void>;
  /** The newest entries, as Workers of 0.1.0 ask for them. */
  audit(limit: number): Promise<readonly AuditEntry[]>;
  auditPage(query: AuditQuery): Promise<AuditPage>;
  adminAccess(): Promise<AdminAccess>;
  /** Counts a wrong token. How many came from that address within the last minute, this one included. */
  failedAttempt(address: string): Promise<number>;
  /** Where a pool sends its warnings to; null: nowhere. */
  webhook(): Promise<WebhookConfig | null>;
  /** Keeps a warning of a pool, or what is new of one: whoever asks later must not wake all pools for theirs. */
  noteWarning(warning: Warning): Promise<void>;
  /** The last warnings of all pools, the latest first. */
  warnings(limit: number): Promise<Warning[]>;
  /** Adds the refusals of Headgate's own that an isolate has counted since its last message. */
  noteRefusals(counts: readonly RefusalCount[]): Promise<void>;
  /**
   * Lists refusals of Headgate's own since an instant in epoch milliseconds, up to an hour ago, the latest first. The same facts
   * have one row a minute. `key`: only those of that key. Absent: all.
   */
  refusals(sinceMs: number, key?: string): Promise<RefusalCount[]>;
  /** Adds the served calls of callers without a gateway key that an isolate has counted since its last message. */
  noteKeyless(counts: readonly KeylessCaller[]): Promise<void>;
  /** Lists callers without a gateway key since an instant in epoch milliseconds, up to an hour ago. */
  keyless(sinceMs: number): Promise<KeylessCaller[]>;
  /** Lists refusals since they were first counted, for metrics. */
  refusalTotals(): Promise<RefusalTotal[]>;
}
