import { LEASE_TTL_MS } from '../core/words/settings.ts';

/** How much longer than its lease a row counts, so that not every renewal writes one. */
const SLACK_MS = 15_000;

interface HeldUntil {
  readonly slots: number;
  readonly until: number;
}

/**
 * Stores slots of unverified pools whose holders may outlive the process, because they hold their leases by id. There
 * is at most one row per such lease. See `design/storage.md`.
 */
export class HeldById {
  readonly #sql: SqlStorage;
  readonly #held = new Map<string, HeldUntil>();

  constructor(sql: SqlStorage, now: number) {
    this.#sql = sql;
    sql.exec(
      'CREATE TABLE IF NOT EXISTS held_by_id (pool TEXT PRIMARY KEY, slots INTEGER NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID',
    );
    sql.exec('DELETE FROM held_by_id WHERE until <= ?', now);
    const rows = sql.exec<{ pool: string; slots: number; until: number }>(
      'SELECT * FROM held_by_id',
    );
    for (const { pool, slots, until } of rows) this.#held.set(pool, { slots, until });
  }

  /** Returns how many slots an earlier process may have granted in a pool. */
  slotsOf(pool: string, now: number): number {
    const held = this.#held.get(pool);
    return held === undefined || held.until <= now ? 0 : held.slots;
  }

  /** Stores how many slots are held by id, before any answer is sent. */
  note(pool: string, slots: number, now: number): void {
    const known = this.#held.get(pool);
    const isKnown = known !== undefined && known.slots >= slots;
    if (isKnown && known.until >= now + LEASE_TTL_MS) return;
    const until = Math.ceil(now + LEASE_TTL_MS + SLACK_MS);
    this.#held.set(pool, { slots, until });
    this.#sql.exec(
      'INSERT OR REPLACE INTO held_by_id (pool, slots, until) VALUES (?, ?, ?)',
      pool,
      slots,
      until,
    );
  }

  /** Deletes a pool that holds no such slots any more, or that has its own object. */
  forget(pool: string): void {
    if (this.#held.delete(pool)) this.#sql.exec('DELETE FROM held_by_id WHERE pool = ?', pool);
  }
}
