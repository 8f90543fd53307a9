import type { DayCosts } from '../core/parts/costs.ts';
import type { Tables } from './tables.ts';

/** Number of stored days: enough for the current and the previous month. */
const DAYS_KEPT = 64;

/**
 * Stores a pool's costs of past days, one row each. Each day has its slot in a ring, so the table is bounded and no row
 * is ever deleted. The current day is in the row of the controls.
 */
export class CostRows {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
    tables.declare(
      'CREATE TABLE IF NOT EXISTS cost (slot INTEGER PRIMARY KEY, day INTEGER NOT NULL, data TEXT NOT NULL)',
    );
  }

  write(days: readonly DayCosts[]): void {
    for (const { day, lines, rest } of days) {
      this.#tables.write(
        'INSERT OR REPLACE INTO cost (slot, day, data) VALUES (?, ?, ?)',
        day % DAYS_KEPT,
        day,
        JSON.stringify({ lines, rest }),
      );
    }
  }

  /** Reads an inclusive range of days, in order. */
  read(from: number, to: number): DayCosts[] {
    return this.#tables
      .read<{ day: number; data: string }>(
        'SELECT day, data FROM cost WHERE day BETWEEN ? AND ? ORDER BY day',
        from,
        to,
      )
      .map(({ day, data }) => ({ day, ...(JSON.parse(data) as Omit<DayCosts, 'day'>) }));
  }
}
