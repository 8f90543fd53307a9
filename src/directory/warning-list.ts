import type { Warning } from '../contract/warnings.ts';

/** `warnings (id, at, data)`: the last warnings of all pools, as JSON. See `design/storage.md`. */
const TABLE = `CREATE TABLE IF NOT EXISTS warnings (id TEXT PRIMARY KEY, at TEXT NOT NULL,
  data TEXT NOT NULL) WITHOUT ROWID`;

/** Maximum warnings of all pools. The oldest are deleted first. */
const WARNINGS_MAX = 200;

/** The last warnings of all pools. All methods are synchronous. */
export class WarningList {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(TABLE);
  }

  /** Stores a warning, and replaces its earlier state. */
  note(warning: Warning): void {
    this.#sql.exec(
      'INSERT OR REPLACE INTO warnings (id, at, data) VALUES (?, ?, ?)',
      warning.id,
      warning.at,
      JSON.stringify(warning),
    );
    this.#sql.exec(
      `DELETE FROM warnings WHERE id IN
         (SELECT id FROM warnings ORDER BY at DESC, id LIMIT -1 OFFSET ?)`,
      WARNINGS_MAX,
    );
  }

  latest(limit: number): Warning[] {
    return this.#sql
      .exec<{ data: string }>('SELECT data FROM warnings ORDER BY at DESC, id LIMIT ?', limit)
      .toArray()
      .map(({ data }) => JSON.parse(data) as Warning);
  }
}
