import {
  REFUSAL_MINUTE_MS,
  REFUSALS_KEPT_MS,
  KEYLESS_KEPT_MS,
  type RefusalCount,
  type RefusalTotal,
  type KeylessCaller,
} from '../contract/reasons.ts';
import {
  addRefusals,
  idOf,
  RefusalRows,
  type RefusalFacts,
  type RefusalSum,
} from '../core/parts/refusal-rows.ts';
import type { Warning } from '../contract/attention.ts';

/**
 * What isolates and pools report about calls, for the last hour or the last few hundred entries: rejections, callers
 * without a gateway key, accounts of provider keys, and warnings. Every list has a maximum, because callers choose the
 * values. All methods are synchronous, so each turn is one transaction.
 */

/**
 * - `refusals (minute, id, sum)`: rejected calls of the last hour, by epoch minute and by their facts (`idOf`), as JSON
 *   (`RefusalSum`).
 * - `refusal_totals (id, count, last_at)`: rejected calls since the first count, without texts of callers, for metrics.
 */
const REFUSAL_TABLES = [
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
    for (const table of REFUSAL_TABLES) sql.exec(table);
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

/**
 * `keyless_callers (slice, upstream, caller, calls, last_at)`: served calls of callers without a gateway key. See
 * `design/storage.md`.
 */
const KEYLESS_TABLE = `CREATE TABLE IF NOT EXISTS keyless_callers (slice INTEGER NOT NULL, upstream TEXT NOT NULL,
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
    sql.exec(KEYLESS_TABLE);
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

/**
 * `accounts (key, account, noted_at)`: the account of each key that its upstream has accepted. See `design/storage.md`.
 */
const ACCOUNTS_TABLE = `CREATE TABLE IF NOT EXISTS accounts (key TEXT PRIMARY KEY, account TEXT NOT NULL,
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
    sql.exec(ACCOUNTS_TABLE);
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

/** `warnings (id, at, data)`: the last warnings of all pools, as JSON. See `design/storage.md`. */
const WARNINGS_TABLE = `CREATE TABLE IF NOT EXISTS warnings (id TEXT PRIMARY KEY, at TEXT NOT NULL,
  data TEXT NOT NULL) WITHOUT ROWID`;

/** Maximum warnings of all pools. The oldest are deleted first. */
const WARNINGS_MAX = 200;

/** The last warnings of all pools. All methods are synchronous. */
export class WarningList {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(WARNINGS_TABLE);
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
