import type { StoredPool, PresentPool } from '../contract/rpc/directory-rpc.ts';
import { poolKey, type PlacedPool } from '../routing/pool.ts';
import type { StoredCosts, PeriodCosts } from '../contract/rpc/feed-rpc.ts';
import { addSums, NO_COSTS, type CostLine, type CostSums } from '../core/parts/costs.ts';
import { placedPool, poolRowKey, type PoolRow } from './pool-list.ts';

/** What pools report about themselves, so that no pool is woken for a status or a sum of costs. */

/**
 * - `presence (group_name, object_name, jurisdiction, partition_key, window_end, idle_since, boot, said)`: the last
 *   reports of pools about their use. `window_end` names the window of the report. `idle_since` is when a resting pool
 *   was last used, or 0 while it is in use. `boot` is the process that wrote the row, if Headgate is self-hosted.
 *   `said` holds figures as JSON.
 */
const PRESENCE_TABLE = `CREATE TABLE IF NOT EXISTS presence (group_name TEXT NOT NULL, object_name TEXT NOT NULL,
  jurisdiction TEXT NOT NULL, partition_key TEXT, window_end REAL NOT NULL, idle_since INTEGER NOT NULL,
  boot TEXT NOT NULL, said TEXT NOT NULL,
  PRIMARY KEY (group_name, object_name, jurisdiction)) WITHOUT ROWID`;

/**
 * Maximum time by which a report about the next window can overtake the report that a window has ended. A larger
 * difference means that a clock was set back.
 */
const OVERTAKEN_MS_MAX = 1_200_000;

type PresenceRecord = PoolRow & {
  readonly window_end: number;
  readonly idle_since: number;
  readonly boot: string;
};

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
    sql.exec(PRESENCE_TABLE);
    const rows = sql
      .exec<PresenceRecord>(
        `SELECT group_name, partition_key, jurisdiction, window_end, idle_since, boot FROM presence`,
      )
      .toArray();
    this.#known = new Map(rows.map((row) => [poolKey(placedPool(row)), this.#recordOf(row)]));
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
      ...poolRowKey(pool),
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
      ...poolRowKey(pool),
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
      ...placedPool(row),
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
    const known = { pool: placedPool(row), window };
    if (idleSince > 0) return { ...known, idleSince };
    return { ...known, idleSince: boot === this.#boot ? null : Math.floor(window) };
  }
}

/**
 * - `costs (group_name, object_name, jurisdiction, partition_key, said_at, said)`: the last costs that each pool
 *   reported, as JSON (`ReportedCosts`), and when, in epoch milliseconds. A row remains when its pool leaves the list,
 *   because its costs remain.
 */
const COSTS_TABLE = `CREATE TABLE IF NOT EXISTS costs (group_name TEXT NOT NULL, object_name TEXT NOT NULL,
  jurisdiction TEXT NOT NULL, partition_key TEXT, said_at INTEGER NOT NULL, said TEXT NOT NULL,
  PRIMARY KEY (group_name, object_name, jurisdiction)) WITHOUT ROWID`;

/** How long costs are stored. No request goes back further than the previous month. */
const KEPT_MS = 63 * 86_400_000;

/** Maximum pools. The ones that reported longest ago are deleted first. */
const POOLS_MAX = 5_000;

/**
 * Maximum lines of all groups that are returned. Further lines are added to their group's `rest`, so sums stay correct.
 */
const LINES_MAX = 20_000;

/** Number of writes between two prunings. */
const PRUNE_EVERY = 100;

type CostRecord = PoolRow & {
  /** `PeriodCosts` as JSON, or null if the pool had no costs in the period. */
  readonly costs: string | null;
};

/** The sums of a group while its pools are added up. */
interface Summing {
  readonly lines: Map<string, CostLine>;
  rest: CostSums | null;
  readonly days: Map<string, CostSums>;
}

type CostReport = PlacedPool & Pick<PresentPool, 'costs'>;

/** The last reported costs of pools, so that no pool is woken for them. */
export class CostList {
  readonly #sql: SqlStorage;
  readonly #unwritten = new Map<string, CostReport & { readonly saidAt: number }>();
  #untilPruned = 0;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(COSTS_TABLE);
  }

  get hasUnwritten(): boolean {
    return this.#unwritten.size > 0;
  }

  /** Stores the costs that a pool reported, if it has any. */
  note(present: CostReport, now: number): void {
    if (present.costs !== undefined) {
      this.#unwritten.set(poolKey(present), { ...present, saidAt: now });
    }
  }

  /** Writes all reports in one transaction. A transaction for each would delay other requests. */
  flush(): void {
    for (const { costs = '{}', saidAt, ...pool } of this.#unwritten.values()) {
      this.#sql.exec(
        `INSERT OR REPLACE INTO costs
         (group_name, object_name, jurisdiction, partition_key, said_at, said) VALUES (?, ?, ?, ?, ?, ?)`,
        ...poolRowKey(pool),
        pool.partition,
        saidAt,
        costs,
      );
      this.#pruneNowAndThen(saidAt);
    }
    this.#unwritten.clear();
  }

  /**
   * Lists the groups that had costs in a day or month. Pools are added up one by one, because the rows of thousands of
   * pools do not fit into memory together.
   */
  of(period: string, except: ReadonlySet<string>): StoredCosts[] {
    this.flush();
    const rows = this.#sql.exec<CostRecord>(
      `SELECT group_name, partition_key, jurisdiction, json_extract(said, ?) AS costs FROM costs`,
      `$."${period}"`,
    );
    const groups = new Map<string, Summing>();
    let room = LINES_MAX;
    for (const { costs, ...row } of rows) {
      if (costs === null || except.has(poolKey(placedPool(row)))) continue;
      const group = row.group_name;
      const sums = groups.get(group) ?? { lines: new Map(), rest: null, days: new Map() };
      groups.set(group, sums);
      room -= addTo(sums, JSON.parse(costs) as PeriodCosts, room);
    }
    return [...groups].map(([group, { lines, rest, days }]) => ({
      group,
      costs: {
        lines: [...lines.values()],
        rest,
        days: [...days]
          .map(([date, sums]) => ({ date, ...sums }))
          .toSorted((x, y) => (x.date < y.date ? -1 : 1)),
      },
    }));
  }

  #pruneNowAndThen(now: number): void {
    this.#untilPruned -= 1;
    if (this.#untilPruned > 0) return;
    this.#untilPruned = PRUNE_EVERY;
    this.#sql.exec(
      `DELETE FROM costs WHERE said_at < max(?, coalesce((SELECT said_at FROM costs ORDER BY said_at DESC LIMIT 1 OFFSET ?), 0))`,
      now - KEPT_MS,
      POOLS_MAX,
    );
  }
}

/** Adds the costs of a pool, with at most `room` new lines. Returns the number of new lines. */
function addTo(sums: Summing, { lines, rest, days }: PeriodCosts, room: number): number {
  const before = sums.lines.size;
  for (const line of lines) {
    const { key, team, model } = line;
    const id = JSON.stringify([key, team, model]);
    const known = sums.lines.get(id);
    if (known !== undefined) sums.lines.set(id, { ...line, ...addSums(known, line) });
    else if (sums.lines.size - before < room) sums.lines.set(id, line);
    else sums.rest = addSums(sums.rest ?? NO_COSTS, line);
  }
  if (rest !== null) sums.rest = addSums(sums.rest ?? NO_COSTS, rest);
  for (const day of days) {
    sums.days.set(day.date, addSums(sums.days.get(day.date) ?? NO_COSTS, day));
  }
  return sums.lines.size - before;
}
