import type { DayCosts } from '../core/parts/costs.ts';
import type { Tables } from './tables.ts';

/** Days that are kept: this month and the one before, whatever their lengths. */
const DAYS_KEPT = 64;

/**
 * The costs of a pool on days that are over, a row each. A day has its slot in a ring, so the table is bounded and nothing is
 * ever deleted. The open day is in the row of the controls.
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

  /** Reads the days from one to another, both included, in order. */
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
