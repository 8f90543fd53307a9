/** The pools that had a success: `docs/storage-schema.md` describes their row. */
export class ProvedPools {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec('CREATE TABLE IF NOT EXISTS proved (pool TEXT PRIMARY KEY) WITHOUT ROWID');
  }

  /** Whether the pools of releases in which a pool had its own object from the start have been taken in. */
  get knowsOlder(): boolean {
    return this.has(OLDER_PARTITIONS);
  }

  has(pool: string): boolean {
    return this.#sql.exec('SELECT 1 FROM proved WHERE pool = ?', pool).toArray().length > 0;
  }

  add(pool: string): void {
    this.#sql.exec('INSERT OR IGNORE INTO proved (pool) VALUES (?)', pool);
  }

  learnOlder(pools: readonly string[]): void {
    for (const pool of [...pools, OLDER_KEYS, OLDER_PARTITIONS]) this.add(pool);
  }
}

/**
 * They stand in the list once older pools are in it: those of automatic groups, and those of all partitions. No pool has
 * these names.
 */
const OLDER_KEYS = '';
const OLDER_PARTITIONS = '#';
