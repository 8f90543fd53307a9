import { poolName } from '../contract/pool-name.ts';
import type { KnownPool, PresentPool } from '../contract/rpc/presence-rpc.ts';
import { poolKey, type PlacedPool } from '../routing/pool.ts';

/**
 * - `presence (group_name, object_name, jurisdiction, partition_key, ordered, rests, boot, said)`: what pools said of their
 *   use. `ordered` is the number of the message; `rests` is when a pool said that it rests, 0 while it is in use; `boot` the
 *   process of then, where Headgate hosts itself; `said` its facts as JSON.
 */
const TABLE = `CREATE TABLE IF NOT EXISTS presence (group_name TEXT NOT NULL, object_name TEXT NOT NULL,
  jurisdiction TEXT NOT NULL, partition_key TEXT, ordered REAL NOT NULL, rests INTEGER NOT NULL,
  boot TEXT NOT NULL, said TEXT NOT NULL,
  PRIMARY KEY (group_name, object_name, jurisdiction)) WITHOUT ROWID`;

/** How long before an earlier message a later one may come. One from longer ago is news: a clock was set back. */
const OVERTAKEN_MS_MAX = 60_000;

/** Since when a pool rests whose process is no more. */
const LONG_AGO = 1;

interface Row extends Record<string, SqlStorageValue> {
  readonly group_name: string;
  readonly partition_key: string | null;
  readonly jurisdiction: string;
  readonly ordered: number;
  readonly rests: number;
  readonly boot: string;
}

interface Known {
  readonly pool: PlacedPool;
  readonly ordered: number;
  /** Since when it rests; null: it is in use. */
  readonly restsSince: number | null;
}

/** The use of pools, as they say themselves. All of it is synchronous, so a turn is one transaction. */
export class PresenceList {
  readonly #sql: SqlStorage;
  readonly #boot: string;
  readonly #known: Map<string, Known>;
  /** Pools that rest, and whose rows say yet that they are in use. A reset in between has them asked. */
  readonly #unwritten = new Map<
    string,
    { readonly present: PresentPool; readonly rests: number }
  >();

  constructor(sql: SqlStorage, boot: string) {
    this.#sql = sql;
    this.#boot = boot;
    sql.exec(TABLE);
    const rows = sql
      .exec<Row>(
        `SELECT group_name, partition_key, jurisdiction, ordered, rests, boot FROM presence`,
      )
      .toArray();
    this.#known = new Map(rows.map((row) => [poolKey(placed(row)), this.#knownOf(row)]));
  }

  pools(): PlacedPool[] {
    return [...this.#known.values()].map(({ pool }) => pool);
  }

  has(pool: PlacedPool): boolean {
    return this.#known.has(poolKey(pool));
  }

  /** Tells since when a pool rests, in epoch milliseconds; null: it is in use, or nothing is known of it. */
  restsSince(pool: PlacedPool): number | null {
    return this.#known.get(poolKey(pool))?.restsSince ?? null;
  }

  /** Notes what a pool says, unless that is older than what it said before. `rests`: since when; 0: it is in use. */
  note(present: PresentPool, rests: number): void {
    const { order, said: _said, ...pool } = present;
    const key = poolKey(pool);
    const known = this.#known.get(key);
    const overtakenMs = (known?.ordered ?? -Infinity) - order;
    if (overtakenMs >= 0 && overtakenMs <= OVERTAKEN_MS_MAX) return;
    this.#known.set(key, { pool, ordered: order, restsSince: rests === 0 ? null : rests });
    if (rests > 0) this.#unwritten.set(key, { present, rests });
    // What the row says already need not be written again.
    else if (!this.#unwritten.delete(key) && known?.restsSince !== null) this.#write(present, 0);
  }

  /** Writes of pools that began to rest, all at once: each by itself would be a commit that others wait for. */
  flush(): void {
    for (const { present, rests } of this.#unwritten.values()) this.#write(present, rests);
    this.#unwritten.clear();
  }

  #write({ order, said, ...pool }: PresentPool, rests: number): void {
    this.#sql.exec(
      `INSERT OR REPLACE INTO presence
       (group_name, object_name, jurisdiction, partition_key, ordered, rests, boot, said)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      ...keyOf(pool),
      pool.partition,
      order,
      rests,
      this.#boot,
      said,
    );
  }

  /** Forgets a pool that rests. One that is in use has said so once, and does not say it again. */
  forget(pool: PlacedPool): void {
    if (this.restsSince(pool) === null) return;
    this.#known.delete(poolKey(pool));
    this.#unwritten.delete(poolKey(pool));
    this.#sql.exec(
      `DELETE FROM presence WHERE group_name = ? AND object_name = ? AND jurisdiction = ?`,
      ...keyOf(pool),
    );
  }

  all(): KnownPool[] {
    this.flush();
    const rows = this.#sql
      .exec<Row & { said: string }>(
        `SELECT group_name, partition_key, jurisdiction, ordered, rests, boot, said FROM presence`,
      )
      .toArray();
    return rows.map((row) => ({
      ...placed(row),
      said: this.#knownOf(row).restsSince === null ? null : row.said,
    }));
  }

  /** Reads a row. What was in use in a process that is no more rests: its calls ended with it. */
  #knownOf({ ordered, rests, boot, ...row }: Row): Known {
    const known = { pool: placed(row), ordered };
    if (rests > 0) return { ...known, restsSince: rests };
    return { ...known, restsSince: boot === this.#boot ? null : LONG_AGO };
  }
}

function placed({
  group_name: group,
  partition_key: partition,
  jurisdiction,
}: Pick<Row, 'group_name' | 'partition_key' | 'jurisdiction'>) {
  // The cast is sound: the column is written from a configuration's field alone.
  const of = (jurisdiction || null) as KnownPool['jurisdiction'];
  return { group, partition, jurisdiction: of };
}

function keyOf(pool: PlacedPool): [group: string, object: string, jurisdiction: string] {
  return [pool.group, poolName(pool.group, pool.partition), pool.jurisdiction ?? ''];
}
