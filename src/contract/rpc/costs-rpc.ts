import type { CostSums, CostTable } from '../../core/parts/costs.ts';

interface DaySums extends CostSums {
  /** Such as `2026-11-24`. */
  readonly date: string;
}

/** The costs of a pool in a UTC day or month. */
export interface PeriodCosts extends CostTable {
  /** Days with costs, in order. */
  readonly days: readonly DaySums[];
}

/**
 * Costs of a pool, as it reports them to the directory: the current and the previous day and month, by name
 * (`2026-11-24`, `2026-11`). Periods without costs are omitted.
 */
export type ReportedCosts = Readonly<Record<string, PeriodCosts>>;

export interface StoredCosts {
  readonly group: string;
  readonly costs: PeriodCosts;
}
