import type { MadeRequest } from '../contract/rpc/runs-rpc.ts';

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
export interface MadeBounds {
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
