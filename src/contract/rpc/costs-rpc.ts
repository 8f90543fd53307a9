import type { CostSums, CostTable } from '../../core/parts/costs.ts';

/** The sums of one day. */
interface DaySums extends CostSums {
  /** As `2026-11-24`. */
  readonly date: string;
}

/** The costs of a pool in a day or month of UTC. */
export interface PeriodCosts extends CostTable {
  /** The days that had any, in order. */
  readonly days: readonly DaySums[];
}

/**
 * Costs of a pool, as it tells the directory with each word: this day and month and those before, by their names (`2026-11-24`,
 * `2026-11`), as far as they had any.
 */
export type ReportedCosts = Readonly<Record<string, PeriodCosts>>;

/** The costs of a group's pools, as each said them last. */
export interface StoredCosts {
  readonly group: string;
  readonly costs: PeriodCosts;
}
