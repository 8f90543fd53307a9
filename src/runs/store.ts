import type { RunLease, MadeRequest } from '../contract/rpc/lease-objects-rpc.ts';
import type { HeldLease } from '../routing/held-lease.ts';

/** What the object of an upstream stores: the runs that hold leases, and which caller created what. */

/** A lease of a run. Times are of the object's clock. */
export type HeldByRun = Omit<RunLease, 'heldMs' | 'hasLapsed'> & HeldLease;

/** Work that continues at an upstream after its answer, and the leases that it holds. */
export interface UpstreamRun {
  readonly id: string;
  /** When its leases are released at the latest. */
  readonly until: number;
  readonly leases: readonly HeldByRun[];
  /** Whether its last renewal failed, so the common renewal time does not apply to it. */
  readonly isLate: boolean;
}

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

/** How long the upstream of an object is stored: as long as providers keep most objects. */
const KEPT_MS = 30 * 24 * 3_600_000;

/** Maximum objects of one caller, and of one instance. The oldest are deleted. */
const CALLER_MAX = 2_000;
const INSTANCE_MAX = 50_000;

/** Number of writes between two prunings. */
const PRUNE_EVERY = 256;

const TABLE = `CREATE TABLE IF NOT EXISTS made (id TEXT PRIMARY KEY, caller TEXT NOT NULL,
  upstream TEXT NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID`;

const OF_CALLER = `SELECT id FROM (SELECT id, row_number() OVER
  (PARTITION BY caller ORDER BY until DESC) AS place FROM made) WHERE place > ?`;

/** The maximums, which tests lower. */
interface MadeBounds {
  readonly caller: number;
  readonly instance: number;
  readonly pruneEvery: number;
}

const BOUNDS: MadeBounds = {
  caller: CALLER_MAX,
  instance: INSTANCE_MAX,
  pruneEvery: PRUNE_EVERY,
};

/** Stores which upstream made an object that callers request by its id. Ids and callers are keyed hashes. */
export class MadeStore {
  readonly #sql: SqlStorage;
  readonly #bounds: MadeBounds;
  /**
   * Starts at a random value, because most instances end before `pruneEvery` writes. On average one in that many writes
   * prunes.
   */
  #writes: number;

  constructor(sql: SqlStorage, bounds = BOUNDS) {
    this.#sql = sql;
    this.#bounds = bounds;
    this.#writes = Math.floor(Math.random() * bounds.pruneEvery);
    sql.exec(TABLE);
  }

  put({ caller, ids, upstream }: MadeRequest, now: number): void {
    for (const id of ids) {
      this.#sql.exec(
        'INSERT OR REPLACE INTO made (id, caller, upstream, until) VALUES (?, ?, ?, ?)',
        id,
        caller,
        upstream,
        now + KEPT_MS,
      );
      this.#writes += 1;
    }
    if (this.#writes < this.#bounds.pruneEvery) return;
    this.#writes = 0;
    this.#prune(now);
  }

  find(ids: readonly string[], now: number): string | null {
    for (const id of ids) {
      const [row] = this.#sql
        .exec<{ upstream: string }>('SELECT upstream FROM made WHERE id = ? AND until > ?', id, now)
        .toArray();
      if (row !== undefined) return row.upstream;
    }
    return null;
  }

  #prune(now: number): void {
    const { caller, instance } = this.#bounds;
    this.#sql.exec('DELETE FROM made WHERE until <= ?', now);
    this.#sql.exec(`DELETE FROM made WHERE id IN (${OF_CALLER})`, caller);
    this.#sql.exec(
      'DELETE FROM made WHERE id IN (SELECT id FROM made ORDER BY until DESC LIMIT -1 OFFSET ?)',
      instance,
    );
  }
}
