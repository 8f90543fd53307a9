import { KEYLESS_KEPT_MS, type KeylessCaller } from '../contract/keyless.ts';

/**
 * `keyless_callers (slice, upstream, caller, calls, last_at)`: served calls of callers without a gateway key. See
 * `design/storage.md`.
 */
const TABLE = `CREATE TABLE IF NOT EXISTS keyless_callers (slice INTEGER NOT NULL, upstream TEXT NOT NULL,
  caller TEXT NOT NULL, calls INTEGER NOT NULL, last_at INTEGER NOT NULL,
  PRIMARY KEY (slice, upstream, caller)) WITHOUT ROWID`;

const SLICE_MS = 300_000;

/** Maximum callers per slice. Further callers are counted together for each upstream. */
const CALLERS_MAX = 500;

interface KeylessRecord extends Record<string, SqlStorageValue> {
  readonly upstream: string;
  readonly caller: string;
  readonly calls: number;
  readonly last_at: number;
}

/** Callers without a gateway key in the last hour. All methods are synchronous, so each turn is one transaction. */
export class KeylessList {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(TABLE);
  }

  note(counts: readonly KeylessCaller[]): void {
    for (const { upstream, caller, calls, last_at } of counts) {
      const at = Date.parse(last_at);
      const slice = Math.floor(at / SLICE_MS);
      this.#sql.exec(
        `INSERT INTO keyless_callers (slice, upstream, caller, calls, last_at) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO UPDATE SET calls = calls + ?4, last_at = max(last_at, ?5)`,
        slice,
        upstream,
        this.#hasRoom(slice, upstream, caller ?? '') ? (caller ?? '') : '',
        calls,
        at,
      );
      this.#sql.exec('DELETE FROM keyless_callers WHERE last_at < ?', at - KEYLESS_KEPT_MS);
    }
  }

  /** Lists callers since an instant in epoch milliseconds, by upstream, those with the most calls first. */
  since(at: number): KeylessCaller[] {
    return this.#sql
      .exec<KeylessRecord>(
        `SELECT upstream, caller, SUM(calls) AS calls, MAX(last_at) AS last_at FROM keyless_callers
         WHERE last_at >= ? GROUP BY upstream, caller ORDER BY upstream, calls DESC`,
        at,
      )
      .toArray()
      .map(({ upstream, caller, calls, last_at }) => ({
        upstream,
        caller: caller === '' ? null : caller,
        calls,
        last_at: new Date(last_at).toISOString(),
      }));
  }

  #hasRoom(slice: number, upstream: string, caller: string): boolean {
    const known = this.#sql.exec(
      'SELECT 1 FROM keyless_callers WHERE slice = ? AND upstream = ? AND caller = ?',
      slice,
      upstream,
      caller,
    );
    if (known.toArray().length > 0) return true;
    const sql = 'SELECT COUNT(*) AS rows FROM keyless_callers WHERE slice = ?';
    return this.#sql.exec<{ rows: number }>(sql, slice).one().rows < CALLERS_MAX;
  }
}
