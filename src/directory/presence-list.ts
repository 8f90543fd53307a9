import { poolName } from '../contract/pool-name.ts';
import type { StoredPool, PresentPool } from '../contract/rpc/presence-rpc.ts';
import { poolKey, type PlacedPool } from '../routing/pool.ts';

/**
 * - `presence (group_name, object_name, jurisdiction, partition_key, window_end, idle_since, boot, said)`: what pools said
 *   of their use. `window_end` names the window that a pool said it of; `idle_since` is when one that rests was used last, 0
 *   while it is in use; `boot` the process of then, where Headgate hosts itself; `said` its facts as JSON.
 */
const TABLE = `CREATE TABLE IF NOT EXISTS presence (group_name TEXT NOT NULL, object_name TEXT NOT NULL,
  jurisdiction TEXT NOT NULL, partition_key TEXT, window_end REAL NOT NULL, idle_since INTEGER NOT NULL,
  boot TEXT NOT NULL, said TEXT NOT NULL,
  PRIMARY KEY (group_name, object_name, jurisdiction)) WITHOUT ROWID`;

/**
 * How much later than the window that a pool says is over the one that it is in may end: the word was overtaken by that of
 * the next window. More is a clock that was set back.
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
  /** Since when nobody has used it, and it rests; null: it is in use. */
  readonly idleSince: number | null;
}

/** The use of pools, as they say themselves. All of it is synchronous, so a turn is one transaction. */
export class PresenceList {
  readonly #sql: SqlStorage;
  readonly #boot: string;
  readonly #known: Map<string, ListedPresence>;
  readonly #windowMs: number;
  /** Words of pools whose rows say yet that they are in use. A reset in between has them asked. */
  readonly #unwritten = new Map<string, PresentPool & { readonly idleSince: number }>();

  /** @param windowMs how long pools say nothing more once they have said that they are in use */
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

  /** Tells since when nobody has used a pool that rests, in epoch milliseconds; null: it is in use, or unknown. */
  idleSince(pool: PlacedPool): number | null {
    return this.#known.get(poolKey(pool))?.idleSince ?? null;
  }

  /** Notes that a pool is in use. It is told of changes from now on, so that must not be lost. */
  wake(present: PresentPool): void {
    const known = this.#known.get(poolKey(present));
    this.#note(present, 0);
    if (known?.idleSince !== null) this.flush();
  }

  /** Notes that a pool rests, unless it has begun another window since. */
  rest(present: PresentPool, now: number): void {
    const known = this.#known.get(poolKey(present));
    const laterMs = (known?.window ?? -Infinity) - present.window;
    if (laterMs > 0 && laterMs <= OVERTAKEN_MS_MAX) return;
    // 0 stands for one that is in use.
    this.#note(present, Math.max(1, now - present.idleMs));
  }

  #note(present: PresentPool, idleSince: number): void {
    const { window, idleMs, said, costs: _costs, ...pool } = present;
    const known = { pool, window, idleSince: idleSince === 0 ? null : idleSince };
    this.#known.set(poolKey(pool), known);
    this.#unwritten.set(poolKey(pool), { ...pool, window, idleMs, said, idleSince });
  }

  /** Writes what pools said, all at once: each by itself would be a commit that others wait for. */
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

  /** Forgets a pool that rests. One that is in use has said so once, and says it again at the end of its window. */
  forget(pool: PlacedPool): void {
    if (this.idleSince(pool) === null) return;
    this.#known.delete(poolKey(pool));
    this.#unwritten.delete(poolKey(pool));
    this.#sql.exec(
      `DELETE FROM presence WHERE group_name = ? AND object_name = ? AND jurisdiction = ?`,
      ...keyOf(pool),
    );
  }

  /** Lists what is known of pools without asking them. */
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

  /** Lists the pools that are in use. */
  awake(now: number): PlacedPool[] {
    return [...this.#known.values()].flatMap((one) => (this.#isAsked(one, now) ? one.pool : []));
  }

  /** Whether a pool is in use. One that has said nothing for long has not been heard when it said that it rests. */
  #isAsked({ idleSince, window }: ListedPresence, now: number): boolean {
    return idleSince === null && now < window + this.#windowMs;
  }

  /**
   * Reads a row. What was in use in a process that is no more rests: its calls ended with it, when its window did at the
   * latest.
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
  // The cast is sound: the column is written from a configuration's field alone.
  const of = (jurisdiction || null) as StoredPool['jurisdiction'];
  return { group, partition, jurisdiction: of };
}

function keyOf(pool: PlacedPool): [group: string, object: string, jurisdiction: string] {
  return [pool.group, poolName(pool.group, pool.partition), pool.jurisdiction ?? ''];
}
