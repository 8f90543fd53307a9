/**
 * Maximum stored partitions that share a pool, because callers can send any number of values. The oldest are deleted.
 */
export const SHARING_MAX = 10_000;

/** The verified pools. See `design/storage.md`. */
export class VerifiedPools {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec('CREATE TABLE IF NOT EXISTS proved (pool TEXT PRIMARY KEY) WITHOUT ROWID');
    sql.exec(
      'CREATE TABLE IF NOT EXISTS proved_sharing (number INTEGER PRIMARY KEY AUTOINCREMENT, pool TEXT NOT NULL UNIQUE)',
    );
  }

  has(pool: string): boolean {
    const query =
      'SELECT 1 FROM proved WHERE pool = ?1 UNION ALL SELECT 1 FROM proved_sharing WHERE pool = ?1';
    return this.#sql.exec(query, pool).toArray().length > 0;
  }

  add(pool: string): void {
    this.#sql.exec('INSERT OR IGNORE INTO proved (pool) VALUES (?)', pool);
  }

  /** Adds a partition whose calls use a shared pool. A deleted one starts as unverified again. */
  addSharing(pool: string): void {
    this.#sql.exec('INSERT OR IGNORE INTO proved_sharing (pool) VALUES (?)', pool);
    this.#sql.exec(
      'DELETE FROM proved_sharing WHERE number <= (SELECT MAX(number) FROM proved_sharing) - ?',
      SHARING_MAX,
    );
  }
}
