import type { HeldByRun, UpstreamRun } from './run.ts';

/**
 * Stores runs. Renewing all of them writes one row. A run's own row is written when the run begins, when its renewal
 * fails, when another instance of a pool has resumed one of its leases, and when it ends.
 */
const TABLES = [
  `CREATE TABLE IF NOT EXISTS run (id TEXT PRIMARY KEY, until INTEGER NOT NULL,
     is_late INTEGER NOT NULL, leases TEXT NOT NULL) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS renewal (id INTEGER PRIMARY KEY CHECK (id = 0),
     expires_at INTEGER NOT NULL) WITHOUT ROWID`,
];

interface RunRecord extends Record<string, SqlStorageValue> {
  readonly id: string;
  readonly until: number;
  readonly is_late: number;
  readonly leases: string;
}

export class RunStore {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    for (const table of TABLES) sql.exec(table);
  }

  load(): Map<string, UpstreamRun> {
    const [renewal] = this.#sql
      .exec<{ expires_at: number }>('SELECT expires_at FROM renewal')
      .toArray();
    const renewedTo = renewal?.expires_at ?? 0;
    const rows = this.#sql.exec<RunRecord>('SELECT id, until, is_late, leases FROM run').toArray();
    return new Map(
      rows.map(({ id, until, is_late: isLate, leases }) => {
        const stored = JSON.parse(leases) as HeldByRun[];
        const all = stored.map((one) =>
          isLate === 1 ? one : { ...one, expiresAt: Math.max(one.expiresAt, renewedTo) },
        );
        return [id, { id, until, leases: all, isLate: isLate === 1 }];
      }),
    );
  }

  put({ id, until, leases, isLate }: UpstreamRun): void {
    this.#sql.exec(
      'INSERT OR REPLACE INTO run (id, until, is_late, leases) VALUES (?, ?, ?, ?)',
      id,
      until,
      isLate ? 1 : 0,
      JSON.stringify(leases),
    );
  }

  remove(id: string): void {
    this.#sql.exec('DELETE FROM run WHERE id = ?', id);
  }

  /** Stores the expiry of all leases that are not late. */
  noteRenewed(expiresAt: number): void {
    this.#sql.exec('INSERT OR REPLACE INTO renewal (id, expires_at) VALUES (0, ?)', expiresAt);
  }
}
