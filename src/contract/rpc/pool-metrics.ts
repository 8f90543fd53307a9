import type { Histogram } from '../../core/parts/totals.ts';
import type { Figure, METRICS_ONLY } from '../gauges.ts';
import type { PoolStatus } from '../status.ts';

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
