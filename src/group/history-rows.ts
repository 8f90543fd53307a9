import {
  inSteps,
  MINUTE_MS,
  MINUTES_KEPT_MS,
  QUARTER_MS,
  QUARTERS_KEPT_MS,
  type HistoryPoint,
} from '../contract/history.ts';

/** Points of a minute have the slots 0 and up, those of a quarter of an hour follow. */
const MINUTES = MINUTES_KEPT_MS / MINUTE_MS;
const QUARTERS = QUARTERS_KEPT_MS / QUARTER_MS;

/**
 * The points of one pool's history. Each has its slot in a ring, so a new one is written over the oldest:
 * the table is bounded, and nothing is ever deleted, which would cost as much as a write.
 */
export class HistoryRows {
  readonly #sql: SqlStorage;
  /** The quarter that the latest written minute is in. Null: not known to this instance. */
  #quarterAt: number | null = null;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(
      'CREATE TABLE IF NOT EXISTS history (slot INTEGER PRIMARY KEY, at INTEGER NOT NULL, data TEXT NOT NULL)',
    );
  }

  /** Writes the point of a minute, over what was written of it before. */
  write(point: HistoryPoint): void {
    const quarterAt = startOf(point.at, QUARTER_MS);
    if (this.#quarterAt !== quarterAt) this.#closeQuarters(quarterAt);
    this.#quarterAt = quarterAt;
    this.#put((point.at / MINUTE_MS) % MINUTES, point);
  }

  /** The point of the minute that begins at `at`, if one was written. */
  minute(at: number): HistoryPoint | null {
    return this.#minutes(at, at + 1)[0] ?? null;
  }

  /** The finest points there are for steps of `stepMs`, from `fromMs` up to `toMs`, in order. */
  read(fromMs: number, toMs: number, stepMs: number, now: number): HistoryPoint[] {
    // A chart of a day asks for the whole day, and a moment has passed since.
    const firstMinuteAt = now - MINUTES_KEPT_MS - QUARTER_MS;
    if (stepMs < QUARTER_MS && fromMs >= firstMinuteAt) return this.#minutes(fromMs, toMs);
    const from = startOf(fromMs, QUARTER_MS);
    const quarters = this.#quarters(Math.max(from, now - QUARTERS_KEPT_MS), toMs);
    const coveredTo = (quarters.at(-1)?.at ?? -QUARTER_MS) + QUARTER_MS;
    // Quarters are written when a later one begins: the last minutes stand beside them.
    return [...quarters, ...this.#minutes(Math.max(from, coveredTo), toMs)];
  }

  /** Adds up the minutes of quarters that are over, before their rows are written over. */
  #closeQuarters(quarterAt: number): void {
    const [last] = this.#sql
      .exec<{ at: number | null }>('SELECT max(at) AS at FROM history WHERE slot >= ?', MINUTES)
      .toArray();
    const from = (last?.at ?? -QUARTER_MS) + QUARTER_MS;
    for (const quarter of inSteps(this.#minutes(from, quarterAt), QUARTER_MS)) {
      this.#put(MINUTES + ((quarter.at / QUARTER_MS) % QUARTERS), quarter);
    }
  }

  #minutes(fromMs: number, toMs: number): HistoryPoint[] {
    return this.#between('slot < ?', fromMs, toMs);
  }

  #quarters(fromMs: number, toMs: number): HistoryPoint[] {
    return this.#between('slot >= ?', fromMs, toMs);
  }

  #between(slots: 'slot < ?' | 'slot >= ?', fromMs: number, toMs: number): HistoryPoint[] {
    return this.#sql
      .exec<{ data: string }>(
        `SELECT data FROM history WHERE ${slots} AND at >= ? AND at < ? ORDER BY at`,
        MINUTES,
        fromMs,
        toMs,
      )
      .toArray()
      .map(({ data }) => JSON.parse(data) as HistoryPoint);
  }

  #put(slot: number, point: HistoryPoint): void {
    this.#sql.exec(
      `INSERT INTO history (slot, at, data) VALUES (?, ?, ?)
       ON CONFLICT (slot) DO UPDATE SET at = excluded.at, data = excluded.data`,
      slot,
      point.at,
      JSON.stringify(point),
    );
  }
}

function startOf(at: number, lengthMs: number): number {
  return Math.floor(at / lengthMs) * lengthMs;
}
