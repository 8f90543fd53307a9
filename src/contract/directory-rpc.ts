import type { Config } from './config.ts';
import type { GroupDefinition } from './group-rpc.ts';

/** Everything a Worker routes by: the configuration at one version. */
export interface Snapshot {
  readonly version: number;
  readonly config: Config;
  /** Key of the fingerprints (HMAC-SHA-256, base64), made by the directory at its first start. */
  readonly fingerprintKey: string;
}

export type ReplaceAnswer =
  | { readonly kind: 'replaced'; readonly version: number }
  /** Somebody else changed the configuration since `expected`. */
  | { readonly kind: 'conflict'; readonly version: number };

export interface AuditEntry {
  readonly at: string;
  readonly version: number;
  readonly actor: string;
  /** What was done, as in `group openai-shared: pause`. Never a secret. */
  readonly action: string;
}

/** A pool that the directory pushes changes to and that status shows. */
export interface ListedPool {
  readonly group: string;
  readonly partition: string | null;
}

export interface DirectoryRpc {
  /** The configuration, or null when `known` is its version. */
  snapshot(known: number | null): Promise<Snapshot | null>;
  /** What it knows of one group, for an object whose configuration is older than a ticket's. */
  definition(group: string): Promise<GroupDefinition>;
  /**
   * Replaces the whole configuration, which the caller has validated, if its version is still
   * `expected`, and pushes the change to the listed objects.
   */
  replace(config: Config, expected: number, actor: string, action: string): Promise<ReplaceAnswer>;
  /** Called by a pool after its first 2xx: keys that no provider accepts never get listed. */
  list(pool: ListedPool): Promise<void>;
  /** Called by a retired pool when it has become empty. */
  unlist(pool: ListedPool): Promise<void>;
  pools(): Promise<ListedPool[]>;
  audit(limit: number): Promise<AuditEntry[]>;
}
