import {
  MINUTE_MS,
  MINUTES_KEPT_MS,
  QUARTER_MS,
  QUARTERS_KEPT_MS,
  type HistoryPoint,
} from '../../contract/history.ts';
import { inSteps } from '../../history/points.ts';
import type { Tables } from '../tables.ts';

/** The place of the points of one length: a slot each, in a ring as long as they are kept. */
interface HistoryRing {
  readonly stepMs: number;
  readonly first: number;
  readonly length: number;
}

/** A point as it is stored; `until`: of a minute that was written before it was over. */
type StoredPoint = HistoryPoint & { readonly until?: number };

const MINUTES: HistoryRing = { stepMs: MINUTE_MS, first: 0, length: MINUTES_KEPT_MS / MINUTE_MS };
const QUARTERS: HistoryRing = {
  stepMs: QUARTER_MS,
  first: MINUTES.length,
  length: QUARTERS_KEPT_MS / QUARTER_MS,
};

/**
 * The points of one pool's history. Each has its slot in a ring, so a new one is written over the oldest:
 * the table is bounded, and nothing is ever deleted, which would cost as much as a write.
 */
export class HistoryRows {
  readonly #tables: Tables;
  /** The quarter that the latest written minute is in. Null: not known to this instance. */
  #quarterAt: number | null = null;

  constructor(tables: Tables) {
    this.#tables = tables;
    tables.declare(
      'CREATE TABLE IF NOT EXISTS history (slot INTEGER PRIMARY KEY, at INTEGER NOT NULL, data TEXT NOT NULL)',
    );
  }

  /**
   * Writes the point of a minute, over what was written of it before.
   *
   * @param until up to when it tells, where more may come; absent: the minute is over
   */
  write(point: HistoryPoint, until?: number): void {
    const quarterAt = startOf(point.at, QUARTER_MS);
    if (this.#quarterAt !== quarterAt) this.#closeQuarters(quarterAt);
    this.#quarterAt = quarterAt;
    this.#put(MINUTES, until === undefined ? point : { ...point, until });
  }

  /** Finds up to when the minute that begins at `at` was written. Null: it was not. */
  writtenUntil(at: number): number | null {
    const [row] = this.#stored(MINUTES, at, at + 1);
    return row === undefined ? null : (row.until ?? at + MINUTE_MS);
  }

  /** Reads the point of the minute that begins at `at`, if one was written. */
  minute(at: number): HistoryPoint | null {
    return this.#minutes(at, at + 1)[0] ?? null;
  }

  /** Finds when the oldest point begins, or one from before `fromMs` if there is any. Null: none was written. */
  oldestAt(fromMs: number): number | null {
    // Usually the first row that is read is older. Otherwise there are no more rows than the time that is asked for has.
    const [older] = this.#tables.read<{ at: number }>(
      'SELECT at FROM history WHERE at < ? LIMIT 1',
      fromMs,
    );
    if (older !== undefined) return older.at;
    const [oldest] = this.#tables.read<{ at: number | null }>('SELECT MIN(at) AS at FROM history');
    return oldest?.at ?? null;
  }

  /** Reads the finest points there are for steps of `stepMs`, from `fromMs` up to `toMs`, in order. */
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
    const from = this.#lastQuarterAt(quarterAt) + QUARTER_MS;
    for (const quarter of inSteps(this.#minutes(from, quarterAt), QUARTER_MS)) {
      // Only the last hour is asked about calls by their keys.
      const { callsOf: _, ...kept } = quarter;
      this.#put(QUARTERS, kept);
    }
  }

  /** Finds the last quarter that is written; older ones than the minutes are of no use to anybody who asks. */
  #lastQuarterAt(quarterAt: number): number {
    const from = quarterAt - MINUTES_KEPT_MS - QUARTER_MS;
    for (const [low, high] of slotsOf(QUARTERS, from, quarterAt).toReversed()) {
      const [last] = this.#tables.read<{ at: number }>(
        'SELECT at FROM history WHERE slot BETWEEN ? AND ? AND at >= ? AND at < ? ORDER BY slot DESC LIMIT 1',
        low,
        high,
        from,
        quarterAt,
      );
      if (last !== undefined) return last.at;
    }
    return from;
  }

  #minutes(fromMs: number, toMs: number): HistoryPoint[] {
    return this.#between(MINUTES, fromMs, toMs);
  }

  #quarters(fromMs: number, toMs: number): HistoryPoint[] {
    return this.#between(QUARTERS, fromMs, toMs);
  }

  #between(ring: HistoryRing, fromMs: number, toMs: number): HistoryPoint[] {
    return this.#stored(ring, fromMs, toMs).map(({ until: _until, ...point }) => point);
  }

  /** Reads the rows of the slots that are meant, and no others: whoever starts cold pays for each. */
  #stored(ring: HistoryRing, fromMs: number, toMs: number): StoredPoint[] {
    return slotsOf(ring, fromMs, toMs).flatMap(([low, high]) =>
      this.#tables
        .read<{ data: string }>(
          'SELECT data FROM history WHERE slot BETWEEN ? AND ? AND at >= ? AND at < ? ORDER BY slot',
          low,
          high,
          fromMs,
          toMs,
        )
        .map(({ data }) => JSON.parse(data) as StoredPoint),
    );
  }

  #put({ stepMs, first, length }: HistoryRing, point: StoredPoint): void {
    this.#tables.write(
      `INSERT INTO history (slot, at, data) VALUES (?, ?, ?)
       ON CONFLICT (slot) DO UPDATE SET at = excluded.at, data = excluded.data`,
      first + ((point.at / stepMs) % length),
      point.at,
      JSON.stringify(point),
    );
  }
}

function startOf(at: number, lengthMs: number): number {
  return Math.floor(at / lengthMs) * lengthMs;
}

/** Finds the slots of the points from `fromMs` up to `toMs`, in the order of time: one range, or two around the end. */
function slotsOf(
  { stepMs, first, length }: HistoryRing,
  fromMs: number,
  toMs: number,
): [number, number][] {
  const last = Math.ceil(toMs / stepMs) - 1;
  const from = Math.max(Math.floor(fromMs / stepMs), last - length + 1);
  if (from > last) return [];
  const [low, high] = [first + (from % length), first + (last % length)];
  if (low <= high) return [[low, high]];
  return [
    [low, first + length - 1],
    [first, high],
  ];
}
