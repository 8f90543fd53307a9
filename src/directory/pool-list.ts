import type { PlacedPool } from '../routing/pool.ts';
import { OVERFLOW_PARTITION, poolName } from '../contract/pool-name.ts';

/**
 * - `pools (group_name, object_name, jurisdiction, partition_key, told)`: the pools that changes are pushed to.
 *   `jurisdiction` is empty if there is none. `partition_key` is null for an unpartitioned pool. `told` is the last
 *   version that the pool received.
 * - `overflow (group_name, partition_key)`: partitions that share one pool because their group was full when they were
 *   first used.
 */
const TABLES = [
  `CREATE TABLE IF NOT EXISTS pools (group_name TEXT NOT NULL, object_name TEXT NOT NULL,
     jurisdiction TEXT NOT NULL, partition_key TEXT, told INTEGER NOT NULL DEFAULT 0,
     PRIMARY KEY (group_name, object_name, jurisdiction)) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS overflow (group_name TEXT NOT NULL, partition_key TEXT NOT NULL,
     PRIMARY KEY (group_name, partition_key)) WITHOUT ROWID`,
];

/** Maximum partitions of a group with a pool of their own. */
export const PARTITIONS_MAX = 1_000;

/**
 * Maximum partitions of a group that are stored as sharing a pool. While this list is full, further partitions share
 * the pool too.
 */
export const OVERFLOW_MAX = 10_000;

type PoolJurisdiction = NonNullable<PlacedPool['jurisdiction']>;

/** The columns by which every table of pools names a pool, except for `object_name`. */
export type PoolRow = Record<'group_name' | 'jurisdiction', string> & {
  readonly partition_key: string | null;
};

export function placedPool({
  group_name: group,
  partition_key: partition,
  jurisdiction,
}: PoolRow): Required<PlacedPool> {
  // The cast is sound: the column is written from a configuration's field alone.
  return { group, partition, jurisdiction: (jurisdiction || null) as PoolJurisdiction | null };
}

/** The primary key of a row in every table of pools: `group_name`, `object_name` and `jurisdiction`. */
export function poolRowKey(
  pool: PlacedPool,
): [group: string, object: string, jurisdiction: string] {
  return [pool.group, poolName(pool.group, pool.partition), pool.jurisdiction ?? ''];
}

/**
 * The list of pools, and the partitions that share one. All methods are synchronous, so each turn is one transaction.
 */
export class PoolList {
  readonly #sql: SqlStorage;
  /** Groups for which a Worker must ask the directory. */
  readonly #full: Set<string>;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    for (const table of TABLES) sql.exec(table);
    this.#full = new Set(this.#fullGroups());
  }

  /** Groups that are full, or whose partitions share a pool. */
  get fullGroups(): string[] {
    return [...this.#full].toSorted();
  }

  /**
   * Lists a pool at a version that it has received. Has no effect if it is listed already. Returns false if its group
   * is full.
   */
  list(pool: PlacedPool, reported = 0): boolean {
    const isBounded = pool.partition !== null && pool.partition !== OVERFLOW_PARTITION;
    if (isBounded && this.#isAtBound(pool.group)) return this.has(pool);
    this.#sql.exec(
      `INSERT OR IGNORE INTO pools (group_name, object_name, jurisdiction, partition_key, told)
       VALUES (?, ?, ?, ?, ?)`,
      ...poolRowKey(pool),
      pool.partition,
      reported,
    );
    this.#recount(pool.group);
    return true;
  }

  /**
   * Removes a pool that does not know its jurisdiction. If its group was moved to another jurisdiction (`current`), the
   * rows of the old one are removed first, because only a retired pool sends this request. Returns the removed pools.
   */
  unlist({ group, partition }: PlacedPool, current: string | null): PlacedPool[] {
    const name = poolName(group, partition);
    const taken = (where: string, ...values: string[]): PlacedPool[] =>
      this.#sql
        .exec<{ jurisdiction: string }>(
          `DELETE FROM pools WHERE group_name = ? AND object_name = ? ${where} RETURNING jurisdiction`,
          group,
          name,
          ...values,
        )
        .toArray()
        .map((row) => placedPool({ ...row, group_name: group, partition_key: partition }));
    const retired = taken('AND jurisdiction <> ?', current ?? '');
    const gone = retired.length > 0 ? retired : taken('');
    this.#recount(group);
    return gone;
  }

  /** Removes exactly this pool. Removing the shared pool ends the sharing. */
  drop(pool: PlacedPool): void {
    this.#sql.exec(
      `DELETE FROM pools WHERE group_name = ? AND object_name = ? AND jurisdiction = ?`,
      ...poolRowKey(pool),
    );
    if (pool.partition === OVERFLOW_PARTITION) this.unshare(pool.group);
    this.#recount(pool.group);
  }

  /**
   * Returns the partition that receives the calls of a partition. A sharing partition keeps sharing while the shared
   * pool is in use: with an additional pool of its own it would have its limit twice.
   */
  share(pool: PlacedPool & { readonly partition: string }): string {
    if (this.has(pool)) return pool.partition;
    const shared = this.#overflowing(pool.group);
    if (this.#shares(pool)) return OVERFLOW_PARTITION;
    // Partitions beyond the maximum are not stored, so all new ones must share.
    if (shared >= OVERFLOW_MAX) return OVERFLOW_PARTITION;
    if (!this.#isAtBound(pool.group)) return pool.partition;
    this.#sql.exec(
      `INSERT INTO overflow (group_name, partition_key) VALUES (?, ?)`,
      pool.group,
      pool.partition,
    );
    // It is listed now rather than at its first 2xx, or it would never be found idle.
    this.list({ ...pool, partition: OVERFLOW_PARTITION });
    return OVERFLOW_PARTITION;
  }

  /** Deletes the sharing partitions of a group that was removed or is partitioned differently. */
  unshare(group: string): void {
    this.#sql.exec(`DELETE FROM overflow WHERE group_name = ?`, group);
    this.#recount(group);
  }

  all(): PlacedPool[] {
    return this.#sql
      .exec<PoolRow>(`SELECT group_name, jurisdiction, partition_key FROM pools`)
      .toArray()
      .map(placedPool);
  }

  /** Lists the pools that have not received the version of their group. */
  behind(version: (group: string) => number): PlacedPool[] {
    return this.#sql
      .exec<PoolRow & { told: number }>(
        `SELECT group_name, jurisdiction, partition_key, told FROM pools`,
      )
      .toArray()
      .filter(({ group_name: group, told: reported }) => reported < version(group))
      .map(placedPool);
  }

  noteReceived(pool: PlacedPool, version: number): void {
    this.#sql.exec(
      `UPDATE pools SET told = ?1
       WHERE group_name = ?2 AND object_name = ?3 AND jurisdiction = ?4 AND told < ?1`,
      version,
      ...poolRowKey(pool),
    );
  }

  has(pool: PlacedPool): boolean {
    const rows = this.#sql.exec(
      `SELECT 1 FROM pools WHERE group_name = ? AND object_name = ? AND jurisdiction = ?`,
      ...poolRowKey(pool),
    );
    return rows.toArray().length > 0;
  }

  #shares({ group, partition }: PlacedPool): boolean {
    const rows = this.#sql.exec(
      `SELECT 1 FROM overflow WHERE group_name = ? AND partition_key = ?`,
      group,
      partition,
    );
    return rows.toArray().length > 0;
  }

  #isAtBound(group: string): boolean {
    const { count } = this.#sql
      .exec<{ count: number }>(
        `SELECT COUNT(*) AS count FROM pools
         WHERE group_name = ? AND partition_key IS NOT NULL AND partition_key <> ?`,
        group,
        OVERFLOW_PARTITION,
      )
      .one();
    return count >= PARTITIONS_MAX;
  }

  #overflowing(group: string): number {
    const sql = `SELECT COUNT(*) AS count FROM overflow WHERE group_name = ?`;
    return this.#sql.exec<{ count: number }>(sql, group).one().count;
  }

  #recount(group: string): void {
    if (this.#isAtBound(group) || this.#overflowing(group) > 0) this.#full.add(group);
    else this.#full.delete(group);
  }

  #fullGroups(): string[] {
    return this.#sql
      .exec<{ group_name: string }>(
        `SELECT group_name FROM pools
         WHERE partition_key IS NOT NULL AND partition_key <> ?
         GROUP BY group_name HAVING COUNT(*) >= ?
         UNION SELECT group_name FROM overflow`,
        OVERFLOW_PARTITION,
        PARTITIONS_MAX,
      )
      .toArray()
      .map((row) => row.group_name);
  }
}

/**
 * - `past_pools (group_name, object_name, jurisdiction, partition_key, left_at)`: pools that left the list because they
 *   were unused. Their call logs can still be read. `left_at` is the time, in epoch milliseconds.
 */
const PAST_POOLS_TABLE = `CREATE TABLE IF NOT EXISTS past_pools (group_name TEXT NOT NULL, object_name TEXT NOT NULL,
  jurisdiction TEXT NOT NULL, partition_key TEXT, left_at INTEGER NOT NULL,
  PRIMARY KEY (group_name, object_name, jurisdiction)) WITHOUT ROWID`;

/** Maximum pools that are stored, and for how long: as long as call logs are kept. */
const PAST_POOLS_MAX = 5_000;
const KEPT_MS = 31 * 86_400_000;

/** Number of surplus rows before the oldest are deleted, so that not every write deletes one. */
const SLACK = 250;

/** Pools that were used once. All methods are synchronous, so each turn is one transaction. */
export class PastPools {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(PAST_POOLS_TABLE);
  }

  note(pool: PlacedPool, now: number): void {
    this.#sql.exec(
      `INSERT OR REPLACE INTO past_pools (group_name, object_name, jurisdiction, partition_key, left_at)
       VALUES (?, ?, ?, ?, ?)`,
      ...poolRowKey(pool),
      pool.partition,
      now,
    );
    this.#forget(now);
  }

  /** Lists the pools that left at or after an instant, latest first. */
  since(at: number): Required<PlacedPool>[] {
    return this.#sql
      .exec<PoolRow>(
        `SELECT group_name, jurisdiction, partition_key FROM past_pools
         WHERE left_at >= ? ORDER BY left_at DESC`,
        at,
      )
      .toArray()
      .map(placedPool);
  }

  #forget(now: number): void {
    const { count } = this.#sql
      .exec<{ count: number }>('SELECT count(*) AS count FROM past_pools')
      .one();
    if (count <= PAST_POOLS_MAX + SLACK) return;
    this.#sql.exec('DELETE FROM past_pools WHERE left_at < ?', now - KEPT_MS);
    this.#sql.exec(
      `DELETE FROM past_pools WHERE left_at <= (SELECT left_at FROM past_pools ORDER BY left_at DESC LIMIT 1 OFFSET ?)`,
      PAST_POOLS_MAX,
    );
  }
}
