import {
  REFUSAL_MINUTE_MS,
  REFUSALS_KEPT_MS,
  type RefusalCount,
  type RefusalTotal,
} from '../contract/refusals.ts';
import {
  addRefusals,
  idOf,
  RefusalRows,
  type RefusalFacts,
  type RefusalSum,
} from '../core/parts/refusal-rows.ts';

/**
 * - `refusals (minute, id, sum)`: rejected calls of the last hour, by epoch minute and by their facts (`idOf`), as JSON
 *   (`RefusalSum`).
 * - `refusal_totals (id, count, last_at)`: rejected calls since the first count, without texts of callers, for metrics.
 */
const TABLES = [
  `CREATE TABLE IF NOT EXISTS refusals (minute INTEGER NOT NULL, id TEXT NOT NULL, sum TEXT NOT NULL,
     PRIMARY KEY (minute, id)) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS refusal_totals (id TEXT PRIMARY KEY, count INTEGER NOT NULL,
     last_at INTEGER NOT NULL) WITHOUT ROWID`,
];

/** Maximum rows per minute and of totals, without those that have only a reason and an upstream. */
const ROWS_MAX = 300;
const TOTALS_MAX = 500;

/** How long a total without new rejections is kept. */
const TOTALS_KEPT_MS = 7 * 86_400_000;

/** The facts of a row, in the order of its id. */
type Id = [
  RefusalCount['reason'],
  string | null,
  RefusalCount['key_kind'],
  string | null,
  string | null,
  string | null,
  string | null,
];

/** Rejected calls of all isolates. All methods are synchronous, so each turn is one transaction. */
export class RefusalList {
  readonly #sql: SqlStorage;
  /** Rows of the newest minute. */
  #minute = { at: -1, rows: new RefusalRows(ROWS_MAX) };
  #totals: RefusalRows | null = null;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    for (const table of TABLES) sql.exec(table);
  }

  note(counts: readonly RefusalCount[], now: number): void {
    for (const { count, first_at, last_at, message, request_ids, ...facts } of counts) {
      const minute = Math.floor(Date.parse(first_at) / REFUSAL_MINUTE_MS);
      this.#add(minute, facts, { count, first_at, last_at, message, request_ids });
      this.#addTotal(facts, count, now);
    }
    this.#sql.exec(
      'DELETE FROM refusals WHERE minute < ?',
      Math.floor((now - REFUSALS_KEPT_MS) / REFUSAL_MINUTE_MS),
    );
  }

  /** Lists rejected calls since an instant in epoch milliseconds, latest first. */
  since(at: number): RefusalCount[] {
    const minute = Math.floor(at / REFUSAL_MINUTE_MS);
    const rows = this.#sql
      .exec<{ id: string; sum: string }>('SELECT id, sum FROM refusals WHERE minute >= ?', minute)
      .toArray();
    return rows
      .map(({ id, sum }) => ({ ...factsIn(id), ...(JSON.parse(sum) as RefusalSum) }))
      .filter(({ last_at }) => Date.parse(last_at) >= at)
      .toSorted((a, b) => (a.last_at < b.last_at ? 1 : -1));
  }

  totals(): RefusalTotal[] {
    return this.#sql
      .exec<{ id: string; count: number }>('SELECT id, count FROM refusal_totals')
      .toArray()
      .map(({ id, count }) => {
        const { reason, key, team, group, upstream } = factsIn(id);
        return { reason, key, team, group, upstream, count };
      });
  }

  #add(minute: number, facts: RefusalFacts, sum: RefusalSum): void {
    const id = idOf(this.#rowsOf(minute).place(facts));
    const [known] = this.#sql
      .exec<{ sum: string }>('SELECT sum FROM refusals WHERE minute = ? AND id = ?', minute, id)
      .toArray();
    const next = known === undefined ? sum : addRefusals(JSON.parse(known.sum) as RefusalSum, sum);
    this.#sql.exec(
      'INSERT OR REPLACE INTO refusals (minute, id, sum) VALUES (?, ?, ?)',
      minute,
      id,
      JSON.stringify(next),
    );
  }

  #rowsOf(minute: number): RefusalRows {
    if (this.#minute.at !== minute) {
      const rows = new RefusalRows(ROWS_MAX);
      for (const id of this.#ids('SELECT id FROM refusals WHERE minute = ?', minute)) {
        rows.add(factsIn(id));
      }
      this.#minute = { at: minute, rows };
    }
    return this.#minute.rows;
  }

  #addTotal(facts: RefusalFacts, count: number, now: number): void {
    if (this.#totals === null) {
      this.#sql.exec('DELETE FROM refusal_totals WHERE last_at < ?', now - TOTALS_KEPT_MS);
      this.#totals = new RefusalRows(TOTALS_MAX);
      for (const id of this.#ids('SELECT id FROM refusal_totals')) this.#totals.add(factsIn(id));
    }
    const isGateway = facts.key_kind === 'gateway';
    const bounded = { ...facts, model: null, ...(!isGateway && { key: null, key_kind: null }) };
    this.#sql.exec(
      `INSERT INTO refusal_totals (id, count, last_at) VALUES (?1, ?2, ?3)
       ON CONFLICT (id) DO UPDATE SET count = count + ?2, last_at = ?3`,
      idOf(this.#totals.place(bounded)),
      count,
      now,
    );
  }

  #ids(sql: string, ...bindings: number[]): string[] {
    return this.#sql
      .exec<{ id: string }>(sql, ...bindings)
      .toArray()
      .map(({ id }) => id);
  }
}

function factsIn(id: string): RefusalFacts & Pick<RefusalCount, 'reason'> {
  // The cast is sound: only `idOf` writes the column.
  const [reason, key, key_kind, team, group, upstream, model] = JSON.parse(id) as Id;
  return { reason, key, key_kind, team, group, upstream, model };
}
