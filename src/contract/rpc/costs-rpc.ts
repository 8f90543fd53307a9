import type { CostSums, CostTable } from '../../core/parts/costs.ts';
import type { GroupConfig } from '../config/config.ts';

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
export type SaidCosts = Readonly<Record<string, PeriodCosts>>;

/** The costs of a pool as it said them last. */
export interface KnownCosts {
  readonly group: string;
  readonly partition: string | null;
  readonly jurisdiction: GroupConfig['jurisdiction'];
  readonly costs: PeriodCosts;
}
