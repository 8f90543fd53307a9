import { poolName } from '../contract/pool-name.ts';
import type { StoredCosts, PeriodCosts } from '../contract/rpc/costs-rpc.ts';
import type { PresentPool } from '../contract/rpc/presence-rpc.ts';
import { addSums, NO_COSTS, type CostLine, type CostSums } from '../core/parts/costs.ts';
import { poolKey, type PlacedPool } from '../routing/pool.ts';

/**
 * - `costs (group_name, object_name, jurisdiction, partition_key, said_at, said)`: the last costs that each pool
 *   reported, as JSON (`ReportedCosts`), and when, in epoch milliseconds. A row remains when its pool leaves the list,
 *   because its costs remain.
 */
const TABLE = `CREATE TABLE IF NOT EXISTS costs (group_name TEXT NOT NULL, object_name TEXT NOT NULL,
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

interface CostRecord extends Record<string, SqlStorageValue> {
  readonly group_name: string;
  readonly partition_key: string | null;
  readonly jurisdiction: string;
  /** `PeriodCosts` as JSON, or null if the pool had no costs in the period. */
  readonly costs: string | null;
}

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
    sql.exec(TABLE);
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
        pool.group,
        poolName(pool.group, pool.partition),
        pool.jurisdiction ?? '',
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
    for (const { group_name: group, partition_key: partition, costs, ...row } of rows) {
      // The cast is sound: only a field of the configuration is written to the column.
      const jurisdiction = (row.jurisdiction || null) as NonNullable<
        PlacedPool['jurisdiction']
      > | null;
      if (costs === null || except.has(poolKey({ group, partition, jurisdiction }))) continue;
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
