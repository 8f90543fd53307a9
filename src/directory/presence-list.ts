import { poolName } from '../contract/pool-name.ts';
import type { StoredPool, PresentPool } from '../contract/rpc/presence-rpc.ts';
import { poolKey, type PlacedPool } from '../routing/pool.ts';

/**
 * - `presence (group_name, object_name, jurisdiction, partition_key, window_end, idle_since, boot, said)`: the last
 *   reports of pools about their use. `window_end` names the window of the report. `idle_since` is when a resting pool
 *   was last used, or 0 while it is in use. `boot` is the process that wrote the row, if Headgate is self-hosted.
 *   `said` holds figures as JSON.
 */
const TABLE = `CREATE TABLE IF NOT EXISTS presence (group_name TEXT NOT NULL, object_name TEXT NOT NULL,
  jurisdiction TEXT NOT NULL, partition_key TEXT, window_end REAL NOT NULL, idle_since INTEGER NOT NULL,
  boot TEXT NOT NULL, said TEXT NOT NULL,
  PRIMARY KEY (group_name, object_name, jurisdiction)) WITHOUT ROWID`;

/**
 * Maximum time by which a report about the next window can overtake the report that a window has ended. A larger
 * difference means that a clock was set back.
 */
const OVERTAKEN_MS_MAX = 1_200_000;

interface PresenceRecord extends Record<string, SqlStorageValue> {
  readonly group_name: string;
  readonly partition_key: string | null;
  readonly jurisdiction: string;
  readonly window_end: number;
  readonly idle_since: number;
  readonly boot: string;
}

interface ListedPresence {
  readonly pool: PlacedPool;
  readonly window: number;
  /** When a resting pool was last used, or null if it is in use. */
  readonly idleSince: number | null;
}

/** The use of pools as they report it. All methods are synchronous, so each turn is one transaction. */
export class PresenceList {
  readonly #sql: SqlStorage;
  readonly #boot: string;
  readonly #known: Map<string, ListedPresence>;
  readonly #windowMs: number;
  /** Reports of pools whose rows still show them as in use. After a reset in between, these pools are asked. */
  readonly #unwritten = new Map<string, PresentPool & { readonly idleSince: number }>();

  /** @param windowMs how long pools stay silent after they reported that they are in use */
  constructor(sql: SqlStorage, boot: string, windowMs: number) {
    this.#sql = sql;
    this.#boot = boot;
    this.#windowMs = windowMs;
    sql.exec(TABLE);
    const rows = sql
      .exec<PresenceRecord>(
        `SELECT group_name, partition_key, jurisdiction, window_end, idle_since, boot FROM presence`,
      )
      .toArray();
    this.#known = new Map(rows.map((row) => [poolKey(placed(row)), this.#recordOf(row)]));
  }

  pools(): PlacedPool[] {
    return [...this.#known.values()].map(({ pool }) => pool);
  }

  get hasUnwritten(): boolean {
    return this.#unwritten.size > 0;
  }

  has(pool: PlacedPool): boolean {
    return this.#known.has(poolKey(pool));
  }

  /** Returns when a resting pool was last used, in epoch milliseconds, or null if it is in use or unknown. */
  idleSince(pool: PlacedPool): number | null {
    return this.#known.get(poolKey(pool))?.idleSince ?? null;
  }

  /** Stores that a pool is in use. It is notified of changes from now on, so this is written at once. */
  wake(present: PresentPool): void {
    const known = this.#known.get(poolKey(present));
    this.#note(present, 0);
    if (known?.idleSince !== null) this.flush();
  }

  /** Stores that a pool rests, unless it has begun another window since. */
  rest(present: PresentPool, now: number): void {
    const known = this.#known.get(poolKey(present));
    const laterMs = (known?.window ?? -Infinity) - present.window;
    if (laterMs > 0 && laterMs <= OVERTAKEN_MS_MAX) return;
    // 0 means that the pool is in use.
    this.#note(present, Math.max(1, now - present.idleMs));
  }

  #note(present: PresentPool, idleSince: number): void {
    const { window, idleMs, said, costs: _costs, ...pool } = present;
    const known = { pool, window, idleSince: idleSince === 0 ? null : idleSince };
    this.#known.set(poolKey(pool), known);
    this.#unwritten.set(poolKey(pool), { ...pool, window, idleMs, said, idleSince });
  }

  /** Writes all reports in one transaction. A transaction for each would delay other requests. */
  flush(): void {
    for (const present of this.#unwritten.values()) this.#write(present);
    this.#unwritten.clear();
  }

  #write({ window, said, idleSince, ...pool }: PresentPool & { readonly idleSince: number }): void {
    this.#sql.exec(
      `INSERT OR REPLACE INTO presence
       (group_name, object_name, jurisdiction, partition_key, window_end, idle_since, boot, said)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      ...keyOf(pool),
      pool.partition,
      window,
      idleSince,
      this.#boot,
      said,
    );
  }

  /** Deletes a resting pool. A pool in use has reported only once in its window, so its report is kept. */
  forget(pool: PlacedPool): void {
    if (this.idleSince(pool) === null) return;
    this.#known.delete(poolKey(pool));
    this.#unwritten.delete(poolKey(pool));
    this.#sql.exec(
      `DELETE FROM presence WHERE group_name = ? AND object_name = ? AND jurisdiction = ?`,
      ...keyOf(pool),
    );
  }

  /** Lists the stored reports without asking any pool. */
  all(now: number): StoredPool[] {
    this.flush();
    const rows = this.#sql
      .exec<PresenceRecord & { said: string }>(
        `SELECT group_name, partition_key, jurisdiction, window_end, idle_since, boot, said
         FROM presence`,
      )
      .toArray();
    return rows.map((row) => ({
      ...placed(row),
      said: this.#isAsked(this.#recordOf(row), now) ? null : row.said,
    }));
  }

  awake(now: number): PlacedPool[] {
    return [...this.#known.values()].flatMap((one) => (this.#isAsked(one, now) ? one.pool : []));
  }

  /** Whether a pool is in use. A pool that has been silent for long is resting, and its report of that was lost. */
  #isAsked({ idleSince, window }: ListedPresence, now: number): boolean {
    return idleSince === null && now < window + this.#windowMs;
  }

  /**
   * Parses a row. Pools that were in use in an earlier process rest now. Their calls ended with it, at the latest when
   * their window did.
   */
  #recordOf({
    window_end: window,
    idle_since: idleSince,
    boot,
    ...row
  }: PresenceRecord): ListedPresence {
    const known = { pool: placed(row), window };
    if (idleSince > 0) return { ...known, idleSince };
    return { ...known, idleSince: boot === this.#boot ? null : Math.floor(window) };
  }
}

function placed({
  group_name: group,
  partition_key: partition,
  jurisdiction,
}: Pick<PresenceRecord, 'group_name' | 'partition_key' | 'jurisdiction'>) {
  // The cast is sound: only a field of the configuration is written to the column.
  const of = (jurisdiction || null) as StoredPool['jurisdiction'];
  return { group, partition, jurisdiction: of };
}

function keyOf(pool: PlacedPool): [group: string, object: string, jurisdiction: string] {
  return [pool.group, poolName(pool.group, pool.partition), pool.jurisdiction ?? ''];
}
