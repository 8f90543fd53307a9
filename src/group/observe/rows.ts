import type { StoredCall } from '../../contract/calls.ts';
import {
  MINUTE_MS,
  MINUTES_KEPT_MS,
  QUARTER_MS,
  QUARTERS_KEPT_MS,
  type HistoryPoint,
} from '../../contract/history.ts';
import { inSteps } from '../../history/points.ts';
import type { Tables } from '../store.ts';

/** The rows of the call log and of the history. */

/** Maximum rows of a pool's call log: one per minute of seven days. */
export const CALL_ROWS_MAX = 10_080;

/** Rows per read. */
const CHUNK = 64;

/** One row: calls that ended one after the other. */
export interface CallRow {
  readonly sequence: number;
  /** When the first and the last of them ended. */
  readonly at: number;
  readonly until: number;
  /** Empty if none of them can match. */
  readonly calls: readonly StoredCall[];
}

type Columns = Record<'sequence' | 'at' | 'until', number> & { readonly data: string | null };

/**
 * The rows of one pool's call log. As in the history, each row has its place in a ring. A new row replaces the oldest,
 * and no row is deleted.
 */
export class CallRows {
  readonly #tables: Tables;
  /** Number of the last row. -1 means that there is none, and null that it is not read yet. */
  #last: number | null = null;

  constructor(tables: Tables) {
    this.#tables = tables;
    tables.declare(
      'CREATE TABLE IF NOT EXISTS call_log (slot INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, at INTEGER NOT NULL, until INTEGER NOT NULL, data TEXT NOT NULL)',
    );
  }

  write(calls: readonly StoredCall[]): void {
    const sequence = this.#findLast() + 1;
    this.#tables.write(
      `INSERT INTO call_log (slot, sequence, at, until, data) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (slot) DO UPDATE SET sequence = excluded.sequence, at = excluded.at,
       until = excluded.until, data = excluded.data`,
      sequence % CALL_ROWS_MAX,
      sequence,
      calls[0]?.at ?? 0,
      calls.at(-1)?.at ?? 0,
      JSON.stringify(calls),
    );
    this.#last = sequence;
  }

  /** Returns the row that was written last, or null if none is written. */
  last(): CallRow | null {
    const last = this.#findLast();
    return this.#chunk(last, last, [])[0] ?? null;
  }

  /** Reads rows that begin before `toMs`, latest first. Only rows that contain one of the texts are read completely. */
  *read(toMs: number, texts: readonly string[]): Generator<CallRow> {
    let next = this.#lastBefore(toMs);
    const oldest = Math.max(0, this.#findLast() - CALL_ROWS_MAX + 1);
    while (next >= oldest) {
      const first = Math.max(oldest, next - CHUNK + 1, next - (next % CALL_ROWS_MAX));
      const rows = this.#chunk(first, next, texts);
      if (rows.length === 0) return;
      yield* rows;
      next = first - 1;
    }
  }

  #chunk(first: number, last: number, texts: readonly string[]): CallRow[] {
    const fits = texts.length === 0 ? '1' : texts.map(() => 'instr(data, ?) > 0').join(' OR ');
    return this.#tables
      .read<Columns>(
        `SELECT sequence, at, until, CASE WHEN ${fits} THEN data END AS data FROM call_log
         WHERE slot BETWEEN ? AND ? AND sequence BETWEEN ? AND ? ORDER BY slot DESC`,
        ...texts,
        first % CALL_ROWS_MAX,
        last % CALL_ROWS_MAX,
        first,
        last,
      )
      .map(({ data, ...row }) => ({
        ...row,
        calls: data === null ? [] : (JSON.parse(data) as StoredCall[]),
      }));
  }

  /** Finds the last row that begins before an instant by binary search, because rows are in the order of time. */
  #lastBefore(toMs: number): number {
    const last = this.#findLast();
    let low = Math.max(0, last - CALL_ROWS_MAX + 1) - 1;
    let high = last;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      const [row] = this.#tables.read<{ at: number }>(
        'SELECT at FROM call_log WHERE slot = ?',
        middle % CALL_ROWS_MAX,
      );
      if ((row?.at ?? Infinity) < toMs) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /**
   * Finds the number of the last row by binary search. Numbers rise by one from the first place to the last written
   * one.
   */
  #findLast(): number {
    if (this.#last !== null) return this.#last;
    const first = this.#sequenceAt(0);
    let low = 0;
    let high = first === null ? 0 : CALL_ROWS_MAX - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.#sequenceAt(middle) === (first ?? 0) + middle) low = middle;
      else high = middle - 1;
    }
    this.#last = first === null ? -1 : first + low;
    return this.#last;
  }

  #sequenceAt(slot: number): number | null {
    const [row] = this.#tables.read<{ sequence: number }>(
      'SELECT sequence FROM call_log WHERE slot = ?',
      slot,
    );
    return row?.sequence ?? null;
  }
}

/** The slots of points of one length: a ring as long as the points are kept. */
interface HistoryRing {
  readonly stepMs: number;
  readonly first: number;
  readonly length: number;
}

/** A stored point. `until` is set if the minute was written before it ended. */
type StoredPoint = HistoryPoint & { readonly until?: number };

const MINUTES: HistoryRing = { stepMs: MINUTE_MS, first: 0, length: MINUTES_KEPT_MS / MINUTE_MS };
const QUARTERS: HistoryRing = {
  stepMs: QUARTER_MS,
  first: MINUTES.length,
  length: QUARTERS_KEPT_MS / QUARTER_MS,
};

/**
 * The points of one pool's history. Each has its slot in a ring, and a new point replaces the oldest. The table is
 * bounded, and no row is ever deleted, which would cost as much as a write.
 */
export class HistoryRows {
  readonly #tables: Tables;
  /** The quarter hour of the last written minute, or null if this instance has not written one. */
  #quarterAt: number | null = null;

  constructor(tables: Tables) {
    this.#tables = tables;
    tables.declare(
      'CREATE TABLE IF NOT EXISTS history (slot INTEGER PRIMARY KEY, at INTEGER NOT NULL, data TEXT NOT NULL)',
    );
  }

  /**
   * Writes the point of a minute, and replaces an earlier one.
   *
   * @param until time up to which it counts, if the minute has not ended
   */
  write(point: HistoryPoint, until?: number): void {
    const quarterAt = startOf(point.at, QUARTER_MS);
    if (this.#quarterAt !== quarterAt) this.#closeQuarters(quarterAt);
    this.#quarterAt = quarterAt;
    this.#put(MINUTES, until === undefined ? point : { ...point, until });
  }

  /** Returns up to when the minute that begins at `at` was written, or null if it was not. */
  writtenUntil(at: number): number | null {
    const [row] = this.#stored(MINUTES, at, at + 1);
    return row === undefined ? null : (row.until ?? at + MINUTE_MS);
  }

  /** Returns the point of the minute that begins at `at`, or null if there is none. */
  minute(at: number): HistoryPoint | null {
    return this.#minutes(at, at + 1)[0] ?? null;
  }

  /** Returns when the oldest point begins, or any point from before `fromMs`. Returns null if there is none. */
  oldestAt(fromMs: number): number | null {
    // Usually the first row is older. Otherwise the table has no more rows than the requested time.
    const [older] = this.#tables.read<{ at: number }>(
      'SELECT at FROM history WHERE at < ? LIMIT 1',
      fromMs,
    );
    if (older !== undefined) return older.at;
    const [oldest] = this.#tables.read<{ at: number | null }>('SELECT MIN(at) AS at FROM history');
    return oldest?.at ?? null;
  }

  /** Reads the finest available points for steps of `stepMs`, from `fromMs` up to `toMs`, in order. */
  read(fromMs: number, toMs: number, stepMs: number, now: number): HistoryPoint[] {
    // A chart of a day requests the whole day, and some time has passed since.
    const firstMinuteAt = now - MINUTES_KEPT_MS - QUARTER_MS;
    if (stepMs < QUARTER_MS && fromMs >= firstMinuteAt) return this.#minutes(fromMs, toMs);
    const from = startOf(fromMs, QUARTER_MS);
    const quarters = this.#quarters(Math.max(from, now - QUARTERS_KEPT_MS), toMs);
    const coveredTo = (quarters.at(-1)?.at ?? -QUARTER_MS) + QUARTER_MS;
    // A quarter is written when a later one begins, so the last minutes are added.
    return [...quarters, ...this.#minutes(Math.max(from, coveredTo), toMs)];
  }

  /** Adds up the minutes of ended quarters before their rows are replaced. */
  #closeQuarters(quarterAt: number): void {
    const from = this.#lastQuarterAt(quarterAt) + QUARTER_MS;
    for (const quarter of inSteps(this.#minutes(from, quarterAt), QUARTER_MS)) {
      // Calls by key are requested only for the last hour.
      const { callsOf: _, ...kept } = quarter;
      this.#put(QUARTERS, kept);
    }
  }

  /** Returns the last written quarter. Quarters from before the stored minutes cannot be completed. */
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

  /** Reads only the rows of the requested slots, because every row read costs time after a cold start. */
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

/**
 * Returns the slots of the points from `fromMs` up to `toMs` in the order of time: one range, or two around the end of
 * the ring.
 */
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
