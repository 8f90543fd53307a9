import type { Histogram } from '../../core/parts/totals.ts';
import type { CostSums, CostTable } from '../../core/parts/costs.ts';
import type { Figure, METRICS_ONLY } from '../gauges.ts';
import type { PoolStatus } from '../status.ts';

/** Figures that a pool reports apart from its status: metrics, costs, and the preview of a change. */

type MetricRows = typeof METRICS_ONLY;
type OptionalName = {
  [Name in keyof MetricRows]: MetricRows[Name] extends { readonly optional: true } ? Name : never;
}[keyof MetricRows];

/** All counts of a pool since its instance started. */
export type PoolMetrics = {
  readonly status: PoolStatus;
  readonly waits: Readonly<Histogram>;
  readonly holds: Readonly<Histogram>;
} & { readonly [Name in Exclude<keyof MetricRows, OptionalName>]: Figure<MetricRows[Name]> } & {
  readonly [Name in OptionalName]?: Figure<MetricRows[Name]>;
};

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

/** Effect that another configuration would have on one pool now. The preview changes nothing. */
export interface PoolPreview {
  /** Slots that could be granted now and after the change, including what was learned. null means unlimited. */
  readonly slots: { readonly from: number | null; readonly to: number | null };
  readonly in_use: number;
  readonly queued: number;
  /** Waiters that would be granted immediately, and those that would be rejected. */
  readonly granted: number;
  readonly refused: number;
  /** Whether the change would leave its budget without room for a call. */
  readonly spends_budget: boolean;
  /** Members before or after the change. Empty if the group has none. */
  readonly members: readonly MemberPreview[];
}

/** Effect on one member. 0 slots if it does not exist, is disabled or is ejected. */
export interface MemberPreview {
  readonly member: string;
  readonly slots: PoolPreview['slots'];
  readonly in_use: number;
}
