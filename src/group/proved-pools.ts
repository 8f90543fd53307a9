/** The pools whose keys had a success: `docs/storage-schema.md` describes their row. */
export class ProvedPools {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec('CREATE TABLE IF NOT EXISTS proved (pool TEXT PRIMARY KEY) WITHOUT ROWID');
  }

  /** Whether the pools of a release without trials have been taken in. */
  get knowsOlder(): boolean {
    return this.has(OLDER);
  }

  has(pool: string): boolean {
    return this.#sql.exec('SELECT 1 FROM proved WHERE pool = ?', pool).toArray().length > 0;
  }

  add(pool: string): void {
    this.#sql.exec('INSERT OR IGNORE INTO proved (pool) VALUES (?)', pool);
  }

  learnOlder(pools: readonly string[]): void {
    for (const pool of [...pools, OLDER]) this.add(pool);
  }
}

/** Stands in the list once older pools are in it. No pool has this name. */
const OLDER = '';
