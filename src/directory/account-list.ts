/**
 * `accounts (key, account, noted_at)`: the account of each key that its upstream has accepted. See `design/storage.md`.
 */
const TABLE = `CREATE TABLE IF NOT EXISTS accounts (key TEXT PRIMARY KEY, account TEXT NOT NULL,
  noted_at INTEGER NOT NULL) WITHOUT ROWID`;

/** Maximum keys that are stored. A deleted account is found again at the next call. */
const KEYS_MAX = 20_000;

/** The share of keys that is deleted at once, oldest first. */
const GOING_SHARE = 1 / 20;

/** The accounts of short-lived keys, for isolates that see a key for the first time. All methods are synchronous. */
export class AccountList {
  readonly #sql: SqlStorage;
  readonly #max: number;
  /** Number of rows, counted only once something is stored, because counting reads all of them. */
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
