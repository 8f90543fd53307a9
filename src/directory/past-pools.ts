import { poolName } from '../contract/pool-name.ts';
import type { ListedPool } from '../contract/rpc/directory-rpc.ts';
import type { PlacedPool } from '../routing/pool.ts';

/**
 * - `past_pools (group_name, object_name, jurisdiction, partition_key, left_at)`: pools that left the list because they
 *   were unused. Their call logs can still be read. `left_at` is the time, in epoch milliseconds.
 */
const TABLE = `CREATE TABLE IF NOT EXISTS past_pools (group_name TEXT NOT NULL, object_name TEXT NOT NULL,
  jurisdiction TEXT NOT NULL, partition_key TEXT, left_at INTEGER NOT NULL,
  PRIMARY KEY (group_name, object_name, jurisdiction)) WITHOUT ROWID`;

/** Maximum pools that are stored, and for how long: as long as call logs are kept. */
const PAST_POOLS_MAX = 5_000;
const KEPT_MS = 31 * 86_400_000;

/** Number of surplus rows before the oldest are deleted, so that not every write deletes one. */
const SLACK = 250;

interface PastPoolRecord extends Record<string, SqlStorageValue> {
  readonly group_name: string;
  readonly jurisdiction: string;
  readonly partition_key: string | null;
}

/** Pools that were used once. All methods are synchronous, so each turn is one transaction. */
export class PastPools {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(TABLE);
  }

  note({ group, partition, jurisdiction }: PlacedPool, now: number): void {
    this.#sql.exec(
      `INSERT OR REPLACE INTO past_pools (group_name, object_name, jurisdiction, partition_key, left_at)
       VALUES (?, ?, ?, ?, ?)`,
      group,
      poolName(group, partition),
      jurisdiction ?? '',
      partition,
      now,
    );
    this.#forget(now);
  }

  /** Lists the pools that left at or after an instant, latest first. */
  since(at: number): (ListedPool & PlacedPool)[] {
    return this.#sql
      .exec<PastPoolRecord>(
        `SELECT group_name, jurisdiction, partition_key FROM past_pools
         WHERE left_at >= ? ORDER BY left_at DESC`,
        at,
      )
      .toArray()
      .map(({ group_name: group, jurisdiction, partition_key: partition }) => ({
        group,
        partition,
        // The cast is sound: only a field of the configuration is written to the column.
        jurisdiction: (jurisdiction || null) as NonNullable<PlacedPool['jurisdiction']> | null,
      }));
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
