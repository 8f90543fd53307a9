import type { StoredCall } from '../../contract/calls.ts';
import type { Tables } from '../tables.ts';

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

  /** Returns when the last written call ended, or null if none is written. */
  writtenUntil(): number | null {
    const last = this.#findLast();
    const [row] = this.#tables.read<{ until: number }>(
      'SELECT until FROM call_log WHERE slot = ?',
      Math.max(0, last) % CALL_ROWS_MAX,
    );
    return row?.until ?? null;
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
