import type { Histogram } from '../../core/parts/totals.ts';
import type { CostSums, CostTable } from '../../core/parts/costs.ts';
import { GAUGES, type Figure, type METRICS_ONLY, type GaugeRow } from '../gauges.ts';
import type { PoolStatus, LeaseInfo, WaiterInfo } from '../status.ts';
import type { Attention, Warning } from '../attention.ts';

/**
 * What pools report. Figures apart from their status: metrics, costs, and the preview of a change. Messages to the hub
 * of the dashboards: both sides may run different versions for minutes after a deploy, so fields are only added.
 */

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

/** Maximum number of leases, and of waiters, of a pool that are sent one by one. The others are only counted. */
export const DETAIL_ROWS_MAX = 200;

/** How long, and how often, the hub wants reports. */
export interface WatchSpan {
  /** End in epoch milliseconds. The hub extends it before if a dashboard is still open. */
  readonly untilAt: number;
  /** Minimum time between two reports of a pool. */
  readonly everyMs: number;
}

export interface PoolWatchRequest extends WatchSpan {
  /** Identifies the pool to the hub. */
  readonly key: string;
}

export interface WatchRequest extends PoolWatchRequest {
  /** Include leases and waiters. */
  readonly isDetailed: boolean;
}

/** The first leases and waiters of a pool. */
export interface PoolDetail {
  /** Oldest first. */
  readonly leases: readonly LeaseInfo[];
  /** In the order in which they will probably be granted. */
  readonly waiters: readonly WaiterInfo[];
  readonly leasesTotal: number;
  readonly waitersTotal: number;
}

export interface PoolReport {
  /** Clock of the pool in epoch milliseconds. Later reports have larger values. */
  readonly at: number;
  /** Version of the pool's configuration. If it is later than that of the hub, the hub updates its own. */
  readonly configVersion: number;
  readonly status: PoolStatus;
  /** null if it was not requested. */
  readonly detail: PoolDetail | null;
}

export type FeedWants = 'nothing' | 'status' | 'detail';

export interface FeedRpc {
  /** Opens a stream of server-sent events. The caller has checked the permission. */
  fetch(request: Request): Promise<Response>;
  push(key: string, report: PoolReport): Promise<FeedWants>;
  /** Queries all pools, and returns the attention list, the worst first. */
  attention(): Promise<readonly Attention[]>;
  warned(warning: Warning): Promise<void>;
}

/** Gauges that grow with time alone. */
export const AGEING_GAUGES = Object.entries<Pick<GaugeRow, 'shape' | 'ages'>>(GAUGES).flatMap(
  ([name, { ages }]) => (ages === undefined ? [] : [{ name: name as AgeingGauge, ages }]),
);

type AgeingGauge = {
  [Name in keyof typeof GAUGES]: 'ages' extends keyof (typeof GAUGES)[Name] ? Name : never;
}[keyof typeof GAUGES];

/** Fields that change with time alone, and need no report. */
const AGES: ReadonlySet<string> = new Set([
  ...AGEING_GAUGES.map(({ name }) => name),
  'at',
  'age_ms',
  'waited_ms',
  'estimate_ms',
]);

/**
 * Replacer for `JSON.stringify` that omits what changes with time alone, so that two texts differ only if there is
 * news. A change to null is news.
 */
export function withoutAges(name: string, value: unknown): unknown {
  return AGES.has(name) && value !== null ? undefined : value;
}
