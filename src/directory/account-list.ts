/** `accounts (key, account, noted_at)`: the account of each key that its upstream has taken. `docs/storage-schema.md` tells more. */
const TABLE = `CREATE TABLE IF NOT EXISTS accounts (key TEXT PRIMARY KEY, account TEXT NOT NULL,
  noted_at INTEGER NOT NULL) WITHOUT ROWID`;

/** Maximum of keys that are remembered. What goes is found out again. */
const KEYS_MAX = 20_000;

/** The part of them that goes at once, those that were noted longest ago. */
const GOING_SHARE = 1 / 20;

/** The accounts of keys that do not last, for isolates that see a key for the first time. All of it is synchronous. */
export class AccountList {
  readonly #sql: SqlStorage;
  readonly #max: number;
  /** Number of rows, once something is noted: to count them reads them all. */
  #rows: number | null = null;

  constructor(sql: SqlStorage, max = KEYS_MAX) {
    this.#sql = sql;
    this.#max = max;
    sql.exec(TABLE);
  }

  find(key: string): string | null {
    const [row] = this.#sql
      .exec<{ account: string }>('SELECT account FROM accounts WHERE key = ?', key)
      .toArray();
    return row?.account ?? null;
  }

  note(key: string, account: string, now: number): void {
    this.#sql.exec(
      'INSERT OR REPLACE INTO accounts (key, account, noted_at) VALUES (?, ?, ?)',
      key,
      account,
      Math.round(now),
    );
    this.#rows = this.#rows === null ? this.#count() : this.#rows + 1;
    if (this.#rows > this.#max) this.#makeRoom();
  }

  forget(key: string): void {
    this.#sql.exec('DELETE FROM accounts WHERE key = ?', key);
  }

  #makeRoom(): void {
    this.#sql.exec(
      'DELETE FROM accounts WHERE key IN (SELECT key FROM accounts ORDER BY noted_at LIMIT ?)',
      Math.ceil(this.#max * GOING_SHARE),
    );
    this.#rows = this.#count();
  }

  #count(): number {
    return this.#sql.exec<{ rows: number }>('SELECT COUNT(*) AS rows FROM accounts').one().rows;
  }
}
